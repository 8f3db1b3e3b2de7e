import type { Answer, CallOptions, Client } from '../service/client';
import { endpoints, type EndpointName, type RequestOf } from '../service/endpoints';
import { TakenOver, type Operation, type Store, type Table } from '../state/store';
import { setVisits } from './hand-over';
import type { Outcome } from './outcome';
import {
  dueIn,
  heldLane,
  indexKeysOf,
  laneFor,
  laterLane,
  records,
  timetable,
  type Counts,
  type ItemData,
  type ItemRecord,
  type ItemState,
  type ListRecord,
  type MessageRecord,
  type QueueKeys,
  type Seen,
  type Shared,
  type SharedRecord,
} from './records';
import { liveMessages, mostLive, storable, type Input } from './storable-message';

/** The items of a message as a node accepts them. */
export interface Items<D extends ItemData = ItemData, S extends Shared = Shared> {
  /** Without duplicates, which their originals name. */
  readonly items: readonly D[];
  /** Duplicates included. */
  readonly count: number;
  /** The entries of the list, by index. */
  readonly entries?: readonly unknown[] | undefined;
  readonly shared: S;
}

/** The kind under which the duplicates of an outcome are counted as well. */
export const duplicatesOf = (kind: string): string => `duplicates ${kind}`;

const countIn = (
  counts: Record<string, number>,
  kinds: readonly string[],
  { duplicates }: ItemData,
  sign: 1 | -1 = 1,
): void => {
  const add = (kind: string, by: number): void => {
    counts[kind] = (counts[kind] ?? 0) + by * sign;
  };
  const weight = 1 + (duplicates?.length ?? 0);
  for (const kind of kinds) add(kind, weight);
  add('total', weight);
  if (duplicates) add(duplicatesOf(kinds[0] ?? ''), duplicates.length);
};

/** Bytes: the longer message of a single item has its own record, so that the item's steps do not write it again. */
const longestInline = 1024;
/**
 * Bytes: a larger message is written by itself and read again at the turn of its items, so that items at hand need
 * little memory.
 */
const largestAtOnce = 64 * 1024;
/** Longer lists are written in several commits. */
const longList = 100;

const textsIn = (items: readonly ItemData[]): number => {
  let sum = 0;
  for (const item of items)
    for (const value of Object.values(item)) if (typeof value === 'string') sum += value.length;
  return sum;
};

export const messageId = (arrival: Buffer): string => arrival.toString('hex');

export const itemId = (arrival: Buffer, index: number): string => `${messageId(arrival)} ${index}`;

/**
 * What the items of a message share. There is one in memory while any of the items is: two would overwrite each
 * other's counts.
 */
export class QueuedMessage<S extends Shared = Shared> {
  /** Unique, also over restarts. */
  readonly id: string;
  /** The number of its items in memory. */
  users = 0;
  /** If the store counts more losses now, another process has had its items since, and may have carried them out. */
  readonly losses: number | undefined;
  attachment: unknown;
  private readonly keys: QueueKeys;
  /** Outcomes by kind: those that have left, and those whose removal is saved. */
  private readonly emitted: Record<string, number>;
  private readonly saved: Record<string, number>;
  private original: Input | undefined;
  private message: MessageRecord | undefined;
  private loading: Promise<void> | undefined;
  private hasOwnMessage = true;
  private isMessageNew = false;
  private isListNew = false;
  private areCountsNew = false;

  private constructor(
    { keys, store }: ItemTools,
    readonly arrival: Buffer,
    public record: ListRecord<S>,
    /** It came as a list, or is saved in parts: its `list` has a record. */
    readonly isList: boolean,
    counts: Counts,
  ) {
    this.id = messageId(arrival);
    this.keys = keys;
    this.losses = store.engine.losses;
    this.emitted = { ...counts };
    this.saved = { ...counts };
  }

  /** A long list or a large message is saved in parts, and complete when the last part is saved. */
  static accepted<S extends Shared>(
    tools: ItemTools,
    arrival: Buffer,
    message: Record<string, unknown>,
    { items, entries, count, shared }: Items<ItemData, S>,
    about: Omit<SharedRecord<S>, 'shared' | 'count'>,
  ): QueuedMessage<S> {
    const { dropped, bytes, ...stored } = storable({ message, entries });
    const isComplete = items.length <= longList && bytes + textsIn(items) <= largestAtOnce;
    const record = { ...about, shared, count, isComplete };
    const made = new QueuedMessage<S>(tools, arrival, record, count > 1 || !isComplete, {});
    made.message = dropped ? { ...stored, dropped } : stored;
    made.original = { message, entries };
    made.hasOwnMessage = made.isList || bytes > longestInline;
    made.isMessageNew = made.hasOwnMessage;
    made.isListNew = made.isList;
    if (dropped && liveMessages.size < mostLive) liveMessages.set(made.id, made.original);
    return made;
  }

