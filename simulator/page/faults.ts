import { problemCodes, type ProblemCode } from '../codes';
import type { EffectKind, Fault, FaultTarget } from '../effects';
import { byId, element, showList } from './dom';
import { readableNumber } from './phone';
import { number, say, share, strings } from './words';

const requests = Object.keys(strings.faults.request) as FaultTarget[];
const ways = Object.keys(strings.faults.way) as EffectKind[];

const frequencies = [
  ['next', { next: 1 }],
  ['next3', { next: 3 }],
  ['tenth', { rate: 0.1 }],
  ['every', { rate: 1 }],
] as const satisfies readonly (readonly [name: string, often: Fault])[];

const endpoint = byId('fault-endpoint', HTMLSelectElement);
const what = byId('fault-what', HTMLSelectElement);
const often = byId('fault-often', HTMLSelectElement);
const list = byId('faults', HTMLElement);
const clear = byId('clear-faults', HTMLButtonElement);

const option = (value: string, label: string): HTMLElement => element('option', { value }, label);

const chosen = (): Fault => ({
  ...(endpoint.value === '' ? {} : { endpoint: endpoint.value as FaultTarget }),
  ...(what.value in strings.faults.way
    ? { kind: what.value as EffectKind }
    : { code: what.value as ProblemCode }),
  ...frequencies[often.selectedIndex]?.[1],
});

const faultItem = (fault: Fault): HTMLElement => {
  const where = say(fault.endpoint === undefined ? 'faults.any' : `faults.request.${fault.endpoint}`);
  const what =
    fault.kind === undefined
      ? (fault.code ?? say('faults.status', { status: String(fault.status) }))
      : say(`faults.way.${fault.kind}`);
  if (fault.phone === undefined) return element('span', {}, `${where}: ${what}`);
  const who = element('span', { class: 'phone-number' }, `(${readableNumber(fault.phone)})`);
  return element('span', {}, `${where} `, who, `: ${what}`);
};

const remaining = (fault: Fault): string => {
  if (fault.next !== undefined)
    return fault.next === 1
      ? say('faults.left.next')
      : say('faults.left.some', { count: number(fault.next) });
  return fault.rate === undefined || fault.rate >= 1
    ? say('faults.left.every')
    : say('faults.left.share', { share: share(fault.rate) });
};

export const showFaults = (faults: readonly Fault[]): void => {
  showList(
    list,
    faults.map((fault, index) => ({ fault, index })),
    {
      key: ({ index }) => String(index),
      version: ({ fault }) => JSON.stringify(fault),
      draw: ({ fault }) => element('li', {}, faultItem(fault), element('small', {}, remaining(fault))),
    },
  );
  list.hidden = faults.length === 0;
  clear.hidden = faults.length === 0;
};

export const startFaults = (add: (fault: Fault) => void, clearAll: () => void): void => {
  endpoint.append(option('', say('faults.any')));
  for (const name of requests) endpoint.append(option(name, say(`faults.request.${name}`)));
  const errors = element('optgroup', { label: say('faults.service') });
  for (const [code, { status }] of Object.entries(problemCodes)) {
    errors.append(option(code, `${String(status)} ${code}`));
  }
  const network = element('optgroup', { label: say('faults.network') });
  for (const kind of ways) network.append(option(kind, say(`faults.way.${kind}`)));
  what.append(errors, network);
  what.value = 'internal_error';
  often.append(...frequencies.map(([name]) => option(name, say(`faults.often.${name}`))));
  byId('fault-form', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    add(chosen());
  });
  clear.addEventListener('click', clearAll);
};
