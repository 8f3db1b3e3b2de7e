import { createHash } from 'node:crypto';
import type { Connection } from '../../lib/auth/connection';
import { newGrant, Vault } from '../../lib/auth/vault';
import { TokenEndpoints } from '../../lib/auth/token-endpoint';
import { Tokens } from '../../lib/auth/tokens';
import { consentOf, type WaitShared } from '../../lib/consent/consent';
import type { WaitOutcome } from '../../lib/consent/consent-status';
import { recommended } from '../../lib/consent/pace';
import type { Item } from '../../lib/outbox/item';
import { Queue } from '../../lib/outbox/queue';
import type { ItemData } from '../../lib/outbox/records';
import { Call, type Shared } from '../../lib/service/client';
import type { Clock } from '../../lib/service/clock';
import { MovableClock } from '../../simulator/movable-clock';
import { listenersOn } from '../../lib/service/concurrency';
import { endpoints, type EndpointName } from '../../lib/service/endpoints';
import { ServiceError } from '../../lib/service/errors';
import type { Outgoing, Result } from '../../lib/service/transport';
import { Limits, RetryBudget } from '../../lib/service/limits';
import { planEndpoint } from '../../lib/service/wire';

import type { Client } from '../../lib/service/client';
import { createMemoryStore } from '../../lib/state/memory';
import { isShared, type Operation, type Store } from '../../lib/state/store';
import { nextIteration } from '../support/event-loop';
import { hosted, type Told } from '../support/outbox/requests';
import { faultsIn, type Deed, type Poll, type Step } from './history';
import { peers } from '../support/state/peers';
import { overStore } from '../support/state/over-store';

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;
const start = Date.UTC(2026, 0, 5, 9);
const advisor = 'default';
const askEvery = day;
const phones = Array.from({ length: 12 }, (_, n) => `+1202555${String(1000 + n)}`);
/** A killed process waits for this. */
const never = new Promise<never>(() => undefined);

/** Everything here happens in this tick, or in one that an immediate starts. */
class WorldClock extends MovableClock {
  protected override isIdle(): boolean {
    return !process.getActiveResourcesInfo().includes('Immediate');
  }
}

export type Random = () => number;
/** The same numbers for the same seed, on every machine. */
export const randomOf = (seed: number): Random => {
  let state = (seed * 2654435761 + 1) >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
};

type Weather = 'fine' | 'flaky' | 'outage' | 'limited';
const json = (status: number, body: unknown, retryAfter?: string): Result => ({
  state: 'answered',
  status,
  text: JSON.stringify(body),
  retryAfter,
});
const problem = (status: number, code: string, retryable: boolean): Result =>
  json(status, {
    type: 'x',
    title: code,
    status,
    detail: code,
    instance: '/',
    code,
    traceId: 't',
    retryable,
  });

/**
 * The service and its token endpoint, which rotates refresh tokens and revokes an authorization whose old token is
 * reused.
 */
class Service {
  readonly deeds: Deed[] = [];
  readonly accepted = new Map<string, number>();
  weather: Weather = 'fine';
  calls = 0;
  /** While nothing can be reached: calls that begin or are under way, and requests for them. */
  readonly unreachable = { calls: 0, requests: 0 };
  /** Refresh tokens that were reused, and answers with new ones that were lost on the way. */
  reused = 0;
  lost = 0;
  private readonly access = new Map<string, number>();
  private readonly refresh = new Set<string>();
  private count = 0;

  constructor(
    private readonly world: World,
    private readonly random: Random,
  ) {}

  issue(): { readonly access: string; readonly refresh: string } {
    const tokens = { access: `access-${String(++this.count)}`, refresh: `refresh-${String(this.count)}` };
    this.access.set(tokens.access, this.world.clock.now() + hour);
    this.refresh.add(tokens.refresh);
    return tokens;
  }

