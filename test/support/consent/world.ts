import type { WaitOutcome } from '../../../lib/consent/consent-status';
import { recommended, type Pace } from '../../../lib/consent/rings';
import { Waits, type Subject, type Wait } from '../../../lib/consent/waits';
import { MovableClock } from '../../../lib/service/clock';
import { ServiceError } from '../../../lib/service/errors';
import type { Client } from '../../../lib/service/client';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Store } from '../../../lib/state/store';

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
export interface ObservedStore extends Store {
  writes: number;
  gate: Promise<void>;
}

export const observed = (store: Store): ObservedStore => {
  const self: ObservedStore = {
    ...store,
    writes: 0,
    gate: Promise.resolve(),
    write: async (operations, conditions) => {
      await self.gate;
      const isWritten = await store.write(operations, conditions);
      if (isWritten) self.writes += 1;
      return isWritten;
    },
  };
  return self;
};

/** The number of records of waits and requests. */
export const recordsIn = (store: Store): Promise<number> =>
  store.count('wait', Buffer.of(0), Buffer.of(0xff));

export interface Told {
  readonly n: number;
  readonly at: number;
  readonly end: string;
  readonly outcome: WaitOutcome;
}

/** Waits with an outbox that only records what ends; `restart` is a process that was killed and restarted. */
export class World {
  readonly store: ObservedStore;
  readonly clock = new MovableClock(() => begin);
  readonly polls: { at: number; advisor: string; of: string }[] = [];
  readonly told: Told[] = [];
  /** How often statuses had to be redrawn. */
  changes = 0;
  /** The most polls in flight at once. */
  most = 0;
  answer: (of: string, advisor: string) => string = () => 'pending';
  memberId: number | string | null = 7;
  gate: Promise<void> = Promise.resolve();
  waits: Waits;
  private readonly items = new Map<string, number>();
  private running = 0;
  private count = 0;
  /** Waits whose node was deleted. */
  readonly unwanted = new Set<Wait>();
  /** Added to the time that waits see. */
  shift = 0;
  /** How late the next timer fires. */
  delay: () => number = () => 0;
  /** How long the next answer takes: the clock runs meanwhile, as on a real machine. */
  slowness: (() => number) | undefined;

  constructor(readonly concurrency = 16) {
    this.store = observed(createMemoryStore({ clock: { now: () => this.now() } }));
    this.waits = this.create();
    this.waits.start();
  }

  get elapsed(): number {
    return this.clock.now() - begin;
  }

  now(): number {
    return this.clock.now() + this.shift;
  }

  /** A wait for a phone number, or for a member by `#id`. */
  wait(of: string, pace: Pace = recommended, advisor = 'default'): Wait {
    const subject: Subject = of.startsWith('#') ? { memberId: Number(of.slice(1)) } : { phone: of };
    const item = Buffer.alloc(6);
    item.writeUIntBE(this.count, 0, 6);
    this.items.set(item.toString('latin1'), this.count++);
    return { item, advisor, subject, start: this.now(), pace };
  }

  async accept(...waits: readonly Wait[]): Promise<void> {
    const { operations, committed } = this.waits.begin(waits);
    await this.store.write(operations);
    committed();
  }

  async add(of: string, pace: Pace = recommended, advisor = 'default'): Promise<Wait> {
    const wait = this.wait(of, pace, advisor);
    await this.accept(wait);
    return wait;
  }

  async cancel(wait: Wait): Promise<void> {
    const { operations, seen } = await this.waits.removals(wait);
    this.note(wait, { kind: 'not_accepted', reason: 'cancelled', status: await seen() });
    await this.store.write(operations);
  }

  restart(): void {
    this.waits.stop();
    this.waits = this.create();
    this.waits.start();
  }

  times(of: string): number[] {
    return this.polls.filter((poll) => poll.of === of).map(({ at }) => at);
  }

  get ends(): [number, string][] {
    return this.told.map(({ n, end }) => [n, end]);
  }

  /** Everything that is left of waits. */
  left(): Promise<number> {
    return recordsIn(this.store);
  }

  private create(): Waits {
    return new Waits({
      store: this.store,
      space: Buffer.from('space/'),
      clock: {
        now: () => this.now(),
        after: (ms, task) => this.clock.after(ms + this.delay(), task),
        keepStill: () => (this.slowness ? () => undefined : this.clock.keepStill()),
      },
      client: () => this.client,
      concurrency: this.concurrency,
      isWanted: (item) => ![...this.unwanted].some((wait) => wait.item.equals(item)),
      ended: async (wait, outcome, removals) => {
        this.note(wait, outcome);
        await this.store.write(removals);
      },
      changed: () => (this.changes += 1),
    });
  }

  /** An item ends once; an unknown one was never accepted. */
  private note({ item }: Wait, outcome: WaitOutcome): void {
    const name = item.toString('latin1');
    const n = this.items.get(name);
    if (n === undefined) throw new Error('ended twice');
    this.items.delete(name);
    const end = outcome.kind === 'not_accepted' ? outcome.reason : outcome.kind;
    this.told.push({ n, at: this.elapsed, end, outcome });
  }

  private get client(): Client {
    return {
      pausedUntil: 0,
      close: () => Promise.resolve(),
      call: async (_name, request, { advisor, priority }) => {
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