  static ofSingle<S extends Shared>(
    tools: ItemTools,
    arrival: Buffer,
    { message, ...record }: SharedRecord<S> & { readonly message?: MessageRecord },
  ): QueuedMessage<S> {
    const made = new QueuedMessage<S>(tools, arrival, { ...record, isComplete: true }, false, {});
    made.message = message;
    made.hasOwnMessage = message === undefined;
    return made;
  }

  /** Undefined when the record of the list is missing. */
  static async ofList<S extends Shared>(
    tools: ItemTools,
    arrival: Buffer,
  ): Promise<QueuedMessage<S> | undefined> {
    const { store, keys } = tools;
    const [list, counts] = await Promise.all([
      store.get<ListRecord<S>>(records, keys.list(arrival)),
      store.get<Counts>(records, keys.counts(arrival)),
    ]);
    return list && new QueuedMessage<S>(tools, arrival, list.value, true, counts?.value ?? {});
  }

  /** The number of items whose outcomes have not left, duplicates included. */
  get remaining(): number {
    return this.record.count - (this.emitted['total'] ?? 0);
  }

  /** What the record of a single item holds in place of a list's. */
  get single(): NonNullable<ItemRecord<ItemData, S>['single']> {
    const { isComplete: _, ...record } = this.record;
    return { ...record, ...(this.message && !this.hasOwnMessage && { message: this.message }) };
  }

  load(store: Store): Promise<void> | undefined {
    if (this.message) return undefined;
    this.loading ??= store.get<MessageRecord>(records, this.keys.message(this.arrival)).then((found) => {
      // One that damage took leaves as an empty one.
      this.message = found?.value ?? { message: {} };
    });
    return this.loading;
  }

  /** The original message while this process has it, else the stored one. `dropped`: parts could not be stored. */
  get input(): Input & { readonly dropped: boolean } {
    const live = this.original ?? liveMessages.get(this.id);
    if (live) return { ...live, dropped: false };
    const { message = {}, entries, dropped = false, visits } = this.message ?? {};
    if (visits) setVisits(message, visits);
    return { message, entries, dropped };
  }

  /** Counts an outcome that leaves, or takes that back; returns the counts so far. */
  countEmitted(data: ItemData, kinds: readonly string[], sign: 1 | -1 = 1): Counts {
    countIn(this.emitted, kinds, data, sign);
    return this.emitted;
  }

  countSaved(data: ItemData, kinds: readonly string[]): void {
    countIn(this.saved, kinds, data);
    this.areCountsNew = true;
  }

  complete(): void {
    this.record = { ...this.record, isComplete: true };
    this.isListNew = true;
  }

  /** The operations to write now. */
  operations(): Operation[] {
    const { keys, arrival, record, isList, isMessageNew, isListNew, areCountsNew } = this;
    if (!isMessageNew && !isListNew && !areCountsNew) return [];
    this.isMessageNew = this.isListNew = this.areCountsNew = false;
    const put = (at: Buffer, value: unknown): Operation => ({ table: records, put: at, value });
    const remove = (at: Buffer): Operation => ({ table: records, remove: at });
    if ((this.saved['total'] ?? 0) >= record.count) {
      liveMessages.delete(this.id);
      if (!isList) return this.hasOwnMessage ? [remove(keys.message(arrival))] : [];
      return [keys.list(arrival), keys.message(arrival), keys.counts(arrival)].map(remove);
    }
    const operations: Operation[] = [];
    if (isMessageNew) operations.push(put(keys.message(arrival), this.message));
    if (isListNew) operations.push(put(keys.list(arrival), record));
    if (areCountsNew && isList) operations.push(put(keys.counts(arrival), { ...this.saved }));
    return operations;
  }
}

