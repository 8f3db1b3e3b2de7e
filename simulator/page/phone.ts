import { button, element } from './dom';
import type { Message, Phone } from './shape';
import { arrival, isUpcoming, thread } from './thread';
import { clockTime } from './when';
import { listed, say } from './words';

export interface PhoneActions {
  answer(phone: Phone, answer: 'accept' | 'decline'): void;
  wipe(phone: Phone): void;
  silence(phone: Phone, request: Message, silent: boolean): void;
  isSilent(phone: Phone, request: Message): boolean;
}

const tints = 8;

const consentStates = ['none', 'pending', 'accepted'] as const;

/** A state that the contract may yet show is shown as it is. */
const consentText = (consent: string): string => {
  const known = consentStates.find((state) => state === consent);
  return known === undefined ? consent : say(`phone.${known}`);
};

export const displayName = (phone: Phone): string => phone.name.trim() || say('phone.noName');

const initials = (name: string): string =>
  name
    .split(/\s+/u)
    .flatMap((word) => /[\p{L}\p{N}]/u.exec(word)?.[0] ?? [])
    .slice(0, 2)
    .join('')
    .toUpperCase();

/** `+12025550123` as `+1 202 555 0123`; other countries stay in one piece. */
export const readableNumber = (phone: string): string =>
  phone.replace(/^\+1(\d{3})(\d{3})(\d{4})$/u, '+1 $1 $2 $3');

/** The consent request that nobody has answered yet, if that is how things stand. */
export const openRequest = (phone: Phone): Message | undefined => {
  if (phone.consent === 'accepted') return undefined;
  const last = phone.messages.filter((message) => message.kind !== 'text').at(-1);
  return last?.kind === 'consent-request' ? last : undefined;
};

/** What just arrived or was just scheduled brings its phone to the front; answering leaves it where it is. */
export const lastActivity = (phone: Phone, now: number): number =>
  phone.messages
    .filter((message) => message.kind !== 'reply')
    .reduce(
      (latest, message) => Math.max(latest, isUpcoming(message, now) ? message.at : arrival(message)),
      0,
    );

const caption = (phone: Phone): HTMLElement =>
  element(
    'header',
    {},
    element(
      'span',
      { class: 'avatar', 'data-tint': String(Number(phone.phone.slice(-2)) % tints), 'aria-hidden': 'true' },
      initials(phone.name) || '#',
    ),
    element(
      'div',
      { class: 'who' },
      element('h2', { dir: 'auto', title: displayName(phone) }, displayName(phone)),
      element('p', { class: 'phone-number' }, readableNumber(phone.phone)),
    ),
  );

/** Who texts, and what this phone has agreed to: consent is given to one advisor. */
const sender = (phone: Phone, advisorName: string): HTMLElement =>
  element(
    'div',
    { class: 'sender' },
    element(
      'p',
      {},
      element('span', {}, say('advisor.label')),
      element('b', { dir: 'auto', title: advisorName }, advisorName),
    ),
    element(
      'p',
      { class: 'badge', 'data-consent': phone.consent },
      element('span', { class: 'unseen' }, `${say('phone.consent')} `),
      element('span', {}, consentText(phone.consent)),
    ),
  );

/** What the person holding this phone can do just now. */
const answers = (phone: Phone, actions: PhoneActions): HTMLElement => {
  const action = (label: string, kind: string, name: string, press: () => void): HTMLButtonElement => {
    const made = button(label, kind, press);
    made.dataset['action'] = name;
    made.setAttribute('aria-label', listed(label, displayName(phone), readableNumber(phone.phone)));
    return made;
  };
  const accept = (label: string): HTMLButtonElement =>
    action(label, 'accept', 'accept', () => {
      actions.answer(phone, 'accept');
    });
  const decline = (): HTMLButtonElement =>
    action(say('phone.decline'), 'decline', 'decline', () => {
      actions.answer(phone, 'decline');
    });
  const wipe = (): HTMLButtonElement => {
    const made = action(say('phone.wipe'), 'quiet wide', 'wipe', () => {
      actions.wipe(phone);
    });
    made.title = say('phone.wipeHint');
    return made;
  };
  const bar = element('div', { class: 'answers' });
  const request = openRequest(phone);
  if (request !== undefined && !actions.isSilent(phone, request)) {
    const silent = action(say('phone.silent'), 'quiet wide', 'silent', () => {
      actions.silence(phone, request, true);
    });
    bar.append(accept(say('phone.accept')), decline(), silent);
  } else if (request !== undefined) {
    const change = action(say('phone.answer'), 'quiet wide', 'silent', () => {
      actions.silence(phone, request, false);
    });
    bar.append(element('p', {}, say('phone.isSilent')), change);
  } else if (phone.consent === 'accepted') {
    bar.append(element('p', {}, say('phone.isAccepted')));
    if (phone.messages.length > 0) bar.append(wipe());
  } else if (phone.messages.some((message) => message.kind === 'consent-request')) {
    bar.append(element('p', {}, say('phone.isDeclined')), accept(say('phone.acceptAfterAll')), wipe());
  } else {
    bar.append(element('p', {}, say('phone.isNotAsked')));
    if (phone.messages.length > 0) bar.append(wipe());
  }
  return bar;
};

export const drawPhone = (
  phone: Phone,
  now: number,
  advisorName: string,
  actions: PhoneActions,
): HTMLElement =>
  element(
    'article',
    { class: 'phone', tabindex: '-1', 'aria-label': listed(displayName(phone), readableNumber(phone.phone)) },
    caption(phone),
    element(
      'div',
      { class: 'frame' },
      element(
        'div',
        { class: 'screen' },
        element(
          'div',
          { class: 'island', 'aria-hidden': 'true' },
          element('span', { class: 'phone-time' }, clockTime(now)),
          element('i'),
          element('span', { class: 'battery' }),
        ),
        sender(phone, advisorName),
        thread(phone.messages, now, displayName(phone)),
        answers(phone, actions),
      ),
    ),
  );
