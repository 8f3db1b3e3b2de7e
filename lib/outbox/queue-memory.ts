import { orMake, processMemory } from '../process-memory';
import type { Clock } from '../service/clock';
import type { Store } from '../state/store';
import type { Item, QueuedMessage } from './item';
import { heldLane, newArrival, type CancelRecord, type ItemData, type Shared } from './records';

/** The items of a lane that are at hand, and how far the store was read. */
export class Lane<T> {
  readonly hand: T[] = [];
  /** The store may have due items from `from` on. */
  hasMore = true;
  isReading = false;
  from: Buffer;
  /** The first place that was saved during the read under way. */
  private meanwhile: Buffer | undefined;
  /** The first place that is not due yet: nothing behind it needs to be read before. */
  next: Buffer | undefined;
  forgetAlarm: (() => void) | undefined;
  /** Releases a simulator's clock, which stands still while due items are read. */
  still: (() => void) | undefined;

  constructor(
    readonly number: number,
    readonly prefix: Buffer,
    /** The clock by which its items are due; without one, all are due. */
    readonly clock?: Clock,
  ) {
    this.from = prefix;
  }

  /** An item was saved there: what was read beyond that is read again. */
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

/** A cancellation and its arrival. */
export type Cancel = readonly [arrival: Buffer, record: CancelRecord];

const everything = 'all';
const ofPhone = (phone: string): string => `phone ${phone}`;
const ofList = (arrival: Buffer, index?: number): string =>
  `list ${arrival.toString('latin1')} ${index ?? ''}`;

/** The names of what a cancellation is for. */
const targetsOf = ({ phones, list, index }: CancelRecord): readonly string[] => {
  if (list) return [ofList(list, index)];
  return phones ? phones.map(ofPhone) : [everything];
};

/** The cancellations that may still apply to something in the store. */
export class Cancels {
  private known: Cancel[] = [];
  /** The arrival of the latest cancellation of each target. */
  private readonly latest = new Map<string, Buffer>();

  constructor(...cancels: readonly Cancel[]) {
    this.add(...cancels);
  }

  add(...cancels: readonly Cancel[]): void {
    for (const cancel of cancels) {
      this.known.push(cancel);
      this.note(cancel);
    }
  }

  /** Forgets those that have cancelled everything that arrived before them. */
  forget(met: readonly Cancel[]): void {
    const gone = new Set(met);
    this.known = this.known.filter((cancel) => !gone.has(cancel));
    this.latest.clear();
    for (const cancel of this.known) this.note(cancel);
  }

  get all(): readonly Cancel[] {
    return [...this.known];
  }

  get isEmpty(): boolean {
    return this.known.length === 0;
  }

  /** Whether an item was cancelled after its arrival. */
  isMeant(arrival: Buffer, { phone, index }: ItemData): boolean {
    return (
      !this.isEmpty &&
      (this.isBefore(arrival, everything) ||
        (phone !== undefined && this.isBefore(arrival, ofPhone(phone))) ||
        this.isBefore(arrival, ofList(arrival)) ||
        this.isBefore(arrival, ofList(arrival, index)))
    );
  }

  private isBefore(arrival: Buffer, target: string): boolean {
    const cancelled = this.latest.get(target);
    return cancelled !== undefined && Buffer.compare(arrival, cancelled) < 0;
  }

  private note([arrival, record]: Cancel): void {
    for (const target of targetsOf(record)) {
      const before = this.latest.get(target);
      if (!before || Buffer.compare(before, arrival) < 0) this.latest.set(target, arrival);
    }
  }
}

/** What a node has in memory for a store, over deploys. */
export class QueueMemory<D extends ItemData, S extends Shared> {
  /** Items by id: each is in memory once. */
  readonly items = new Map<string, Item<D, S>>();
  readonly messages = new Map<string, QueuedMessage<S>>();
  /** Messages that are accepted and not saved yet. */
  readonly saving = new Map<string, Promise<void>>();
  readonly cancelling = new Set<Promise<unknown>>();
  latest: { offer(due: Buffer): void } | undefined;
  /**
   * The waits whose outcomes have not left: saved ones are counted by the first start, those that arrive after `born`
   * as they come.
   */
  waitCount = 0;
  areWaitsCounted = false;

  constructor(public born: Buffer) {}
}

const inMemory = processMemory('queues', new WeakMap<object, Map<string, unknown>>());

export const memoryOf = <D extends ItemData, S extends Shared>(
  store: Store,
  node: string,
): QueueMemory<D, S> => {
  const nodes = orMake(inMemory, store.engine, () => new Map<string, unknown>());
  return orMake(nodes, node, () => new QueueMemory<D, S>(newArrival(store))) as QueueMemory<D, S>;
};

export const forgetMemory = (store: Store, node: string): void => {
  inMemory.get(store.engine)?.delete(node);
};