  /** One request, with everything that may happen to it. */
  async take(outgoing: Outgoing): Promise<Result> {
    if (this.weather === 'outage') this.unreachable.requests += 1;
    const { clock, age } = this.world;
    const passes = (ms: number): Promise<void> => new Promise((resolve) => clock.after(ms, resolve));
    const { weather } = this;
    const luck = weather === 'fine' ? 1 : this.random();
    if (weather === 'outage' && luck < 0.5) return { state: 'unreached', reason: 'ECONNREFUSED' };
    await passes(20 + this.random() * 400);
    if (weather === 'outage') return { state: 'broken', reason: 'ECONNRESET' };
    if (weather === 'limited' && luck < 0.4)
      return json(429, {}, ['', '1', '30', '600'][Math.floor(luck * 10)]);
    if (luck < 0.05) return { state: 'unreached', reason: 'ECONNREFUSED' };
    if (luck < 0.1) return { state: 'broken', reason: 'ECONNRESET' };
    if (luck < 0.14) return { state: 'answered', status: 502, text: '', retryAfter: undefined };
    if (luck < 0.18) return problem(503, 'downstream_unavailable', true);
    if (luck < 0.22) {
      // It arrives when the client has long given it up.
      void passes(45_000).then(() => this.carryOut(outgoing, age));
      await passes(30_000);
      return { state: 'broken', reason: { reason: 'timeout' } };
    }
    const answer = this.carryOut(outgoing, age);
    await passes(20 + this.random() * 100);
    if (luck < 0.28) return { state: 'broken', reason: 'ECONNRESET' };
    return answer;
  }

  async post(fields: Readonly<Record<string, string>>): Promise<{ status: number; text: string }> {
    await new Promise<void>((resolve) => this.world.clock.after(50, resolve));
    const luck = this.weather === 'fine' ? 1 : this.random();
    if (this.weather === 'outage' || luck < 0.1) return { status: 503, text: '' };
    const { refresh_token: given = '' } = fields;
    if (!this.refresh.delete(given)) {
      this.reused += 1;
      this.refresh.clear();
      return { status: 400, text: '{"error":"invalid_grant"}' };
    }
    const { access, refresh } = this.issue();
    if (luck < 0.15) {
      this.lost += 1;
      throw new Error('cut');
    }
    return {
      status: 200,
      text: JSON.stringify({
        access_token: access,
        refresh_token: refresh,
        expires_in: 3600,
        token_type: 'Bearer',
      }),
    };
  }

  private carryOut({ url, params, data, token = '' }: Outgoing, age: number): Result {
    if ((this.access.get(token) ?? 0) < this.world.clock.now()) return problem(401, 'unauthorized', false);
    const note = (kind: Deed['kind'], name: string, phone: string): void => {
      this.deeds.push({ kind, name, phone, at: this.world.clock.now(), age });
    };
    const asked = JSON.parse(data ?? '{}') as { phone?: string; text?: string; phoneNumbers?: string[] };
    if (url.includes('/messages')) {
      note('send', asked.text ?? '', asked.phone ?? '');
      return json(200, { successes: [{ messageId: 1, memberId: 2 }], failures: [] });
    }
    if (url.includes('/consent-requests')) {
      note('ask', '', asked.phoneNumbers?.[0] ?? '');
      return json(200, { successes: [{ memberId: 2, consentState: 'pending' }], failures: [] });
    }
    const phone = String(params?.phone ?? '');
    return json(200, {
      memberId: 2,
      state: this.accepted.has(phone) ? 'accepted' : 'pending',
      lastChanged: 1,
    });
  }
}

interface Text extends ItemData {
  readonly name: string;
  readonly kind: Step['kind'];
  readonly phone: string;
}
interface Ending {
  readonly type: 'ok' | 'failed' | 'unknown';
  readonly code?: string;
}

/** The store as one process sees it: shared kinds for all, the rest in a slot that one process holds at a time. */
class Slot {
  holder: Process | undefined;
  constructor(readonly name: string) {}
}

