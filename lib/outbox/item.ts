import type { Answer, CallOptions, Client } from '../service/client';
import { endpoints, type EndpointName, type RequestOf } from '../service/endpoints';
import { TakenOver, type Operation, type Store, type Table } from '../state/store';
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
import { setVisits } from './hand-over';

/** The items of a message, as a node accepts them, and what they share. */
export interface Items<D extends ItemData = ItemData, S extends Shared = Shared> {
  /** Duplicates are not among them: their originals name them. */
  readonly items: readonly D[];
  /** Duplicates included. */
  readonly count: number;
  /** What the list held for each item, by index. */
  readonly entries?: readonly unknown[] | undefined;
  readonly shared: S;
}

/** The kind under which the duplicates of an outcome are counted once more. */
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

/** Bytes: a longer message of a single item has a record of its own, so that its steps do not write it again. */
const longestInline = 1024;
/** Bytes: a larger message is written by itself, and read again at the turn of its items: what is at hand takes up little memory. */
const largestAtOnce = 64 * 1024;
/** Longer lists are written in several commits. */
const longList = 100;

/** About the number of bytes of items: their texts. */
const textsIn = (items: readonly ItemData[]): number => {
  let sum = 0;
  for (const item of items)
    for (const value of Object.values(item)) if (typeof value === 'string') sum += value.length;
  return sum;
};

export const messageId = (arrival: Buffer): string => arrival.toString('hex');

export const itemId = (arrival: Buffer, index: number): string => `${messageId(arrival)} ${index}`;

/** What the items of a message share, while one of them is in memory: two copies would write over each other's counts. */
export class QueuedMessage<S extends Shared = Shared> {
  /** Unique, also over restarts. */
  readonly id: string;
  /** How many of its items are in memory. */
  users = 0;
  /** What the node keeps with the message. */
  attachment: unknown;
  /** The outcomes that have left; `saved` are those whose removal is in the store. */
  private readonly emitted: Record<string, number>;
  private readonly saved: Record<string, number>;
  private original: Input | undefined;
  private message: MessageRecord | undefined;
  private loading: Promise<void> | undefined;
  private isMissing = false;
  /** The message has a record of its own. */
  private hasOwnMessage = true;
  private isMessageNew = false;
  private isListNew = false;
  private areCountsNew = false;

  private constructor(
    private readonly keys: QueueKeys,
    readonly arrival: Buffer,
    public record: ListRecord<S>,
    /** It has a record of its own: it came as a list, or is saved in parts. */
    readonly isList: boolean,
    counts: Counts,
  ) {
    this.id = messageId(arrival);
    this.emitted = { ...counts };
    this.saved = { ...counts };
  }

  /** A long list, or a large message, is saved in parts, and is complete when the last is saved. */
  static accepted<S extends Shared>(
    keys: QueueKeys,
    arrival: Buffer,
    message: Record<string, unknown>,
    { items, entries, count, shared }: Items<ItemData, S>,
    about: Omit<SharedRecord<S>, 'shared' | 'count'>,
  ): QueuedMessage<S> {
    const { dropped, bytes, ...stored } = storable({ message, entries });
    const isComplete = items.length <= longList && bytes + textsIn(items) <= largestAtOnce;
    const record = { ...about, shared, count, isComplete };
    const made = new QueuedMessage<S>(keys, arrival, record, count > 1 || !isComplete, {});
    made.message = dropped ? { ...stored, dropped } : stored;
    made.original = { message, entries };
    made.hasOwnMessage = made.isList || bytes > longestInline;
    made.isMessageNew = made.hasOwnMessage;
    made.isListNew = made.isList;
    if (dropped && liveMessages.size < mostLive) liveMessages.set(made.id, made.original);
    return made;
  }

  static ofSingle<S extends Shared>(
    keys: QueueKeys,
    arrival: Buffer,
    { message, ...record }: SharedRecord<S> & { readonly message?: MessageRecord },
  ): QueuedMessage<S> {
    const made = new QueuedMessage<S>(keys, arrival, { ...record, isComplete: true }, false, {});
    made.message = message;
    made.hasOwnMessage = message === undefined;
    return made;
  }

  /** Undefined when the record of the list is missing. */
  static async ofList<S extends Shared>(
    store: Store,
    keys: QueueKeys,
    arrival: Buffer,
  ): Promise<QueuedMessage<S> | undefined> {
    const [list, counts] = await Promise.all([
      store.get<ListRecord<S>>(records, keys.list(arrival)),
      store.get<Counts>(records, keys.counts(arrival)),
    ]);
    return list && new QueuedMessage<S>(keys, arrival, list.value, true, counts?.value ?? {});
  }

  /** Items whose outcomes have not left yet, duplicates included. */
  get remaining(): number {
    return this.record.count - (this.emitted['total'] ?? 0);
  }

