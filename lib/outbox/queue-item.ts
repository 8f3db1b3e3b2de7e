import { processMemory } from '../process-memory';
import type { Operation, Store, Table } from '../state/store';
import type { MessageItems, OutboxItem } from './message-items';
import { dueAt, records, timetable, type ItemRecord, type ItemState, type QueueKeys } from './records';

/** Single messages, then one lane for each power of ten of a list's length; the last is for held items, by time. */
const listLanes = 7;
export const heldLane = listLanes + 1;
export const laneFor = (count: number): number =>
  count === 1 ? 0 : Math.min(Math.ceil(Math.log10(count)), listLanes);

/** Items of a lane that are at hand, and how far the store was read. */
export class Lane<Q> {
  readonly hand: Q[] = [];
  /** Whether the store may have items from `from` on. */
  hasMore = true;
  isReading = false;
  /** The first place that was saved during the read under way. */
  private meanwhile: Buffer | undefined;

  constructor(
    readonly number: number,
    readonly prefix: Buffer,
    public from = prefix,
  ) {}

  /** An item was saved there: what was read beyond its place is read again. */
  expect(due: Buffer): void {
    if (this.isReading && (!this.meanwhile || Buffer.compare(due, this.meanwhile) < 0)) this.meanwhile = due;
    if (Buffer.compare(due, this.from) < 0) this.from = due;
    this.hasMore = true;
  }

  /** Everything before `next` was read. */
  readTo(next: Buffer): void {
    const { meanwhile } = this;
    this.meanwhile = undefined;
    this.from = next;
    if (meanwhile && Buffer.compare(meanwhile, this.from) < 0) this.from = meanwhile;
  }
}

/** An item as it was read; one that is parked has no entry in the timetable. */
export interface Found<I, O, E> {
  readonly record: ItemRecord<I, O, E>;
  readonly due?: Buffer;
  readonly lane?: number;
}

/** An item in memory, from when it is taken until its last change is saved. */
export class QueueItem<I extends OutboxItem, O, E> {
  state: ItemState = 'accepted';
  outcome: E | undefined;
  delays = 0;
  notBefore: number | undefined;
  lane: number;
  dueAt = 0;
  /** While it is in work: aborts it. */
  cancel: AbortController | undefined;
  /** It waits to be ended from outside. */
  isParked = false;
  /** It ends without its work. */
  isEnding = false;
  /** Its turn is to come again at once, although it is held. */
  isToRecheck = false;
  readonly inNextCommit: Operation[] = [];
  /** Where its record and its entry in the timetable are. */
  private savedAt: Buffer | undefined;
  private savedDue: Buffer | undefined;
  private savedNumber: Buffer | undefined;
  private isChanged = false;
  private isRemoved = false;

  constructor(
    private readonly keys: QueueKeys,
    readonly message: MessageItems<O>,
    readonly item: I,
    /** The key by which it is found by its number, while it is held. */
    private readonly numberKey: () => Buffer | undefined,
    found?: Found<I, O, E>,
  ) {
    this.lane = found?.lane ?? laneFor(message.record.count);
    if (!found) return;
    const { state, outcome, delays, notBefore } = found.record;
    this.state = state;
    this.outcome = outcome;
    this.delays = delays ?? 0;
    this.notBefore = notBefore;
    this.isParked = found.due === undefined;
    this.savedAt = this.at;
    this.savedDue = found.due;
    if (found.due) this.dueAt = dueAt(found.due);
    if (this.isNumbered) this.savedNumber = numberKey();
  }

  get arrival(): Buffer {
    return this.message.arrival;
  }

  get id(): string {
    return idOf(this.arrival, this.item.index);
  }

  private get at(): Buffer {
    const { arrival, item } = this;
    return this.isParked ? this.keys.parked(arrival, item.index) : this.keys.item(arrival, item.index);
  }

  get due(): Buffer {
    return this.keys.due(this.lane, this.dueAt, this.arrival, this.item.index);
  }

