import { processMemory } from '../process-memory';
import type { Clock } from '../service/clock';
import { TakenOver, type Operation, type Store, type Table } from '../state/store';
import type { MessageItems, OutboxItem } from './message-items';
import { Moves } from './moves';
import type { Recorder } from './recorder';
import {
  dueAt,
  indexKeysOf,
  records,
  timetable,
  type ItemRecord,
  type ItemState,
  type QueueKeys,
  type Seen,
} from './records';

/** Single messages, then one lane for each power of ten of a list's length; the last is for what is due later. */
const listLanes = 7;
export const heldLane = listLanes + 1;
/** Waits have the same lanes once more: their first looks take turns as texts do, all others come by time. */
const firstWaitLane = heldLane + 1;
export const laterLane = firstWaitLane + heldLane;
export const isWaitLane = (lane: number): boolean => lane >= firstWaitLane;
export const laneFor = (count: number, isWait: boolean): number =>
  (count === 1 ? 0 : Math.min(Math.ceil(Math.log10(count)), listLanes)) + (isWait ? firstWaitLane : 0);

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

/** A lane whose items are due at a time. */
export class DelayedLane<Q> extends Lane<Q> {
  /** Searches for the first item that are wanted or under way. */
  searches = 0;
  forgetAlarm: (() => void) | undefined;
  /** Keeps a clock that can be moved still while due items are read. */
  still: (() => void) | undefined;
  /** An item that is due now, although its time is later: the clock was set back. */
  early: Buffer | undefined;

  constructor(
    number: number,
    prefix: Buffer,
    readonly clock: Clock,
  ) {
    super(number, prefix);
  }

  letClockGo(): void {
    this.still?.();
    this.still = undefined;
  }
}

/** An item as it was read; where it was found otherwise than by the timetable, its place there is not known. */
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
  readonly isWait: boolean;
  /** What a wait has seen of its number. */
  readonly seen: Seen | undefined;
}

/** An item whose turn it is. */
export interface ItemTurn<I, O> extends AcceptedItem<I, O> {
  /** Aborts when what has not started is cancelled, or the node closes; `isResetBy` tells which. */
  readonly signal: AbortSignal;
  /** Where the steps are saved. */
  readonly store: Store;
  /** How often the work was tried and delayed before. */
  readonly delays: number;
  /** For a wait: when it was due; 0 at its first turn. */
  readonly dueAt: number;
  readonly isOutOfTurn: boolean;
  /** Saves the item as started, with these operations. Awaited before a request that must not be made twice. */
  readonly begin: (operations?: readonly Operation[]) => Promise<void>;
  /** Saves the item as not started: its request was certainly not carried out, and will be made later. */
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
  seen: Seen | undefined;
  lane: number;
  dueAt = 0;
  isOutOfTurn = false;
  /** Made when the work asks for its signal, or is cancelled. */
  private cancelling: AbortController | undefined;
  /** While it is in work: called when it starts. */
  private started: (() => void) | undefined;
  /** It ends without its work. */
  isEnding = false;
  /** It has its next turn at once, although it is held. */
  isToRecheck = false;
  /** An entry in the timetable that was met while it was in memory: it is read again afterwards. */
  missed: { readonly due: Buffer; readonly lane: number } | undefined;
  readonly inNextCommit: Operation[] = [];
  /** For the commit that ends the turn, and what is called when that is written. */
  private inLastCommit: Operation[] = [];
  private ends: (() => void)[] = [];
  /** Its record is saved, and where its entry in the timetable is. */
  private isSaved = false;
  private savedDue: Buffer | undefined;
  /** Its place in the timetable is known. */
  hasPlace: boolean;
  /** It is found by whom it is for, and by the member id in `savedSeen`. */
  private isIndexed = false;
  private savedSeen: Seen | undefined;
  private isChanged = false;
  private isRemoved = false;
  private readonly losses: number | undefined;

