import { element } from './dom';
import type { Message } from './shape';
import { clockTime, moment, sameDay, shortDay } from './when';

/** More than this nobody scrolls through in a phone of this size; the Messages tab has all of them. */
const longest = 60;

/** Whether it is still to come. */
export const due = (message: Message, now: number): boolean => (message.scheduledFor ?? 0) > now;

const note = (message: Message, now: number): string => {
  if (message.scheduledFor == null) return clockTime(message.at);
  return due(message, now)
    ? `scheduled for ${moment(message.scheduledFor, now)}`
    : `scheduled, arrived ${clockTime(message.scheduledFor)}`;
};

export const kindLabel: Readonly<Record<Message['kind'], string>> = {
  text: 'Text',
  'consent-request': 'Consent request',
  reply: 'Reply',
};

const bubble = (message: Message, now: number): HTMLElement => {
  const made = element('li', { class: `bubble ${message.kind}` });
  if (due(message, now)) made.classList.add('upcoming');
  if (message.kind === 'consent-request') made.append(element('strong', {}, kindLabel[message.kind]));
  made.append(
    element('p', { dir: 'auto' }, message.text),
    element('time', { datetime: new Date(message.at).toISOString() }, note(message, now)),
  );
  return made;
};

/** What arrived on one phone, oldest first as phones show it, with the days marked. */
export const thread = (messages: readonly Message[], now: number, owner: string): HTMLElement => {
  const list = element('ol');
  if (messages.length === 0) list.append(element('li', { class: 'day' }, 'Nothing has arrived yet'));
  let previous: number | undefined;
  for (const message of messages.slice(-longest)) {
    if (previous === undefined || !sameDay(previous, message.at)) {
      const today = sameDay(message.at, now) ? 'Today' : shortDay(message.at);
      list.append(element('li', { class: 'day' }, today));
    }
    previous = message.at;
    list.append(bubble(message, now));
  }
  return element(
    'div',
    { class: 'thread', tabindex: '0', role: 'group', 'aria-label': `What arrived for ${owner}` },
    list,
  );
};
