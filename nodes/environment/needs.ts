import type { EndpointName } from '../../lib/service/endpoints';
import type { Need } from '../../lib/service/rehearsal';
import type { EnvironmentValues } from './config';

const idOf = ({ id }: EnvironmentValues): string => (typeof id === 'string' ? id : '');

/** The name of a node as the editor shows it. */
export const nodeName = (node: EnvironmentValues): string => {
  const { name, type } = node;
  return typeof name === 'string' && name !== '' ? `"${name}"` : `${String(type)} ${idOf(node)}`;
};

/** Nodes that run: neither they nor their tabs are disabled. */
export const runningIn = (nodes: readonly EnvironmentValues[]): EnvironmentValues[] => {
  const off = new Set(nodes.filter((node) => node['disabled'] === true).map(idOf));
  return nodes.filter((node) => node['d'] !== true && !off.has(String(node['z'])));
};

const operations: Readonly<Record<string, readonly EndpointName[]>> = {
  'contact create': ['createContact'],
  'contact update': ['updateContact'],
  'contact get': ['getContact'],
  'contact delete': ['deleteContact'],
  'contact search': ['searchContacts'],
  'group create': ['createGroup'],
  'group search': ['searchGroups'],
  'group members': ['searchContacts', 'getContact'],
  'group delete': ['deleteGroup'],
  'group addContact': ['getContact', 'setContactGroups'],
  'group removeContact': ['getContact', 'setContactGroups'],
  'group setGroups': ['setContactGroups'],
};

/** The endpoints that a node calls whatever its messages say. A test keeps them equal to what the nodes declare. */
const endpointsOf = (node: EnvironmentValues): readonly EndpointName[] => {
  const { type, operation = 'create', merge = true } = node;
  switch (type) {
    case 'advisor-send-text':
      return ['sendMessage'];
    case 'advisor-request-consent':
      return ['requestConsent', 'getConsent'];
    case 'advisor-check-consent':
      return ['getConsent'];
    case 'advisor-content':
      return ['searchContent'];
    case 'advisor-contact':
    case 'advisor-group': {
      const what = `${type.slice('advisor-'.length)} ${String(operation)}`;
      const isMerged = what === 'contact update' && String(merge) !== 'false';
      return [...(operations[what] ?? []), ...(isMerged ? (['getContact'] as const) : [])];
    }
    default:
      return [];
  }
};

/** The endpoints that the running nodes of an environment call. */
export const needsOf = (nodes: readonly EnvironmentValues[], environment: string): Need[] =>
  runningIn(nodes)
    .filter((node) => node['environment'] === environment)
    .flatMap((node) => endpointsOf(node).map((endpoint) => ({ endpoint, node: nodeName(node) })));
