import { byId, button, element, showList } from './dom';
import { drawPhone, lastActivity, openRequest } from './phone';
import type { PhoneActions } from './phone';
import type { Phone } from './shape';
import { isUpcoming } from './thread';
import { fullDay } from './when';

/** Phones drawn at first, and with each press of the button below them. */
const step = 24;

const list = byId('phone-list', HTMLElement);
const empty = byId('phones-empty', HTMLElement);
const more = byId('more-phones', HTMLButtonElement);
let limit = step;

/** Digits match however the number is written; everything else as plain text in any case. */
export const matches = (phone: Phone, filter: string): boolean => {
  const wanted = filter.trim().toLowerCase();
  if (wanted === '') return true;
  const digits = wanted.replace(/[^\d]/gu, '');
  const numberLike = /^[+\d\s().-]+$/u.test(wanted);
  return (
    (numberLike && digits !== '' && phone.phone.includes(digits)) ||
    phone.name.toLowerCase().includes(wanted) ||
    phone.messages.some((message) => message.text.toLowerCase().includes(wanted))
  );
};

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

const explain = (filter: string, clear: () => void): readonly HTMLElement[] =>
  filter.trim() !== ''
    ? [
        element('h2', {}, 'No phone matches'),
        element('p', {}, 'Nothing here has that name, number or text.'),
        button('Clear the filter', '', clear),
      ]
    : [
        element('h2', {}, 'No phones yet'),
        element('p', {}, 'As soon as somebody is texted, a phone with what arrived appears here.'),
        element(
          'ol',
          {},
          element(
            'li',
            {},
            'In Node-RED, import an example of advisor texting, or build a flow with “send text”.',
          ),
          element('li', {}, 'Leave its environment on “Simulator” and deploy.'),
          element(
            'li',
            {},
            'Press the inject button, then come back: the text is on a phone, with nobody texted.',
          ),
        ),
        element('p', { class: 'subtle' }, 'Fictional numbers such as +1 202 555 0123 are a good choice.'),
      ];

export const showPhones = (
  phones: readonly Phone[],
  now: number,
  filter: string,
  actions: PhoneActions,
  clearFilter: () => void,
): void => {
  const found = phones
    .filter((phone) => matches(phone, filter))
    .map((phone) => ({ phone, latest: lastActivity(phone, now) }))
    .sort((one, other) => other.latest - one.latest)
    .map(({ phone }) => phone);
  showList(list, found.slice(0, limit), {
    key: (phone) => `${phone.advisor} ${phone.phone}`,
    version: (phone) => version(phone, now, actions),
    draw: (phone) => drawPhone(phone, now, actions),
  });
  empty.hidden = found.length > 0;
  empty.replaceChildren(...(found.length > 0 ? [] : explain(filter, clearFilter)));
  const hidden = found.length - limit;
  more.hidden = hidden <= 0;
  more.textContent = `Show ${String(Math.min(step, hidden))} more of ${String(found.length)} phones`;
  more.onclick = () => {
    limit += step;
    showPhones(phones, now, filter, actions, clearFilter);
  };
};
