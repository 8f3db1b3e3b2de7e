import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Pool } from 'pg';
import type { Connection } from '../../lib/auth/connection';
import { newGrant, Vault } from '../../lib/auth/vault';
import { TokenEndpoints } from '../../lib/auth/token-endpoint';
import { Tokens } from '../../lib/auth/tokens';
import { Once } from '../../lib/guards/once';
import { Queue } from '../../lib/outbox/queue';
import type { ItemData, Shared } from '../../lib/outbox/records';
import { systemClock, type Clock } from '../../lib/service/clock';
import { ServiceError } from '../../lib/service/errors';
import { CommitQueue, type Batch } from '../../lib/state/commit-queue';
import { Leases, prefixOf, type Lease, type Leased } from '../../lib/state/postgres-leases';
import { createMemoryStore } from '../../lib/state/memory';
import { openPostgres } from '../../lib/state/postgres';
import { TakenOver, type Store } from '../../lib/state/store';
import { sealerOf } from '../support/state/sealer';
import { nextIteration } from '../support/event-loop';
import { hosted, nobodys } from '../support/outbox/requests';
import { Postgres } from '../support/postgres';
import { peers } from '../support/state/peers';
import { overStore } from '../support/state/over-store';

const hour = 3_600_000;
const never = new Promise<never>(() => undefined);
interface Timer {
  readonly due: number;
  readonly process: Process;
  readonly task: () => void;
}

/** Several processes on one store. Time passes when nothing else can happen: a request takes none of it. */
class World {
  readonly memory: Store = createMemoryStore({ clock: { now: () => this.now } });
  readonly alive = new Set<string>();
  readonly timers = new Set<Timer>();
  now = 1_000_000;
  private starts = 0;

  constructor(readonly scheduler: fc.Scheduler) {}

  process(): Process {
    return new Process(this, `process ${String(++this.starts)}`);
  }

  /** Makes one step after the other happen, in a drawn order, until the work is done. */
  async until(work: Promise<unknown>): Promise<void> {
    const over = new AbortController();
    const done = work.finally(() => over.abort());
    done.catch(() => undefined);
    const isOver = (): boolean => over.signal.aborted;
    for (let steps = 0; !isOver(); steps++) {
      // The writes of one tick are one commit: it takes a tick or two until there is a next step.
      await nextIteration();
      for (let turns = 0; turns < 6 && !isOver() && this.scheduler.count() === 0; turns++)
        await nextIteration();
      if (isOver()) break;
      if (this.scheduler.count() > 0) await this.scheduler.waitNext(1);
      else if (!this.passTime()) assert.fail('nothing happens any more, and not all is done');
      assert.ok(steps < 20_000, 'it has no end');
    }
    await done;
  }

  /** Everything that would still happen by itself. */
  async settle(): Promise<void> {
    const until = this.now + hour;
    for (let idle = 0; idle < 6; idle++) {
      await nextIteration();
      if (this.scheduler.count() > 0) {
        await this.scheduler.waitNext(1);
        idle = 0;
      } else if (idle === 5 && this.passTime(until)) idle = 0;
    }
  }

  private passTime(until = Infinity): boolean {
    let first: Timer | undefined;
    for (const timer of this.timers) {
      if (timer.process.isDead) this.timers.delete(timer);
      else if (!first || timer.due < first.due) first = timer;
    }
    if (!first || first.due > until) return false;
    this.timers.delete(first);
    this.now = Math.max(this.now, first.due);
    first.task();
    return true;
  }
}

/** Its reads of the store, its commits (in order, as a store makes them) and its requests wait for their turn. */
class Process {
  isDead = false;
  readonly died: Promise<void>;
  private die: () => void = () => undefined;
  private committed: Promise<unknown> = Promise.resolve();

  constructor(
    readonly world: World,
    readonly name: string,
  ) {
    world.alive.add(name);
    this.died = new Promise((resolve) => (this.die = resolve));
  }

