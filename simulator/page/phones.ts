import { byId, button, element, showList } from './dom';
import { matches } from './filter';
import { drawPhone, lastActivity, openRequest } from './phone';
import type { PhoneActions } from './phone';
import type { Phone } from './shape';
import { isUpcoming } from './thread';
import { fullDay } from './when';
import { number, say } from './words';

/** Phones drawn at first, and with each press of the button below them. */
const step = 24;

const list = byId('phone-list', HTMLElement);
const empty = byId('phones-empty', HTMLElement);
const more = byId('more-phones', HTMLButtonElement);
let limit = step;

const version = (phone: Phone, now: number, actions: PhoneActions): string => {
  const request = openRequest(phone);
  const upcoming = phone.messages.filter((message) => isUpcoming(message, now)).length;
  return JSON.stringify([
    phone,
    request !== undefined && actions.isSilent(phone, request),
    upcoming,
    fullDay(now),
  ]);
};

const noMatch = (clear: () => void): readonly HTMLElement[] => [
  element('h2', {}, say('phones.noMatch')),
  element('p', {}, say('phones.noMatchText')),
  button(say('phones.clear'), '', clear),
];

const whatToDo = (): readonly HTMLElement[] => [
  element('h2', {}, say('phones.nothing')),
  element('p', {}, say('phones.whatComes')),
  element(
    'ol',
    {},
    element('li', {}, say('phones.import')),
    element('li', {}, say('phones.deploy')),
    element('li', {}, say('phones.inject')),
  ),
  element('p', { class: 'subtle' }, say('phones.anyNumber')),
];

const explain = (shown: 'nothing' | 'first steps' | 'no match', clear: () => void): void => {
  empty.hidden = shown === 'nothing';
  if (empty.dataset['shown'] === shown) return;
  empty.dataset['shown'] = shown;
  empty.replaceChildren(...(shown === 'nothing' ? [] : shown === 'no match' ? noMatch(clear) : whatToDo()));
};

export interface Shown {
  readonly phones: readonly Phone[];
  readonly now: number;
  readonly filter: string;
  readonly advisorName: (advisor: string) => string;
}

export const showPhones = (shown: Shown, actions: PhoneActions, clearFilter: () => void): void => {
  const { phones, now, filter, advisorName } = shown;
  const found = phones
    .filter((phone) => matches(phone, filter))
    .map((phone) => ({ phone, latest: lastActivity(phone, now) }))
    .sort((one, other) => other.latest - one.latest)
    .map(({ phone }) => phone);
  showList(list, found.slice(0, limit), {
    key: (phone) => `${phone.advisor} ${phone.phone}`,
    version: (phone) => version(phone, now, actions),
    draw: (phone) => drawPhone(phone, now, advisorName(phone.advisor), actions),
  });
  const quiet = phones.every((phone) => phone.messages.length === 0);
  explain(
    filter.trim() !== '' && found.length === 0 ? 'no match' : quiet ? 'first steps' : 'nothing',
    clearFilter,
  );
  const hidden = found.length - limit;
  more.hidden = hidden <= 0;
  const count = number(Math.max(0, Math.min(step, hidden)));
  more.textContent = say('phones.more', { count, total: number(found.length) });
  more.onclick = () => {
    limit += step;
    showPhones(shown, actions, clearFilter);
  };
};
