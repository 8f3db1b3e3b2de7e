import type { Clock } from '../service/clock';
import type { Wait } from './book';
import type { Owner } from './owner';
import { settledTogether, type Ended } from './telling';
import type { WaitOutcome } from './verdict';

interface End {
  readonly owner: Owner;
  readonly ended: Ended;
}

/** Ends of one node that could not be put on disk, until they are tried again. */
interface Late {
  readonly ended: Ended[];
  readonly forget: () => void;
}

const triedAgainAfter = 30_000;

/**
 * Waits that have ended and are yet to be told: one after the other, in the order of their ends, but for those that
 * could not be put on disk. They are tried again later, and others go before them meanwhile.
 */
export class Ends {
  private queue: End[] = [];
  private telling: Promise<void> | undefined;
  private readonly late = new Map<Owner, Late>();

  constructor(
    private readonly clock: Clock,
    private readonly tell: (owner: Owner, ended: readonly Ended[]) => Promise<void>,
  ) {}

  add(owner: Owner, wait: Wait, outcome: WaitOutcome): void {
    this.queue.push({ owner, ended: [wait, outcome] });
    this.begin();
  }

  /** They could not be put on disk. */
  tryAgain(owner: Owner, ended: readonly Ended[]): void {
    this.lateOf(owner).ended.push(...ended);
  }

  /** Whether some of this node wait to be tried again. */
  isLate(owner: Owner): boolean {
    return this.late.has(owner);
  }

  /** A node closes: gives what is left of its own. */
  leave(owner: Owner): readonly Ended[] {
    const queued = this.queue.filter((end) => end.owner === owner);
    if (queued.length > 0) this.queue = this.queue.filter((end) => end.owner !== owner);
    return [...this.recall(owner), ...queued.map(({ ended }) => ended)];
  }

  stop(): void {
    for (const { forget } of this.late.values()) forget();
  }

  /** Resolves when nothing is left to be told, but for what is tried again later. */
  async told(): Promise<void> {
    await this.telling;
  }

  private begin(): void {
    this.telling ??= Promise.resolve().then(() => this.tellAll());
  }

  private lateOf(owner: Owner): Late {
    const found = this.late.get(owner);
    if (found) return found;
    const forget = this.clock.after(triedAgainAfter, () => {
      this.queue = [...this.recall(owner).map((ended) => ({ owner, ended })), ...this.queue];
      this.begin();
    });
    const late = { ended: [], forget };
    this.late.set(owner, late);
    return late;
  }

  private recall(owner: Owner): readonly Ended[] {
    const late = this.late.get(owner);
    late?.forget();
    this.late.delete(owner);
    return late?.ended ?? [];
  }

  private async tellAll(): Promise<void> {
    for (let owner = this.queue[0]?.owner; owner; owner = this.queue[0]?.owner) {
      // What had ended before is told first; the node may close meanwhile.
      await owner.ready.catch(() => undefined);
      const run = this.take(owner);
      if (run.length > 0) await this.tell(owner, run);
    }
    this.telling = undefined;
  }

  /** Those of one node that stand together. */
  private take(owner: Owner): readonly Ended[] {
    let count = 0;
    while (count < settledTogether && this.queue[count]?.owner === owner) count += 1;
    return this.queue.splice(0, count).map(({ ended }) => ended);
  }
}