  /** A killed process does nothing more. */
  async step(what: string): Promise<void> {
    await this.world.scheduler.schedule(Promise.resolve(), `${this.name}: ${what}`);
    if (this.isDead) await never;
  }

  kill(): void {
    this.isDead = true;
    this.world.alive.delete(this.name);
    this.die();
  }

  get clock(): Clock {
    return {
      now: () => this.world.now,
      after: (ms, task) => {
        const timer = { due: this.world.now + ms, process: this, task };
        this.world.timers.add(timer);
        return () => this.world.timers.delete(timer);
      },
    };
  }

  store(isShared: boolean): Store {
    const { memory, alive } = this.world;
    const afterStep = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
      await this.step(what);
      return work();
    };
    return overStore(memory, {
      ...(isShared && {
        peers: peers({ processName: this.name, isAlive: (name) => Promise.resolve(alive.has(name)) }),
      }),
      get: (table, key) => afterStep('get', () => memory.get(table, key)),
      page: (table, range) => afterStep('page', () => memory.page(table, range)),
      keys: (table, range) => afterStep('keys', () => memory.keys(table, range)),
      write: (operations, conditions) => {
        const writing = this.committed.then(() =>
          afterStep('commit', () => memory.write(operations, conditions)),
        );
        this.committed = writing.catch(() => undefined);
        return writing;
      },
      close: () => Promise.resolve(),
    });
  }
}

const connection: Connection = {
  environment: 'env',
  name: 'Office',
  grant: 'authorization_code',
  baseUrl: 'http://127.0.0.1/v1',
  authUrl: 'http://127.0.0.1/a',
  tokenUrl: 'http://127.0.0.1/t',
  redirectUri: 'http://127.0.0.1/c',
  clientId: 'c',
  clientSecret: 's',
  scopes: [],
  seed: '',
  retries: 2,
};

/** A token endpoint that rotates refresh tokens, and revokes the authorization when a used one is reused. */
class Issuer {
  reused = 0;
  private count = 0;
  private readonly good = new Set<string>();

  issue(): string {
    const token = `refresh-${String(++this.count)}`;
    this.good.add(token);
    return token;
  }

  isGood(token: string | null): boolean {
    return token !== null && this.good.has(token);
  }

  async post(process: Process, given = ''): Promise<{ status: number; text: string }> {
    await process.step('token request');
    if (!this.good.delete(given)) {
      this.reused += 1;
      return { status: 400, text: '{"error":"invalid_grant"}' };
    }
    const refresh = this.issue();
    await process.step('token answer');
    const answer = { access_token: `access for ${refresh}`, refresh_token: refresh, expires_in: 3600 };
    return { status: 200, text: JSON.stringify(answer).replace('access for ', 'access-') };
  }
}

const startTokens = async (process: Process, issuer: Issuer, isShared: boolean) => {
  const store = process.store(isShared);
  const { clock, name } = process;
  const vault = new Vault({
    openStore: () => Promise.resolve(store),
    clock,
    warn: () => undefined,
    startId: name,
  });
  const release = vault.keepOpen();
  const endpoints = new TokenEndpoints({
    clock,
    random: () => 0.5,
    post: (_address, fields) => issuer.post(process, fields['refresh_token']),
  });
  const tokens = new Tokens({ vault, clock, endpoints });
  await vault.opening;
  const close = async (): Promise<void> => {
    await tokens.leave(connection);
    await release();
  };
  return { vault, tokens, process, close };
};

const grantIn = async (memory: Store) => {
  const range = { from: Buffer.from('grant\0'), to: Buffer.from('grant\x01'), limit: 10 };
  const [found] = await memory.page<{ grant: { refreshToken: string | null; refused: boolean } }>(
    'work',
    range,
  );
  return found?.value.grant;
};

interface Text extends ItemData {
  readonly name: string;
}
interface Told {
  readonly name: string;
  readonly outcome: string;
  readonly repeated: boolean;
}