  /** The part of a single item's record that a list has in its own. */
  get single(): NonNullable<ItemRecord<ItemData, S>['single']> {
    const { isComplete: _, ...record } = this.record;
    return { ...record, ...(this.message && !this.hasOwnMessage && { message: this.message }) };
  }

  /** Reads the message, where it is not in memory. */
  load(store: Store): Promise<void> | undefined {
    if (this.message || this.isMissing) return undefined;
    this.loading ??= store.get<MessageRecord>(records, this.keys.message(this.arrival)).then((found) => {
      this.message = found?.value;
      this.isMissing = !this.message;
    });
    return this.loading;
  }

  /**
   * The original message while this process has it, else the stored one; `dropped` means that parts could not be
   * stored.
   */
  get input(): Input & { readonly dropped: boolean } {
    const live = this.original ?? liveMessages.get(this.id);
    if (live) return { ...live, dropped: false };
    const { message = {}, entries, dropped = false, visits } = this.message ?? {};
    if (visits) setVisits(message, visits);
    return { message, entries, dropped };
  }

  /** Counts an outcome that leaves; gives all that have left by then. With `sign`, takes that back. */
  countEmitted(data: ItemData, kinds: readonly string[], sign: 1 | -1 = 1): Counts {
    countIn(this.emitted, kinds, data, sign);
    return this.emitted;
  }

  /** The outcome has left for good. */
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

/** What a guard, or the work itself, adds to the steps of an item's request. */
export interface Steps {
  /** Called as the item is saved as started: returns operations for that commit, or saves them separately. */
  readonly start?: () => readonly Operation[] | Promise<unknown>;
  /** The same as the item is saved as not started, because its request was certainly not carried out. */
  readonly undo?: () => readonly Operation[] | Promise<unknown>;
  /** Asked before each attempt, which starts when this resolves. A throw ends the work; the result is called after the attempt. */
  readonly permit?: () => Promise<(() => void) | undefined> | undefined;
}

/** Asks all permits of an attempt; the result is called when the attempt has finished. */
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

/** The reason of the signal of work that is cancelled for good. */
const byReset = 'reset';

/** Where the requests of items go. */
export interface Service {
  client(): Client | Promise<Client>;
}

/** What all items of a node have in common. */
export interface ItemTools {
  readonly node: string;
  readonly keys: QueueKeys;
  readonly store: Store;
  readonly service: Service;
}

/** An item as it was read; where it was found otherwise than by the timetable, its place there is not known. */
export interface Found<D extends ItemData, S extends Shared> {
  readonly record: ItemRecord<D, S>;
  readonly due?: Buffer;
}

/**
 * An item in memory, from when it is taken until its last change is saved. Guards and work get it at its turn: what they
 * use is in the first half.
 */
export class Item<D extends ItemData = ItemData, S extends Shared = Shared> {
  /** When its message came, unique and in order. */
  readonly arrival: Buffer;
  readonly shared: S;
  readonly advisor: string;
  /** How often the work was tried and delayed before. */
  delays = 0;
  /** What a wait has seen of its number. */
  seen: Seen | undefined;
  /** For a wait: when it was due; 0 at its first turn. */
  dueAt: number;
  isOutOfTurn = false;
  /** In a dry run: the text would be held until then, in epoch milliseconds. */
  wouldHoldUntil: number | undefined;
  /** The delivery date of a scheduled text, moved into the recipient's hours; in epoch milliseconds. */
  movedTo: number | undefined;

  /** Unique among the items of a node, also over restarts. */
  readonly id: string;
  state: ItemState | 'gone' = 'accepted';
  outcome: Outcome | undefined;
  /** The outcome may have been emitted before the process was killed. */
  readonly isRepeated: boolean = false;
  /** The time until which it is or was held. */
  heldUntil: number | undefined;
  lane: number;
  /** Its place in the timetable is known. */
  hasPlace: boolean;
  /** It ends without its work. */
  isEnding = false;
  /** It has its next turn at once, although it is held. */
  isToRecheck = false;
  /** An entry in the timetable that was met while it was in memory: it is read again afterwards. */
  missed: Buffer | undefined;
  readonly inNextCommit: Operation[] = [];
  /** While it is in work: called when it starts. */
  started: (() => void) | undefined;
  private steps: Steps[] = [];
  /** Made when the work asks for its signal, or is cancelled. */
  private cancelling: AbortController | undefined;
  /** The kinds under which its outcome was counted. */
  private kinds: readonly string[] = [];
  /** For the commit that ends the turn, and what is called when that is written. */
  private inLastCommit: Operation[] = [];
  private ends: (() => void)[] = [];
  /** Nothing happens to it but that its move in the timetable is saved with the next commit. */
  isRiding = false;
  /** Its record is saved, and where its entry in the timetable is. */
  private isSaved = false;
  savedDue: Buffer | undefined;
  /** It is found by whom it is for, and by the member id in `savedSeen`. */
  private isIndexed = false;
  private savedSeen: Seen | undefined;
  private isChanged = false;
  /** If the store has lost more, another process has had it since, and may have carried the item out. */
  readonly losses: number | undefined;

