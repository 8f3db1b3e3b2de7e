import type { Operation, Store } from '../state/store';

/** Something with steps to save: an item, or what the items of a message share. */
interface Recordable {
  operations(): readonly Operation[];
}

/** What has changed and is not saved yet, and where it will be. */
export interface Changed {
  readonly recorder: Recorder;
  readonly jobs: readonly Recordable[];
}

/** The steps of one tick, and those that waited for it. */
interface GatheredSteps {
  readonly written: Promise<void>;
  readonly resolve: (result: Promise<void>) => void;
  isScheduled: boolean;
}

/** The most that is gathered before it is written: until then, messages take up memory. */
const mostGathered = 256;

/**
 * All that happens to the items of a store in one tick is one commit. So an outcome that one node emits and another
 * accepts is saved as emitted and accepted together.
 */
export class Recorder {
  private readonly dirty = new Set<Recordable>();
  private batch: GatheredSteps | undefined;
  /**
   * Settles when everything written so far is saved or has failed. The writer of a failed commit learns of it by its own
   * promise.
   */
  private settled: Promise<unknown> = Promise.resolve();
  /** Writes of this tick that are also to another store. */
  private ahead: Promise<void>[] = [];

  /** Bytes of long lists that are being written, by estimate: of each, most is not handed to the store yet. */
  inParts = 0;

  constructor(readonly store: Store) {}

  /** The number of bytes that are accepted and not saved. */
  get unwritten(): number {
    return this.store.unwritten + this.inParts;
  }

  /** Resolves when the steps up to now are saved. */
  changed(job: Recordable): Promise<void> {
    const batch = this.gather(job);
    if (!batch.isScheduled)
      setImmediate(() => {
        if (this.batch === batch) this.write();
      });
    batch.isScheduled = true;
    return batch.written;
  }

  /** Saves steps that are not urgent with the next commit, whenever there is one. */
  ride(job: Recordable): Promise<void> {
    return this.gather(job).written;
  }

  /** Writes what is gathered; resolves when everything is saved. */
  async flush(): Promise<void> {
    this.write();
    await this.settled;
  }

  /**
   * Saves steps in one commit with those in another store: a node may emit an outcome from the store of an ended process,
   * and the next node accepts it in its own store.
   */
  together(jobs: readonly Recordable[], other?: Changed): Promise<void> {
    const [written = Promise.resolve()] = jobs.map((job) => this.changed(job));
    const joint = this.store.peers?.joint;
    if (!other || other.recorder === this || !joint || other.recorder.store.peers?.joint !== joint)
      return written;
    const all: readonly Changed[] = [other, { recorder: this, jobs }];
    const parts = all.map(({ recorder, jobs }) => {
      for (const job of jobs) recorder.dirty.delete(job);
      return { store: recorder.store, operations: jobs.flatMap((job) => job.operations()) };
    });
    const writing = joint.write(parts).then(() => undefined);
    for (const { recorder } of all) recorder.ahead.push(writing);
    return writing;
  }

  private gather(job: Recordable): GatheredSteps {
    this.dirty.add(job);
    // In a microtask: what belongs into the same commit may follow in this call.
    if (this.dirty.size === mostGathered) queueMicrotask(() => this.write());
    return (this.batch ??= this.newBatch());
  }

  private newBatch(): GatheredSteps {
    let resolve: GatheredSteps['resolve'] = () => undefined;
    const written = new Promise<void>((settle) => {
      resolve = settle;
    });
    written.catch(() => undefined);
    return { written, resolve, isScheduled: false };
  }

  private write(): void {
    const { batch, ahead } = this;
    this.batch = undefined;
    this.ahead = [];
    const operations: Operation[] = [];
    for (const job of this.dirty) operations.push(...job.operations());
    this.dirty.clear();
    const written = operations.length === 0 ? undefined : this.store.write(operations);
    const all = Promise.all([written, ...ahead]).then(() => undefined);
    this.settled = Promise.allSettled([this.settled, all]);
    batch?.resolve(all);
  }
}

const recorders = new WeakMap<Store, Recorder>();

export const recorderOf = (store: Store): Recorder => {
  const recorder = recorders.get(store) ?? new Recorder(store);
  recorders.set(store, recorder);
  return recorder;
};
