import type { FlowNode } from '../test/support/node-red';

/** The targets of the driver's outputs. */
export const outputs = {
  off: 1,
  on: 2,
  http: 3,
  contacts: 4,
  loop: 5,
  waits: 6,
  burst: 7,
  scripted: 8,
  paced: 9,
} as const;

export const pageSize = 200;
export const inFlight = 32;
export const burst = 1000;
export const firstToken = 'bench-token-1';

/** An interval so long that nothing polls by itself during a measurement. */
const unhurried = { pollEvery: 36_000, pollFor: 36_000, thenEvery: 36_000 };

const placed = { z: 'tab', x: 100, y: 100 };

const credentials = {
  clientId: 'bench',
  clientSecret: 'bench-secret',
  apiKey: 'bench-key',
  refreshToken: 'bench-refresh',
};

export const environment = (id: string, url: string, more: Readonly<Record<string, unknown>>): FlowNode => ({
  id,
  type: 'advisor-environment',
  name: `Bench ${id}`,
  service: 'sandbox',
  baseUrl: `${url}/v1`,
  authUrl: `${url}/oauth/authorize`,
  tokenUrl: `${url}/oauth/token`,
  redirectUri: 'http://127.0.0.1:1880/advisor-texting/callback',
  grant: 'authorization_code',
  scopes: ['core.contacts.read', 'text.messaging.read', 'text.messaging.write', 'offline_access'],
  maxConcurrent: inFlight,
  credentials,
  ...more,
});

const sendText = (name: string): FlowNode => ({
  ...placed,
  id: `send-${name}`,
  type: 'advisor-send-text',
  environment: `environment-${name}`,
  wires: [[`end-${name}`], ['failed'], ['failed']],
});

const end = (name: string): FlowNode => ({
  ...placed,
  id: `end-${name}`,
  type: 'bench-end',
  name,
  wires: [[]],
});

const header = (name: string, value: string) => ({
  keyType: 'other',
  keyValue: name,
  valueType: 'other',
  valueValue: value,
});

const httpRequest = (id: string, method: string, url: string, to: readonly string[]): FlowNode => ({
  ...placed,
  id,
  type: 'http request',
  method,
  ret: 'obj',
  paytoqs: 'ignore',
  url,
  // Keep-alive is an option of that node, off by default, which nearly doubles its speed.
  persist: true,
  senderr: false,
  headers: [header('authorization', `Bearer ${firstToken}`), header('x-api-key', 'bench-key')],
  wires: [to],
});

const script = (id: string, func: string, wires: readonly (readonly string[])[]): FlowNode => ({
  ...placed,
  id,
  type: 'function',
  func,
  outputs: wires.length,
  libs: [],
  wires,
});

/** What a user without this package would wire: a request, and a function that reads the outcome. */
const httpFlow = (url: string): readonly FlowNode[] => [
  httpRequest('http', 'POST', `${url}/v1/text/messaging/messages`, ['outcome']),
  script(
    'outcome',
    `const { successes, failures } = msg.payload;
if (msg.statusCode !== 200) return [null, msg, null];
if (successes && successes.length > 0) {
  const { messageId, memberId } = successes[0];
  msg.payload = { messageId, memberId };
  return [msg, null, null];
}
msg.payload = { reason: failures[0] };
return /consent/i.test(failures[0]) ? [null, null, msg] : [null, msg, null];`,
    [['end-http'], ['failed'], ['failed']],
  ),
];

/** The same for all contacts: page after page, each split by `items`. */
const loopFlow = (url: string, name: string, items: readonly FlowNode[]): readonly FlowNode[] => [
  script(
    `${name}-first`,
    `msg.page = 1;
msg.url = '${url}/v1/core/contact/contacts?pageSize=${String(pageSize)}&page=1';
return msg;`,
    [[`${name}-http`]],
  ),
  httpRequest(`${name}-http`, 'GET', '', [`${name}-page`]),
  script(
    `${name}-page`,
    `const { data, pageInfo } = msg.payload;
if (msg.statusCode !== 200) return [null, null, msg];
let next = null;
if (msg.page * pageInfo.pageSize < pageInfo.totalRecord) {
  const page = msg.page + 1;
  next = { page, url: msg.url.replace(/&page=.*$/, '&page=' + page) };
}
return [{ payload: data }, next, null];`,
    [[`${name}-items`], [`${name}-http`], ['failed']],
  ),
  ...items,
];

/** With `database`, state is in PostgreSQL. */
export const benchFlows = (url: string, database?: string): FlowNode[] => [
  { id: 'tab', type: 'tab', label: 'bench' },
  { ...placed, id: 'orders', type: 'test-port', name: 'orders', wires: [['driver']] },
  {
    ...placed,
    id: 'driver',
    type: 'bench-driver',
    wires: [
      ['results'],
      ['send-off'],
      ['send-on'],
      ['http'],
      ['contacts'],
      ['loop-first'],
      ['waits'],
      ['send-burst'],
      ['scripted-first'],
      ['paced'],
    ],
  },
  { ...placed, id: 'results', type: 'test-port', name: 'results', wires: [[]] },
  environment('environment-off', url, { journal: false }),
  environment('environment-on', url, {
    journal: true,
    ...(database !== undefined && { store: 'postgres', credentials: { ...credentials, storeUrl: database } }),
  }),
  environment('environment-burst', url, { journal: true, maxConcurrent: burst }),
  ...['off', 'on', 'burst'].map(sendText),
  ...httpFlow(url),
  {
    ...placed,
    id: 'contacts',
    type: 'advisor-contact',
    environment: 'environment-on',
    operation: 'search',
    all: true,
    emit: 'item',
    pageSize,
    wires: [['end-contacts'], ['failed']],
  },
  ...loopFlow(url, 'loop', [
    { ...placed, id: 'loop-items', type: 'split', arraySplt: 1, arraySpltType: 'len', wires: [['end-loop']] },
  ]),
  ...loopFlow(url, 'scripted', [
    script('scripted-items', 'for (const payload of msg.payload) node.send({ payload }, false);', [
      ['end-scripted'],
    ]),
  ]),
  {
    ...placed,
    id: 'waits',
    type: 'advisor-check-consent',
    environment: 'environment-on',
    mode: 'wait',
    ...unhurried,
    wires: [['failed'], ['failed'], ['end-waits']],
  },
  {
    ...placed,
    id: 'paced',
    type: 'advisor-check-consent',
    environment: 'environment-on',
    mode: 'wait',
    wires: [['failed'], ['failed'], ['end-waits']],
  },
  ...['off', 'on', 'burst', 'http', 'contacts', 'loop', 'scripted', 'waits'].map(end),
  { ...placed, id: 'failed', type: 'bench-end', name: 'failed', wires: [[]] },
];
