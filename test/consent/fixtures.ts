import { Waits, type NodeWaits, type Settled } from '../../lib/consent/waits';
import { MovableClock } from '../../lib/service/clock';
import { problem } from '../../lib/service/problems';
import type { Client } from '../../lib/service/types';
import { createMemoryStore } from '../../lib/state/memory';
import type { Store } from '../../lib/state/store';

export const begin = 1_750_000_000_000;

/** A service for consent lookups alone, which answers at once; `answer` may throw. */
export class Lookups {
  readonly polls: { at: number; advisor: string; of: string }[] = [];
  most = 0;
  private running = 0;
  answer: (of: string, advisor: string) => string = () => 'pending';
  /** Answers wait for this. */
  gate: Promise<void> = Promise.resolve();

  constructor(private readonly now: () => number) {}

  get client(): Client {
    return {
      pausedUntil: 0,
      close: () => Promise.resolve(),
      call: async (name, request, { advisor }) => {
        const { query } = request as { query: { phone?: string; memberId?: number } };
        const of = query.phone ?? `#${String(query.memberId)}`;
        this.polls.push({ at: this.now() - begin, advisor, of });
        this.running += 1;
        this.most = Math.max(this.most, this.running);
        await this.gate;
        this.running -= 1;
        const state = this.answer(of, advisor);
        if (name !== 'getConsent') throw new Error('only lookups here');
        return { data: { memberId: 7, state, lastChanged: 1 }, status: 200, attempts: 1 } as never;
      },
    };
  }

  times(of: string): number[] {
    return this.polls.filter((poll) => poll.of === of).map(({ at }) => at);
  }
}

export const refusal = (code: string, status?: number): never => {
  throw problem(code, 'refused', status === undefined ? {} : { status });
};

export interface Told {
  readonly node: string;
  readonly at: number;
  readonly end: string;
  readonly settled: Settled;
}

/** Waits on a clock that stands still until moved; `restart` is a process that was killed and came back. */
export class World {
  readonly told: Told[] = [];
  readonly warnings: string[] = [];
  readonly clock: MovableClock;
  readonly lookups: Lookups;
  waits: Waits;

  constructor(
    readonly store: Store = createMemoryStore(),
    readonly concurrency = 16,
    /** How far the wall clock is off from where its timers are. */
    private readonly shift: () => number = () => 0,
  ) {
    this.clock = new MovableClock(() => begin);
    this.lookups = new Lookups(() => this.clock.now());
    this.waits = this.create();
  }

  get elapsed(): number {
    return this.clock.now() - begin;
  }

  attach(node = 'node'): NodeWaits {
    return this.waits.attach(node, (settled) => {
      const { outcome } = settled;
      const end = outcome.kind === 'not_accepted' ? outcome.reason : outcome.kind;
      this.told.push({ node, at: this.elapsed, end, settled });
      return Promise.resolve(true);
    });
  }

  restart(): void {
    this.waits.stop();
    this.waits = this.create();
  }

  private create(): Waits {
    return new Waits({
      environment: 'environment',
      store: this.store,
      client: () => this.lookups.client,
      clock: { now: () => this.clock.now() + this.shift(), after: (ms, task) => this.clock.after(ms, task) },
      concurrency: this.concurrency,
      warn: (trouble) => this.warnings.push(trouble),
    });
  }
}

export const ann = '+12025550101';
export const bob = '+12025550102';
export const forPhone = (
  phone: string,
  advisor = 'default',
): { advisor: string; subject: { phone: string } } => ({
  advisor,
  subject: { phone },
});
export const seconds = (count: number): number => count * 1000;
export const hours = (count: number): number => count * 3_600_000;
