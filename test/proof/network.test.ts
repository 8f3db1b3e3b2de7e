import should from 'should';
import type { RepeatSends } from '../../lib/service/retry';
import { startSimulator, type Simulator } from '../../simulator';
import { folders as addressBook } from '../support/address-book/setup';
import {
  authorize,
  connectionTo,
  failureOf,
  freshFolder,
  removeFolders,
  startProcess,
} from '../support/auth/setup';
import { settle } from '../support/service/setup';
import { environmentOn, type TestEnvironment } from '../support/environment';
import { Flow } from '../support/flow';
import { startProxy, type Fault, type Phase, type Proxy } from '../support/proxy';
import { checkFolder, folders as texting, requestFolder } from '../support/texting/setup';

const folders = [...texting, requestFolder, checkFolder, ...addressBook];

interface Operation {
  readonly node: { readonly id: string; readonly type: string } & Readonly<Record<string, unknown>>;
  readonly msg: Readonly<Record<string, unknown>>;
  /** What it does to the service: a `once` may not be retried unless it cannot have been carried out. */
  readonly kind: 'once' | 'replace' | 'delete' | 'read';
  /** The request that does it, among those that the node makes. */
  readonly request: string;
}

/** Every kind of endpoint, each on its own contact, group or number. */
const operations: readonly Operation[] = [
  {
    node: { id: 'the send', type: 'advisor-send-text' },
    msg: { phone: '+12025551001', text: 'Hello' },
    kind: 'once',
    request: 'POST /text/messaging/messages',
  },
  {
    node: { id: 'the ask', type: 'advisor-request-consent', every: 0, limit: 0 },
    msg: { phone: '+12025551002' },
    kind: 'once',
    request: 'POST /text/messaging/consent-requests',
  },
  {
    node: { id: 'the status', type: 'advisor-check-consent' },
    msg: { phone: '+12065550101' },
    kind: 'read',
    request: 'GET /text/messaging/consents',
  },
  {
    node: { id: 'the create', type: 'advisor-contact', operation: 'create' },
    msg: { payload: { firstName: 'Nora' } },
    kind: 'once',
    request: 'POST /core/contact/contacts',
  },
  {
    node: { id: 'the get', type: 'advisor-contact', operation: 'get' },
    msg: { contactId: 1001 },
    kind: 'read',
    request: 'GET /core/contact/contacts/1001',
  },
  {
    node: { id: 'the update', type: 'advisor-contact', operation: 'update' },
    msg: { contactId: 1002, payload: { city: 'Oslo' } },
    kind: 'replace',
    request: 'PUT /core/contact/contacts/1002',
  },
  {
    node: { id: 'the delete', type: 'advisor-contact', operation: 'delete' },
    msg: { contactId: 1003 },
    kind: 'delete',
    request: 'DELETE /core/contact/contacts/1003',
  },
  {
    node: { id: 'the search', type: 'advisor-contact', operation: 'search' },
    msg: {},
    kind: 'read',
    request: 'GET /core/contact/contacts',
  },
  {
    node: { id: 'the new group', type: 'advisor-group', operation: 'create' },
    msg: { payload: { name: 'Readers' } },
    kind: 'once',
    request: 'POST /core/contact/groups',
  },
  {
    node: { id: 'the add', type: 'advisor-group', operation: 'addContact' },
    msg: { contactId: 1004, groupId: 104 },
    kind: 'replace',
    request: 'PUT /core/contact/contacts/1004/groups',
  },
  {
    node: { id: 'the groups', type: 'advisor-group', operation: 'search' },
    msg: {},
    kind: 'read',
    request: 'GET /core/contact/groups',
  },
  {
    node: { id: 'the old group', type: 'advisor-group', operation: 'delete' },
    msg: { groupId: 103 },
    kind: 'delete',
    request: 'DELETE /core/contact/groups/103',
  },
  {
    node: { id: 'the content', type: 'advisor-content' },
    msg: { payload: '' },
    kind: 'read',
    request: 'GET /core/content/library/search',
  },
];

const phases: readonly Phase[] = ['request', 'received', 'headers', 'body'];
/** Faults that end a request without a complete answer. */
const breaks: readonly Fault[] = [
  ...phases.flatMap((at): Fault[] => [
    { kind: 'cut', at },
    { kind: 'reset', at },
  ]),
  { kind: 'garbage', at: 'request' },
  { kind: 'garbage', at: 'received' },
];
/** Faults that end only with our own time limit: that is real time, so nothing may have to pass within it. */
const stalls = phases.map((at): Fault => ({ kind: 'stall', at }));
const stallLimit = 250;
const nameOf = (fault: Fault): string => ('at' in fault ? `${fault.kind} (${fault.at})` : fault.kind);
const reaches = (fault: Fault): boolean => !('at' in fault) || fault.at !== 'request';

