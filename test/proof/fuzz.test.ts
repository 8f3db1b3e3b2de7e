import fc from 'fast-check';
import should from 'should';
import type { Connection } from '../../lib/auth/connection';
import { newGrant } from '../../lib/auth/grants';
import type { Message } from '../../lib/runtime/red';
import { type MovableClock } from '../../lib/service/clock';
import { ServiceError } from '../../lib/service/errors';
import * as activityRuntime from '../../nodes/activity/runtime';
import { spec as activitySpec } from '../../nodes/activity/spec';
import * as blockRuntime from '../../nodes/do-not-text/runtime';
import { spec as blockSpec } from '../../nodes/do-not-text/spec';
import { folders as addressBook } from '../address-book/setup';
import { connectionTo, freshFolder, removeFolders, startProcess } from '../auth/support';
import { closeAll, frozenClock, startServer, type Reply } from '../service/support';
import { environmentOn, type TestEnvironment } from '../support/environment';
import { Flow } from '../support/flow';
import { checkFolder, folders as texting, requestFolder } from '../texting/setup';
import { answersLike, contractAnswers, oddValues, tokenAnswers, type Answer } from './answers';

/** `npm run fuzz` asks for so many cases, of a seed that it draws; a run that failed is repeated by its seed. */
const wanted = Number(process.env.FUZZ_RUNS ?? 0);
const seed = Number(process.env.FUZZ_SEED ?? 1);
/** Milliseconds for each part of a run without a number. */
const share = 2000;

const chunk = 5;

/** Checks the property with new seeds until there were enough cases, of which each run makes some, or its time is up. */
const check = async <T>(
  perRun: number,
  arbitrary: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
): Promise<void> => {
  const until = performance.now() + share;
  for (
    let done = 0;
    wanted > 0 ? done * perRun < wanted : done === 0 || performance.now() < until;
    done += chunk
  ) {
    // Made smaller, a case would meet a flow that has seen all that went before.
    await fc.assert(fc.asyncProperty(arbitrary, holds), {
      seed: seed + done,
      numRuns: chunk,
      endOnFailure: true,
    });
  }
};

const folders = [
  ...texting,
  requestFolder,
  checkFolder,
  { spec: blockSpec, runtime: blockRuntime },
  { spec: activitySpec, runtime: activityRuntime },
  ...addressBook,
];

type NodeConfig = { readonly id: string; readonly type: string } & Readonly<Record<string, unknown>>;
const of = (type: string, operation: string, more: object = {}): NodeConfig => ({
  id: `${type} ${operation} ${Object.keys(more).join()}`,
  type: `advisor-${type}`,
  operation,
  ...more,
});

const nodes: readonly NodeConfig[] = [
  of('send-text', ''),
  of('send-text', '', { schedule: 'at' }),
  of('send-text', '', { onceKey: 'once', onceKeyType: 'msg', maxSegments: 3 }),
  of('request-consent', '', { every: 0, limit: 0 }),
  of('check-consent', ''),
  of('check-consent', '', { by: 'memberId' }),
  ...['create', 'update', 'get', 'delete', 'search'].map((operation) => of('contact', operation)),
  of('contact', 'update', { merge: false }),
  of('contact', 'search', { all: true, emit: 'item' }),
  of('contact', 'search', { filter: 'filter', filterType: 'msg' }),
  ...['create', 'search', 'delete', 'addContact', 'removeContact', 'setGroups'].map((operation) =>
    of('group', operation),
  ),
  of('content', ''),
  of('content', '', { all: true }),
];
/** What it makes of answers is for the simulated weeks: unanswered, it takes an hour of looks to end. */
const wait = of('check-consent', '', {
  mode: 'wait',
  pollEvery: 600,
  pollFor: 600,
  thenEvery: 600,
  giveUpAfter: 1200,
});
const withoutService: readonly NodeConfig[] = [
  ...['block', 'unblock', 'check'].map((operation) =>
    of('do-not-text', operation, { reasonType: 'msg', reason: 'reason' }),
  ),
  ...['waits', 'queue', 'failures', 'advisors', 'check', 'cancel'].map((operation) =>
    of('activity', operation),
  ),
];

/** Real time without any outcome, after which a message counts as lost. */
const patience = 60_000;

