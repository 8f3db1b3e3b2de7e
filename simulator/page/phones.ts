import { byId, button, element, showList } from './dom';
import { matches } from './filter';
import { drawPhone, lastActivity, openRequest } from './phone';
import type { Drawing, PhoneActions } from './phone';
import type { Phone } from './shape';
import { isUpcoming } from './thread';
import { fullDay } from './when';
import { number, say } from './words';

/** The number of phones that are shown at first, and that each press of the button adds. */
const step = 24;

const list = byId('phone-list', HTMLElement);
const empty = byId('phones-empty', HTMLElement);
const more = byId('more-phones', HTMLButtonElement);
let limit = step;

const version = (phone: Phone, { now, hasSeveral }: Drawing, actions: PhoneActions): string =>
  JSON.stringify([
    phone,
    phone.lines.map((line) => {
      const request = openRequest(line);
      const upcoming = line.messages.filter((message) => isUpcoming(message, now)).length;
      return [request !== undefined && actions.isSilent(line, request), upcoming];
    }),
    hasSeveral,
    fullDay(now),
  ]);

const noMatch = (clear: () => void): readonly HTMLElement[] => [
  element('h2', {}, say('phones.noMatch')),
  element('p', {}, say('phones.noMatchText')),
  button(say('phones.clear'), '', clear),
];

const nothingYet = (...steps: HTMLElement[]): readonly HTMLElement[] => [
  element('h2', {}, say('phones.nothing')),
  element('p', {}, say('phones.whatComes')),
  ...steps,
  element('p', { class: 'subtle' }, say('phones.anyNumber')),
];

const firstSteps = (): readonly HTMLElement[] =>
  nothingYet(
    element(
      'ol',
      {},
      element('li', {}, say('phones.import')),
      element('li', {}, say('phones.deploy')),
      element('li', {}, say('phones.inject')),
    ),
  );

const nextStep = (): readonly HTMLElement[] => nothingYet(element('p', {}, say('phones.flowsAreThere')));

type Explanation = 'nothing' | 'first steps' | 'next step' | 'no match';

const explain = (shown: Explanation, clear: () => void): void => {
  empty.hidden = shown === 'nothing';
  if (empty.dataset['shown'] === shown) return;
  empty.dataset['shown'] = shown;
  const said = {
    nothing: () => [],
    'first steps': firstSteps,
    'next step': nextStep,
    'no match': () => noMatch(clear),
  };
  empty.replaceChildren(...said[shown]());
};

export interface Shown extends Drawing {
  readonly phones: readonly Phone[];
  readonly filter: string;
  readonly hasFlows: boolean | null;
}

export const showPhones = (shown: Shown, actions: PhoneActions, clearFilter: () => void): void => {
  const { phones, now, filter, hasFlows } = shown;
  const found = phones
    .filter((phone) => matches(phone, filter))
    .map((phone) => ({ phone, latest: lastActivity(phone, now) }))
    .sort((one, other) => other.latest - one.latest)
    .map(({ phone }) => phone);
  showList(list, found.slice(0, limit), {
    key: ({ phone }) => phone,
    version: (phone) => version(phone, shown, actions),
    draw: (phone) => drawPhone(phone, shown, actions),
  });
  const isQuiet = phones.every(({ lines }) => lines.every(({ messages }) => messages.length === 0));
  const quiet = hasFlows === true ? 'next step' : 'first steps';
  explain(filter.trim() !== '' && found.length === 0 ? 'no match' : isQuiet ? quiet : 'nothing', clearFilter);
  const hidden = found.length - limit;
  more.hidden = hidden <= 0;
  const count = number(Math.max(0, Math.min(step, hidden)));
  more.textContent = say('phones.more', { count, total: number(found.length) });
  more.onclick = () => {
    limit += step;
    showPhones(shown, actions, clearFilter);
  };
};
