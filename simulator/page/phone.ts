import { button, element } from './dom';
import type { ShownLine, PhoneMessage, Phone } from './shape';
import { arrivesAt, isUpcoming, thread } from './thread';
import { clockTime } from './when';
import { listed, say } from './words';

export interface PhoneActions {
  answer(line: ShownLine, answer: 'accept' | 'decline'): void;
  wipe(phone: Phone): void;
  silence(line: ShownLine, request: PhoneMessage, silent: boolean): void;
  isSilent(line: ShownLine, request: PhoneMessage): boolean;
}

const tints = 8;

const consentStates = ['none', 'pending', 'accepted'] as const;

/** An unknown consent state is shown unchanged: the contract's list is not complete (*States and transitions*). */
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

/** `+12025550123` as `+1 202 555 0123`; numbers of other countries are not divided. */
export const readableNumber = (phone: string): string =>
  phone.replace(/^\+1(\d{3})(\d{3})(\d{4})$/u, '+1 $1 $2 $3');

/** One phone for each number. Advisors who have not texted the number are shown only while no advisor has. */
export const phonesOf = (lines: readonly ShownLine[]): Phone[] => {
  const byNumber = new Map<string, ShownLine[]>();
  for (const line of lines) byNumber.set(line.phone, [...(byNumber.get(line.phone) ?? []), line]);
  return [...byNumber].map(([phone, all]) => {
    const busy = all.filter(({ messages }) => messages.length > 0);
    const shown = busy.length > 0 ? busy : all.slice(0, 1);
    return { phone, name: [...shown, ...all].find(({ name }) => name.trim())?.name ?? '', lines: shown };
  });
};

/** The consent request that has not been answered yet, if there is one. */
export const openRequest = (line: ShownLine): PhoneMessage | undefined => {
  if (line.consent === 'accepted') return undefined;
  const last = line.messages.filter((message) => message.kind !== 'text').at(-1);
  return last?.kind === 'consent-request' ? last : undefined;
};

/** A text that has just arrived or was just scheduled brings its phone to the front; an answer leaves it where it is. */
export const lastActivity = (phone: Phone, now: number): number =>
  phone.lines
    .flatMap(({ messages }) => messages)
    .filter((message) => message.kind !== 'reply')
    .reduce(
      (latest, message) => Math.max(latest, isUpcoming(message, now) ? message.at : arrivesAt(message)),
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

/** The advisor, and the consent that this phone has given: consent is given to one advisor. */
const sender = (line: ShownLine, advisorName: string, isAlone: boolean): HTMLElement =>
  element(
    'div',
    { class: 'sender' },
    element(
      'p',
      {},
      ...(isAlone ? [element('span', {}, say('advisor.label'))] : []),
      element('b', { dir: 'auto', title: advisorName }, advisorName),
    ),
    element(
      'p',
      { class: 'badge', 'data-consent': line.consent },
      element('span', { class: 'unseen' }, `${say('phone.consent')} `),
      element('span', {}, consentText(line.consent)),
    ),
  );

/** What the person with this phone can do now. */
const answers = (
  phone: Phone,
  advisorName: (advisor: string) => string,
  actions: PhoneActions,
): HTMLElement => {
  const isAlone = phone.lines.length === 1;
  const action = (
    label: string,
    kind: string,
    name: string,
    line: ShownLine | undefined,
    press: () => void,
  ): HTMLButtonElement => {
    const made = button(label, kind, press);
    made.dataset['action'] = name;
    const whom = isAlone || line === undefined ? [] : [advisorName(line.advisor)];
    made.setAttribute('aria-label', listed(label, displayName(phone), readableNumber(phone.phone), ...whom));
    return made;
  };
  const accept = (line: ShownLine, label: string): HTMLButtonElement =>
    action(label, 'accept', 'accept', line, () => {
      actions.answer(line, 'accept');
    });
  const answersTo = (line: ShownLine): HTMLElement[] => {
    const request = openRequest(line);
    if (request !== undefined && !actions.isSilent(line, request)) {
      const decline = action(say('phone.decline'), 'decline', 'decline', line, () => {
        actions.answer(line, 'decline');
      });
      const silent = action(say('phone.silent'), 'quiet wide', 'silent', line, () => {
        actions.silence(line, request, true);
      });
      return [accept(line, say('phone.accept')), decline, silent];
    }
    if (request !== undefined) {
      const change = action(say('phone.answer'), 'quiet wide', 'silent', line, () => {
        actions.silence(line, request, false);
      });
      return [element('p', {}, say('phone.isSilent')), change];
    }
    if (line.consent === 'accepted') return [element('p', {}, say('phone.isAccepted'))];
    if (line.messages.some((message) => message.kind === 'consent-request')) {
      return [element('p', {}, say('phone.isDeclined')), accept(line, say('phone.acceptAfterAll'))];
    }
    return [element('p', {}, say('phone.isNotAsked'))];
  };
  const bar = element('div', { class: 'answers' });
  for (const line of phone.lines) {
    const made = answersTo(line);
    const name = advisorName(line.advisor);
    if (isAlone) bar.append(...made);
    // Among several advisors, those for whom there is nothing to press are shown by their badges alone.
    else if (made.length > 1) {
      bar.append(
        element(
          'div',
          { class: 'answer-to', role: 'group', 'aria-label': name },
          element('h3', { dir: 'auto' }, name),
          ...made,
        ),
      );
    }
  }
  const isAsked = phone.lines.some((line) => openRequest(line) !== undefined);
  if (!isAsked && phone.lines.some(({ messages }) => messages.length > 0)) {
    const wipe = action(say('phone.wipe'), 'quiet wide', 'wipe', undefined, () => {
      actions.wipe(phone);
    });
    wipe.title = say('phone.wipeHint');
    bar.append(wipe);
  }
  return bar;
};

export interface Drawing {
  readonly now: number;
  readonly advisorName: (advisor: string) => string;
  /** Whether several advisors are shown: each message then names its advisor. */
  readonly hasSeveral: boolean;
}

export const drawPhone = (
  phone: Phone,
  { now, advisorName, hasSeveral }: Drawing,
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
        ...phone.lines.map((line) => sender(line, advisorName(line.advisor), phone.lines.length === 1)),
        thread(phone.lines, now, displayName(phone), hasSeveral ? advisorName : undefined),
        answers(phone, advisorName, actions),
      ),
    ),
  );
