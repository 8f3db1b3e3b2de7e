import { recordName, versionOf } from './sealing';

/** Texts come and go, waits lie still for a day: in one table, the texts would bloat the waits. */
export type Table = 'wait' | 'work';

/** Changes with every put of the record. Versions can only be compared for equality. */
export type Version = number | string;

/** The record has not changed since it was read; without `version`, the record does not exist. */
export interface Condition {
  readonly table: Table;
  readonly key: Buffer;
  readonly version?: Version;
}

/** What a write is made under: the ownership of a file, or a lease. Once that is lost, the write is rejected. */
export interface Fence {
  readonly isLost: boolean;
}

/** Another process has taken the store over. `isInDoubt` means that the write may have been made just before. */
export class TakenOver extends Error {
  constructor(readonly isInDoubt: boolean) {
    super('another process has taken over the store');
  }
}

/** Bytes: writes that wait are put into one commit up to this size, so that none takes long. */
const largestCommit = 4 * 1024 * 1024;

/** A put of a record as bytes; without `bytes`, a removal. */
export interface Change {
  readonly table: Table;
  readonly key: Buffer;
  readonly bytes?: Buffer | undefined;
}

export const bytesIn = (changes: readonly Change[]): number => {
  let sum = 0;
  for (const { key, bytes } of changes) sum += key.length + (bytes?.length ?? 0);
  return sum;
};

export interface Write {
  readonly fences: readonly Fence[];
  readonly changes: readonly Change[];
  readonly conditions: readonly Condition[];
}

interface Pending extends Write {
  readonly bytes: number;
  readonly settle: (holds: boolean) => void;
  readonly reject: (fault: Error) => void;
}

/** The writes of one commit, and what was tried to make it. */
export class Batch {
  /** For each attempt, the writes whose conditions held. */
  readonly attempts: ReadonlySet<Pending>[] = [];
  attempt = 0;
  /** An attempt was made without an answer. */
  isInDoubt = false;

  constructor(public writes: Pending[]) {}

  get fences(): readonly Fence[] {
    return [...new Set(this.writes.flatMap(({ fences }) => fences))];
  }

  /** Starts an attempt; returns the changes to make, which follow from what is in the store. */
  begin(recordAt: (table: Table, key: Buffer) => Buffer | undefined): Change[] {
    const changes = new Map<string, Change>();
    const holding = this.writes.filter((write) => {
      const doesHold = write.conditions.every(({ table, key, version }) => {
        const change = changes.get(recordName(table, key));
        const bytes = change ? change.bytes : recordAt(table, key);
        return (bytes && versionOf(bytes)) === version;
      });
      if (doesHold)
        for (const change of write.changes) changes.set(recordName(change.table, change.key), change);
      return doesHold;
    });
    this.attempt = this.attempts.push(new Set(holding));
    return [...changes.values()];
  }
}

/** Makes the commits of a queue; all but `apply` is for those whose commits can fail. */
export interface Committer {
  /** Resolves when a commit can be tried, or a fence was lost. */
  ready?(batch: Batch): Promise<void>;
  /** Begins an attempt and makes its changes; false means that they were not made. Throws when that is not known. */
  apply(batch: Batch): Promise<boolean>;
  /** The number of the attempt that was made after all, 0 when none was. */
  lastMade?(batch: Batch): Promise<number>;
  failed?(fault: unknown): Promise<void> | void;
  succeeded?(): void;
}

/**
 * Makes writes in order, one commit at a time. All writes of one tick are one commit, up to `largestCommit`; a write is
 * never divided. A commit without an answer is looked up before it is made again.
 */
export class CommitQueue {
  private queue: Pending[] = [];
  private isScheduled = false;
  /** Called as the next commit starts: they add what was gathered for it. */
  private readonly gathering = new Set<() => void>();
  private committing: Promise<void> | undefined;
  private began = 0;
  private ended: Error | undefined;
  /** Bytes that wait to be saved, also those that a user has announced and will write in parts. */
  unwritten = 0;

