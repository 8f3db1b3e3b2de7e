import type { FlowNode } from '../node-red';

/** The nodes under test, by a short name. */
const kinds: Readonly<Record<string, Readonly<Record<string, unknown>> & { readonly type: string }>> = {
  send: { type: 'advisor-send-text' },
  ask: { type: 'advisor-request-consent', every: 0, limit: 0 },
  look: { type: 'advisor-check-consent', mode: 'once' },
  wait: { type: 'advisor-check-consent', mode: 'wait', pollEvery: 1, pollFor: 60 },
  create: { type: 'advisor-contact', operation: 'create' },
  update: { type: 'advisor-contact', operation: 'update', merge: false },
  get: { type: 'advisor-contact', operation: 'get' },
  remove: { type: 'advisor-contact', operation: 'delete' },
  search: { type: 'advisor-contact', operation: 'search' },
  group: { type: 'advisor-group', operation: 'create' },
  join: { type: 'advisor-group', operation: 'addContact' },
  content: { type: 'advisor-content' },
  jsonata: { type: 'advisor-send-text', text: '$number(text)', textType: 'jsonata' },
  headless: { type: 'advisor-send-text', environment: 'headless' },
  machine: { type: 'advisor-send-text', environment: 'machine' },
  play: { type: 'advisor-send-text', environment: 'play' },
};

/** Failures leave by an output, by a Catch node or into the log. */
export type Way = 'wired' | 'caught' | 'logged';
const ways: readonly Way[] = ['wired', 'caught', 'logged'];

export interface Secrets {
  readonly clientSecret: string;
  readonly apiKey: string;
}

/** An environment on the service, without its credentials. */
export const officeOn = (service: string, redirectUri: string): FlowNode => ({
  id: 'office',
  type: 'advisor-environment',
  name: 'Office',
  service: 'sandbox',
  baseUrl: `${service}/v1`,
  authUrl: `${service}/authorize`,
  tokenUrl: `${service}/token`,
  redirectUri,
  scopes: ['offline_access', 'text.messaging.write', 'text.messaging.read', 'core.contacts.read'],
  timeout: 1,
  retries: 0,
});

/** Every node of the package three times, its failures wired, caught and logged; everything emitted reaches `out`. */
export const canaryFlow = (office: FlowNode, secrets: Secrets): FlowNode[] => {
  const credentials = { clientId: 'client', ...secrets };
  const nodes = ways.flatMap((way) =>
    Object.entries(kinds).flatMap(([kind, node]): FlowNode[] => {
      const id = `${kind}-${way}`;
      const to = way === 'wired' ? [[`out-${way}`], [`out-${way}`], [`out-${way}`]] : [];
      return [
        { id: `in-${id}`, type: 'test-port', z: way, name: id, wires: [[id]] },
        { id, z: way, name: id, environment: 'office', wires: to, ...node },
      ];
    }),
  );
  const watchers = ways.flatMap((way): FlowNode[] => [
    { id: way, type: 'tab', label: way },
    { id: `out-${way}`, type: 'test-port', z: way, name: 'out', wires: [] },
    { id: `told-${way}`, type: 'test-port', z: way, name: 'told', wires: [] },
    { id: `status-${way}`, type: 'status', z: way, scope: null, wires: [[`told-${way}`]] },
  ]);
  return [
    ...watchers,
    { id: 'catch', type: 'catch', z: 'caught', scope: null, wires: [['out-caught']] },
    {
      id: 'complete',
      type: 'complete',
      z: 'wired',
      scope: Object.keys(kinds).map((kind) => `${kind}-wired`),
      wires: [['told-wired']],
    },
    { ...office, credentials },
    { ...office, id: 'headless', credentials: { ...credentials, refreshToken: '${SEED}' } },
    { ...office, id: 'machine', grant: 'client_credentials', credentials },
    { id: 'play', type: 'advisor-environment', name: 'Play', service: 'simulator' },
    ...nodes,
  ];
};
