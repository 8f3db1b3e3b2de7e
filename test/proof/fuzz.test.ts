import { createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import should from 'should';
import type { Connection } from '../../lib/auth/connection';
import { newGrant } from '../../lib/auth/vault';
import { handOver } from '../../lib/outbox/hand-over';
import type { Message } from '../../lib/runtime/red';
import type { Clock } from '../../lib/service/clock';
import type { MovableClock } from '../../simulator/movable-clock';
import { ServiceError } from '../../lib/service/errors';
import { createMemoryStore } from '../../lib/state/memory';
import * as activityRuntime from '../../nodes/activity/runtime';
import { spec as activitySpec } from '../../nodes/activity/spec';
import * as blockRuntime from '../../nodes/do-not-text/runtime';
import { spec as blockSpec } from '../../nodes/do-not-text/spec';
import { folders as addressBook } from '../support/address-book/setup';
import { connectionTo, freshFolder, removeFolders, startProcess } from '../support/auth/setup';
import { frozenClock } from '../support/service/setup';
import { alsoClose, closeAll } from '../support/closing';
import { environmentOn, type TestEnvironment } from '../support/environment';
import { seed } from '../support/extent';
import { Flow } from '../support/flow';
import { listen } from '../support/server';
import { checkFolder, folders as texting, requestFolder } from '../support/texting/setup';
import {
  answerLike,
  contractAnswers,
  oddValues,
  rawAnswerLike,
  tokenAnswers,
  type Answer,
  type RawAnswer,
} from './answers';
import { answerInProcess } from './in-process';
import { randomOf, type Random } from './week';

/**
 * `npm run proof -- fuzz` runs so many cases of each part, with a random seed; a failed batch is reproduced by its
 * seed.
 */
const wanted = Number(process.env.FUZZ_RUNS ?? 0);
/** Milliseconds for each part of a run without a number. */
const share = 1500;
/** Cases between two lines of progress. */
const progress = 100_000;

/** Runs batches, each with its own seed, until there are enough cases or the time is up. */
const inBatches = async (cases: number, batch: (seed: number) => Promise<number>): Promise<void> => {
  const until = performance.now() + share;
  let done = 0;
  for (let n = 0; wanted > 0 ? done < cases : n === 0 || performance.now() < until; n++) {
    const before = Math.floor(done / progress);
    try {
      done += await batch(seed + n);
    } catch (fault) {
      throw new Error(`TEST_SEED=${String(seed + n)}: ${String(fault)}`, { cause: fault });
    }
    if (wanted > 0 && Math.floor(done / progress) > before) {
      const { rss } = process.memoryUsage();
      console.log(`      ${String(done)} cases, ${String(Math.round(rss / 2 ** 20))} MB`);
    }
  }
  if (wanted > 0) console.log(`      ${String(done)} cases`);
};

/** Messages for each node in a batch: all are in flight at once. */
const perNode = 10;

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
/** How it treats answers is tested by the simulated weeks: unanswered, it takes an hour of polls to end. */
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

/** Real time for a batch, after which its messages count as lost. */
const patience = 90_000;

/** Sends all and moves the clock until each is settled; each message must have been emitted, or be allowed not to. */
const run = async (
  flow: Flow,
  clock: MovableClock,
  messages: readonly (readonly [node: NodeConfig, msg: Message])[],
): Promise<void> => {
  for (const [index, [{ id }, msg]] of messages.entries()) flow.send({ ...msg, tag: index }, id);
  const heard = (): Set<unknown> => new Set(flow.arrivals.all.map(({ msg }) => msg['tag']));
  const since = performance.now();
  // What has left by now counts as emitted, and is no longer in memory when others of its list leave.
  await clock.move(1);
  handOver.concludeAll();
  while (flow.settled.length < messages.length) {
    await clock.move(600_000);
    if (performance.now() - since > patience) {
      const settled = heard();
      const left = messages.filter((_, index) => !settled.has(index)).map(([{ id }]) => id);
      throw new Error(
        `${String(messages.length - flow.settled.length)} are not settled, and without outcome: ${left.join(', ')}`,
      );
    }
  }
  await clock.move(1000);
  should(flow.settled.length).equal(messages.length, 'each is settled once');
  const tags = heard();
  for (const [index, [{ id, emit }]] of messages.entries())
    // A search that finds nothing has no item.
    if (emit !== 'item') should(tags.has(index)).equal(true, `${id} has an outcome`);
  for (const each of [flow.arrivals, flow.errors, flow.completed]) each.forget();
  flow.settled.length = 0;
};

/** The contract's example for a request. */
const likely = (method: string, path: string): readonly unknown[] => {
  const [sent, , asked, status, contact, id, page, content] = contractAnswers;
  if (path.includes('/messages')) return contractAnswers.slice(0, 2);
  if (path.includes('/consent-requests')) return [asked];
  if (path.includes('/consents')) return [status];
  if (path.includes('/library')) return [content];
  if (method !== 'GET') return [id];
  return /contacts\/[^?]/.test(path) ? [contact] : [page, sent];
};

describe('generated answers and messages', function () {
  this.timeout(wanted > 0 ? 0 : 120_000);
  const rejections: unknown[] = [];
  const note = (reason: unknown): void => void rejections.push(reason);
  before(() => process.on('unhandledRejection', note));
  after(() => {
    process.off('unhandledRejection', note);
    removeFolders();
  });
  let stop = (): void => undefined;
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
    stop();
    stop = () => undefined;
    should(rejections.splice(0)).eql([]);
  });

  /** An environment on a service whose time is moved by hand. */
  const environmentWith = (
    baseUrl: string,
    { journal = false, timeout = 30_000, isOnSocket = false },
  ): [TestEnvironment, MovableClock] => {
    const clock = frozenClock();
    // In the process, an answer arrives a tick later: nothing has to hold the clock in real time.
    const moved: Clock = {
      now: () => clock.now(),
      after: (ms, task) => clock.after(ms, task),
    };
    const environment = environmentOn(
      { baseUrl, apiKey: 'key', token: () => 'token' },
      {
        // Its time can be moved for waits, too.
        service: 'simulator',
        clock: isOnSocket ? clock : moved,
        store: createMemoryStore({ clock }),
        settings: { journal, country: 'US', timeZone: 'UTC' },
        client: { retries: 1, random: () => 0.5, timeout },
      },
    );
    return [environment, clock];
  };
  const nowhere = 'http://127.0.0.1:9';

  /** A message that each node can process. */
  const usable = (node: NodeConfig, clock: MovableClock, n: number): [NodeConfig, Message] => [
    node,
    {
      _msgid: `${node.id} ${String(n)}`,
      phone: `+1202555${String(1000 + n)}`,
      memberId: 7 + n,
      text: 'Hello',
      deliveryDate: clock.now() + 3_600_000,
      contactId: 7 + n,
      groupId: 'Clients',
      groupIds: [1],
      payload: node.id.includes('content') ? 'words' : { firstName: 'Ann', name: 'Clients' },
    },
  ];
  const toEach = (of: readonly NodeConfig[], clock: MovableClock): [NodeConfig, Message][] =>
    of.flatMap((node) => Array.from({ length: perNode }, (_, n) => usable(node, clock, n)));

  it('give each message an outcome, whatever the service answers', async () => {
    const [environment, clock] = environmentWith(`${nowhere}/v1`, {});
    let draw = (_method: string, _path: string): Answer => ({ status: 400, headers: {}, body: '' });
    stop = answerInProcess((method, path) => draw(method, path));
    const flow = await Flow.load({ folders, environment, nodes, isUnwatched: true });
    await inBatches(wanted, async (from) => {
      let count = 0;
      const random = randomOf(from);
      draw = (method, path) => {
        count += 1;
        return answerLike(random, likely(method, path), contractAnswers);
      };
      await run(flow, clock, toEach(nodes, clock));
      return count;
    });
    await environment.close();
  });

  it('give each message an outcome, whatever bytes a connection receives', async () => {
    let draw = (): RawAnswer => ({ pieces: [], then: 'end' });
    let count = 0;
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
      socket.on('data', () => {
        count += 1;
        const { pieces, then } = draw();
        for (const piece of pieces) socket.write(piece);
        if (then === 'end') socket.end();
        else if (then === 'reset') socket.resetAndDestroy();
      });
    });
    const port = await listen(server);
    alsoClose({
      close: () =>
        new Promise<void>((resolve) => {
          for (const socket of sockets) socket.destroy();
          server.close(() => resolve());
        }),
    });
    // What does not arrive is waited for in real time.
    const [environment, clock] = environmentWith(`http://127.0.0.1:${String(port)}/v1`, {
      timeout: 100,
      isOnSocket: true,
    });
    const flow = await Flow.load({ folders, environment, nodes, isUnwatched: true });
    await inBatches(wanted / 100, async (from) => {
      const random = randomOf(from);
      draw = () => rawAnswerLike(random, contractAnswers);
      const before = count;
      await run(flow, clock, toEach(nodes, clock));
      return count - before;
    });
    await environment.close();
  });

  it('give each caller a token or a reason, whatever the token endpoint answers', async () => {
    const clock = frozenClock();
    let draw = (): Answer => ({ status: 503, body: '', headers: {} });
    let count = 0;
    stop = answerInProcess(() => {
      count += 1;
      return draw();
    });
    const folder = freshFolder();
    let red = await startProcess(folder, { clock });
    const service = {
      authUrl: 'http://127.0.0.1/a',
      tokenUrl: `${nowhere}/t`,
      credentials: { clientId: 'c', clientSecret: 's', apiKey: 'k' },
    };
    const ask = async (connection: Connection): Promise<void> => {
      try {
        should(await red.tokens.token(connection, 'default')).match(/^[\x21-\x7e]+$/);
      } catch (fault) {
        should(fault).be.instanceOf(ServiceError);
      }
    };
    const signIn = async (connection: Connection): Promise<void> => {
      const url = new URL(await red.authorizations.begin(connection, 'default'));
      const state = url.searchParams.get('state') ?? '';
      const back = new URLSearchParams({ code: 'code', state });
      should((await red.authorizations.finish(back, { browser: '' })).ok).be.a.Boolean();
    };
    const kinds = ['code', 'refresh', 'client'] as const;
    const askAs = async (kind: (typeof kinds)[number], connection: Connection): Promise<void> => {
      if (kind === 'code') await signIn(connection);
      else if (kind === 'refresh')
        await red.vault.authorized(connection, {
          ...newGrant(connection, 'default'),
          refreshToken: 'refresh-0',
        });
      await Promise.all([ask(connection), ask(connection)]);
    };
    let applications = 0;
    let batches = 0;
    await inBatches(wanted, async (from) => {
      const random = randomOf(from);
      draw = () => answerLike(random, tokenAnswers);
      const before = count;
      // A process keeps what it knows of each application.
      if (++batches % 100 === 0) {
        await red.close();
        red = await startProcess(folder, { clock });
      }
      const asking = Promise.all(
        Array.from({ length: 30 }, (_, n) => {
          const kind = kinds[n % kinds.length] ?? 'client';
          return askAs(
            kind,
            connectionTo(service, {
              environment: `env ${String(n)}`,
              grant: kind === 'client' ? 'client_credentials' : 'authorization_code',
              // A separate application, or the failure of one would be remembered for the next.
              clientSecret: `secret ${String(applications++)}`,
            }),
          );
        }),
      );
      const state = { isOver: false };
      void asking.finally(() => (state.isOver = true)).catch(() => undefined);
      const since = performance.now();
      while (!state.isOver) {
        await clock.move(600_000);
        if (performance.now() - since > patience) throw new Error('no token and no reason');
      }
      await asking;
      return count - before;
    });
    await red.close();
  });

  for (const journal of [false, true]) {
    it(`give each message an outcome, whatever it contains (journal ${journal ? 'on' : 'off'})`, async () => {
      const [environment, clock] = environmentWith(`${nowhere}/v1`, { journal });
      stop = answerInProcess((method, path) => {
        const [first] = likely(method, path);
        const isSearch = method === 'GET' && !/consents|contacts\/[^?]/.test(path);
        return { status: 200, headers: {}, body: JSON.stringify(isSearch ? { data: [] } : first) };
      });
      const all = [...nodes, wait, ...withoutService];
      const flow = await Flow.load({ folders, environment, nodes: all, isUnwatched: true });
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
      // Enough of them: fast-check takes longer for a value than a node for a message.
      const anything = fc.sample(fc.anything(), { seed: 1, numRuns: 2000 });
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
      const fieldsOf = (random: Random): Message => {
        const one = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
        const made = Array.from({ length: Math.floor(random() * 7) }, () => [
          one(names),
          one(random() < 0.75 ? foreign : anything),
        ]);
        return Object.fromEntries(made) as Message;
      };
      await inBatches(wanted / 2, async (from) => {
        const random = randomOf(from);
        const messages = all.flatMap((node) =>
          Array.from({ length: perNode }, (_, n): [NodeConfig, Message] => [
            node,
            {
              _msgid: `${node.id} ${String(n)}`,
              phone: '+12025550101',
              text: 'Hello',
              ...fieldsOf(random),
            },
          ]),
        );
        await run(flow, clock, messages);
        return messages.length;
      });
      await environment.close();
    });
  }
});