  constructor(
    private readonly committer: Committer,
    /** Monotonic milliseconds. */
    private readonly elapsed = () => performance.now(),
  ) {}

  /** Milliseconds since the commit under way began: a disk or a database that hangs reports nothing. */
  get underWayFor(): number {
    return this.committing ? this.elapsed() - this.began : 0;
  }

  add(write: Write): Promise<boolean> {
    if (this.ended) return Promise.reject(this.ended);
    if (write.fences.some(({ isLost }) => isLost)) return Promise.reject(new TakenOver(false));
    const bytes = bytesIn(write.changes);
    this.unwritten += bytes;
    return new Promise((settle, reject) => {
      this.queue.push({ ...write, bytes, settle, reject });
      this.schedule();
    });
  }

  /** Calls `add` as the next commit starts; `isDue` starts one at the end of this tick. */
  beforeNext(add: () => void, isDue: boolean): void {
    this.gathering.add(add);
    if (isDue) this.schedule();
  }

  rejectLost(): void {
    this.queue = this.withoutLost(this.queue, false);
  }

  /** Makes the commits that can be made, until `isAway` says that no more can be. */
  async close(fault: Error, isAway: () => boolean): Promise<void> {
    while (!isAway() && (this.committing || this.queue.length > 0)) {
      this.commitNext();
      // The store may go away while a commit waits for its answer, so `isAway` is asked again.
      await Promise.race([this.committing, new Promise((resolve) => setTimeout(resolve, 50).unref())]);
    }
    this.ended = fault;
    this.reject(this.queue.splice(0), fault);
  }

  private reject(writes: readonly Pending[], fault: Error): void {
    for (const { bytes, reject } of writes) {
      this.unwritten -= bytes;
      reject(fault);
    }
  }

  private withoutLost(writes: Pending[], isInDoubt: boolean): Pending[] {
    const lost = writes.filter(({ fences }) => fences.some((fence) => fence.isLost));
    if (lost.length === 0) return writes;
    this.reject(lost, new TakenOver(isInDoubt));
    return writes.filter((write) => !lost.includes(write));
  }

  private schedule(): void {
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.commitNext();
    });
  }

  private commitNext(): void {
    for (const add of this.gathering) add();
    this.gathering.clear();
    if (this.committing || this.queue.length === 0) return;
    let [count, bytes] = [0, 0];
    for (const { bytes: more } of this.queue) {
      if (count > 0 && bytes + more > largestCommit) break;
      bytes += more;
      count += 1;
    }
    this.began = this.elapsed();
    this.committing = this.commit(new Batch(this.queue.splice(0, count))).finally(() => {
      this.committing = undefined;
      if (this.queue.length > 0) this.schedule();
    });
  }

  private async commit(batch: Batch): Promise<void> {
    const { committer } = this;
    for (;;) {
      try {
        if (this.isOver(batch)) return;
        await committer.ready?.(batch);
        let made = batch.attempt > 0 ? ((await committer.lastMade?.(batch)) ?? 0) : 0;
        if (made === 0) {
          if (this.isOver(batch)) return;
          if (await committer.apply(batch)) made = batch.attempt;
        }
        if (made > 0) {
          for (const write of batch.writes) {
            this.unwritten -= write.bytes;
            write.settle(batch.attempts[made - 1]?.has(write) === true);
          }
          committer.succeeded?.();
          return;
        }
      } catch (fault) {
        batch.isInDoubt ||= batch.attempt > 0;
        if (!this.ended) await committer.failed?.(fault);
      }
      if (this.ended) break;
    }
    this.reject(batch.writes, this.ended);
  }

  /** Rejects the writes whose fence was lost; true when none is left. */
  private isOver(batch: Batch): boolean {
    batch.writes = this.withoutLost(batch.writes, batch.isInDoubt);
    return batch.writes.length === 0;
  }
}
