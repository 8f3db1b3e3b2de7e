import { serviceCodes, type ServiceCode } from '../../lib/service/problems';
import type { EffectKind } from '../effects';
import type { Fault, FaultInput, FaultTarget } from '../faults';
import { byId, element, showList } from './dom';

const requests: Readonly<Record<FaultTarget, string>> = {
  sendMessage: 'Send a text',
  requestConsent: 'Request consent',
  getConsent: 'Read the consent status',
  createContact: 'Create a contact',
  updateContact: 'Update a contact',
  getContact: 'Read a contact',
  searchContacts: 'Search contacts',
  deleteContact: 'Delete a contact',
  setContactGroups: 'Set the groups of a contact',
  createGroup: 'Create a group',
  searchGroups: 'Search groups',
  deleteGroup: 'Delete a group',
  searchContent: 'Search content',
  token: 'Get or refresh a token',
};

const ways: Readonly<Record<EffectKind, string>> = {
  'cut-before': 'Connection cut before it is processed',
  'cut-after': 'Connection cut after it was processed',
  'cut-inside': 'Connection cut in the middle of the answer',
  slow: 'Slow answer',
  gateway: 'HTML page of a gateway (502)',
  empty: 'Empty answer (502)',
  truncated: 'Answer that stops halfway',
  malformed: 'Answer of another shape',
};

const frequencies: readonly (readonly [label: string, often: FaultInput])[] = [
  ['Only the next request', { next: 1 }],
  ['The next 3 requests', { next: 3 }],
  ['One request in ten', { rate: 0.1 }],
  ['Every request', { rate: 1 }],
];

const endpoint = byId('fault-endpoint', HTMLSelectElement);
const what = byId('fault-what', HTMLSelectElement);
const often = byId('fault-often', HTMLSelectElement);
const list = byId('faults', HTMLElement);
const clear = byId('clear-faults', HTMLButtonElement);

const option = (value: string, label: string): HTMLElement => element('option', { value }, label);

const chosen = (): FaultInput => ({
  ...(endpoint.value === '' ? {} : { endpoint: endpoint.value as FaultTarget }),
  ...(what.value in ways ? { kind: what.value as EffectKind } : { code: what.value as ServiceCode }),
  ...frequencies[often.selectedIndex]?.[1],
});

const describe = (fault: Fault): string => {
  const where = fault.endpoint === undefined ? 'Any request' : requests[fault.endpoint];
  const who = fault.phone === undefined ? '' : ` (${fault.phone})`;
  const which =
    fault.kind === undefined ? (fault.code ?? `status ${String(fault.status)}`) : ways[fault.kind];
  return `${where}${who}: ${which}`;
};

const remaining = (fault: Fault): string => {
  if (fault.next !== undefined)
    return fault.next === 1 ? 'next request' : `next ${String(fault.next)} requests`;
  return fault.rate === undefined || fault.rate >= 1
    ? 'every request'
    : `${String(Math.round(fault.rate * 100))} %`;
};

export const showFaults = (faults: readonly Fault[]): void => {
  showList(
    list,
    faults.map((fault, index) => ({ fault, index })),
    {
      key: ({ index }) => String(index),
      version: ({ fault }) => JSON.stringify(fault),
      draw: ({ fault }) =>
        element('li', {}, element('span', {}, describe(fault)), element('small', {}, remaining(fault))),
    },
  );
  list.hidden = faults.length === 0;
  clear.hidden = faults.length === 0;
};

export const startFaults = (add: (fault: FaultInput) => void, clearAll: () => void): void => {
  endpoint.append(option('', 'Any request'));
  for (const [name, label] of Object.entries(requests)) endpoint.append(option(name, label));
  const errors = element('optgroup', { label: 'An error of the service' });
  for (const [code, { status }] of Object.entries(serviceCodes)) {
    errors.append(option(code, `${String(status)} ${code}`));
  }
  const network = element('optgroup', { label: 'The network' });
  for (const [kind, label] of Object.entries(ways)) network.append(option(kind, label));
  what.append(errors, network);
  what.value = 'internal_error';
  often.append(...frequencies.map(([label]) => option(label, label)));
  byId('fault-form', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    add(chosen());
  });
  clear.addEventListener('click', clearAll);
};
