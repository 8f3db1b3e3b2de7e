import type { WaitOutcome } from '../../../lib/consent/consent-status';
import { consentOf, type Consent, type WaitItem, type WaitShared } from '../../../lib/consent/consent';
import { recommended, type Pace } from '../../../lib/consent/pace';
import { MovableClock } from '../../../simulator/movable-clock';
import { ServiceError } from '../../../lib/service/errors';
import type { Client } from '../../../lib/service/client';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Store } from '../../../lib/state/store';
import { never } from '../outbox/process';
import { space, WaitingQueue } from '../outbox/waiting';
import { overStore } from '../state/over-store';

export const begin = 1_750_000_000_000;
export const ann = '+12025550101';
export const bob = '+12025550102';
export const seconds = (count: number): number => count * 1000;
export const hours = (count: number): number => count * 3_600_000;

/** The outcome for people who never answer. */
export const expired = {
  kind: 'not_accepted',
  reason: 'expired',
  status: { memberId: 7, state: 'pending', lastChanged: 1 },
} as const;

/** A fault as the client throws it; with a status, and a problem body by default. */
export const refusal = (code: string, status?: number, hasProblemBody = status !== undefined): never => {
  const problem = { code, message: 'refused', retryable: false, attempts: 1 };
  throw new ServiceError({ ...problem, ...(status !== undefined && { status }) }, { hasProblemBody });
};

/** A store that counts successful writes, and makes all wait for `gate`. */
export type ObservedStore = Store & { writes: number; gate: Promise<void> };

export const observed = (store: Store): ObservedStore => {
  const write: Store['write'] = async (operations, conditions) => {
    await self.gate;
    const isWritten = await store.write(operations, conditions);
    if (isWritten) self.writes += 1;
    return isWritten;
  };
  const self: ObservedStore = Object.assign(overStore(store, { write }), {
    writes: 0,
    gate: Promise.resolve(),
  });
  return self;
};

/** How many records of requests and waits there are. */
export const recordsIn = async (store: Store): Promise<number> =>
  (await store.count('wait', Buffer.of(0), Buffer.of(0xff))) +
  (await store.count('work', Buffer.from('wait'), Buffer.from('waiu')));

export interface Told {
  readonly n: number;
  readonly at: number;
  readonly end: string;
  readonly outcome: WaitOutcome;
}

/** A wait that a test makes. */
export interface WaitOf extends WaitItem {
  readonly n: number;
  readonly start: number;
  readonly pace: Pace;
  readonly advisor: string;
}

type Node = WaitingQueue<WaitOf, WaitShared, WaitOutcome>;

/** A process: what one that was killed does has no effect. */
interface Life {
  isDead: boolean;
  readonly store: Store;
  readonly holds: Set<() => void>;
  readonly consent: Promise<Consent>;
  readonly node: Promise<Node>;
}

/** The waits of a node; `restart` is a process that was killed and came back. */
export class World {
  readonly store: ObservedStore;
  readonly clock = new MovableClock(() => begin);
  readonly polls: { at: number; advisor: string; of: string }[] = [];
  readonly told: Told[] = [];
  /** How often statuses had to be redrawn, because the service failed or answers again. */
  changes = 0;
  /** Looks under way at once, at most. */
  most = 0;
  answer: (of: string, advisor: string) => string = () => 'pending';
  memberId: number | string | null = 7;
  gate: Promise<void> = Promise.resolve();
  private life: Life;
  private readonly ended = new Set<number>();
  private running = 0;
  private count = 0;
  /** Called with faults that a node reports; none is expected. */
  fault: (fault: unknown) => void = (fault) => {
    throw fault;
  };
  /** Added to the time that waits see. */
  shift = 0;
  /** How late the next timer fires. */
  delay: () => number = () => 0;
  /** How long the next answer takes: the clock runs meanwhile, as on a real machine. */
  slowness: (() => number) | undefined;

  /** Twice as many looks as `width` are under way at once: the limits of the client are not in this world. */
  constructor(readonly width = 16) {
    this.store = observed(createMemoryStore({ clock: { now: () => this.now() } }));
    this.life = this.start();
  }

  get elapsed(): number {
    return this.clock.now() - begin;
  }

  now(): number {
    return this.clock.now() + this.shift;
  }

  get consent(): Promise<Consent> {
    return this.life.consent;
  }

  get node(): Promise<Node> {
    return this.life.node;
  }

  /** A wait for a phone number, or for a member by `#id`. */
  wait(of: string, pace: Pace = recommended, advisor = 'default'): WaitOf {
    const subject = of.startsWith('#') ? { memberId: Number(of.slice(1)) } : { phone: of };
    return { index: 0, n: this.count++, advisor, start: this.now(), pace, ...subject };
  }

  /** Each is a message of its own. */
  async accept(...waits: readonly WaitOf[]): Promise<void> {
    await this.acceptAt(await this.node, waits);
  }

  async add(of: string, pace: Pace = recommended, advisor = 'default'): Promise<WaitOf> {
    const wait = this.wait(of, pace, advisor);
    await this.accept(wait);
    return wait;
  }