/** What a guard, or the work, adds to the steps of an item's request. */
export interface Steps {
  /** Called when the item is saved as started: returns operations for that commit, or saves something itself. */
  readonly start?: () => readonly Operation[] | Promise<unknown>;
  /** Called when the item is saved as not started, because its request was certainly not carried out. */
  readonly undo?: () => readonly Operation[] | Promise<unknown>;
  /** Awaited before each attempt. A throw ends the work; the result is called after the attempt. */
  readonly permit?: () => Promise<(() => void) | undefined> | undefined;
}

const permitted = async (all: readonly Steps[]): Promise<() => void> => {
  const ends: (() => void)[] = [];
  const end = (): void => {
    for (const each of ends) each();
  };
  try {
    for (const { permit } of all) {
      const ended = await permit?.();
      if (ended) ends.push(ended);
    }
    return end;
  } catch (thrown) {
    end();
    throw thrown;
  }
};

/** The signal's reason when work is cancelled for good. */
const byReset = 'reset';

export interface Service {
  client(): Pick<Client, 'call'> | Promise<Pick<Client, 'call'>>;
}

export interface ItemTools {
  readonly node: string;
  readonly keys: QueueKeys;
  readonly store: Store;
  readonly service: Service;
}

/** An item as it was read; `due` is known if it was found by the timetable. */
export interface Found<D extends ItemData, S extends Shared> {
  readonly record: ItemRecord<D, S>;
  readonly due?: Buffer;
}

/**
 * An item in memory, from when it is taken up until its last change is saved. What guards and work use is in the first
 * half.
 */
export class Item<D extends ItemData = ItemData, S extends Shared = Shared> {
  readonly arrival: Buffer;
  readonly shared: S;
  readonly advisor: string;
  delays = 0;
  seen: Seen | undefined;
  /** For a wait: when it was due; 0 at its first turn. */
  dueAt: number;
  isOutOfTurn = false;
  /** In a dry run: the time until which the text would be held, in epoch milliseconds. */
  wouldHoldUntil: number | undefined;
  /** The delivery date of a scheduled text after it was moved into the recipient's hours, in epoch milliseconds. */
  movedTo: number | undefined;

  /** Unique among the items of a node, also over restarts. */
  readonly id: string;
  state: ItemState | 'gone' = 'accepted';
  outcome: Outcome | undefined;
  /** The outcome may have been emitted before the process was killed. */
  readonly isRepeated: boolean = false;
  /** The nodes that have saved the outcome, while others are still to save it. */
  taken: readonly string[] = [];
  heldUntil: number | undefined;
  lane: number;
  hasPlace: boolean;
  /** Something other than its own work ends it: it leaves memory with that end. */
  isEnding = false;
  /** It was held, and has its next turn at once. */
  isToRecheck = false;
  /** Other entries in the timetable, found while the item was in memory: they are read again afterwards. */
  missed: readonly Buffer[] = [];
  readonly inNextCommit: Operation[] = [];
  /** While it is in work: to be called when it starts. */
  started: (() => void) | undefined;
  private steps: Steps[] = [];
  private cancelling: AbortController | undefined;
  private kinds: readonly string[] = [];
  /** For the commit that ends the turn, and what to call when it is written. */
  private inLastCommit: Operation[] = [];
  private ends: (() => void)[] = [];
  /** It only waits for its move in the timetable to be saved with the next commit. */
  isRiding = false;
  /** How many of its moves are on their way to the store. */
  moves = 0;
  private isSaved = false;
  savedDue: Buffer | undefined;
  /** It is in the index of its number, and in that of the member in `savedSeen`. */
  private isIndexed = false;
  private savedSeen: Seen | undefined;
  private isChanged = false;
  constructor(
    private readonly tools: ItemTools,
    readonly message: QueuedMessage<S>,
    readonly data: D,
    readonly isWait: boolean,
    found?: Found<D, S>,
  ) {
    this.arrival = message.arrival;
    this.id = `${message.id} ${data.index}`;
    this.shared = message.record.shared;
    this.advisor = data.advisor ?? this.shared.advisor;
    const due = found?.due && dueIn(found.due);
    this.lane = due?.lane ?? laneFor(message.record.count, isWait);
    this.dueAt = due?.time ?? 0;
    this.hasPlace = !found || found.due !== undefined;
    if (!found) return;
    // If the database has lost commits, the removal may be among them.
    const isInDoubt = tools.store.peers?.isInDoubt(message.record.at) ?? false;
    this.isRepeated = isInDoubt || found.record.state === 'emitting';
    const { state, outcome, taken = [], delays, notBefore, seen } = found.record;
    this.state = state;
    this.outcome = outcome;
    this.taken = taken;
    this.delays = delays ?? 0;
    this.heldUntil = notBefore;
    this.seen = this.savedSeen = seen;
    this.isSaved = true;
    this.savedDue = found.due;
    this.isIndexed = this.isToIndex;
  }

