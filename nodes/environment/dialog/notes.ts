import { environmentSays as say } from '../../../lib/editor/locale';
import { ask, editorAddress, faultText } from '../../../lib/editor/ask';
import { button, iconButton, placeBeside, valueIn } from '../../../lib/editor/dom';
import { environments, placeOf } from '../../../lib/editor/flow';
import type { Form } from '../../../lib/editor/red';
import type { ServiceState } from '../../../lib/runtime/activity-items';
import { isVariable } from '../../../lib/runtime/settings';
import { lossIn, unfinishedIn } from './removal';

/** The phones page, and the two pages that examples serve. */
const pages = ['advisor-texting/simulator/', 'new-contact', 'address-book']
  .map((path) => `a[href="${path}"]`)
  .join(', ');

/**
 * The editor allows no `target` in the notes of a flow: without this, a link to one of these pages would replace the
 * editor.
 */
export const openPagesApart = (): void => {
  document.addEventListener(
    'click',
    ({ target }) => {
      if (target instanceof Element) $(target).closest(pages).attr({ target: '_blank', rel: 'noopener' });
    },
    true,
  );
};

/** Says, before an environment is pointed elsewhere, what will be cancelled. */
export const addPendingNote = (form: Form): void => {
  const { node } = form;
  const note = $('<p>', { class: 'advisor-warning', role: 'status' }).hide();
  form.row('service').after(note);
  const before = placeOf(form.values());
  let isAsked = false;
  form.onChange((values) => {
    const isElsewhere = placeOf(values) !== before;
    note.toggle(isElsewhere && note.text() !== '');
    if (!isElsewhere || isAsked) return;
    isAsked = true;
    void unfinishedIn(node.id).then((found) => {
      const loss = lossIn(found, (work) => say('pending.moved', { work }));
      if (loss !== undefined) note.text(loss).toggle(placeOf(form.values()) !== before);
    });
  });
};

/** Whether a name has the word for a service, in English as in the examples, or in the language of the editor. */
const isCalled = (name: unknown, service: string): boolean =>
  [service, say(`option.service.${service}`).toLowerCase()].some((word) =>
    String(name).toLowerCase().includes(word),
  );

/** The name, with a number if another environment has it. */
const freeName = (name: string): string => {
  const taken = new Set(environments().map((environment) => environment.name));
  let free = name;
  for (let number = 2; taken.has(free); number++) free = `${name} ${number}`;
  return free;
};

/** Suggests another name for an environment that is called by another service than its own. */
export const addNameNote = (form: Form): void => {
  let proposed = '';
  const use = button('tag', '', () => {
    form.set('name', proposed);
    form.input('name').trigger('focus');
  });
  const note = $('<div>', { class: 'advisor-hint advisor-rename', role: 'status' }).append(
    $('<span>', { text: say('rename.note') }),
    use,
  );
  form.row('name').append(note);
  form.onChange(({ name, service }) => {
    const others = ['simulator', 'sandbox', 'production'].filter((other) => other !== service);
    const isStale = !isVariable(service) && others.some((other) => isCalled(name, other));
    note.toggle(isStale);
    if (!isStale) return;
    proposed = freeName(say(`option.service.${String(service)}`));
    use.children('span').text(say('rename.use', { name: proposed }));
  });
};

const isReal = (service: unknown): service is 'sandbox' | 'production' =>
  service === 'sandbox' || service === 'production';

/** After a change between sandbox and production, says that the values of the other service are still filled in. */
export const addKeptNote = (form: Form): void => {
  const note = $('<p>', { class: 'advisor-warning', role: 'status' }).hide();
  form.row('service').after(note);
  const before = form.values();
  form.onChange(({ service, baseUrl }) => {
    const isKept = isReal(before['service']) && isReal(service) && service !== before['service'];
    const isSame = typeof baseUrl === 'string' && baseUrl !== '' && baseUrl === before['baseUrl'];
    note
      .text(isKept ? say(service === 'production' ? 'kept.production' : 'kept.sandbox') : '')
      .toggle(isKept && isSame);
  });
};

/** Says that the store was lost, and lets somebody confirm the empty one. */
export const addLostStoreNote = (form: Form): void => {
  const { node } = form;
  // An environment that was never deployed has no store.
  const added = RED.nodes.node(node.id);
  if (!added || added.changed === true) return;
  const path = encodeURIComponent(node.id);
  const note = $('<div>', { class: 'advisor-warning', role: 'status' }).hide();
  form.row('service').after(note);
  const confirm = (): void => {
    ask('POST', `${path}/store/confirm`).then(
      () => note.text(say('lostStore.confirmed')),
      (fault: unknown) => note.append($('<p>', { text: faultText(fault) })),
    );
  };
  ask('GET', `${path}/service`).then(
    (answer) => {
      const { isStoreLost, mayWrite } = answer as ServiceState;
      if (!isStoreLost) return;
      const actions = $('<div>', { class: 'advisor-actions' });
      if (mayWrite) actions.append(button('check', say('lostStore.confirm'), confirm));
      note.append($('<p>', { text: say('lostStore.text') }), actions).show();
    },
    // The environment is not deployed yet.
    () => undefined,
  );
};

/** Fills in the redirect URI once, when the field is first shown. A field that somebody has emptied stays empty. */
export const addRedirect = (form: Form): void => {
  const input = form.input('redirectUri');
  const note = $('<span>', { class: 'advisor-hint', role: 'status' });
  const copy = iconButton('copy', say('redirect.copy'), () => {
    const copied = RED.clipboard.copyText(valueIn(input));
    note.text(copied ? say('redirect.copied') : say('redirect.notCopied'));
  });
  placeBeside(form.row('redirectUri'), copy);
  form.row('redirectUri').append(note);
  let isPrefilled = false;
  form.onChange((values) => {
    if (isPrefilled || values['service'] === 'simulator') return;
    isPrefilled = true;
    if (values['redirectUri'] === '') form.set('redirectUri', editorAddress('advisor-texting/callback'));
  });
};