  /** Waits of a node that leaves the flow at once; the result returns it. */
  async acceptElsewhere(...waits: readonly WaitOf[]): Promise<() => Promise<void>> {
    const { consent } = this.life;
    const node = this.nodeOn(await consent, 'elsewhere');
    await this.acceptAt(node, waits);
    await node.close();
    return async () => {
      await this.nodeOn(await consent, 'elsewhere').start();
    };
  }

  async cancel({ n }: WaitOf): Promise<void> {
    const { queue } = await this.node;
    for await (const { item, arrival } of queue.reader.items(0, 'waits'))
      if ((item as WaitOf).n === n) await queue.cancel(arrival, 0, true);
    await this.clock.move(0);
  }

  async flush(phones?: readonly string[]): Promise<void> {
    await (await this.node).queue.flush(phones);
    await this.clock.move(0);
  }

  async close(): Promise<void> {
    await (await this.node).close();
    this.kill();
  }

  kill(): void {
    this.life.isDead = true;
    for (const release of this.life.holds) release();
    void this.life.node.then((node) => {
      node.stop();
    });
  }

  async restart(): Promise<void> {
    this.kill();
    this.life = this.start();
    await this.life.node;
  }

  times(of: string): number[] {
    return this.polls.filter((poll) => poll.of === of).map(({ at }) => at);
  }

  get ends(): [number, string][] {
    return this.told.map(({ n, end }) => [n, end]);
  }

  /** Whatever is left of waits, but for the entries in the timetable of waits that have ended: they go in time. */
  async left(): Promise<number> {
    return (
      (await recordsIn(this.store)) - (await this.store.count('wait', Buffer.from('due'), Buffer.from('duf')))
    );
  }

  private acceptAt({ queue }: Node, waits: readonly WaitOf[]): Promise<void> {
    for (const wait of waits) {
      const { start, pace, advisor } = wait;
      queue.accept({}, { shared: { advisor, start, pace }, items: [wait], count: 1 });
    }
    return queue.whenSaved();
  }

  private start(): Life {
    const life: Life = {
      isDead: false,
      holds: new Set(),
      store: overStore(this.store, {
        write: (...args: Parameters<Store['write']>) => (life.isDead ? never : this.store.write(...args)),
      }),
      consent: Promise.resolve().then(() => this.open(life)),
      node: Promise.resolve().then(async () => {
        const node = this.nodeOn(await life.consent, 'node');
        await node.start();
        return node;
      }),
    };
    return life;
  }

  /** The consent of another process, on a store of its own. */
  consentOn(store: Store): Promise<Consent> {
    return this.open({ isDead: false, holds: new Set(), store });
  }

  private open(life: Pick<Life, 'isDead' | 'holds' | 'store'>): Promise<Consent> {
    const clock = {
      now: () => this.now(),
      after: (ms: number, task: () => void) =>
        this.clock.after(ms + this.delay(), () => {
          if (!life.isDead) task();
        }),
      keepStill: () => {
        if (this.slowness || life.isDead) return () => undefined;
        const release = this.clock.keepStill();
        const done = (): void => {
          life.holds.delete(done);
          release();
        };
        life.holds.add(done);
        return done;
      },
    };
    return consentOf({
      service: 'simulator',
      space,
      clock,
      client: () => this.clientOf(life),
      store: () => life.store,
      isBlocked: async () => false,
    });
  }

  private nodeOn(consent: Consent, node: string): Node {
    return new WaitingQueue<WaitOf, WaitShared, WaitOutcome>({
      consent,
      node,
      width: this.width,
      outcomeOf: (outcome) => outcome,
      kindsOf: ({ kind }) => [kind],
      changed: () => (this.changes += 1),
      fault: (fault) => this.fault(fault),
      emit: async (_message, { n }, { outcome, repeated }) => {
        if (this.ended.has(n) && repeated) return true;
        if (this.ended.has(n)) throw new Error('ended twice');
        this.ended.add(n);
        const end = outcome.kind === 'not_accepted' ? outcome.reason : outcome.kind;
        this.told.push({ n, at: this.elapsed, end, outcome });
        return true;
      },
    });
  }

  private clientOf(life: Pick<Life, 'isDead'>): Pick<Client, 'call'> {
    return {
      call: async (_name, request, { advisor, priority }) => {
        if (life.isDead) return never;
        if (priority !== 'poll') throw new Error('polls never crowd out sends');
        const { query } = request as { query: { phone?: string; memberId?: number } };
        const of = query.phone ?? `#${String(query.memberId)}`;
        this.polls.push({ at: this.elapsed, advisor, of });
        this.running += 1;
        this.most = Math.max(this.most, this.running);
        const { slowness } = this;
        if (slowness) await new Promise<void>((resolve) => this.clock.after(slowness(), resolve));
        await this.gate;
        this.running -= 1;
        const state = this.answer(of, advisor);
        const { memberId } = this;
        return { data: { memberId, state, lastChanged: 1 }, status: 200, attempts: 1 } as never;
      },
    };
  }
}