/** Sends all, one to each node, and moves the clock until each is settled; gives what came out, by node. */
const run = async (
  flow: Flow,
  clock: MovableClock,
  messages: readonly (readonly [node: string, msg: Message])[],
): Promise<Map<string, number>> => {
  const before = flow.settled.length;
  const from = flow.arrivals.all.length;
  for (const [node, msg] of messages) flow.send(msg, node);
  const since = performance.now();
  while (flow.settled.length < before + messages.length) {
    await clock.move(600_000);
    if (performance.now() - since > patience) {
      const left = messages
        .map(([id]) => id)
        .filter((id) => !flow.arrivals.all.some((each) => each.from === id));
      throw new Error(`These have no outcome: ${left.join(', ')}`);
    }
  }
  should(flow.settled.length).equal(before + messages.length, 'each is settled once');
  const counts = new Map<string, number>();
  for (const { from: node } of flow.arrivals.all.slice(from)) counts.set(node, (counts.get(node) ?? 0) + 1);
  for (const heard of [flow.arrivals, flow.errors, flow.completed]) heard.forget();
  flow.settled.length = flow.statuses.length = flow.warnings.length = 0;
  return counts;
};

describe(`generated answers and messages (FUZZ_SEED=${String(seed)})`, function () {
  this.timeout(wanted > 0 ? 0 : 120_000);
  const rejections: unknown[] = [];
  const note = (reason: unknown): void => void rejections.push(reason);
  before(() => process.on('unhandledRejection', note));
  after(() => {
    process.off('unhandledRejection', note);
    removeFolders();
  });
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
    should(rejections.splice(0)).eql([]);
  });

  /** An environment on a service that answers as `next` says; its time is moved by hand. */
  const environmentWith = async (
    answer: (key: string) => Reply,
    journal: boolean,
  ): Promise<[TestEnvironment, MovableClock]> => {
    const clock = frozenClock();
    const server = await startServer(({ method, url }) => {
      server.received.length = 0;
      return answer(`${method} ${url}`);
    });
    const environment = environmentOn(
      { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' },
      {
        // Its time can be moved for waits, too.
        service: 'simulator',
        clock,
        settings: { journal, country: 'US', timeZone: 'UTC' },
        client: { retries: 1, random: () => 0.5 },
      },
    );
    return [environment, clock];
  };

  it('whatever the service answers, each message has an outcome', async () => {
    let answers: readonly Answer[] = [];
    const asked = new Map<string, number>();
    const [environment, clock] = await environmentWith((key) => {
      const times = asked.get(key) ?? 0;
      asked.set(key, times + 1);
      let sum = times;
      for (const char of key) sum = (sum * 31 + char.charCodeAt(0)) >>> 0;
      // A list that never ends would be read for ever.
      const answer = asked.size > 60 ? undefined : answers[sum % answers.length];
      return { ...(answer ?? { status: 400 }) };
    }, false);
    const flow = await Flow.load({ folders, environment, nodes });
    await check(
      nodes.length,
      fc.array(answersLike(contractAnswers), { minLength: 8, maxLength: 8 }),
      async (generated) => {
        answers = generated;
        asked.clear();
        const messages = nodes.map(({ id }): [string, Message] => [
          id,
          {
            _msgid: id,
            phone: '+12025550101',
            memberId: 7,
            text: 'Hello',
            deliveryDate: clock.now() + 3_600_000,
            contactId: 7,
            groupId: 'Clients',
            groupIds: [1],
            payload: id.includes('content') ? 'words' : { firstName: 'Ann', name: 'Clients' },
          },
        ]);
        const counts = await run(flow, clock, messages);
        for (const { id, emit } of nodes)
          if (emit !== 'item') should(counts.get(id)).be.aboveOrEqual(1, `${id} has an outcome`);
      },
    );
    await environment.close();
  });

  it('whatever the token endpoint answers, whoever asks has a token or a reason', async () => {
    const clock = frozenClock();
    let answers: Answer[] = [];
    const { tokens, vault, close } = await startProcess(freshFolder(), {
      clock,
      post: () => {
        const { status, body, headers } = answers.shift() ?? { status: 503, body: '', headers: {} };
        if (status === 304) return Promise.reject(new Error('cut'));
        return Promise.resolve({
          status,
          text: body,
          retryAfter: headers['retry-after'],
        });
      },
    });
    const service = {
      authUrl: 'http://127.0.0.1/a',
      tokenUrl: 'http://127.0.0.1/t',
      credentials: { clientId: 'c', clientSecret: 's', apiKey: 'k' },
    };
    let count = 0;
    await check(
      3,
      fc.tuple(
        fc.array(answersLike(tokenAnswers), { minLength: 1, maxLength: 6 }),
        fc.constantFrom<Connection['grant']>('authorization_code', 'client_credentials'),
      ),
      async ([generated, grant]) => {
        answers = [...generated];
        // An application of its own, or the trouble of one would be remembered for the next.
        const connection = connectionTo(service, { grant, clientSecret: `secret ${String(count++)}` });
        if (grant === 'authorization_code')
          await vault.authorized(connection, {
            ...newGrant(connection, 'default'),
            refreshToken: 'refresh-0',
          });
        const ask = async (): Promise<void> => {
          try {
            const token = await tokens.token(connection, 'default');
            should(token).match(/^[\x21-\x7e]+$/);
          } catch (fault) {
            should(fault).be.instanceOf(ServiceError);
          }
        };
        const asking = Promise.all([ask(), ask()]);
        const state = { isOver: false };
        void asking.finally(() => (state.isOver = true)).catch(() => undefined);
        const since = performance.now();
        while (!state.isOver) {
          await clock.move(600_000);
          if (performance.now() - since > patience) throw new Error('no token and no reason');
        }
        await asking;
      },
    );
    await close();
  });

  for (const journal of [false, true]) {
    it(`whatever a message holds, it has an outcome (journal ${journal ? 'on' : 'off'})`, async () => {
      const [environment, clock] = await environmentWith((key) => {
        if (key.includes('/messages')) return { body: contractAnswers[0] };
        if (key.includes('/consent-requests')) return { body: contractAnswers[2] };
        if (key.includes('/consents')) return { body: contractAnswers[3] };
        if (key.startsWith('GET') && /contacts\/[^?]/.test(key)) return { body: contractAnswers[4] };
        if (key.startsWith('GET')) return { body: { data: [] } };
        return { body: { id: 4 } };
      }, journal);
      const all = [...nodes, wait, ...withoutService];
      const flow = await Flow.load({ folders, environment, nodes: all });
      const cycle: Record<string, unknown> = {};
      cycle.self = cycle;
      const foreign: readonly unknown[] = [
        ...oddValues,
        undefined,
        Number.NaN,
        -Infinity,
        10n,
        Symbol('s'),
        () => 1,
        new Date(Number.NaN),
        new Date(0),
        new Map([[1, 2]]),
        new Error('e'),
        Buffer.from([1, 2, 0xff]),
        new Uint8Array(3),
        Object.create(null),
        // eslint-disable-next-line no-sparse-arrays -- Flows have them.
        [, 1],
        cycle,
        ['+12025550101', null, { phone: '+12025550102', text: 'Hi {{name}}' }, { phone: 3 }],
        { node: 'send-text  ', phone: '+12025550101', text: 'again', advisor: 'default' },
        { id: 'list', index: 0, count: 1 },
        'America/New_York',
      ];
      const value = fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom(...foreign) },
        { weight: 1, arbitrary: fc.anything() },
      );
      const names = [
        ...[
          'phone',
          'phone',
          'text',
          'advisor',
          'payload',
          'memberId',
          'contactId',
          'groupId',
          'groupIds',
          'deliveryDate',
        ],
        ...[
          'frequency',
          'timeZone',
          'once',
          'parts',
          'summary',
          'error',
          'resend',
          'reason',
          'dryRun',
          'filter',
          'req',
          'topic',
        ],
        ...['outcome', 'repeated', '_msgid'],
      ] as const;
      const fields = fc.array(fc.tuple(fc.constantFrom(...names), value), { maxLength: 6 });
      await check(
        2 * all.length,
        fc.array(fields, { minLength: all.length, maxLength: all.length }),
        async (generated) => {
          const messages = all.map(({ id }, index): [string, Message] => [
            id,
            {
              _msgid: id,
              phone: '+12025550101',
              text: 'Hello',
              ...Object.fromEntries(generated[index] ?? []),
            },
          ]);
          const counts = await run(flow, clock, messages);
          for (const { id, emit } of all)
            if (emit !== 'item') should(counts.get(id)).be.aboveOrEqual(1, `${id} has an outcome`);
        },
      );
      await environment.close();
    });
  }
});
