import { byId, element, showList } from './dom';
import { displayName, readableNumber } from './phone';
import { matches } from './filter';
import type { Message, Phone } from './shape';
import { isUpcoming, kindLabel } from './thread';
import { clockTime, isoTime, moment, shortDay } from './when';

const step = 100;

const rows = byId('message-rows', HTMLElement);
const empty = byId('messages-empty', HTMLElement);
const more = byId('more-messages', HTMLButtonElement);
let limit = step;

interface Line {
  readonly phone: Phone;
  readonly message: Message;
}

const draw = ({ phone, message }: Line, now: number): HTMLElement => {
  const what = element('span', { class: `kind ${message.kind}` }, kindLabel[message.kind]);
  const when = element(
    'td',
    { class: 'when' },
    element('time', { datetime: isoTime(message.at) }, `${shortDay(message.at)}, ${clockTime(message.at)}`),
  );
  if (message.scheduledFor !== null) {
    const tense = isUpcoming(message, now) ? 'scheduled for' : 'was scheduled for';
    when.append(element('small', {}, `${tense} ${moment(message.scheduledFor, now)}`));
  }
  return element(
    'tr',
    {},
    when,
    element(
      'td',
      {},
      element('b', { dir: 'auto' }, displayName(phone)),
      element('small', {}, readableNumber(phone.phone)),
    ),
    element('td', {}, what),
    element('td', { class: 'text', dir: 'auto' }, message.text),
  );
};

export const showMessages = (phones: readonly Phone[], now: number, filter: string): void => {
  const found = phones
    .filter((phone) => matches(phone, filter))
    .flatMap((phone) => phone.messages.map((message): Line => ({ phone, message })))
    .sort((one, other) => other.message.at - one.message.at);
  showList(rows, found.slice(0, limit), {
    key: ({ phone, message }) => `${phone.advisor} ${phone.phone} ${String(message.id)}`,
    version: ({ phone, message }) => JSON.stringify([phone.name, message, isUpcoming(message, now)]),
    draw: (line) => draw(line, now),
  });
  empty.hidden = found.length > 0;
  empty.textContent = filter.trim() === '' ? 'No messages yet.' : 'No message matches the filter.';
  const hidden = found.length - limit;
  more.hidden = hidden <= 0;
  more.textContent = `Show ${String(Math.min(step, hidden))} more of ${String(found.length)} messages`;
  more.onclick = () => {
    limit += step;
    showMessages(phones, now, filter);
  };
};
