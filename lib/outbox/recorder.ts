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

  constructor(private readonly store: Store) {}

  /** Resolves when the steps of the job up to now are on record. */
  changed(job: Recordable): Promise<void> {
    this.dirty.add(job);
    const { written } = (this.turn ??= this.newTurn());
    // Not at once: what belongs into one commit with it may follow.
    if (this.dirty.size === mostGathered) queueMicrotask(() => this.write());
    return written;
  }

  /** Writes what is gathered; resolves when it is on record. */
  async flush(): Promise<void> {
    const { turn } = this;
    this.write();
    await turn?.written;
  }

  private newTurn(): Turn {
    let resolve: Turn['resolve'] = () => undefined;
    const written = new Promise<void>((settle) => {
      resolve = settle;
    });
    // Whoever relies on it hears of a fault; others need not.
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
    turn?.resolve(
      operations.length === 0 ? Promise.resolve() : this.store.write(operations).then(() => undefined),
    );
  }
}

const recorders = new WeakMap<Store, Recorder>();

export const recorderOf = (store: Store): Recorder => {
  const recorder = recorders.get(store) ?? new Recorder(store);
  recorders.set(store, recorder);
  return recorder;
};