const portOf = (address: string): number => Number(new URL(address).port);
const keyOf = (method: string, path: string): string => `${method} ${path.replace(/^\/v1|\?.*/g, '')}`;

interface Seen {
  readonly code: string;
  readonly attempts: number;
}

describe('every kind of request on a failing network, by the ledger of the service', () => {
  let simulator: Simulator;
  let proxy: Proxy;
  let environment: TestEnvironment;

  const start = async (repeatSends: RepeatSends = 'contract', timeout = 30_000): Promise<Flow> => {
    simulator = await startSimulator({ settings: { consentRequired: false } });
    proxy = await startProxy(portOf(simulator.url));
    const { credentials, clock } = simulator;
    environment = environmentOn(
      {
        baseUrl: `${proxy.url}/v1`,
        apiKey: credentials.apiKey,
        token: (advisor) => simulator.accessToken(advisor),
      },
      { clock, client: { repeatSends, timeout, retries: 2, random: () => 0.5 } },
    );
    return Flow.load({ folders, environment, nodes: operations.map(({ node }) => node) });
  };
  afterEach(async () => {
    await Flow.unload();
    await environment.close();
    await proxy.close();
    await simulator.close();
  });

  /** The fault for the first so many requests of each kind. */
  const meet = (fault: Fault, times: number): void => {
    const met = new Map<string, number>();
    proxy.otherwise = ({ method, path }) => {
      const key = keyOf(method, path);
      const before = met.get(key) ?? 0;
      met.set(key, before + 1);
      return before < times ? fault : { kind: 'pass' };
    };
  };

  /** All at once; returns each result. */
  const run = async (flow: Flow): Promise<Map<string, Seen>> => {
    const coming = flow.arrivals.next(operations.length);
    for (const { node, msg } of operations) flow.send({ _msgid: node.id, ...msg }, node.id);
    const arrived = await settle(simulator.clock, coming, 1000);
    return new Map(
      arrived.map(({ from, port, msg }) => {
        const error = (port === 1 ? msg.error : { code: 'ok', attempts: 0 }) as Seen;
        return [from, { code: error.code, attempts: error.attempts }];
      }),
    );
  };
  /** How often a request was received, and how often it was carried out. */
  const ledgerOf = (request: string): { received: number; done: number } => {
    const entries = simulator.ledger.entries().filter(({ method, path }) => keyOf(method, path) === request);
    return { received: entries.length, done: entries.filter(({ processed }) => processed).length };
  };

  for (const fault of breaks) {
    it(`${nameOf(fault)}, once: what must not happen twice is unknown, the rest is retried and succeeds`, async function () {
      this.timeout(180_000);
      const flow = await start();
      meet(fault, 1);
      const seen = await run(flow);
      for (const { node, kind, request } of operations) {
        const { received, done } = ledgerOf(request);
        const reached = reaches(fault) ? 1 : 0;
        if (kind === 'once') {
          should(seen.get(node.id)).eql({ code: 'outcome_unknown', attempts: 1 }, request);
          should({ received, done }).eql({ received: reached, done: reached }, request);
        } else {
          should(seen.get(node.id)?.code).equal('ok', request);
          should(received).equal(reached + 1, request);
          should(done).equal(kind === 'delete' ? 1 : reached + 1, request);
        }
      }
      should(flow.arrivals.all.length).equal(operations.length);
    });
  }

  for (const fault of breaks) {
    it(`${nameOf(fault)}, permanently: a read is a network_error, everything else is unknown`, async function () {
      this.timeout(180_000);
      const flow = await start();
      meet(fault, Infinity);
      const seen = await run(flow);
      for (const { node, kind, request } of operations) {
        const { code, attempts } = seen.get(node.id) ?? { code: 'none', attempts: 0 };
        const { received, done } = ledgerOf(request);
        // Adding to a group and an update with merge read first, and end there.
        const isRead = kind === 'read' || kind === 'replace';
        should(code).equal(isRead ? 'network_error' : 'outcome_unknown', request);
        should(attempts).equal(kind === 'once' ? 1 : 3, request);
        should(received).equal(reaches(fault) && kind !== 'replace' ? attempts : 0, request);
        if (kind !== 'read') should(done).be.belowOrEqual(1, request);
      }
    });
  }

  for (const fault of stalls) {
    it(`${nameOf(fault)}, permanently: each ends by the time limit, and none falsely says that it was not carried out`, async function () {
      this.timeout(180_000);
      const flow = await start('contract', stallLimit);
      meet(fault, Infinity);
      const seen = await run(flow);
      for (const { node, kind, request } of operations) {
        const code = seen.get(node.id)?.code;
        // A machine so busy that there was no connection within the limit: then it is certain.
        should(code).be.oneOf('network_error', 'outcome_unknown');
        if (kind === 'read') continue;
        should(ledgerOf(request).done).be.belowOrEqual(code === 'outcome_unknown' ? 1 : 0, request);
      }
    });
  }

  it('repeatSends always: what is unknown is retried as often as retries say, and no more', async () => {
    const flow = await start('always');
    meet({ kind: 'cut', at: 'received' }, Infinity);
    const seen = await run(flow);
    for (const { node, request } of operations.filter(({ kind }) => kind === 'once')) {
      should(seen.get(node.id)).eql({ code: 'outcome_unknown', attempts: 3 }, request);
      should(ledgerOf(request).received).equal(3, request);
    }
  });

  for (const fault of [
    { kind: 'delay', ms: 40 },
    { kind: 'drip', ms: 1 },
  ] as const) {
    it(`${fault.kind}, within the time limit: nothing is retried, nothing fails`, async function () {
      this.timeout(180_000);
      const flow = await start();
      proxy.otherwise = ({ path }) => (path.includes('/text/') ? fault : { kind: 'pass' });
      const seen = await run(flow);
      for (const { node, request } of operations) {
        should(seen.get(node.id)?.code).equal('ok', request);
        should(ledgerOf(request)).eql({ received: 1, done: 1 }, request);
      }
    });
  }

  it('a server that closes every idle connection: each request has a new one, none is lost or retried', async () => {
    const flow = await start();
    meet({ kind: 'idle' }, Infinity);
    for (const [before, { node, msg, request }] of operations.entries()) {
      const [arrived] = await settle(
        simulator.clock,
        (async () => {
          const coming = flow.arrivals.next();
          flow.send({ ...msg }, node.id);
          return coming;
        })(),
        1000,
      );
      should(arrived?.port).equal(0, request);
      should(ledgerOf(request)).eql({ received: 1, done: 1 }, request);
      should(proxy.connections).be.above(before);
      await proxy.deserted();
    }
  });

  it('an unreachable service: nothing can have been carried out, and each says so', async () => {
    const flow = await start();
    await proxy.close();
    const seen = await run(flow);
    for (const { node } of operations)
      should(seen.get(node.id)).eql({ code: 'network_error', attempts: 3 }, node.id);
    should(simulator.ledger.entries()).have.length(0);
  });
});