const connection: Connection = {
  environment: 'env',
  name: 'Week',
  grant: 'authorization_code',
  baseUrl: 'http://service/v1',
  authUrl: 'http://service/a',
  tokenUrl: 'http://service/t',
  redirectUri: 'http://127.0.0.1/c',
  clientId: 'c',
  clientSecret: 's',
  scopes: [],
  seed: '',
  retries: 4,
};

const plans = new Map((Object.keys(endpoints) as EndpointName[]).map((name) => [name, planEndpoint(name)]));

/** With a random secret, numbers would have a different phase in each run of a seed. */
const hashes = new Map<string, Buffer>();
const hashOf = (text: string): Buffer => {
  const hash = hashes.get(text) ?? createHash('sha256').update(text).digest().subarray(0, 16);
  hashes.set(text, hash);
  return hash;
};

/** One Node-RED: the real client, limits, tokens, outboxes, waits and request history, on a movable clock. */
class Process {
  isDead = false;
  commitsLeft = Infinity;
  private readonly timers = new Set<object>();
  underWay = 0;
  /** Listeners of calls that had finished when this process closed. */
  private deaf = 0;
  private asleep: Promise<void> | undefined;
  private wake: () => void = () => undefined;
  private readonly client: Pick<Client, 'call'>;
  private readonly vault: Vault;
  private readonly closing = new AbortController();
  private readonly limits: Limits;
  private readonly tokens: Tokens;
  private readonly boxes: Boxes[] = [];
  readonly ready: Promise<unknown>;

  constructor(
    readonly world: World,
    readonly slot: Slot,
    readonly life: string,
  ) {
    slot.holder = this;
    const { service, random } = world;
    const clock = this.clockOf(() => world.clock.now() + world.shift);
    const store = this.storeOf(slot);
    this.vault = new Vault({
      openStore: () => Promise.resolve(store),
      clock: this.ageClock,
      warn: () => undefined,
      startId: life,
    });
    void this.vault.keepOpen();
    const tokens = (this.tokens = new Tokens({
      vault: this.vault,
      clock: this.ageClock,
      endpoints: new TokenEndpoints({
        clock: this.ageClock,
        random,
        post: async (_address, fields) => {
          await this.alive();
          const answer = await service.post(fields);
          await this.alive();
          return answer;
        },
      }),
    }));
    this.limits = new Limits(clock, 4, world.instances === 1 ? 0 : 20);
    const shared: Shared = {
      baseUrl: '',
      transport: {
        send: async (outgoing) => {
          await this.alive();
          const result = await service.take(outgoing);
          await this.alive();
          return result;
        },
        destroy: () => Promise.resolve(),
      },
      limits: this.limits,
      budget: new RetryBudget(),
      clock,
      random,
      rules: { retries: 4, repeatSends: 'contract' },
      apiKey: 'key',
      token: (of, rejected) => tokens.token(connection, of, rejected),
      futile: new Map(),
      closing: this.closing.signal,
    };
    this.client = {
      call: async (name, request, options) => {
        const plan = plans.get(name);
        if (!plan) throw new Error(name);
        service.calls += 1;
        if (service.weather === 'outage') service.unreachable.calls += 1;
        const { query } = request as { query?: { phone?: string } };
        if (query?.phone !== undefined) world.polled(query.phone);
        await this.alive();
        this.underWay += 1;
        try {
          return (await new Call(shared, plan, plan.wire(request as never), options).run()) as never;
        } finally {
          this.underWay -= 1;
        }
      },
    };
    this.ready = this.takeUp(slot);
  }

  /** Continues what is in a slot: its own, or that of a stopped process. */
  async takeUp(slot: Slot): Promise<void> {
    slot.holder = this;
    const boxes = new Boxes(this, this.storeOf(slot), this.client);
    this.boxes.push(boxes);
    await boxes.open();
  }