  /** The item's entry in the list. */
  get entry(): unknown {
    return this.message.input.entries?.[this.data.index];
  }

  /** Aborts when the item is cancelled before it starts, or the node closes. */
  get signal(): AbortSignal {
    this.cancelling ??= new AbortController();
    return this.cancelling.signal;
  }

  /** It was cancelled during its work: the next start does not carry it on. */
  get isReset(): boolean {
    return this.cancelling?.signal.reason === byReset;
  }

  add(steps: Steps): void {
    this.steps.push(steps);
  }

  /** Where what belongs to the item is saved: in its own store, or without a journal in the environment's. */
  savedIn(environment: { store(): Store | Promise<Store> }): Store | Promise<Store> {
    const { store } = this.tools;
    return store.engine.durable ? store : environment.store();
  }

  /** Milliseconds since the message was accepted. */
  get age(): number {
    return this.tools.store.now() - this.message.record.at;
  }

  /** Whether the steps of the item are saved in this store: then others can be in the same commit. */
  isSavedIn(store: Store): boolean {
    return this.tools.store === store;
  }

  /**
   * Writes the operation in the commit that ends the turn, or separately; then calls `settled`, even if the write
   * failed.
   */
  async atEnd(store: Store, operation: Operation, settled: () => void): Promise<void> {
    if (!this.isSavedIn(store)) return store.write([operation]).then(settled, settled);
    this.inLastCommit.push(operation);
    this.ends.push(settled);
  }