  constructor(
    private readonly saving: ItemSaving,
    readonly message: MessageItems<O>,
    readonly item: I,
    readonly isWait: boolean,
    found?: Found<I, O, E>,
  ) {
    this.lane = found?.lane ?? laneFor(message.record.count, isWait);
    this.losses = saving.store.losses;
    this.hasPlace = !found || found.due !== undefined;
    if (!found) return;
    const { state, outcome, delays, notBefore, seen } = found.record;
    this.state = state;
    this.outcome = outcome;
    this.delays = delays ?? 0;
    this.notBefore = notBefore;
    this.seen = this.savedSeen = seen;
    this.isSaved = true;
    this.savedDue = found.due;
    if (found.due) this.dueAt = dueAt(found.due);
    this.isIndexed = this.isToIndex;
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
  take(started: () => void, isOutOfTurn: boolean): void {
    this.cancelling = undefined;
    this.isOutOfTurn = isOutOfTurn;
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

  /** Its work has ended; call the result when the next commit is written, or cannot be. */
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
    if (this.isOutdated) return Promise.reject(new TakenOver(false));
    this.set(state);
    this.inNextCommit.push(...operations);
    return this.saving.recorder.changed(this);
  }

  get due(): Buffer {
    return this.saving.keys.due(this.lane, this.dueAt, this.arrival, this.item.index);
  }

  /** Another process has had the store since, and may have carried it out. */
  get isOutdated(): boolean {
    return this.losses !== this.store.losses;
  }

  get isGone(): boolean {
    return this.isRemoved;
  }

  get isFinished(): boolean {
    return this.state === 'finished' || this.state === 'emitting';
  }

  /** It is a wait that nothing has ended yet. */
  get isOpenWait(): boolean {
    return this.isWait && !this.isEnding && !this.isFinished && !this.isRemoved;
  }

  private get isToIndex(): boolean {
    return !this.isFinished && (this.isWait || this.notBefore !== undefined);
  }

  set(state: ItemState, outcome?: E): void {
    this.state = state;
    this.outcome = outcome;
    this.isChanged = true;
    if (this.hasPlace && this.lane !== heldLane && this.lane !== laterLane) return;
    // The next start must find it at once, also where its time has not come.
    this.lane = laneFor(this.message.record.count, this.isWait);
    this.dueAt = 0;
    this.hasPlace = true;
  }

  hold(notBefore: number, delays: number | undefined): void {
    this.state = 'accepted';
    this.notBefore = notBefore;
    if (delays !== undefined) this.delays = delays;
    this.lane = heldLane;
    this.dueAt = notBefore;
    this.isChanged = true;
  }

  /** The wait has its next turn then; only the timetable changes. */
  postpone(to: number): void {
    this.lane = laterLane;
    this.dueAt = to;
  }

  see(seen: Seen): void {
    this.seen = seen;
    this.isChanged = true;
  }

  /** An entry of the timetable that names it was met while it is in memory: a turn out of turn, or an end, left it there. */
  meet(due: Buffer, lane: number): void {
    if (!this.hasPlace || !this.due.equals(due)) this.missed = { due, lane };
  }

  remove(): void {
    this.isRemoved = true;
  }

  get isToSave(): boolean {
    return this.isChanged || !this.isSaved;
  }

  /** Gives its move in the timetable away, to be written with others. */
  takeMove(): { readonly from: Buffer | undefined; readonly to: Buffer } {
    const { savedDue: from, due: to } = this;
    this.savedDue = to;
    return { from, to };
  }

  /** The operations to write now. */
  operations(): Operation[] {
    const { item, message, isWait } = this;
    const operations = this.inNextCommit.splice(0);
    const remove = (table: Table, at: Buffer | undefined): void => {
      if (at) operations.push({ table, remove: at });
    };
    const { keys } = this.saving;
    const at = (isWait ? keys.wait : keys.item)(message.arrival, item.index);
    if (this.isRemoved) {
      if (this.isSaved) remove(records, at);
      remove(timetable, this.savedDue);
      this.index(operations, false);
      this.isSaved = false;
      this.savedDue = undefined;
      return operations;
    }
    if (this.isToSave) {
      const { state, outcome, delays, notBefore, seen } = this;
      const value: ItemRecord<I, O, E> = {
        state,
        item,
        ...(delays > 0 && { delays }),
        ...(notBefore !== undefined && { notBefore }),
        ...(seen && { seen }),
        ...(outcome !== undefined && { outcome }),
        ...(!message.isList && { single: message.single }),
      };
      operations.push({ table: records, put: at, value });
    }
    if (this.hasPlace && !this.savedDue?.equals(this.due)) {
      remove(timetable, this.savedDue);
      this.savedDue = this.due;
      operations.push({ table: timetable, put: this.savedDue, value: 0 });
    }
    this.index(operations, this.isToIndex);
    this.isSaved = true;
    this.isChanged = false;
    return operations;
  }

  /** The keys by which it is found while it waits or is held. */
  private indexKeys(seen: Seen | undefined): Buffer[] {
    const { message, item, isWait } = this;
    const { store, node } = this.saving;
    return indexKeysOf(store, node, message.record, message.arrival, item, isWait, seen);
  }

  /** Adds what changes in the indexes. */
  private index(operations: Operation[], isIndexed: boolean): void {
    const { seen, savedSeen } = this;
    if (isIndexed === this.isIndexed && (!isIndexed || seen === savedSeen)) return;
    const before = this.isIndexed ? this.indexKeys(savedSeen) : [];
    const now = isIndexed ? this.indexKeys(seen) : [];
    const isIn = (all: readonly Buffer[], key: Buffer): boolean => all.some((each) => each.equals(key));
    for (const key of before) if (!isIn(now, key)) operations.push({ table: timetable, remove: key });
    for (const key of now) if (!isIn(before, key)) operations.push({ table: timetable, put: key, value: 0 });
    this.isIndexed = isIndexed;
    this.savedSeen = seen;
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
  readonly moves: Moves;
  /** The queue of the latest start. */
  latest:
    | {
        offer(lane: number, due: Buffer, moved?: string): void;
        offerLater(due: Buffer): void;
      }
    | undefined;
}

const inMemory = processMemory('queues', new WeakMap<object, Map<string, unknown>>());

export const memoryOf = <I extends OutboxItem, O, E>(store: Store, node: string): InMemory<I, O, E> => {
  const { backing = store } = store;
  const nodes = inMemory.get(backing) ?? new Map<string, unknown>();
  inMemory.set(backing, nodes);
  const found = (nodes.get(node) as InMemory<I, O, E> | undefined) ?? {
    items: new Map(),
    messages: new Map(),
    saving: new Map(),
    moves: new Moves(
      (id, to) => found.latest?.offer(laterLane, to, id),
      (from) => found.latest?.offerLater(from),
    ),
    latest: undefined,
  };
  nodes.set(node, found);
  return found;
};