  get isGone(): boolean {
    return this.isRemoved;
  }

  get isFinished(): boolean {
    return this.state === 'finished' || this.state === 'emitting';
  }

  /** It is found by its number. */
  private get isNumbered(): boolean {
    return this.isParked || (this.notBefore !== undefined && !this.isFinished);
  }

  set(state: ItemState, outcome?: E): void {
    this.state = state;
    this.outcome = outcome;
    this.isParked = false;
    this.isChanged = true;
    if (this.lane !== heldLane) return;
    // The next start must find it at once, also where its time has not come.
    this.lane = laneFor(this.message.record.count);
    this.dueAt = 0;
  }

  park(): void {
    this.isParked = true;
    this.isChanged = true;
  }

  hold(notBefore: number, delays: number | undefined): void {
    this.state = 'accepted';
    this.notBefore = notBefore;
    if (delays !== undefined) this.delays = delays;
    this.lane = heldLane;
    this.dueAt = notBefore;
    this.isChanged = true;
  }

  remove(): void {
    this.isRemoved = true;
  }

  /** What is to be written of it now. */
  operations(): Operation[] {
    const { item, message, isParked } = this;
    const operations = this.inNextCommit.splice(0);
    const remove = (table: Table, at: Buffer | undefined): void => {
      if (at) operations.push({ table, remove: at });
    };
    if (this.isRemoved) {
      remove(records, this.savedAt);
      remove(timetable, this.savedDue);
      remove(timetable, this.savedNumber);
      this.savedAt = this.savedDue = this.savedNumber = undefined;
      return operations;
    }
    const { at } = this;
    if (!this.savedAt || this.isChanged) {
      const { state, outcome, delays, notBefore } = this;
      const value: ItemRecord<I, O, E> = {
        state,
        item,
        ...(delays > 0 && { delays }),
        ...(notBefore !== undefined && { notBefore }),
        ...(outcome !== undefined && { outcome }),
        ...(!message.isList && { single: message.single }),
      };
      if (!this.savedAt?.equals(at)) remove(records, this.savedAt);
      operations.push({ table: records, put: at, value });
    }
    const due = isParked ? undefined : this.due;
    if (!due || !this.savedDue?.equals(due)) {
      remove(timetable, this.savedDue);
      if (due) operations.push({ table: timetable, put: due, value: 0 });
      this.savedDue = due;
    }
    if (this.isNumbered && !this.savedNumber) {
      this.savedNumber = this.numberKey();
      if (this.savedNumber) operations.push({ table: timetable, put: this.savedNumber, value: 0 });
    } else if (!this.isNumbered) {
      remove(timetable, this.savedNumber);
      this.savedNumber = undefined;
    }
    this.savedAt = at;
    this.isChanged = false;
    return operations;
  }
}

export const idOf = (arrival: Buffer, index: number): string => `${arrival.toString('latin1')} ${index}`;

/** What a node has in memory in a store, over deploys. */
export interface InMemory<I extends OutboxItem, O, E> {
  /** Items by id: each is in memory once. */
  readonly items: Map<string, QueueItem<I, O, E>>;
  readonly messages: Map<string, MessageItems<O>>;
  /** Messages that are accepted and not saved yet, by arrival. */
  readonly saving: Map<string, Promise<void>>;
  /** The queue of the latest start. */
  latest: { offer(lane: number, due: Buffer): void } | undefined;
}

const inMemory = processMemory('queues', new WeakMap<object, Map<string, unknown>>());

export const memoryOf = <I extends OutboxItem, O, E>(store: Store, node: string): InMemory<I, O, E> => {
  const { backing = store } = store;
  const nodes = inMemory.get(backing) ?? new Map<string, unknown>();
  inMemory.set(backing, nodes);
  const none = { items: new Map(), messages: new Map(), saving: new Map(), latest: undefined };
  const found = nodes.get(node) ?? none;
  nodes.set(node, found);
  return found as InMemory<I, O, E>;
};