describe('the token endpoint on a failing network', () => {
  let simulator: Simulator;
  let proxy: Proxy;

  beforeEach(async () => {
    simulator = await startSimulator();
    proxy = await startProxy(portOf(simulator.url));
  });
  afterEach(async () => {
    await proxy.close();
    await simulator.close();
  });
  after(removeFolders);

  const begin = async (rotates: boolean) => {
    simulator.change({ rotateRefreshTokens: rotates });
    const { clock } = simulator;
    const process = await startProcess(freshFolder(), { clock });
    const connection = connectionTo({ ...simulator, tokenUrl: `${proxy.url}/oauth/token` });
    await authorize(process, connection);
    await clock.move(3_700_000);
    simulator.ledger.clear();
    return { ...process, connection, clock };
  };

  for (const fault of breaks) {
    it(`${nameOf(fault)}: all callers get the token of the retry`, async () => {
      const { tokens, connection, clock, close } = await begin(false);
      proxy.next.push(fault);
      const all = Array.from({ length: 20 }, async () => tokens.token(connection, 'default'));
      const given = await settle(clock, Promise.all(all), 1000);
      should(new Set(given).size).equal(1);
      should(simulator.ledger.entries()).have.length(reaches(fault) ? 2 : 1);
      await close();
    });
  }

  it('a lost answer when the refresh token was valid for one use: authorize again, requested once', async () => {
    const { tokens, vault, connection, clock, close } = await begin(true);
    proxy.next.push({ kind: 'cut', at: 'received' });
    const code = async (): Promise<string> =>
      (await failureOf(() => settle(clock, (async () => tokens.token(connection, 'default'))(), 1000))).code;
    should(await code()).equal('authorization_required');
    const asked = simulator.ledger.entries().length;
    should(await code()).equal('authorization_required');
    should(simulator.ledger.entries()).have.length(asked);
    should(vault.get(connection, 'default')?.grant.refused).be.true();
    await close();
  });

  it('a token endpoint that never answers is asked less and less, however many callers there are', async () => {
    const { tokens, connection, clock, close } = await begin(false);
    proxy.otherwise = () => ({ kind: 'cut', at: 'received' });
    for (let round = 0; round < 5; round++) {
      const all = Array.from(
        { length: 100 },
        async () => (await failureOf(() => tokens.token(connection, 'default'))).code,
      );
      should(new Set(await settle(clock, Promise.all(all), 1000))).eql(new Set(['network_error']));
    }
    should(simulator.ledger.entries().length).be.belowOrEqual(5 + 4);
    await close();
  });
});