  accept(kind: Step['kind'], items: readonly Text[]): void {
    this.boxes[0]?.accept(kind, items);
  }

  async authorize(): Promise<void> {
    const grant = newGrant(connection, advisor);
    const { access, refresh } = this.world.service.issue();
    const known = this.vault.isOpen ? this.vault.get(connection, advisor) : undefined;
    if (known && !known.grant.refused) return;
    const now = this.ageClock.now();
    await this.vault.authorized(connection, {
      ...grant,
      accessToken: access,
      refreshToken: refresh,
      expiresAt: now + hour,
      lifetime: hour,
      refreshedAt: now,
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.boxes.map((boxes) => boxes.close()));
    // A waiting call listens for the end of the client; a finished one must not.
    this.deaf = Math.max(0, listenersOn(this.closing.signal) - this.underWay);
    this.closing.abort();
    await this.tokens.leave(connection);
    this.limits.close();
  }

  /** Timers that a close left, and listeners left by calls that had finished before. There must be none. */
  get left(): number {
    return this.timers.size + this.deaf;
  }

  sleep(): void {
    this.asleep ??= new Promise((resolve) => (this.wake = resolve));
  }

  resume(): void {
    this.asleep = undefined;
    this.wake();
  }

  /** Resolves immediately, when it is woken, or never. */
  async alive(): Promise<void> {
    this.world.noteBurst('accesses');
    while (this.asleep) await this.asleep;
    if (this.isDead || this.world.isRunaway) await never;
  }

  get ageClock(): Clock {
    return this.clockOf(() => this.world.age);
  }

  private clockOf(now: () => number): Clock {
    return {
      now,
      elapsed: () => this.world.clock.now(),
      after: (ms, task) => {
        this.world.noteBurst('timers');
        const timer = {};
        this.timers.add(timer);
        const cancel = this.world.clock.after(ms, () => {
          this.timers.delete(timer);
          void this.alive().then(task);
        });
        return () => {
          this.timers.delete(timer);
          cancel();
        };
      },
    };
  }

  private storeOf(slot: Slot): Store {
    const { memory, instances } = this.world;
    // With one process at a time there is one slot, which needs no name.
    const own = Buffer.from(instances > 1 ? `${slot.name}/` : '');
    const isInSlot = (key: Buffer): boolean => own.length > 0 && !isShared(key);
    const placed = (key: Buffer): Buffer => (isInSlot(key) ? Buffer.concat([own, key]) : key);
    const back = (key: Buffer): Buffer =>
      own.length > 0 && key.subarray(0, own.length).equals(own) ? key.subarray(own.length) : key;
    const ranged = <T extends { from: Buffer; to: Buffer }>(range: T): T =>
      isInSlot(range.from)
        ? { ...range, from: placed(range.from), to: Buffer.concat([own, range.to]) }
        : range;
    return overStore(memory, {
      ...(instances > 1 && { peers: peers() }),
      now: () => this.world.age,
      hash: hashOf,
      get: async (table, key) => {
        await this.alive();
        const found = await memory.get(table, placed(key));
        return found && ({ ...found, key } as never);
      },
      page: async (table, range) => {
        await this.alive();
        return (await memory.page(table, ranged(range))).map((each) => ({
          ...each,
          key: back(each.key),
        })) as never;
      },
      keys: async (table, range) => {
        await this.alive();
        return (await memory.keys(table, ranged(range))).map(back);
      },
      count: (table, from, to) => {
        const range = ranged({ from, to });
        return memory.count(table, range.from, range.to);
      },
      write: async (operations, conditions = []) => {
        await nextIteration();
        if (this.commitsLeft === 0) this.isDead = true;
        await this.alive();
        // A process that was away so long that another has taken over is fenced off.
        if (slot.holder !== this) throw new Error('the store is held by another process');
        this.commitsLeft -= 1;
        this.world.note(operations);
        const moved = operations.map((operation): Operation =>
          'put' in operation
            ? { ...operation, put: placed(operation.put) }
            : { ...operation, remove: placed(operation.remove) },
        );
        return memory.write(
          moved,
          conditions.map((each) => ({ ...each, key: placed(each.key) })),
        );
      },
    });
  }
}

/** The nodes of a flow: one sends, one asks for consent, one waits for it. */
class Boxes {
  private readonly requests = new Map<Step['kind'], Queue<Text>>();
  private waiting: Queue<Text, WaitShared> | undefined;
  private detach: () => void = () => undefined;

