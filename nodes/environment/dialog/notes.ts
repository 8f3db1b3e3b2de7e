import { ask } from '../../../lib/editor/ask';
import type { Form, Values } from '../../../lib/editor/red';

/** The phones, and the two pages that examples serve. */
const pages = ['advisor-texting/simulator/', 'new-contact', 'address-book']
  .map((path) => `a[href="${path}"]`)
  .join(', ');

/** In the notes of a flow, where the editor allows no `target`, a link to a page of ours would take the editor's place. */
export const openPagesApart = (): void => {
  document.addEventListener(
    'click',
    ({ target }) => {
      if (target instanceof Element) $(target).closest(pages).attr({ target: '_blank', rel: 'noopener' });
    },
    true,
  );
};

/** What decides where texts go: the service, and the origin of its address. */
const placeOf = ({ service, baseUrl }: Values): string => {
  if (service === 'simulator') return 'simulator';
  const address = typeof baseUrl === 'string' ? baseUrl.trim() : '';
  return JSON.stringify([service, URL.canParse(address) ? new URL(address).origin : address]);
};

/** Says, before an environment is pointed elsewhere, how much of what it has accepted will be cancelled. */
export const addPendingNote = (form: Form): void => {
  const { say, node } = form;
  const note = $('<p>', { class: 'advisor-warning', role: 'status' }).hide();
  form.row('service').after(note);
  const before = placeOf(form.values());
  let isAsked = false;
  form.onChange((values) => {
    const isElsewhere = placeOf(values) !== before;
    note.toggle(isElsewhere && note.text() !== '');
    if (!isElsewhere || isAsked) return;
    isAsked = true;
    ask(say, 'GET', `${encodeURIComponent(node.id)}/pending`).then(
      (answer) => {
        const { count } = answer as { count: number };
        if (count === 0) return;
        note.text(say('pending.moved', { count })).toggle(placeOf(form.values()) !== before);
      },
      // Without an answer there is no number to tell.
      () => undefined,
    );
  });
};

const isReal = (service: unknown): service is 'sandbox' | 'production' =>
  service === 'sandbox' || service === 'production';

/** From the sandbox to production, or back: what was filled in for one is not taken for the other without a word. */
export const addKeptNote = (form: Form): void => {
  const { say } = form;
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
