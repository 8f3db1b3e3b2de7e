import { element } from './dom';
import type { ShownLine, PhoneMessage } from './shape';
import { clockTime, isoTime, moment, sameDay, shortDay } from './when';
import { say } from './words';

/** The most messages shown in one phone; the Messages tab has all of them. */
const longest = 60;

/** When the message arrives on the phone; `at` is when the service accepted it. */
export const arrivesAt = (message: PhoneMessage): number => message.scheduledFor ?? message.at;

export const isUpcoming = (message: PhoneMessage, now: number): boolean => arrivesAt(message) > now;

/** Undefined if only one advisor texts: messages then need no name. */
type NameAdvisor = ((advisor: string) => string) | undefined;

const note = (message: PhoneMessage, now: number): string => {
  if (message.scheduledFor === null) return clockTime(message.at);
  return isUpcoming(message, now)
    ? say('thread.scheduled', { time: moment(message.scheduledFor, now) })
    : say('thread.asScheduled', { time: clockTime(message.scheduledFor) });
};

const bubble = (message: PhoneMessage, now: number, advisor: string | undefined): HTMLElement => {
  const made = element('li', { class: `bubble ${message.kind}` });
  if (isUpcoming(message, now)) made.classList.add('upcoming');
  if (advisor !== undefined) {
    const whose = message.kind === 'reply' ? say('thread.to', { name: advisor }) : advisor;
    made.append(element('span', { class: 'from', dir: 'auto' }, whose));
  }
  if (message.kind === 'consent-request') made.append(element('strong', {}, say('message.consent-request')));
  made.append(
    element('p', { dir: 'auto' }, message.text),
    element('time', { datetime: isoTime(arrivesAt(message)) }, note(message, now)),
  );
  return made;
};

/** The messages on one phone, the oldest first as phones show them, divided by day. */
export const thread = (
  lines: readonly ShownLine[],
  now: number,
  owner: string,
  nameAdvisor: NameAdvisor,
): HTMLElement => {
  const list = element('ol');
  const all = lines
    .flatMap(({ advisor, messages }) => messages.map((message) => ({ advisor, message })))
    .sort((one, other) => arrivesAt(one.message) - arrivesAt(other.message));
  if (all.length === 0) list.append(element('li', { class: 'day' }, say('thread.nothing')));
  let previous: number | undefined;
  for (const { advisor, message } of all.slice(-longest)) {
    if (previous === undefined || !sameDay(previous, arrivesAt(message))) {
      const today = sameDay(arrivesAt(message), now) ? say('thread.today') : shortDay(arrivesAt(message));
      list.append(element('li', { class: 'day' }, today));
    }
    previous = arrivesAt(message);
    list.append(bubble(message, now, nameAdvisor?.(advisor)));
  }
  return element(
    'div',
    { class: 'thread', tabindex: '0', role: 'group', 'aria-label': say('thread.label', { name: owner }) },
    list,
  );
};
