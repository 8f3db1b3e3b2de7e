import { byId, element, showList } from './dom';
import { displayName, readableNumber } from './phone';
import { matches } from './filter';
import type { PhoneMessage, Phone } from './shape';
import { isUpcoming } from './thread';
import { dayAndTime, isoTime, moment } from './when';
import { number, say } from './words';

const step = 100;

const rows = byId('message-rows', HTMLElement);
const empty = byId('messages-empty', HTMLElement);
const more = byId('more-messages', HTMLButtonElement);
let limit = step;

interface MessageRow {
  readonly phone: Phone;
  readonly advisor: string;
  readonly message: PhoneMessage;
}

const draw = ({ phone, message }: MessageRow, now: number, advisorName: string): HTMLElement => {
  const what = element('span', { class: `kind ${message.kind}` }, say(`message.${message.kind}`));
  const when = element(
    'td',
    { class: 'when' },
    element('time', { datetime: isoTime(message.at) }, dayAndTime(message.at)),
  );
  if (message.scheduledFor !== null) {
    const tense = isUpcoming(message, now) ? 'messages.scheduled' : 'messages.wasScheduled';
    when.append(element('small', {}, say(tense, { time: moment(message.scheduledFor, now) })));
  }
  return element(
    'tr',
    {},
    when,
    element(
      'td',
      { class: 'person' },
      element('b', { dir: 'auto' }, displayName(phone)),
      element('small', { class: 'phone-number' }, readableNumber(phone.phone)),
    ),
    element('td', { class: 'whose-column', dir: 'auto' }, advisorName),
    element('td', { class: 'what' }, what),
    element('td', { class: 'text', dir: 'auto' }, message.text),
  );
};

export const showMessages = (
  phones: readonly Phone[],
  now: number,
  filter: string,
  advisorName: (advisor: string) => string,
): void => {
  const found = phones
    .filter((phone) => matches(phone, filter))
    .flatMap((phone) =>
      phone.lines.flatMap(({ advisor, messages }) =>
        messages.map((message): MessageRow => ({ phone, advisor, message })),
      ),
    )
    .sort((one, other) => other.message.at - one.message.at || other.message.id - one.message.id);
  showList(rows, found.slice(0, limit), {
    key: ({ phone, advisor, message }) => `${advisor} ${phone.phone} ${String(message.id)}`,
    version: ({ phone, message }) => JSON.stringify([phone.name, message, isUpcoming(message, now)]),
    draw: (row) => draw(row, now, advisorName(row.advisor)),
  });
  empty.hidden = found.length > 0;
  empty.textContent = say(filter.trim() === '' ? 'messages.none' : 'messages.noMatch');
  const hidden = found.length - limit;
  more.hidden = hidden <= 0;
  more.textContent = say('messages.more', {
    count: number(Math.min(step, hidden)),
    total: number(found.length),
  });
  more.onclick = () => {
    limit += step;
    showMessages(phones, now, filter, advisorName);
  };
};
