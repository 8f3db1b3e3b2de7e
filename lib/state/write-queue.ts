import type { DatabaseFile, Ownership, FileTable, RawOperation } from './database-file';
import { recordName, versionOf, type Sealing } from './sealing';
import { checkSize, largestCommit, type Condition, type Table, type Version } from './store';

interface Pending {
  readonly operations: readonly RawOperation[];
  readonly conditions: readonly Condition[];
  readonly bytes: number;
  readonly settle: (holds: boolean) => void;
  readonly reject: (fault: Error) => void;
}

interface Batch {
  readonly commit: number;
  readonly operations: readonly RawOperation[];
  readonly taken: readonly Pending[];
  /** Whether the conditions of each write hold. */
  readonly holds: readonly boolean[];
}

/** The file to write to, while this process owns it. */
export interface Target {
  readonly file: DatabaseFile;
  /** The version of the owner's record. */
  readonly owned: number;
  readonly ownership: (commit: number) => Ownership;
}

export interface QueueEvents {
  readonly written: () => void;
  /** Called when another process owns the file: nothing was written. */
  readonly lost: () => void;
  /** Called when it is not known whether the last commit was made: `settle` tells. */
  readonly failed: (fault: unknown) => void;
}

/** Where a record of a table is set aside. */
export const asideKey = (place: FileTable, key: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${place}/`), key]);

/**
 * Writes are made in order, one commit at a time. Only the owner of the file writes, so conditions are checked before
 * the commit: either they still hold when it is made, or this process is no longer the owner and nothing is written.
 */
export class WriteQueue {
  private readonly sealing: Sealing;
  private readonly events: QueueEvents;
  private queue: Pending[] = [];
  private target: Target | undefined;
  private isScheduled = false;
  private committing: Promise<void> | undefined;
  private unsure: Batch | undefined;
  /** The number of the last commit. */
  commit = 0;
  unwritten = 0;

  constructor(sealing: Sealing, events: QueueEvents) {
    this.sealing = sealing;
    this.events = events;
  }

  add(operations: readonly RawOperation[], conditions: readonly Condition[] = []): Promise<boolean> {
    const bytes = operations.reduce(
      (sum, { key, bytes: value }) => sum + key.length + (value?.length ?? 0),
      0,
    );
    checkSize(bytes);
    this.unwritten += bytes;
    return new Promise((settle, reject) => {
      this.queue.push({ operations, conditions, bytes, settle, reject });
      this.schedule();
    });
  }

  /** Begins to write to a file. */
  begin(target: Target): void {
    this.target = target;
    this.schedule();
  }

  /** Stops writing; resolves when no commit is under way. */
  async pause(): Promise<void> {
    this.target = undefined;
    await this.committing;
  }

  /** Makes all writes in the queue, as far as they can be made. */
  async drain(): Promise<void> {
    while (this.target && (this.committing ?? this.queue.length > 0)) {
      this.commitNext();
      await this.committing;
    }
  }

  /** Decides a commit that failed; `owner` is the owner's record as it is in the file now. */
  settle(owner: Ownership | undefined, holder: string): void {
    const batch = this.unsure;
    this.unsure = undefined;
    if (!batch) return;
    if (owner?.holder === holder && owner.commit === batch.commit) this.finish(batch);
    else this.queue = [...batch.taken, ...this.queue];
  }

  rejectAll(fault: Error): void {
    const all = [...(this.unsure?.taken ?? []), ...this.queue];
    this.unsure = undefined;
    this.queue = [];
    for (const { bytes, reject } of all) {
      this.unwritten -= bytes;
      reject(fault);
    }
  }

  /** Commits at the end of this turn of the event loop, so that all its writes are one commit. */
  private schedule(): void {
    if (this.isScheduled || this.committing || !this.target || this.queue.length === 0) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      this.commitNext();
    });
  }

  private commitNext(): void {
    const target = this.target;
    if (!target || this.committing || this.queue.length === 0) return;
    this.committing = this.commitTo(target).finally(() => {
      this.committing = undefined;
      this.schedule();
    });
  }

  private async commitTo(target: Target): Promise<void> {
    let batch: Batch | undefined;
    try {
      batch = this.gather(target.file);
      const { commit, operations } = batch;
      const isOwner =
        operations.length === 0 ||
        (await target.file.commit(target.owned, target.ownership(commit), operations));
      if (isOwner) {
        this.finish(batch);
        return;
      }
      this.queue = [...batch.taken, ...this.queue];
      this.events.lost();
    } catch (fault) {
      this.unsure = batch;
      this.target = undefined;
      this.events.failed(fault);
    }
  }

  private finish({ commit, taken, holds }: Batch): void {
    this.commit = commit;
    for (const [at, { bytes, settle }] of taken.entries()) {
      this.unwritten -= bytes;
      settle(holds[at] ?? false);
    }
    this.events.written();
  }

  /** Takes as many writes as fit into one commit, and works out their operations. */
  private gather(file: DatabaseFile): Batch {
    file.refresh();
    let [count, bytes] = [0, 0];
    for (const { bytes: more } of this.queue) {
      if (count > 0 && bytes + more > largestCommit) break;
      bytes += more;
      count += 1;
    }
    const taken = this.queue.slice(0, count);
    const hasConditions = taken.some(({ conditions }) => conditions.length > 0);
    /** The versions of records that this commit has changed so far. */
    const versions = new Map<string, Version | undefined>();
    const operations: RawOperation[] = [];
    const holds = taken.map(({ conditions, operations: asked }) => {
      const doesHold = conditions.every(({ table, key, version }) => {
        const name = recordName(table, key);
        return (versions.has(name) ? versions.get(name) : this.versionIn(file, table, key)) === version;
      });
      if (!doesHold) return false;
      for (const operation of asked) {
        this.keepLocked(file, operation, operations);
        operations.push(operation);
        const { place, key, bytes: sealed } = operation;
        if (hasConditions) versions.set(recordName(place, key), sealed && versionOf(sealed));
      }
      return true;
    });
    this.queue.splice(0, count);
    return { commit: this.commit + 1, operations, taken, holds };
  }

  /** A record whose key is not at hand counts as absent, or nothing could ever take its place. */
  private versionIn(file: DatabaseFile, table: Table, key: Buffer): Version | undefined {
    const sealed = file.peek(table, key);
    if (!sealed) return undefined;
    const version = versionOf(sealed);
    return this.sealing.isLocked(sealed) ? undefined : version;
  }

  /** Sets aside a record whose key may come back, when a new record takes its place. */
  private keepLocked(
    file: DatabaseFile,
    { place, key, bytes }: RawOperation,
    operations: RawOperation[],
  ): void {
    if (!this.sealing.sawLocked || !bytes || place === 'damaged' || place === 'meta') return;
    const sealed = file.get(place, key);
    const aside = asideKey(place, key);
    if (!sealed || !this.sealing.isLocked(sealed) || file.peek('damaged', aside)) return;
    operations.push({ place: 'damaged', key: aside, bytes: sealed });
  }
}