/** A send node on a store, and a service that carries out every request. */
const startOutbox = async (process: Process, sent: string[], told: Told[]) => {
  const outbox = new Queue<Text>({
    store: process.store(false),
    node: 'send',
    type: 'send',
    space: 'environment/service',
    width: 2,
    resumeWithin: hour,
    clock: process.clock,
    ...hosted<Text, Shared, string>({
      outcomeFor: async (_text, reason) => reason,
      kindsOf: (outcome) => [outcome],
      emit: async (_job, { name }, { outcome, repeated }) => {
        await process.step('emit');
        told.push({ name, outcome, repeated });
        return true;
      },
      fault: () => undefined,
      work: async (item) => {
        const { signal } = item;
        await item.start();
        await process.step('request');
        if (signal.aborted) return item.isReset ? 'failed' : undefined;
        sent.push(item.data.name);
        // In flight for as long as other things may happen.
        for (let steps = 0; steps < 4; steps++) await process.step('answer');
        return 'sent';
      },
    }),
  });
  await outbox.start();
  return { outbox, process };
};

describe('in any order of events', function () {
  this.timeout(120_000);
  const place = fc.nat({ max: 1 });
  /** Ticks that an event lets pass first: without them, all would happen before the first request has left. */
  const delay = fc.nat({ max: 20 });
  const after = async (scheduler: fc.Scheduler, turns: number, what: string): Promise<void> => {
    for (let left = turns; left >= 0; left--) await scheduler.schedule(Promise.resolve(), what);
  };

  for (const instances of [1, 2]) {
    it(`refreshes, sign-outs, authorizations, restarts and kills (processes: ${String(instances)}) never use a refresh token twice or restore one after a sign-out`, async () => {
      const deeds = fc.constantFrom('ask', 'ask', 'ask', 'signOut', 'authorize', 'restart', 'kill');
      await fc.assert(
        fc.asyncProperty(
          fc.scheduler(),
          fc.array(fc.tuple(deeds, place, delay), { minLength: 2, maxLength: 8 }),
          async (scheduler, todo) => {
            const world = new World(scheduler);
            const issuer = new Issuer();
            const start = () => startTokens(world.process(), issuer, instances > 1);
            const authorization = (): ReturnType<typeof newGrant> => ({
              ...newGrant(connection, 'default'),
              refreshToken: issuer.issue(),
            });
            let kills = 0;
            /** Without a value while that is being changed: a process may exit before or after the commit. */
            const signedOut: { is?: boolean } = { is: false };
            const running = Array.from({ length: instances }, start);
            const firstDone = running[0]?.then(({ vault }) => vault.authorized(connection, authorization()));
            await world.until(Promise.all([...running, firstDone]));

            // A person does one thing after the other.
            let person: Promise<unknown> = Promise.resolve();
            const all = todo.map(async ([what, where, turns]) => {
              await after(scheduler, turns, what);
              const at = where % instances;
              const red = await running[at];
              if (!red || red.process.isDead) return;
              const { vault, tokens, process, close } = red;
              const orDead = (work: Promise<unknown>): Promise<unknown> => Promise.race([work, process.died]);
              if (what === 'ask') {
                const ask = async (): Promise<void> => {
                  try {
                    assert.match(await tokens.token(connection, 'default'), /^access-/);
                  } catch (fault) {
                    assert.ok(fault instanceof ServiceError, String(fault));
                  }
                };
                await orDead(ask());
              } else if (what === 'signOut') {
                person = orDead(
                  person.then(async () => {
                    const before = signedOut.is;
                    delete signedOut.is;
                    const isDone = await vault.disconnect('env', 'default', connection);
                    if (isDone) signedOut.is = true;
                    else if (before !== undefined) signedOut.is = before;
                  }),
                );
                await person;
              } else if (what === 'authorize') {
                person = orDead(
                  person.then(async () => {
                    delete signedOut.is;
                    await vault.authorized(connection, authorization());
                    signedOut.is = false;
                  }),
                );
                await person;
              } else {
                if (what === 'kill') kills += 1;
                else await orDead(close());
                if (process.isDead) return;
                process.kill();
                await (running[at] = start());
              }
            });
            await world.until(Promise.all(all));
            await world.settle();

            // After a kill between the answer and the commit, the old token is tried once.
            assert.ok(issuer.reused <= kills, `a refresh token was used twice: ${String(issuer.reused)}`);
            if (kills > 0 || signedOut.is === undefined) return;
            const kept = await grantIn(world.memory);
            if (signedOut.is) assert.equal(kept, undefined, 'the authorization came back after the sign-out');
            else
              assert.ok(kept && !kept.refused && issuer.isGood(kept.refreshToken), 'the good token is lost');
          },
        ),
        { numRuns: 150 },
      );
    });
  }

  it('texts, deploys and kills send nothing twice, emit what was sent, and without a kill emit everything once', async () => {
    const deeds = fc.constantFrom('text', 'text', 'text', 'list', 'restart', 'kill');
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.tuple(deeds, delay), { minLength: 2, maxLength: 8 }),
        async (scheduler, todo) => {
          const world = new World(scheduler);
          const sent: string[] = [];
          const told: Told[] = [];
          const start = () => startOutbox(world.process(), sent, told);
          let running = start();
          await world.until(running);
          let kills = 0;
          const given: string[] = [];
          let changing: Promise<unknown> = Promise.resolve();
          const all = todo.map(async ([what, turns], number) => {
            await after(scheduler, turns, what);
            if (what === 'text' || what === 'list') {
              const names = Array.from(
                { length: what === 'text' ? 1 : 3 },
                (_, n) => `${String(number)}.${String(n)}`,
              );
              // Node-RED delivers nothing while a node is being replaced.
              await changing;
              const { outbox } = await running;
              given.push(...names);
              const items = names.map((name, index): Text => ({ index, name }));
              outbox.accept({}, { items, count: items.length, shared: nobodys });
              return;
            }
            await (changing = changing.then(async () => {
              const { outbox, process } = await running;
              if (what === 'kill') kills += 1;
              else await outbox.close();
              process.kill();
              running = start();
              await running;
            }));
          });
          await world.until(Promise.all(all));
          await world.settle();

          assert.equal(new Set(sent).size, sent.length, `sent twice: ${sent.join()}`);
          const firsts = told.filter(({ repeated }) => !repeated).map(({ name }) => name);
          assert.equal(new Set(firsts).size, firsts.length, `told twice as new: ${firsts.join()}`);
          for (const name of sent) {
            const [first] = told.filter((each) => each.name === name);
            assert.ok(
              first && ['sent', 'unknown'].includes(first.outcome),
              `${name} was sent, and ${String(first?.outcome)} was emitted`,
            );
          }
          for (const { name, outcome } of told)
            if (outcome === 'sent')
              assert.ok(sent.includes(name), `${name} was emitted as sent, and was not`);
          if (kills > 0) return;
          assert.deepEqual(told.map(({ name }) => name).sort(), given.sort());
        },
      ),
      { numRuns: 150 },
    );
  });

  it('texts with one key in two processes, of which one may be killed, are sent once, and the others know', async () => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(place, { minLength: 2, maxLength: 6 }),
        fc.option(delay),
        async (scheduler, where, killAfter) => {
          const world = new World(scheduler);
          run += 1;
          const processes = [world.process(), world.process()];
          const stores = processes.map((process) => process.store(true));
          const onceKey = { space: 's', node: 'n', advisor: 'a', phone: '+12025550101', key: 'k' };
          const clock = { ...systemClock, now: () => world.now };
          let sends = 0;
          const ends: string[] = [];
          const send = async (at: number, name: string): Promise<void> => {
            const [process, store] = [processes[at], stores[at]];
            if (!process || !store) return;
            for (;;) {
              await process.step('turn');
              const once = new Once(store, onceKey, hour, { service: 'simulator', clock });
              const verdict = await once.claim(name, world.now);
              if (verdict.kind === 'wait') continue;
              if (verdict.kind !== 'own') {
                ends.push(verdict.kind);
                return;
              }
              await store.write([once.step({ ...verdict.claim, state: 'started' })]);
              await process.step('request');
              sends += 1;
              await process.step('answer');
              await store.write([once.step(once.ended(verdict.claim, { state: 'sent', payload: 1 }))]);
              once.release(name);
              ends.push('own');
              return;
            }
          };
          const texts = where.map(async (at, index) => {
            const process = processes[at];
            await Promise.race([send(at, `${String(run)}/${String(index)}`), process?.died]);
          });
          const killing =
            killAfter === null
              ? Promise.resolve()
              : after(scheduler, killAfter, 'kill').then(() => processes[1]?.kill());
          await world.until(Promise.all([...texts, killing]));

          assert.ok(sends <= 1, `sent ${String(sends)} times`);
          if (killAfter !== null) return;
          assert.equal(sends, 1);
          assert.deepEqual(ends.sort(), ['own', ...where.slice(1).map(() => 'sent')]);
        },
      ),
      { numRuns: 200 },
    );
  });
});

