import type { Wait } from './book';
import type { Owner } from './owner';
import { settledTogether, type Ended } from './telling';
import type { WaitOutcome } from './verdict';

interface End {
  readonly owner: Owner;
  readonly ended: Ended;
}

/** Waits that have ended and are yet to be told: one after the other, in the order of their ends. */
export class Ends {
  private queue: End[] = [];
  private telling: Promise<void> | undefined;

  constructor(private readonly tell: (owner: Owner, ended: readonly Ended[]) => Promise<void>) {}

  add(owner: Owner, wait: Wait, outcome: WaitOutcome): void {
    this.queue.push({ owner, ended: [wait, outcome] });
    this.telling ??= Promise.resolve().then(() => this.tellAll());
  }

  /** A node closes: gives what is left of its own. */
  leave(owner: Owner): readonly Ended[] {
    const own = this.queue.filter((end) => end.owner === owner);
    if (own.length > 0) this.queue = this.queue.filter((end) => end.owner !== owner);
    return own.map(({ ended }) => ended);
  }

  /** Resolves when nothing is left to be told. */
  async told(): Promise<void> {
    await this.telling;
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