  constructor(
    private readonly tools: ItemTools,
    /** The same object for all items of a message, while one of them is in memory. */
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
    this.losses = tools.store.losses;
    this.hasPlace = !found || found.due !== undefined;
    if (!found) return;
    // Where the database has lost commits, an outcome may be among them.
    const isInDoubt = tools.store.peers?.isInDoubt(message.record.at) ?? false;
    this.isRepeated = isInDoubt || found.record.state === 'emitting';
    const { state, outcome, delays, notBefore, seen } = found.record;
    this.state = state;
    this.outcome = outcome;
    this.delays = delays ?? 0;
    this.heldUntil = notBefore;
    this.seen = this.savedSeen = seen;
    this.isSaved = true;
    this.savedDue = found.due;
    this.isIndexed = this.isToIndex;
  }

  /** The entry of the list that the item was made from. */
  get entry(): unknown {
    return this.message.input.entries?.[this.data.index];
  }

  /** Aborts when what has not started is cancelled, or the node closes. */
  get signal(): AbortSignal {
    this.cancelling ??= new AbortController();
    return this.cancelling.signal;
  }

  /** It was cancelled during its work: the next start does not carry it on. */
  get isReset(): boolean {
    return this.cancelling?.signal.reason === byReset;
  }

  /** Adds to the steps of the item's requests. */
  add(steps: Steps): void {
    this.steps.push(steps);
  }

  /** The store of what changes with the item: its own, or without a journal that of the environment. */
  savedIn(environment: { store(): Store | Promise<Store> }): Store | Promise<Store> {
    const { store } = this.tools;
    return store.durable ? store : environment.store();
  }

  /** Whether the steps of the item are saved in this store: then others can be in the same commit. */
  isSavedIn(store: Store): boolean {
    return this.tools.store === store;
  }

  /**
   * Writes the operation in the commit that ends the turn, or separately; then calls `settled`, even if that failed.
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
    if (this.losses !== this.tools.store.losses) throw new TakenOver(false);
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

  /** Counts its outcome under these kinds, as it leaves; gives what has left of its message by then. */
  count(kinds: readonly string[]): Counts {
    this.kinds = kinds;
    return this.message.countEmitted(this.data, kinds);
  }

  /** Takes `count` back: the outcome did not arrive. */
  uncount(): void {
    this.message.countEmitted(this.data, this.kinds, -1);
  }

  /** Stops its work, if it is in work: for good, or because the node closes. */
  cancel(isReset: boolean): void {
    if (!this.started) return;
    this.cancelling ??= new AbortController();
    this.cancelling.abort(isReset ? byReset : undefined);
  }

  /** Its turn has ended; call the result when the next commit is written, or cannot be. */
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

  /** It is a wait that nothing has ended yet. */
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
    // The next start must find it at once, also where its time has not come.
    this.lane = laneFor(this.message.record.count, this.isWait);
    this.dueAt = 0;
    this.hasPlace = true;
  }

  /** It has its next turn then, or keeps its place after a turn out of turn. A wait may change in the timetable alone. */
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

  /** An entry of the timetable that names it was met while it is in memory: a turn out of turn, or an end, left it there. */
  meet(due: Buffer): void {
    if (!this.savedDue?.equals(due)) this.missed = due;
  }

  /** Its outcome has left for good: its records go. */
  remove(): void {
    this.state = 'gone';
  }

  get isToSave(): boolean {
    return this.isChanged || !this.isSaved;
  }

  /** It leaves memory, has a turn or ends: false when one of these happens already. */
  endRide(): boolean {
    const isFree = this.isRiding && !this.isEnding;
    this.isRiding = false;
    return isFree;
  }

  /** Its place in the timetable is not saved yet. */
  get isMoved(): boolean {
    return this.hasPlace && this.state !== 'gone' && !this.savedDue?.equals(this.due);
  }

  /** The operations to write now, also for what the items of its message share. */
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
      const { outcome, delays, heldUntil, seen } = this;
      const value: ItemRecord<D, S> = {
        state,
        item: data,
        ...(delays > 0 && { delays }),
        ...(heldUntil !== undefined && { notBefore: heldUntil }),
        ...(seen && { seen }),
        ...(outcome !== undefined && { outcome }),
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

  /** The keys by which it is found while it waits or is held. */
  private indexKeys(seen: Seen | undefined): Buffer[] {
    const { message, data, isWait, tools } = this;
    return indexKeysOf(tools.store, tools.node, message.record, message.arrival, data, isWait, seen);
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