/** A lease that was granted, or a write that the database accepted, with the token of its lease. */
interface Taken {
  readonly slot: number;
  readonly token: string;
  readonly value?: string;
}

/** What happens to a write: its answer may be lost, or it may arrive after its holder has given it up. */
type Fate = 'answered' | 'unanswered' | 'late';

/**
 * Holders of leases in a real database. One statement is carried out at a time, in a drawn order. All leases
 * count as expired, so that each may be taken at any time.
 */
class Holders {
  readonly group = randomBytes(8);
  /** In order. */
  readonly taken: Taken[] = [];
  private working = 0;
  private poke: () => void = () => undefined;

  constructor(
    private readonly scheduler: fc.Scheduler,
    private readonly database: Pool,
    private readonly nextFate: () => Fate,
  ) {}

  /** The database as one holder sees it. */
  poolOf(name: string): Pool {
    const query = async (statement: string | { values: unknown[] }, values?: unknown[]): Promise<unknown> => {
      const fate = typeof statement === 'string' ? 'answered' : this.nextFate();
      const arrive = async (): Promise<unknown> => {
        await this.turn(name);
        const answer = (await this.database.query(statement as string, values)) as { rows: unknown[] };
        if (typeof statement !== 'string' && answer.rows.length > 0) this.noteWrite(statement.values);
        return answer;
      };
      if (fate === 'late') void this.atWork(arrive).catch(() => undefined);
      else if (fate === 'answered') return arrive();
      else await arrive();
      throw new Error('cut');
    };
    return { query } as unknown as Pool;
  }

