import { environmentSays as say } from '../../../lib/editor/locale';
import { defaultAdvisor } from '../../../lib/default-advisor';
import { ask, faultText } from '../../../lib/editor/ask';
import { button, onKey, textBox, valueIn } from '../../../lib/editor/dom';
import type { Form } from '../../../lib/editor/red';
import { type Card, cardOf, type ListedAdvisor, notYet, shownIn } from './card';
import { second } from '../../../lib/durations';

const pollEvery = 2 * second;

/** The keys that were added to each environment since the editor was opened: a link can only be copied after a deploy. */
const addedTo = new Map<string, Set<string>>();

/**
 * The advisors of an environment. The list is polled while it is shown: a closed window reports nothing, and an advisor
 * may authorize on another device.
 */
export const addAdvisors = (form: Form): void => {
  const { node } = form;
  const cards = new Map<string, Card>();
  const added = addedTo.get(node.id) ?? new Set();
  addedTo.set(node.id, added);
  const list = $('<div>');
  const intro = $('<p>');
  const trouble = $('<p>', { class: 'advisor-warning', role: 'status' });
  let records: readonly ListedAdvisor[] = [];
  let isShown = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const isByCode = (): boolean => form.values()['grant'] !== 'client_credentials';

  const paint = (): void => {
    const byCode = isByCode();
    const listed = byCode ? records : records.filter(({ advisor }) => advisor === defaultAdvisor);
    const keys = [...new Set([...listed.map(({ advisor }) => advisor), ...(byCode ? added : [])])];
    if (keys.length === 0) keys.push(defaultAdvisor);
    for (const [key, card] of cards) {
      if (keys.includes(key)) continue;
      card.element.remove();
      cards.delete(key);
    }
    for (const key of keys) {
      const card = cards.get(key) ?? cardOf(key, form, isByCode, () => void load());
      if (!cards.has(key)) list.append(card.element);
      cards.set(key, card);
      card.update(listed.find(({ advisor }) => advisor === key) ?? notYet(key));
    }
    intro.text(byCode ? say('advisors.intro') : say('advisors.nobody'));
    adding.toggle(byCode);
  };

  const load = async (): Promise<void> => {
    clearTimeout(timer);
    const isClosed = section[0]?.isConnected !== true;
    if (isClosed) return;
    try {
      records = (await ask('GET', `${node.id}/advisors?${shownIn(form.values())}`)) as ListedAdvisor[];
      trouble.text('');
    } catch (fault) {
      trouble.text(faultText(fault));
    }
    if (!isShown) return;
    paint();
    // Another read may have finished meanwhile, and set the timer.
    clearTimeout(timer);
    timer = setTimeout(() => void load(), pollEvery);
  };

  const input = textBox(say('advisors.another'), say('advisors.key')).attr('maxlength', 200);
  const add = (): void => {
    const key = valueIn(input).trim();
    if (key === '') {
      input.trigger('focus');
      return;
    }
    added.add(key);
    // The default advisor, shown while there is no other, stays in the list.
    if (records.length === 0) added.add(defaultAdvisor);
    input.val('');
    paint();
    cards.get(key)?.focus();
  };
  onKey(input, 'Enter', add);
  const adding = $('<div>', { class: 'advisor-line' }).append(
    input,
    button('plus', say('advisors.add'), add),
  );

  const section = $('<div>', {
    class: 'advisor-advisors',
    role: 'group',
    'aria-label': say('advisors.title'),
  });
  section.append(
    $('<div>', { class: 'advisor-heading', text: say('advisors.title') }),
    intro,
    trouble,
    list,
    adding,
  );
  form.more.append(section);

  form.onChange((values) => {
    const wanted = values['service'] !== 'simulator';
    section.toggle(wanted);
    if (wanted && !isShown) void load();
    if (!wanted) clearTimeout(timer);
    isShown = wanted;
    if (wanted) paint();
  });
};