  constructor(
    private readonly process: Process,
    private readonly store: Store,
    private readonly client: Pick<Client, 'call'>,
  ) {}

  async open(): Promise<void> {
    const { process, store, client } = this;
    const clock = process.ageClock;
    const consent = await consentOf({
      service: 'simulator',
      space: 'environment/service',
      clock,
      client: () => client,
      store: () => store,
      isBlocked: async () => false,
    });
    const common = {
      kindsOf: ({ type }: Ending) => [type],
      emit: async (
        _message: unknown,
        { name, kind, phone }: Text,
        { outcome, repeated }: Pick<Told<Ending>, 'outcome' | 'repeated'>,
      ) => {
        await process.alive();
        process.world.tell({ name, kind, phone, repeated, ...outcome });
        return true;
      },
      // Fenced off, like a process that slept too long.
      fault: () => undefined,
    };
    const stepsOf = (item: Item<Text>) => ({
      signal: item.signal,
      begin: () => item.start(),
      undo: () => item.undo(),
    });
    const work = {
      send: async (item: Item<Text>): Promise<Ending> => {
        const { name, phone } = item.data;
        const options = { advisor, ...stepsOf(item) };
        await client.call('sendMessage', { body: { phone, text: name } }, options);
        return { type: 'ok' };
      },
      ask: async (item: Item<Text>): Promise<Ending> => {
        const { phone } = item.data;
        const { signal, begin, undo } = stepsOf(item);
        await consent.history.ask(
          advisor,
          phone,
          { every: askEvery, limit: 0 },
          async ({ start, permit, undo: unasked }) => {
            const { data } = await client.call(
              'requestConsent',
              { body: { phoneNumbers: [phone] } },
              {
                advisor,
                signal,
                begin: async () => {
                  await start();
                  await begin();
                },
                permit: async () => {
                  await permit();
                  return () => undefined;
                },
                undo: async () => {
                  await undo();
                  await unasked();
                },
              },
            );
            return {
              requested: true,
              memberId: null,
              consentState: data.successes?.[0]?.consentState ?? null,
            };
          },
        );
        return { type: 'ok' };
      },
    };
    for (const kind of ['send', 'ask'] as const) {
      const outbox = new Queue<Text>({
        store,
        node: kind,
        type: kind,
        space: 'environment/service',
        width: 4,
        resumeWithin: hour,
        clock,
        ...hosted({
          ...common,
          work: (turn) =>
            work[kind](turn).catch((thrown: unknown): Ending | undefined => {
              if (!(thrown instanceof ServiceError)) return { type: 'failed', code: String(thrown) };
              const { code } = thrown;
              const isBrokenOff = turn.signal.aborted && !turn.isReset;
              if (code === 'cancelled' && isBrokenOff) return undefined;
              return { type: code === 'outcome_unknown' ? 'unknown' : 'failed', code };
            }),
          outcomeFor: async (_text, reason): Promise<Ending> =>
            reason === 'unknown' ? { type: 'unknown' } : { type: 'failed', code: reason },
        }),
      });
      this.requests.set(kind, outbox);
      await outbox.start();
    }
    const queue = new Queue<Text, WaitShared>({
      store,
      node: 'wait',
      type: 'wait',
      space: 'environment/service',
      width: 4,
      resumeWithin: hour,
      clock,
      ...hosted({
        ...common,
        work: async (turn): Promise<Ending | undefined> => {
          const ended = await consent.look(turn, 'wait');
          return ended && endingOf(ended);
        },
        outcomeFor: async (): Promise<Ending> => ({ type: 'failed', code: 'cancelled' }),
      }),
    });
    const endingOf = (outcome: WaitOutcome): Ending =>
      outcome.kind === 'accepted'
        ? { type: 'ok' }
        : { type: 'failed', code: outcome.kind === 'failed' ? outcome.problem.code : outcome.reason };
    this.waiting = queue;
    this.detach = consent.attach('wait', {
      queue,
      outcomeOf: (outcome) => ({ port: 0, payload: endingOf(outcome) }),
      changed: () => undefined,
    });
    await queue.start();
  }