  private noteWrite(values: readonly unknown[]): void {
    const [, slot, token] = values as [Buffer, number, string];
    const [bytes] = values[8] as Buffer[];
    this.taken.push({ slot, token, value: String(bytes) });
  }

  private async turn(name: string): Promise<void> {
    const step = this.scheduler.schedule(Promise.resolve(), name);
    this.poke();
    await step;
  }

  private async atWork<T>(work: () => Promise<T>): Promise<T> {
    this.working += 1;
    try {
      return await work();
    } finally {
      this.working -= 1;
      this.poke();
    }
  }

  /** Runs all of them; whoever is not at the database is about to be. */
  async all(work: readonly (() => Promise<void>)[]): Promise<void> {
    const done = Promise.all(work.map((each) => this.atWork(each)));
    done.catch(() => undefined);
    while (this.working > 0) {
      if (this.scheduler.count() >= this.working) await this.scheduler.waitNext(1);
      else await new Promise<void>((resolve) => (this.poke = resolve));
    }
    await done;
  }
}

describe('in any order in which processes reach the leases of a database', function () {
  this.timeout(180_000);
  let server: Postgres;
  let database: Pool;
  before(async () => {
    server = await Postgres.start();
    const handle = openPostgres({
      url: server.url(),
      group: 'makes the tables',
      sealer: async () => sealerOf('test'),
      warn: (text) => assert.fail(text),
    });
    await handle.opened;
    await handle.close();
    database = new Pool({ connectionString: server.url() });
  });
  after(async () => {
    await database.end();
    await server.close();
  });

  it('each lease has one holder, nothing is taken from a former one, and all know whether their write was made', async () => {
    const deeds = fc.constantFrom('add', 'take', 'take', 'write', 'write', 'write', 'giveUp', 'handOn');
    const lives = fc.array(fc.array(deeds, { minLength: 2, maxLength: 8 }), { minLength: 2, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        lives,
        fc.array(fc.constantFrom<Fate>('answered', 'unanswered', 'late'), { minLength: 8, maxLength: 8 }),
        async (scheduler, todo, fates) => {
          let statements = 0;
          const holders = new Holders(scheduler, database, () => fates[statements++] ?? 'answered');
          const { group, taken } = holders;
          const ends = new Map<string, 'made' | 'not made' | 'in doubt'>();
          const names = todo.map((_, n) => `holder ${String(n)}`);
          const work = todo.map((life, n) => async (): Promise<void> => {
            const name = names[n] ?? '';
            const pool = holders.poolOf(name);
            const leases = new Leases(() => pool, group, name, 0);
            const held = new Map<number, Leased & { isLost: boolean }>();
            const have = (lease: Lease | undefined): void => {
              if (!lease) return;
              taken.push(lease);
              held.set(lease.slot, { lease, isLost: false });
            };
            const lastMade = (batch: Batch): Promise<number> =>
              leases.lastMade(batch, async (fence) => {
                (fence as { isLost: boolean }).isLost = true;
                held.delete(fence.lease.slot);
              });
            const writes = new CommitQueue({
              ready: async (batch) => {
                if (batch.attempt === 0 && statements % 2 === 0) await lastMade(batch);
              },
              apply: (batch) => leases.apply(batch),
              lastMade,
            });
            have(await leases.add());
            for (const [turn, deed] of life.entries()) {
              const [fence] = held.values();
              if (deed === 'add') have(await leases.add());
              else if (deed === 'take') {
                const { rows } = await leases.beat([...held.keys()], false);
                const row = rows.find(({ slot, token }) => held.get(slot)?.lease.token !== token);
                const lease = row && (await leases.take(row));
                if (lease) assert.equal(BigInt(lease.token), BigInt(row.token) + 1n, 'it had changed');
                have(lease);
              } else if (deed === 'giveUp') {
                await leases.giveUp([...held.keys()]);
                held.clear();
              } else if (fence && deed === 'handOn') {
                const to = names[(n + 1) % names.length] ?? '';
                if (!(await leases.handOn(fence.lease, to))) continue;
                const { slot, token } = fence.lease;
                taken.push({ slot, token: String(BigInt(token) + 1n) });
                held.delete(slot);
              } else if (fence) {
                const value = `${name}, ${String(turn)}`;
                const key = Buffer.concat([prefixOf(group, fence.lease.slot), Buffer.from('record')]);
                const change = { table: 'work', key, bytes: Buffer.from(value) } as const;
                try {
                  await writes.add({ fences: [fence], changes: [change], conditions: [] });
                  ends.set(value, 'made');
                } catch (fault) {
                  assert.ok(fault instanceof TakenOver, String(fault));
                  ends.set(value, fault.isInDoubt ? 'in doubt' : 'not made');
                }
              }
            }
          });
          await holders.all(work);

          const latest = new Map<number, bigint>();
          for (const { slot, token, value } of taken) {
            const before = latest.get(slot) ?? 0n;
            const isIts = value === undefined ? BigInt(token) > before : BigInt(token) === before;
            assert.ok(isIts, `${value ?? 'a lease'} came with a token that was not its own`);
            latest.set(slot, BigInt(token));
          }
          for (const [value, end] of ends) {
            const times = taken.filter((each) => each.value === value).length;
            const allowed = { made: [1], 'not made': [0], 'in doubt': [0, 1] }[end];
            assert.ok(allowed.includes(times), `${value} is ${end}, and was taken ${String(times)} times`);
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
