import type { Operation, Store } from '../state/store';

/** Something with steps to be put on record. */
interface Recordable {
  operations(): readonly Operation[];
}

interface Turn {
  readonly written: Promise<void>;
  readonly resolve: (result: Promise<void>) => void;
}

/** So many jobs are written before the turn ends: their messages are held until then. */
const mostGathered = 256;

/**
 * What happens to all jobs of a store in one turn of the event loop is one commit. So an outcome that one node tells and
 * another takes on is told and accepted together.
 */
export class Recorder {
  private readonly dirty = new Set<Recordable>();
  private turn: Turn | undefined;
  /** Settles when everything written so far is on record, or has failed: whoever relies on it hears of that. */
  private settled: Promise<unknown> = Promise.resolve();

  constructor(private readonly store: Store) {}

  /** Resolves when the steps of the job up to now are on record. */
  changed(job: Recordable): Promise<void> {
    this.dirty.add(job);
    const { written } = (this.turn ??= this.newTurn());
    // Not at once: what belongs into one commit with it may follow.
    if (this.dirty.size === mostGathered) queueMicrotask(() => this.write());
    return written;
  }

  /** Writes what is gathered; resolves when nothing is on its way to the record any more. */
  async flush(): Promise<void> {
    this.write();
    await this.settled;
  }

  private newTurn(): Turn {
    let resolve: Turn['resolve'] = () => undefined;
    const written = new Promise<void>((settle) => {
      resolve = settle;
    });
    written.catch(() => undefined);
    const turn = { written, resolve };
    setImmediate(() => {
      if (this.turn === turn) this.write();
    });
    return turn;
  }

  private write(): void {
    const { turn } = this;
    this.turn = undefined;
    const operations: Operation[] = [];
    for (const job of this.dirty) operations.push(...job.operations());
    this.dirty.clear();
    if (operations.length === 0) turn?.resolve(Promise.resolve());
    else {
      const written = this.store.write(operations).then(() => undefined);
      this.settled = Promise.allSettled([this.settled, written]);
      turn?.resolve(written);
    }
  }
}

const recorders = new WeakMap<Store, Recorder>();

export const recorderOf = (store: Store): Recorder => {
  const recorder = recorders.get(store) ?? new Recorder(store);
  recorders.set(store, recorder);
  return recorder;
};