  accept(kind: Step['kind'], items: readonly Text[]): void {
    const job = { items, count: items.length };
    const { world } = this.process;
    const pace = { ...recommended, giveUpAfter: world.giveUpAfter };
    if (kind === 'wait') this.waiting?.accept({}, { ...job, shared: { advisor, start: world.age, pace } });
    else this.requests.get(kind)?.accept({}, { ...job, shared: { advisor } });
  }

  async close(): Promise<void> {
    await Promise.all([...this.requests.values()].map((box) => box.close()));
    await this.waiting?.close();
    this.detach();
  }
}

/** Detects when something happens again and again while hardly any time passes. */
class Burst {
  isOver = false;
  private since = -Infinity;
  private count = 0;

  constructor(
    private readonly span: number,
    private readonly most: number,
  ) {}

  note(now: number): void {
    if (now - this.since >= this.span) [this.since, this.count] = [now, 0];
    this.isOver ||= ++this.count > this.most;
  }
}

/** Several processes on one store, and a service, for as long as needed. */
export class World {
  readonly clock = new WorldClock(() => start);
  readonly random: Random;
  readonly service: Service;
  readonly memory = createMemoryStore({ clock: { now: () => this.age } });
  readonly steps: Step[] = [];
  /** How many timers and listeners each process left when it closed. */
  readonly left: number[] = [];
  readonly polls: Poll[] = [];
  /**
   * How far the clock of the machine is off, and how far the store's time is ahead because of a start at such a time.
   */
  shift = 0;
  private ahead = 0;
  private readonly starts: number[] = [];
  private readonly processes: Process[] = [];
  private readonly orphans: Slot[] = [];
  private readonly accepted = new Set<string>();
  private readonly told = new Set<string>();
  /** Items of lists that are not complete yet. */
  private listed: { readonly list: string; readonly item: Text }[] = [];
  private readonly complete = new Set<string>();
  private count = 0;
  /** All processes stand still, or time would never pass: the run is over. */
  isRunaway = false;
  private runAway: (wrong: string[]) => void = () => undefined;
  private readonly ranAway = new Promise<string[]>((resolve) => (this.runAway = resolve));
  private readonly bursts = {
    timers: new Burst(minute, 10_000),
    polls: new Burst(hour, 10_000),
    accesses: new Burst(minute, 100_000),
  };

  constructor(
    readonly seed: number,
    readonly instances: number,
    /** How long a wait for consent lasts. */
    readonly giveUpAfter: number,
  ) {
    this.random = randomOf(seed);
    this.service = new Service(this, this.random);
  }

  /** The store's time: it never runs backwards, and passes evenly while a process runs. */
  get age(): number {
    return this.clock.now() + this.ahead;
  }

  noteBurst(of: 'timers' | 'accesses' | 'polls'): void {
    this.bursts[of].note(this.clock.now());
    if (this.isRunaway || !this.bursts[of].isOver) return;
    this.isRunaway = true;
    this.runAway([`no end of ${of} at ${new Date(this.clock.now()).toISOString()}`]);
  }

  polled(phone: string): void {
    this.polls.push({ phone, at: this.clock.now() });
    this.noteBurst('polls');
  }

