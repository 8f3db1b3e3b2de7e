import fc from 'fast-check';
import should from 'should';
import { setTimeout as pause } from 'node:timers/promises';
import { doNotTextOf, type BlockCommand } from '../../../lib/guards/do-not-text';
import type { Environment, EnvironmentSettings } from '../../../lib/runtime/environment';
import { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import { openPostgres, type PostgresHandle } from '../../../lib/state/postgres';
import { TakenOver, type Store } from '../../../lib/state/store';
import * as runtime from '../../../nodes/send-text/runtime';
import { spec } from '../../../nodes/send-text/spec';
import { startSimulator, type Simulator } from '../../../simulator';
import { sealerOf } from '../../support/state/sealer';
import { closeAll } from '../../support/closing';
import { environmentOn, type Service } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import type { Arrived } from '../../support/flow';
import { gate } from '../../support/gate';
import { Instance, Mortal } from '../../support/instance';
import { numbers } from '../../support/numbers';
import { Postgres } from '../../support/postgres';
import { sent } from '../../support/sent';
import { startServer } from '../../support/server';
import { overStore } from '../../support/state/over-store';

const byOrder = { onceKey: 'order', onceKeyType: 'msg' };
const { consented } = numbers;
const noon = Date.UTC(2027, 0, 4, 17);
/** Ten in the evening in New York, the number's zone. */
const night = Date.UTC(2027, 0, 5, 3);
const hour = 3_600_000;
/** How a text left, as its receiver sees it. */
const endOf = ({ port, msg }: Arrived): string => {
  if (port === 1) return (msg.error as { code: string }).code;
  return (msg.payload as { alreadySent?: boolean }).alreadySent === true ? 'already sent' : 'sent';
};

let simulator: Simulator;
let order = 0;

const begin = async (at: number): Promise<void> => {
  simulator = await startSimulator({ clock: new MovableClock(() => at) });
};

const environmentIn = (
  process: Mortal,
  store: Store,
  settings: Partial<EnvironmentSettings> = {},
): Environment => {
  const { baseUrl, credentials } = simulator;
  const clock = process.clock(simulator.clock);
  return environmentOn(
    { baseUrl, apiKey: credentials.apiKey, token: (advisor) => simulator.accessToken(advisor) },
    { service: 'simulator', clock, store: process.over(store), settings: { journal: true, ...settings } },
  );
};
const start = (process: Mortal, store: Store, settings?: Partial<EnvironmentSettings>): Instance =>
  new Instance({ spec, runtime }, environmentIn(process, store, settings), byOrder, process);
const texts = (): number =>
  simulator.ledger.entries().filter(({ endpoint }) => endpoint === 'sendMessage').length;
const text = (from: string) => ({ phone: consented, text: 'Hi', order, from });
const told = async (instance: Instance, from: string): Promise<Arrived> => {
  for (;;) {
    const found = instance.arrivals.all.find(({ msg }) => msg.from === from);
    if (found) return found;
    await pause(2);
  }
};

/** A service that receives requests and answers when it is released. */
const slowService = async () => {
  const [reached, held] = [gate(), gate()];
  const service = await startServer(async () => {
    reached.open();
    await held.opened;
    return { body: sent };
  });
  const on = { baseUrl: `${service.url}/v1`, apiKey: 'key', token: () => 'token' };
  return { on, reached, held, received: () => service.received.length };
};

describe('a text with a key, whose process loses its store', () => {
  afterEach(async () => {
    await simulator.close();
    await closeAll();
  });

  it('before it knows whether it is saved, keeps the key for whoever continues it', async () => {
    await begin(noon);
    const { on, reached, held, received } = await slowService();
    const memory = createMemoryStore();
    const environment = environmentOn(on, { store: memory, settings: { journal: true } });
    const [recorded, heard] = [gate(), gate()];
    let [writes, isHeard] = [0, false];
    /** Its first write succeeds; it learns later that another process has taken the store over. */
    const lost: Store = overStore(memory, {
      write: async (...written) => {
        const isText = written[0].some((each) => 'put' in each && each.put.toString().startsWith('item\0'));
        if (!isText && writes === 0) return memory.write(...written);
        const isMade = ++writes === 1;
        if (isMade) await memory.write(...written);
        recorded.open();
        await heard.opened;
        isHeard = true;
        throw new TakenOver(isMade);
      },
    });
    const before = { ...environment, store: () => (isHeard ? memory : lost) };
    const first = new Instance({ spec, runtime }, before, byOrder);
    first.send(text('first'));
    await recorded.opened;
    const next = new Instance({ spec, runtime }, environment, byOrder);
    await reached.opened;
    heard.open();
    should(endOf(await told(first, 'first'))).equal('outcome_unknown');
    next.send(text('repeat'));
    for (let turns = 0; turns < 50; turns++) await nextIteration();
    held.open();
    should(endOf(await told(next, 'repeat'))).equal('already sent');
    should(endOf(await told(next, 'first'))).equal('sent');
    should(received()).equal(1);
    await Promise.all([first.close(), next.close()]);
  });
});

describe('a text with a key, whose process is killed', function () {
  this.timeout(120_000);
  afterEach(() => simulator.close());

  for (const [when, isMade] of [
    ['before it is made', false],
    ['when it is made without an answer', true],
  ] as const)
    it(`at each commit, ${when}, is received once, or its outcome is unknown to the repeat too`, async () => {
      await begin(noon);
      let isThrough = false;
      for (let commits = 0; !isThrough; commits++) {
        order += 1;
        const before = texts();
        const store = createMemoryStore();
        const first = new Mortal();
        first.killAfter(commits, isMade);
        const killed = start(first, store);
        killed.send(text('first'));
        while (!first.isDead && killed.arrivals.all.length === 0) await nextIteration();
        isThrough = !first.isDead;
        const next = start(new Mortal(), store);
        next.send(text('second'));
        const second = endOf(await told(next, 'second'));
        const ends = next.arrivals.all.filter(({ msg }) => msg.from === 'first').map(endOf);
        next.send(text('third'));
        const third = endOf(await told(next, 'third'));
        if (ends.includes('outcome_unknown')) {
          should([second, third]).deepEqual(['outcome_unknown', 'outcome_unknown']);
          should(texts() - before).be.belowOrEqual(1);
        } else {
          // Nothing blocks the key: what the first did not send, the second sends.
          should(['sent', 'already sent']).containEql(second);
          should(third).equal('already sent');
          should(texts() - before).equal(1);
        }
        await next.close();
      }
    });

  it('while it is held, leaves once when the hours start', async () => {
    await begin(night);
    const settings = { textHours: { from: 480, until: 1260, outside: 'hold' as const } };
    const store = createMemoryStore();
    for (let commits = 1; commits < 4; commits++) {
      const process = new Mortal();
      process.killAfter(commits, true);
      start(process, store, settings).send(text(`killed ${String(commits)}`));
      for (let turns = 0; turns < 200 && !process.isDead; turns++) await nextIteration();
      process.kill();
    }
    const last = start(new Mortal(), store, settings);
    last.send(text('last'));
    for (let turns = 0; turns < 50; turns++) await nextIteration();
    should(texts()).equal(0);
    await simulator.clock.move(11 * hour);
    await told(last, 'last');
    should(texts()).equal(1);
    await last.close();
  });

  it('again and again, is received once, whenever repeats come', async () => {
    await begin(noon);
    const life = fc.record({
      texts: fc.integer({ min: 1, max: 3 }),
      commits: fc.nat(8),
      isMade: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(life, { minLength: 1, maxLength: 4 }), async (lives) => {
        order += 1;
        const before = texts();
        const store = createMemoryStore();
        for (const { texts: count, commits, isMade } of lives) {
          const process = new Mortal();
          process.killAfter(commits, isMade);
          const instance = start(process, store);
          for (let at = 0; at < count; at++) instance.send(text('killed'));
          while (!process.isDead && instance.arrivals.all.length < count) await nextIteration();
          process.kill();
        }
        const last = start(new Mortal(), store);
        last.send(text('last'));
        const end = endOf(await told(last, 'last'));
        should(texts() - before).be.belowOrEqual(1);
        if (end !== 'outcome_unknown') should(texts() - before).equal(1);
        await last.close();
      }),
      { numRuns: 60 },
    );
  });
});

describe('several processes on one PostgreSQL', function () {
  this.timeout(120_000);
  let server: Postgres;
  let group = 0;
  const machines: Machine[] = [];
  before(async () => {
    server = await Postgres.start();
  });
  beforeEach(() => {
    group += 1;
  });
  afterEach(async () => {
    for (const each of machines.splice(0)) await stop(each);
    await simulator.close();
    await closeAll();
  });
  after(() => server.close());

  interface Machine {
    readonly process: Mortal;
    readonly handle: PostgresHandle;
    readonly store: Store;
    readonly instance: Instance;
  }
  /** As a separate process has it: another address is another process. */
  const machine = async (service?: Service, isHeir = true): Promise<Machine> => {
    const process = new Mortal();
    const handle = openPostgres({
      url: `${server.url()}&application_name=${process.name.replace(' ', '-')}`,
      group: `group ${String(group)}`,
      sealer: async () => sealerOf('test'),
      warn: () => undefined,
      leaseFor: 60_000,
      pulseEvery: 20,
    });
    const own = await handle.opened;
    const environment: Environment = {
      ...(service
        ? environmentOn(service, {
            clock: process.clock(simulator.clock),
            store: process.over(own),
            settings: { journal: true },
          })
        : environmentIn(process, own)),
      onStore: (listener) =>
        handle.database.onOrphan((left) => {
          if (isHeir && !process.isDead) void listener(process.over(left), 'orphan');
        }),
    };
    const store = await environment.store();
    handle.database.onCommand(async (_slot, command) => {
      if (!process.isDead && command.kind === 'block')
        await (await doNotTextOf(environment)).onRemoteBlock(command as BlockCommand);
      return !process.isDead;
    });
    const started = {
      process,
      handle,
      store,
      instance: new Instance({ spec, runtime }, environment, byOrder, process),
    };
    machines.push(started);
    return started;
  };
  /** It learns nothing any more, and its lease has expired. */
  const kill = async ({ process, handle }: Machine): Promise<void> => {
    process.kill();
    await handle.close();
  };
  const stop = async ({ process, handle, instance }: Machine): Promise<void> => {
    if (!process.isDead) await instance.close();
    await handle.close();
  };

  it('send a text with a key once, whichever it reaches and whichever are killed', async () => {
    await begin(noon);
    const course = fc.record({
      texts: fc.integer({ min: 1, max: 2 }),
      commits: fc.nat(9),
      isMade: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.tuple(course, course), async (courses) => {
        order += 1;
        group += 1;
        const before = texts();
        const [a, b, c] = await Promise.all([machine(), machine(), machine()]);
        for (const [at, killed] of [a, b].entries()) {
          const { texts: count = 1, commits = 0, isMade = false } = courses[at] ?? {};
          killed.process.killAfter(commits, isMade);
          for (let sent = 0; sent < count; sent++) killed.instance.send(text(`killed ${String(at)}`));
        }
        c.instance.send(text('living'));
        for (const [at, killed] of [a, b].entries()) {
          const count = courses[at]?.texts ?? 1;
          // One that waits for another commits nothing: it is killed anyway.
          for (let looks = 0; looks < 40 && !killed.process.isDead; looks++) {
            if (killed.instance.arrivals.all.length >= count) break;
            await pause(10);
          }
          await kill(killed);
        }
        const living = endOf(await told(c.instance, 'living'));
        c.instance.send(text('last'));
        const last = endOf(await told(c.instance, 'last'));
        should(texts() - before).be.belowOrEqual(1);
        // One that was slow to tell that it lives may still have told how its text ended.
        if (last !== 'outcome_unknown' || living !== 'outcome_unknown') should(last).equal('already sent');
        if (last === 'already sent') should(texts() - before).equal(1);
        await stop(c);
      }),
      { numRuns: 12 },
    );
  });

  it('do not send a repeat while nobody has continued what a killed one had in flight', async () => {
    await begin(noon);
    const { on, reached, held, received } = await slowService();
    const [killed, other] = await Promise.all([machine(on), machine(on, false)]);
    killed.instance.send(text('under way'));
    await reached.opened;
    await kill(killed);
    other.instance.send(text('repeat'));
    should(endOf(await told(other.instance, 'repeat'))).equal('outcome_unknown');
    should(received()).equal(1);
    held.open();
  });

  it('block only the number of a do-not-text entry that cannot be read', async () => {
    await begin(noon);
    const { store } = await machine();
    const list = await doNotTextOf({ service: 'sandbox', store: () => store });
    await list.block(consented, null, noon);
    const entry = store.hash(consented).toString('hex');
    server.query(
      `update advisor_texting.work set value = set_byte(value, length(value) - 1, get_byte(value, length(value) - 1) # 1)
        where position('\\x${entry}'::bytea in key) > 0`,
    );
    should(await list.check(consented)).equal('unreadable');
    should(await list.check(numbers.unasked)).be.undefined();
    await list.unblock(consented);
    should(await list.check(consented)).be.undefined();
  });

  describe('when one blocks somebody whom another is texting', () => {
    const texting = async () => {
      await begin(noon);
      const { on, reached, held, received } = await slowService();
      const [texts, blocks] = await Promise.all([machine(on), machine(on)]);
      texts.instance.send(text('under way'));
      await reached.opened;
      const list = await doNotTextOf({ service: 'sandbox', store: () => blocks.store });
      const events: string[] = [];
      const blocking = list.block(consented, null, noon).then(() => {
        events.push('blocked');
      });
      while (!(await list.get(consented))) await nextIteration();
      for (let looks = 0; looks < 10; looks++) await list.get(consented);
      return { texts, blocks, events, blocking, held, received };
    };

    it('answer when that request has finished, and start no further one', async () => {
      const { texts, events, blocking, held, received } = await texting();
      events.push('answered');
      held.open();
      await blocking;
      should(events).deepEqual(['answered', 'blocked']);
      texts.instance.send({ ...text('later'), order: 'another' });
      should(endOf(await told(texts.instance, 'later'))).equal('blocked');
      should(received()).equal(1);
    });

    it('answer once the other was killed, and report its requests in progress', async () => {
      const { texts, blocks, events, blocking, held } = await texting();
      events.push('killed');
      await kill(texts);
      await blocking;
      should(events).deepEqual(['killed', 'blocked']);
      should(endOf(await told(blocks.instance, 'under way'))).equal('outcome_unknown');
      held.open();
    });
  });
});
