import type { Wait } from './book';
import type { Owner } from './owner';
import type { Ended } from './telling';
import type { WaitOutcome } from './verdict';

interface End {
  readonly owner: Owner;
  readonly ended: Ended;
}

/** One after the other, those of one node that stand together at once. */
function* runsOf(ends: readonly End[]): Generator<readonly [Owner, readonly Ended[]]> {
  let run: Ended[] = [];
  for (const [index, { owner, ended }] of ends.entries()) {
    run.push(ended);
    if (ends[index + 1]?.owner === owner) continue;
    yield [owner, run];
    run = [];
  }
}

/** Waits that have ended and are yet to be told: one after the other, in the order of their ends. */
export class Ends {
  private waiting: End[] = [];
  private telling: Promise<void> | undefined;

  constructor(private readonly tell: (owner: Owner, ended: readonly Ended[]) => Promise<void>) {}

  add(owner: Owner, wait: Wait, outcome: WaitOutcome): void {
    this.waiting.push({ owner, ended: [wait, outcome] });
    this.telling ??= Promise.resolve().then(() => this.tellAll());
  }

  /** Resolves when everything that has ended so far was told. */
  async told(): Promise<void> {
    await this.telling;
  }

  private async tellAll(): Promise<void> {
    while (this.waiting.length > 0) {
      const ends = this.waiting;
      this.waiting = [];
      for (const [owner, ended] of runsOf(ends)) await this.tell(owner, ended);
    }
    this.telling = undefined;
  }
}