  /** Runs it, with so many events on average, and returns what is wrong. */
  live(duration: number, events = 120): Promise<string[]> {
    return Promise.race([this.go(duration, events), this.ranAway]);
  }

  private async go(duration: number, events: number): Promise<string[]> {
    for (let n = 0; n < this.instances; n++) await this.startProcess();
    const end = this.clock.now() + duration;
    while (this.clock.now() < end) {
      await this.happen();
      await this.clock.move((this.random() * duration * 2) / events);
      await this.processes[0]?.authorize();
    }
    return this.conclude();
  }

  /** So many texts while the service is unreachable; returns how many requests were made for each. */
  async outage(texts: number): Promise<number> {
    await this.startProcess();
    this.service.weather = 'outage';
    const [process] = this.processes;
    const items = Array.from({ length: texts }, (_, index): Text => {
      return {
        index,
        name: `send ${String(index)}`,
        kind: 'send',
        phone: phones[index % phones.length] ?? '',
      };
    });
    process?.accept('send', items);
    while (this.told.size < texts) await this.clock.move(minute);
    return this.service.unreachable.requests / texts;
  }

  private async happen(): Promise<void> {
    const { random, processes } = this;
    const one = processes[Math.floor(random() * processes.length)];
    const luck = random();
    if (!one) return;
    if (luck < 0.45) this.submit(one);
    else if (luck < 0.55) this.acceptSomebody();
    else if (luck < 0.7) {
      const skies: readonly Weather[] = ['fine', 'fine', 'flaky', 'flaky', 'limited', 'outage'];
      this.service.weather = skies[Math.floor(random() * skies.length)] ?? 'fine';
      if (this.service.weather === 'outage')
        for (const { underWay } of processes) this.service.unreachable.calls += underWay;
    } else if (luck < 0.8) await this.kill(one);
    else if (luck < 0.88) await this.deploy(one);
    else if (luck < 0.94) await this.pause(one);
    else this.shift = Math.round((random() - 0.5) * 6 * day);
  }

  private submit(process: Process): void {
    const { random } = this;
    for (const kind of ['send', 'ask', 'wait'] as const) {
      if (random() < 0.3) continue;
      const many = kind === 'send' && random() < 0.05 ? 130 : 1 + Math.floor(random() * 3);
      const items = Array.from({ length: many }, (_, index): Text => {
        const phone = phones[Math.floor(random() * phones.length)] ?? '';
        return { index, name: `${kind} ${String(++this.count)}`, kind, phone };
      });
      for (const { name, phone } of items) this.tell({ name, kind, phone, type: 'invoked' });
      process.accept(kind, items);
    }
  }

  private acceptSomebody(): void {
    const phone = phones[Math.floor(this.random() * phones.length)] ?? '';
    if (!this.service.accepted.has(phone)) this.service.accepted.set(phone, this.clock.now());
  }

  private async startProcess(slot = new Slot(`slot ${String(this.starts.length)}`)): Promise<void> {
    this.starts.push(this.clock.now());
    // A start at a time ahead of everything saved takes it for the right one.
    if (this.instances === 1) this.ahead = Math.max(this.ahead, this.shift);
    const process = new Process(this, slot, `life ${String(this.starts.length)}`);
    this.processes.push(process);
    await this.until(process.ready);
    await process.authorize();
  }

  private async kill(process: Process): Promise<void> {
    // In the middle of something.
    this.submit(process);
    process.commitsLeft = Math.floor(this.random() * 6);
    await this.clock.move(this.random() * minute);
    process.isDead = true;
    await this.replace(process);
  }

  private async deploy(process: Process): Promise<void> {
    await this.until(process.close());
    this.left.push(process.left);
    process.isDead = true;
    await this.replace(process);
  }

