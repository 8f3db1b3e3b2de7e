import type { JointWriter, Operation, Store } from '../state/store';

/** Something with steps to save: an item, or what the items of a message share. */
interface Recordable {
  operations(): readonly Operation[];
}

/** Something that need not be saved soon. */
interface Rider extends Recordable {
  /** Called with each commit: it may have what `operations` gave. */
  written(commit: Promise<void>): void;
}

/** The steps of one tick. */
interface GatheredSteps {
  readonly written: Promise<void>;
  readonly resolve: (result: Promise<void>) => void;
}

/** The most that is gathered before it is written: until then, messages take up memory. */
const mostGathered = 256;

/** Everything that has changed since `together` began, in any store. */
let gathering: { readonly recorder: Recorder; readonly job: Recordable }[] | undefined;

/**
 * All that happens to the items of a store in one tick is one commit. So an outcome that one node emits and another
 * accepts is saved as emitted and accepted together.
 */
export class Recorder {
  private readonly dirty = new Set<Recordable>();
  private readonly riders = new Set<Rider>();
  private batch: GatheredSteps | undefined;
  /**
   * Settles when everything written so far is saved or has failed. The writer of a failed commit learns of it by its own
   * promise.
   */
  private settled: Promise<unknown> = Promise.resolve();
  /** Writes that `together` has started in this tick. */
  private ahead: Promise<void>[] = [];

  /** Bytes of long lists that are being written, by estimate: of each, most is not handed to the store yet. */
  private inParts = 0;

  constructor(readonly store: Store) {}

  /** The number of bytes that are accepted and not saved. */
  get unwritten(): number {
    return this.store.unwritten + this.inParts;
  }

  async writing(bytes: number, write: () => Promise<void>): Promise<void> {
    this.inParts += bytes;
    try {
      await write();
    } finally {
      this.inParts -= bytes;
    }
  }

  /** Resolves when the steps up to now are saved. */
  changed(job: Recordable): Promise<void> {
    gathering?.push({ recorder: this, job });
    this.dirty.add(job);
    const { written } = (this.batch ??= this.newBatch());
    // In a microtask: what belongs into the same commit may follow in this call.
    if (this.dirty.size === mostGathered) queueMicrotask(() => this.write());
    return written;
  }

  /** Saves these steps with the next commit, whenever there is one. */
  ride(rider: Rider): void {
    this.riders.add(rider);
  }

  /** Writes what is gathered; resolves when everything is saved. */
  async flush(): Promise<void> {
    this.write();
    await this.settled;
  }

  /** Hands the operations of a job over to `together`, which writes them. */
  takeOut(job: Recordable): { readonly store: Store; readonly operations: readonly Operation[] } {
    this.dirty.delete(job);
    return { store: this.store, operations: job.operations() };
  }

  writeAhead(writing: Promise<void>): void {
    this.ahead.push(writing);
    this.settled = Promise.allSettled([this.settled, writing]);
    this.batch ??= this.newBatch();
  }

  private newBatch(): GatheredSteps {
    let resolve: GatheredSteps['resolve'] = () => undefined;
    const written = new Promise<void>((settle) => {
      resolve = settle;
    });
    written.catch(() => undefined);
    const batch = { written, resolve };
    setImmediate(() => {
      if (this.batch === batch) this.write();
    });
    return batch;
  }

  private write(): void {
    const { batch, ahead } = this;
    this.batch = undefined;
    this.ahead = [];
    const operations: Operation[] = [];
    for (const job of this.dirty) operations.push(...job.operations());
    this.dirty.clear();
    if (operations.length > 0) for (const rider of this.riders) operations.push(...rider.operations());
    const written = operations.length === 0 ? undefined : this.store.write(operations);
    const all = Promise.all([written, ...ahead]).then(() => undefined);
    this.settled = Promise.allSettled([this.settled, all]);
    if (written) for (const rider of this.riders) rider.written(all);
    if (written) this.riders.clear();
    batch?.resolve(all);
  }
}

/** The writer that all these stores have in common; undefined when there is none. */
const jointOf = (recorders: ReadonlySet<Recorder>): JointWriter | undefined => {
  const writers = new Set(Array.from(recorders, ({ store }) => store.peers?.joint));
  return writers.size === 1 ? [...writers][0] : undefined;
};

/**
 * All that `work` changes is one commit, also in several stores: a node may emit an outcome from the store of an ended
 * process, and the next node accepts it in its own store.
 */
export const together = (work: () => Promise<void>): Promise<void> => {
  const outer = gathering;
  const gathered: NonNullable<typeof gathering> = [];
  gathering = gathered;
  let written: Promise<void>;
  try {
    written = work();
  } finally {
    gathering = outer;
  }
  const recorders = new Set(gathered.map(({ recorder }) => recorder));
  const joint = recorders.size > 1 ? jointOf(recorders) : undefined;
  if (!joint) return written;
  const jobs = new Map(gathered.map(({ recorder, job }) => [job, recorder]));
  const parts = Array.from(jobs, ([job, recorder]) => recorder.takeOut(job));
  const writing = joint.write(parts).then(() => undefined);
  for (const recorder of recorders) recorder.writeAhead(writing);
  return writing;
};

const recorders = new WeakMap<Store, Recorder>();

export const recorderOf = (store: Store): Recorder => {
  const recorder = recorders.get(store) ?? new Recorder(store);
  recorders.set(store, recorder);
  return recorder;
};