  /** Makes a request for the item's advisor. One that changes something is saved as started before it leaves. */
  call<N extends EndpointName>(
    name: N,
    request: RequestOf<N>,
    { signal = this.signal, ...own }: Steps & { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<Answer<N>> {
    const { advisor } = this;
    const { service, node: lane } = this.tools;
    const client = service.client();
    const steps = [...this.steps, own];
    const options: CallOptions =
      endpoints[name].method === 'GET'
        ? { advisor, lane, signal }
        : {
            advisor,
            lane,
            signal,
            begin: () => this.start(steps),
            undo: () => this.undo(steps),
            permit: steps.some(({ permit }) => permit) ? () => permitted(steps) : undefined,
          };
    return client instanceof Promise
      ? client.then((loaded) => loaded.call(name, request, options))
      : client.call(name, request, options);
  }

  /** Saves the item as started. Awaited before a request that must not be made twice. */
  start(steps: readonly Steps[] = []): Promise<void> {
    this.started?.();
    return this.step(
      'started',
      steps.map(({ start }) => start),
    );
  }

  /** Saves the item as not started: its request was certainly not carried out, and will be made later. */
  undo(steps: readonly Steps[] = []): Promise<void> {
    return this.step(
      'accepted',
      steps.map(({ undo }) => undo),
    );
  }

  private async step(state: ItemState, added: readonly Steps['start'][]): Promise<void> {
    if (this.message.losses !== this.tools.store.engine.losses) throw new TakenOver(false);
    const saving: Promise<unknown>[] = [];
    for (const each of added) {
      const operations = each?.() ?? [];
      if (operations instanceof Promise) saving.push(operations);
      else this.inNextCommit.push(...operations);
    }
    this.set(state);
    saving.push(this.tools.store.save(this));
    await Promise.all(saving);
  }

  /** Counts its outcome as it leaves; returns the counts of its message so far. */
  count(kinds: readonly string[]): Counts {
    this.kinds = kinds;
    return this.message.countEmitted(this.data, kinds);
  }

  /** The outcome did not arrive. */
  uncount(): void {
    this.message.countEmitted(this.data, this.kinds, -1);
  }

  /** Stops its work: for good, or because the node closes. */
  cancel(isReset: boolean): void {
    if (!this.started) return;
    this.cancelling ??= new AbortController();
    this.cancelling.abort(isReset ? byReset : undefined);
  }

  /** Its turn is over; call the result when the next commit is written, or has failed. */
  endTurn(): (() => void) | undefined {
    const { ends } = this;
    this.started = this.cancelling = undefined;
    this.steps = [];
    if (ends.length === 0) return undefined;
    this.inNextCommit.push(...this.inLastCommit);
    this.inLastCommit = [];
    this.ends = [];
    return () => {
      for (const settled of ends) settled();
    };
  }

  get due(): Buffer {
    return this.tools.keys.due(this.lane, this.dueAt, this.arrival, this.data.index);
  }

  get isFinished(): boolean {
    return this.state !== 'accepted' && this.state !== 'started';
  }

  get isOpenWait(): boolean {
    return this.isWait && !this.isEnding && !this.isFinished;
  }

  private get isToIndex(): boolean {
    return !this.isFinished && (this.isWait || this.heldUntil !== undefined);
  }

  set(state: ItemState, outcome?: Outcome): void {
    this.state = state;
    this.outcome = outcome;
    this.isChanged = true;
    if (this.hasPlace && this.lane !== heldLane && this.lane !== laterLane) return;
    // The next start must find it at once, even if its time has not come.
    this.lane = laneFor(this.message.record.count, this.isWait);
    this.dueAt = 0;
    this.hasPlace = true;
  }

  /** It has its next turn then, or keeps its place after an extra turn. A wait may change in the timetable alone. */
  delay(until: number, delays = this.delays, seen = this.seen): void {
    this.isChanged ||= !this.isWait || seen !== this.seen;
    this.seen = seen;
    if (this.isOutOfTurn) return;
    this.lane = this.isWait ? laterLane : heldLane;
    this.dueAt = until;
    if (this.isWait) return;
    this.state = 'accepted';
    this.heldUntil = until;
    this.delays = delays;
  }

  /** An entry in the timetable names it while it is in memory: an extra turn, or an end, left the entry there. */
  meet(due: Buffer): void {
    if (!this.savedDue?.equals(due) && !this.missed.some((each) => each.equals(due)))
      this.missed = [...this.missed, due];
  }

  remove(): void {
    this.state = 'gone';
  }

  take(node: string): void {
    this.taken = [...this.taken, node];
    this.isChanged = true;
  }

  get isToSave(): boolean {
    return this.isChanged || !this.isSaved;
  }

  /** It leaves memory, has a turn or ends; false when one of these has happened already. */
  endRide(): boolean {
    const isFree = this.isRiding && !this.isEnding;
    this.isRiding = false;
    return isFree;
  }

  get isMoved(): boolean {
    return this.hasPlace && this.state !== 'gone' && !this.savedDue?.equals(this.due);
  }

  /** The operations to write now, those of its message included. */
  operations(): Operation[] {
    const { data, message, isWait, state } = this;
    if (state === 'gone' && this.isSaved) message.countSaved(data, this.kinds);
    const operations = [...message.operations(), ...this.inNextCommit.splice(0)];
    const remove = (table: Table, at: Buffer | undefined): void => {
      if (at) operations.push({ table, remove: at });
    };
    const { keys } = this.tools;
    const at = keys.item(message.arrival, data.index, isWait);
    if (state === 'gone') {
      if (this.isSaved) remove(records, at);
      remove(timetable, this.savedDue);
      this.index(operations, false);
      this.isSaved = false;
      this.savedDue = undefined;
      return operations;
    }
    if (this.isToSave) {
      const { outcome, taken, delays, heldUntil, seen } = this;
      const value: ItemRecord<D, S> = {
        state,
        item: data,
        ...(delays > 0 && { delays }),
        ...(heldUntil !== undefined && { notBefore: heldUntil }),
        ...(seen && { seen }),
        ...(outcome !== undefined && { outcome }),
        ...(taken.length > 0 && { taken }),
        ...(!message.isList && { single: message.single }),
      };
      operations.push({ table: records, put: at, value });
    }
    if (this.isMoved) {
      remove(timetable, this.savedDue);
      this.savedDue = this.due;
      operations.push({ table: timetable, put: this.savedDue, value: 0 });
    }
    this.index(operations, this.isToIndex);
    this.isSaved = true;
    this.isChanged = false;
    return operations;
  }

  private indexKeys(seen: Seen | undefined): Buffer[] {
    const { message, data, isWait, tools } = this;
    return indexKeysOf(tools.store, tools.node, message.record, message.arrival, data, isWait, seen);
  }

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