  /** Stopped for a while, as by a debugger or an overloaded host; others may have taken over by then. */
  private async pause(process: Process): Promise<void> {
    process.sleep();
    await this.clock.move(this.random() * minute);
    const isTaken = this.instances > 1 && this.random() < 0.5;
    if (isTaken) await this.replace(process);
    process.resume();
    if (isTaken) await this.clock.move(1000);
    if (isTaken) process.isDead = true;
  }

  /** With others running, one of them takes over, and it returns as another; else it continues itself. */
  private async replace(process: Process): Promise<void> {
    this.processes.splice(this.processes.indexOf(process), 1);
    // What it has handed over is saved before another process opens the store, or not at all.
    await this.memory.write([]);
    const [survivor] = this.processes;
    if (!survivor) {
      await this.startProcess(process.slot);
      return;
    }
    const left = [process.slot, ...this.orphans.filter(({ holder }) => holder === process)];
    this.orphans.push(process.slot);
    for (const slot of left) await this.until(survivor.takeUp(slot));
    await this.startProcess();
  }

  private async until(work: Promise<unknown>): Promise<void> {
    const state = { isOver: false };
    void work.finally(() => (state.isOver = true)).catch(() => undefined);
    for (let moves = 0; !state.isOver; moves++) {
      if (moves > 5000) throw new Error('a process does not start or close');
      await this.clock.move(100);
    }
    await work;
  }

  private async conclude(): Promise<string[]> {
    this.service.weather = 'fine';
    const isOpen = (): boolean => [...this.accepted].some((name) => !this.told.has(name));
    // Its last poll is retried for an hour when nobody answers.
    const end = this.clock.now() + 2 * this.giveUpAfter + 2 * hour;
    while (this.clock.now() < end && isOpen()) {
      await this.processes[0]?.authorize();
      await this.clock.move(this.giveUpAfter / 20);
    }
    for (const process of this.processes.splice(0)) {
      await this.until(process.close());
      this.left.push(process.left);
    }
    const { steps, starts, service } = this;
    const wrong = faultsIn({
      steps,
      deeds: service.deeds,
      polls: this.polls,
      acceptances: service.accepted,
      askEvery,
      pollEvery: recommended.pollEvery,
      // Each process polls for the waits that it has accepted.
      starts: this.instances === 1 ? starts : undefined,
    });
    const { calls, requests } = service.unreachable;
    // A full budget allows a hundred retries, and ten calls that succeed another one.
    if (requests > calls + service.calls / 10 + 100 * starts.length)
      wrong.push(`${String(requests)} requests for ${String(calls)} calls in an outage`);
    if (this.left.some((count) => count > 0)) wrong.push(`timers or listeners left: ${this.left.join()}`);
    return wrong;
  }

  tell(step: Omit<Step, 'at'>): void {
    this.steps.push({ ...step, at: this.clock.now() });
    if (step.type !== 'invoked' && step.type !== 'accepted') this.told.add(step.name);
  }

  /** What a commit saves. */
  note(operations: readonly Operation[]): void {
    for (const operation of operations) {
      if (!('put' in operation)) continue;
      const key = operation.put.toString('latin1');
      if (key.startsWith('item\0')) {
        const { item, single } = operation.value as { readonly item: Text; readonly single?: object };
        if (single) this.noteSaved([item]);
        else this.listed.push({ list: key.slice('item\0'.length, -6), item });
      }
      // A list counts once it is complete.
      if (key.startsWith('list\0') && (operation.value as { readonly isComplete: boolean }).isComplete)
        this.complete.add(key.slice('list\0'.length));
    }
    const isSaved = ({ list }: { readonly list: string }): boolean => this.complete.has(list);
    this.noteSaved(this.listed.filter(isSaved).map(({ item }) => item));
    this.listed = this.listed.filter((each) => !isSaved(each));
  }

  private noteSaved(items: readonly Text[]): void {
    for (const { name, kind, phone } of items) {
      if (this.accepted.has(name)) continue;
      this.accepted.add(name);
      this.tell({ name, kind, phone, type: 'accepted' });
    }
  }
}
