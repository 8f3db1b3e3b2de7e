import { processMemory } from '../process-memory';
import type { Operation, Store, Table } from '../state/store';
import type { MessageItems, OutboxItem } from './message-items';
import type { Recorder } from './recorder';
import {
  dueAt,
  numberKey,
  records,
  timetable,
  type ItemRecord,
  type ItemState,
  type QueueKeys,
} from './records';

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

/** An item that was accepted. */
export interface AcceptedItem<I, O> {
  readonly item: I;
  /** What all items of the message share. */
  readonly shared: O;
  /** The same object for all items of a message, while one of them is in memory. */
  readonly message: object;
  /** When its message came, unique and in order. */
  readonly arrival: Buffer;
  /** The entry of the list that the item was made from. */
  readonly entry: unknown;
  /** Unique among the items of a node, also over restarts. */
  readonly name: string;
  /** The service for which the item was accepted. */
  readonly space: string;
  /** When the item was accepted, by the store's time. */
  readonly acceptedAt: number;
}

/** An item whose turn it is. */
export interface ItemTurn<I, O> extends AcceptedItem<I, O> {
  /** Aborts when what has not started is cancelled, or the node closes; `isResetBy` tells which. */
  readonly signal: AbortSignal;
  /** Where the steps are saved. */
  readonly store: Store;
  /** How often the work was tried and delayed before. */
  readonly delays: number;
  /** Saves the item as started, with these operations. Awaited before a request that must not be made twice. */
  readonly begin: (operations?: readonly Operation[]) => Promise<void>;
  /** Saves the item as not started: its request was certainly not carried out, and is to be made later. */
  readonly undo: (operations?: readonly Operation[]) => Promise<void>;
  /** Adds operations to the commit that ends the turn. `settled` is called when that is written, or cannot be. */
  readonly atEnd: (operations: readonly Operation[], settled: () => void) => void;
}

/** The reason of a signal for work that is cancelled, and not to be carried on by the next start. */
export const byReset = 'reset';

export const isResetBy = ({ reason }: AbortSignal): boolean => reason === byReset;

/** What all items of a node are saved with. */
export interface ItemSaving {
  readonly node: string;
  readonly keys: QueueKeys;
  readonly store: Store;
  readonly recorder: Recorder;
}

/** An item in memory, from when it is taken until its last change is saved. */
export class QueueItem<I extends OutboxItem, O, E> implements ItemTurn<I, O> {
  state: ItemState = 'accepted';
  outcome: E | undefined;
  delays = 0;
  notBefore: number | undefined;
  lane: number;
  dueAt = 0;
  /** Made when the work asks for its signal, or is cancelled. */
  private cancelling: AbortController | undefined;
  /** While it is in work: called when it starts. */
  private started: (() => void) | undefined;
  /** It waits to be ended from outside. */
  isParked = false;
  /** It ends without its work. */
  isEnding = false;
  /** Its turn is to come again at once, although it is held. */
  isToRecheck = false;
  readonly inNextCommit: Operation[] = [];
  /** For the commit that ends the turn, and what is called when that is written. */
  private inLastCommit: Operation[] = [];
  private ends: (() => void)[] = [];
  /** Where its record and its entry in the timetable are. */
  private savedAt: Buffer | undefined;
  private savedDue: Buffer | undefined;
  private savedNumber: Buffer | undefined;
  private isChanged = false;
  private isRemoved = false;

  constructor(
    private readonly saving: ItemSaving,
    readonly message: MessageItems<O>,
    readonly item: I,
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
    if (this.isNumbered) this.savedNumber = this.numberKey();
  }

  get arrival(): Buffer {
    return this.message.arrival;
  }

  get id(): string {
    return idOf(this.arrival, this.item.index);
  }

  get shared(): O {
    return this.message.record.shared;
  }

  get entry(): unknown {
    return this.message.input.entries?.[this.item.index];
  }

  get name(): string {
    return `${this.arrival.toString('hex')} ${this.item.index}`;
  }

  get space(): string {
    return this.message.record.space;
  }

  get acceptedAt(): number {
    return this.message.record.at;
  }

  get store(): Store {
    return this.saving.store;
  }

  get signal(): AbortSignal {
    this.cancelling ??= new AbortController();
    return this.cancelling.signal;
  }

  get isReset(): boolean {
    return this.cancelling !== undefined && isResetBy(this.cancelling.signal);
  }

  /** `started` is called when the work has saved it as started. */
  take(started: () => void): void {
    this.cancelling = undefined;
    this.started = started;
    this.isToRecheck = false;
  }

  /** Cancels it while it is in work. */
  cancel(reason?: typeof byReset): void {
    if (!this.started) return;
    this.cancelling ??= new AbortController();
    this.cancelling.abort(reason);
  }

  readonly begin = (operations: readonly Operation[] = []): Promise<void> => {
    this.started?.();
    return this.step('started', operations);
  };

  readonly undo = (operations: readonly Operation[] = []): Promise<void> => this.step('accepted', operations);

  readonly atEnd = (operations: readonly Operation[], settled: () => void): void => {
    this.inLastCommit.push(...operations);
    this.ends.push(settled);
  };

  /** Its work has ended; the result is to be called when the next commit is written, or cannot be. */
  putDown(): (() => void) | undefined {
    const { ends } = this;
    this.started = undefined;
    if (ends.length === 0) return undefined;
    this.inNextCommit.push(...this.inLastCommit);
    this.inLastCommit = [];
    this.ends = [];
    return () => {
      for (const settled of ends) settled();
    };
  }

  private step(state: ItemState, operations: readonly Operation[]): Promise<void> {
    this.set(state);
    this.inNextCommit.push(...operations);
    return this.saving.recorder.changed(this);
  }

  /** The key by which it is found by its number. */
  private numberKey(): Buffer | undefined {
    const { item, arrival, space } = this;
    const { store, node } = this.saving;
    return item.phone === undefined
      ? undefined
      : numberKey(store, space, item.phone, node, arrival, item.index);
  }

  private get at(): Buffer {
    const { arrival, item } = this;
    const { keys } = this.saving;
    return this.isParked ? keys.parked(arrival, item.index) : keys.item(arrival, item.index);
  }

  get due(): Buffer {
    return this.saving.keys.due(this.lane, this.dueAt, this.arrival, this.item.index);
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
