import { processMemory } from '../process-memory';
import type { Clock } from '../service/clock';
import type { Store } from '../state/store';
import type { Item, QueuedMessage } from './item';
import { heldLane, type ItemData, type Shared } from './records';

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

/** What a node has in memory in a store, over deploys. */
export class QueueMemory<D extends ItemData, S extends Shared> {
  /** Items by id: each is in memory once. */
  readonly items = new Map<string, Item<D, S>>();
  readonly messages = new Map<string, QueuedMessage<S>>();
  /** Messages that are accepted and not saved yet, by id. */
  readonly saving = new Map<string, Promise<void>>();
  /** Cancellations that are not saved yet. */
  readonly cancelling = new Set<Promise<unknown>>();
  /** The queue of the latest start. */
  latest: { offer(due: Buffer): void } | undefined;
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
