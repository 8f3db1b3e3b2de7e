import { processMemory } from '../process-memory';
import type { Clock } from '../service/clock';
import type { Operation, Store } from '../state/store';
import type { Item, QueuedMessage } from './item';
import { heldLane, timetable, type ItemData, type Shared } from './records';

/** Items of a lane that are at hand, and how far the store was read. */
export class Lane<T> {
  readonly hand: T[] = [];
  /** Whether the store may have items from `from` on that are due. */
  hasMore = true;
  isReading = false;
  from: Buffer;
  /** The first place that was saved during the read under way. */
  private meanwhile: Buffer | undefined;
  /** The first place that is not due yet: until then, nothing behind it needs to be read. */
  next: Buffer | undefined;
  forgetAlarm: (() => void) | undefined;
  /** Keeps a clock that can be moved still while due items are read. */
  still: (() => void) | undefined;

  constructor(
    readonly number: number,
    readonly prefix: Buffer,
    /** The clock by which its items are due; without it, all of them are. */
    readonly clock?: Clock,
  ) {
    this.from = prefix;
  }

  /** An item was saved there: what was read beyond its place is read again. */
  expect(due: Buffer): void {
    if (this.isReading && (!this.meanwhile || Buffer.compare(due, this.meanwhile) < 0)) this.meanwhile = due;
    if (Buffer.compare(due, this.from) < 0) this.from = due;
    // Held items are counted as they are read.
    if (this.number === heldLane || this.isReading || !this.next || Buffer.compare(due, this.next) < 0)
      this.hasMore = true;
  }

  /** Everything before `next` was read. */
  readTo(next: Buffer): void {
    const { meanwhile } = this;
    this.meanwhile = undefined;
    this.from = meanwhile && Buffer.compare(meanwhile, next) < 0 ? meanwhile : next;
  }

  letClockGo(): void {
    this.still?.();
    this.still = undefined;
  }
}

interface Move {
  readonly from: Buffer | undefined;
  readonly to: Buffer;
  isWritten: boolean;
}

/** When so many moves wait, they are written. */
const mostMoves = 1000;

/**
 * Moves of waits in the timetable that are not saved yet. They are written with the next commit, or after a while: a look
 * that changes nothing else needs no commit of its own. If they are lost in a crash, looks come early.
 */
class Moves {
  private readonly pending = new Map<string, Move>();

  constructor(private readonly memory: Pick<QueueMemory<never, never>, 'latest'>) {}

  has(id: string): boolean {
    return this.pending.has(id);
  }

  get isFull(): boolean {
    return this.pending.size >= mostMoves;
  }

  add(id: string, { from, to }: { readonly from: Buffer | undefined; readonly to: Buffer }): void {
    this.pending.set(id, { from, to, isWritten: false });
  }

  /** The operations to write now. */
  operations(): Operation[] {
    const operations: Operation[] = [];
    for (const move of this.pending.values()) {
      if (move.isWritten) continue;
      move.isWritten = true;
      if (move.from) operations.push({ table: timetable, remove: move.from });
      operations.push({ table: timetable, put: move.to, value: 0 });
    }
    return operations;
  }

  /** Called with the commit that has what `operations` gave. */
  written(commit: Promise<unknown>): void {
    const written = [...this.pending].filter(([, { isWritten }]) => isWritten);
    if (written.length === 0) return;
    const end = (isSaved: boolean) => (): void => {
      const { latest } = this.memory;
      for (const [id, move] of written) {
        if (this.pending.get(id) !== move) continue;
        this.pending.delete(id);
        if (isSaved) latest?.offer(move.to, id);
        // Another process had the store.
        else latest?.offerLater(move.from ?? move.to);
      }
    };
    // The writer of the commit learns of a fault.
    commit.then(end(true), end(false));
  }
}

/** What a node has in memory in a store, over deploys. */
export class QueueMemory<D extends ItemData, S extends Shared> {
  /** Items by id: each is in memory once. */
  readonly items = new Map<string, Item<D, S>>();
  readonly messages = new Map<string, QueuedMessage<S>>();
  /** Messages that are accepted and not saved yet, by id. */
  readonly saving = new Map<string, Promise<void>>();
  /** Cancellations that are not saved yet. */
  readonly cancelling = new Set<Promise<unknown>>();
  readonly moves = new Moves(this);
  /** The queue of the latest start. */
  latest: { offer(due: Buffer, moved?: string): void; offerLater(due: Buffer): void } | undefined;
}

const inMemory = processMemory('queues', new WeakMap<object, Map<string, unknown>>());

export const memoryOf = <D extends ItemData, S extends Shared>(
  store: Store,
  node: string,
): QueueMemory<D, S> => {
  const { backing = store } = store;
  const nodes = inMemory.get(backing) ?? new Map<string, unknown>();
  inMemory.set(backing, nodes);
  const found = (nodes.get(node) as QueueMemory<D, S> | undefined) ?? new QueueMemory<D, S>();
  nodes.set(node, found);
  return found;
};
