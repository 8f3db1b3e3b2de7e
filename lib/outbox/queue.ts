import { randomBytes } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';
import { second } from '../durations';
import { atTime, closeLimit, type Clock } from '../service/clock';
import {
  endOf,
  key,
  nextKey,
  TakenOver,
  unchanged,
  type Operation,
  type Store,
  type Table,
} from '../state/store';
import { Cancels } from './cancels';
import { carefulTurnsOf, type CarefulTurns } from './careful-turns';
import { handOver } from './hand-over';
import { MessageItems, type Batch, type OutboxItem } from './message-items';
import {
  byReset,
  heldLane,
  idOf,
  isResetBy,
  Lane,
  laneFor,
  memoryOf,
  QueueItem,
  type AcceptedItem,
  type Found,
  type InMemory,
  type ItemSaving,
  type ItemTurn,
} from './queue-item';
import { QueueReader } from './queue-reader';
import { recorderOf, together, type Recorder } from './recorder';
import {
  after,
  arrivalAt,
  arrivalIn,
  dueAt,
  itemAt,
  itemIn,
  itemName,
  keysOf,
  newArrival,
  numberedIn,
  numbersOf,
  records,
  timetable,
  type CancelRecord,
  type Counts,
  type ItemRecord,
  type ListRecord,
  type QueueKeys,
} from './records';

/** The reason why an item ends without its work. */
export type Reason =
  /** Its request may have been carried out: it was started before a restart, or the store has lost commits since. */
  | 'unknown'
  /** The process has crashed again and again, and it was this item's turn. */
  | 'crashes'
  /** It was accepted too long ago. */
  | 'stale'
  | 'reset'
  /** It was accepted for another service. */
  | 'moved'
  /** It was accepted by a node of another type, which had the same id. */
  | 'retyped'
  /** It could not be saved. */
  | 'refused'
  /** It may be saved: then another process, which has taken over the store, carries it out. */
  | 'taken_over';

export { isResetBy, type AcceptedItem, type ItemTurn };

/** Thrown by work that must not start before a time: the item has another turn then. */
export class Held extends Error {
  constructor(
    readonly notBefore: number,
    /** For work that was tried and is delayed: how often it has been. */
    readonly delays?: number,
  ) {
    super('held');
  }
}

/** Thrown by work that hands its item over to be ended from outside; `operations` are in the commit that parks it. */
export class Parked extends Error {
  constructor(
    readonly operations: readonly Operation[],
    /** Called when that is written, or cannot be. */
    readonly settled: () => void,
  ) {
    super('parked');
  }
}

/** An outcome about to leave. */
export interface OutcomeToEmit<E> {
  readonly outcome: E;
  /** The outcome may have been emitted before the process was killed. */
  readonly repeated: boolean;
  /** How many outcomes of each kind have left, this one included. */
  readonly counts: Counts;
  /** The outcome is the last of its message. */
  readonly isLast: boolean;
  /** Called with each message of the outcome before it is sent. */
  readonly mark: (msg: object) => void;
}

/** The node, as its queue sees it. */
export interface QueueHost<I extends OutboxItem, O, E> {
  /**
   * From an item to its outcome; throws `Held` or `Parked` and nothing else. Undefined when a close broke the work off: the item
   * stays saved as not started.
   */
  work(turn: ItemTurn<I, O>): Promise<E | undefined>;
  /** The outcome of an item that ends without its work. */
  outcomeFor(accepted: ItemTurn<I, O>, reason: Reason): Promise<E>;
  /** Lets an outcome leave, its duplicates with it. False when it did not arrive, because this node is closing. */
  emit(message: MessageItems<O>, item: I, toEmit: OutcomeToEmit<E>): Promise<boolean>;
  /** The kinds under which an outcome is counted. */
  kindsOf(outcome: E): readonly string[];
  /** Called when the number of parked items has changed. */
  changed?(): void;
  /** Called with the number of held items, and the time until which the first is held. */
  held(count: number, notBefore: number): void;
  fault(fault: unknown): void;
}

export interface QueueOptions<I extends OutboxItem, O, E> {
  readonly store: Store;
  readonly node: string;
  /** The type of the node: what another type accepted under the same id is not carried out. */
  readonly type: string;
  /** The environment and the service it points to: what was accepted for another one is not carried out here. */
  readonly space: string;
  readonly host: QueueHost<I, O, E>;
  /** The most requests at once; as many more items are started ahead, so that a slow disk holds none up. */
  readonly width: number;
  /** Milliseconds after which what has not started is too old to start after a restart. */
  readonly resumeWithin: number;
  /** The clock by which items are held. */
  readonly clock: Clock;
  /** Whether work may start at any age. */
  readonly isPatient?: (shared: O) => boolean;
}

/** Thrown when too much waits for a store that is slow, full, away or owned by another process. */
export class QueueFull extends Error {}
const mostUnwritten = 32 * 1024 * 1024;
/** About the number of bytes that an item of a long list takes in the store. */
const bytesPerItem = 32;
/** Longer lists are written in several commits. */
const longList = 100;
/** The number of items of a long list that are written in one commit. */
const writtenAtOnce = 1000;
/** The number of records that are read at once. */
const readAtOnce = 64;
/** The most items of a lane that are at hand; the others lie in the store. */
const mostAtHand = 128;
/** Bytes: an item of a larger message is read again at its turn, so that what is at hand takes up little memory. */
const largestAtHand = 64 * 1024;
/** The most items whose ends are being saved or emitted: while there are more, none is taken up. */
const mostEnding = 256;
/** The number of ticks for which an item may keep the clock still: a machine that stops meanwhile loses one, not all. */
const clockTicks = { count: 10, ms: 50 };

const released =
  (release: () => void) =>
  (fault: unknown): never => {
    release();
    throw fault;
  };

/**
 * The items of one node, from accepted to emitted. The queue is the store: memory holds what is in work, and some items
 * at hand. Each step is saved before the next: accepted, started (before a request leaves), finished (before the outcome
 * leaves), emitted.
 */
export class Queue<I extends OutboxItem, O, E> {
  /** The name of this start of the node. */
  readonly startId = randomBytes(6).toString('base64url');
  private readonly keys: QueueKeys;
  private readonly store: Store;
  private readonly host: QueueHost<I, O, E>;
  private readonly recorder: Recorder;
  private readonly careful: CarefulTurns;
  private readonly cancels = new Cancels();
  private readonly lanes: Lane<QueueItem<I, O, E>>[];
  private readonly held: Lane<QueueItem<I, O, E>>;
  private readonly memory: InMemory<I, O, E>;
  private readonly saving: ItemSaving;
  private readonly items: Map<string, QueueItem<I, O, E>>;
  private readonly messages: Map<string, MessageItems<O>>;
  /** For each read under way, the ids of the items that have left memory since it began: they may be read in an old state. */
  private readonly reads = new Set<Set<string>>();
  private nextLane = 0;
  private active = 0;
  private ending = 0;
  private underWay = 0;
  private isStarted = false;
  private isClosing = false;
  private isCancelling = false;
  /** The type and the space that held and parked items belong to are saved. */
  private hasHome = false;
  /** Passes that wait for room. */
  private readonly waiting = new Set<() => void>();
  private landed: (() => void) | undefined;
  private forgetAlarm: (() => void) | undefined;
  private forgetCalm: (() => void) | undefined;
  /** Keeps a clock that can be moved still while due items are read. */
  private still: (() => void) | undefined;
  private parkedCount = 0;
  /** Searches for the first held item that are wanted or under way. */
  private searches = 0;

  constructor(private readonly options: QueueOptions<I, O, E>) {
    const { store, node } = options;
    this.keys = keysOf(node);
    this.store = store;
    this.host = options.host;
    this.recorder = recorderOf(store);
    this.careful = carefulTurnsOf(store);
    const { keys } = this;
    this.held = new Lane(heldLane, keys.lane(heldLane));
    this.lanes = Array.from({ length: heldLane }, (_, number) => new Lane(number, keys.lane(number)));
    this.lanes.push(this.held);
    this.saving = { node, keys, store, recorder: this.recorder };
    this.memory = memoryOf(store, node);
    this.items = this.memory.items;
    this.messages = this.memory.messages;
  }

  get isBusy(): boolean {
    return this.items.size > 0;
  }

  /** Reads what is saved and has not finished, for display. */
  get reader(): QueueReader<I> {
    const { node, space } = this.options;
    const isCancelled = (arrival: Buffer, item: I): boolean => this.cancels.isMeant(arrival, item);
    return new QueueReader<I>({ store: this.store, node, space, isCancelled });
  }

  /** The progress of lists that have outcomes still to leave. */
  get progress(): { readonly done: number; readonly total: number } {
    let done = 0;
    let total = 0;
    for (const { record, remaining, isList } of this.messages.values()) {
      if (!isList || remaining === 0) continue;
      done += record.count - remaining;
      total += record.count;
    }
    return { done, total };
  }

  /** Carries on what an earlier start of this node left, before anything new. */
  async start(): Promise<void> {
    this.memory.latest = this;
    await this.careful.ready();
    this.forgetCalm = this.careful.onCalm(() => {
      this.pump();
    });
    await this.readCancels();
    await this.restoreTimetable();
    const home = (await this.store.get<string>(records, this.keys.home))?.value;
    this.hasHome = home !== undefined;
    this.parkedCount += await this.store.count(records, this.keys.allParked, endOf(this.keys.allParked));
    if (this.parkedCount > 0) this.host.changed?.();
    if (this.isClosing) return;
    this.isStarted = true;
    this.track(this.dropUnaccepted());
    if (!this.cancels.isEmpty) this.cancelSaved();
    if (this.hasHome && home !== this.home) this.track(this.moveHome());
    this.pump();
    this.expectHeld();
  }

  /** Throws `QueueFull`. */
  accept(batch: Batch<I, O>, attachment: unknown): void {
    if (this.recorder.unwritten > mostUnwritten) throw new QueueFull();
    const { space, type, clock } = this.options;
    const at = this.store.now();
    const clockAt = clock.now();
    const isLong = batch.items.length > longList;
    const about = {
      at,
      ...(Math.abs(clockAt - at) >= second && { clockAt }),
      space,
      type,
      startId: this.startId,
    };
    const message = MessageItems.accepted(this.keys, newArrival(at), batch, about, !isLong);
    message.attachment = attachment;
    const lane = this.lanes[laneFor(batch.count)];
    const isAtHand =
      this.isStarted &&
      !this.isClosing &&
      !isLong &&
      message.bytes <= largestAtHand &&
      lane !== undefined &&
      !lane.hasMore &&
      !lane.isReading &&
      lane.hand.length < mostAtHand;
    const items = isLong ? [] : batch.items.map((item) => this.added(message, item));
    if (isAtHand) {
      lane.hand.push(...items);
      for (const { due } of items.slice(-1)) lane.readTo(nextKey(due));
    }
    const saved = isLong ? this.saveLong(message, batch) : this.save(message, items, batch.onRecord);
    const name = message.arrival.toString('latin1');
    const saving = saved.finally(() => {
      this.memory.saving.delete(name);
    });
    this.memory.saving.set(name, saving);
    this.track(
      saving.then(
        () => {
          if (isLong) this.expect(message, batch);
          else if (!isAtHand) for (const item of items) this.release(item);
        },
        (fault: unknown) => {
          const isTaken = fault instanceof TakenOver;
          // What is at hand meets the same fault as it starts, and leaves with it.
          if (!isAtHand) for (const item of items) this.forget(item);
          // What came with an outcome of another node is emitted again by the process that took over.
          const isRefused = isTaken ? !batch.onRecord : !isAtHand && !this.isClosing;
          if (isRefused)
            this.refuse(message, batch.items, isTaken && fault.isInDoubt ? 'taken_over' : 'refused');
          if (isTaken) return;
          this.pump();
          throw fault;
        },
      ),
    );
    if (isAtHand) this.pump();
  }

  /** Cancels items that have not started: all, or those for these numbers. `at` is when another process received the reset. */
  reset(phones?: readonly string[], at?: number): void {
    this.cancelAll(phones ? { phones } : {}, at === undefined ? undefined : arrivalAt(at));
  }

  /** Cancels one item that has not started, or all such items of a list; false when it has started or finished. */
  async cancel(arrival: Buffer, index?: number): Promise<boolean> {
    if (!(await this.reader.isWaiting(arrival, index))) return false;
    this.cancelAll(index === undefined ? { list: arrival } : { list: arrival, index });
    return true;
  }

  /** Items that are held for a number have their turn now. */
  recheck(phone: string): void {
    this.track(this.recheckNumber(phone));
  }

  /** Waits for what has started, up to the limit of a close. What has not stays saved for the next start. */
  async close(): Promise<void> {
    this.isClosing = true;
    this.forgetAlarm?.();
    this.forgetCalm?.();
    this.letClockGo();
    for (const { hand } of this.lanes)
      for (const item of hand.splice(0)) this.track(this.saved(item).then(() => this.release(item)));
    for (const item of this.items.values()) item.cancel();
    for (const wake of this.waiting) wake();
    let limit: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      limit = setTimeout(resolve, closeLimit).unref();
    });
    const landed = new Promise<void>((resolve) => {
      this.landed = resolve;
      if (this.underWay === 0) resolve();
    });
    await Promise.race([landed, late]);
    handOver.concludeAll();
    await Promise.race([this.recorder.flush(), late]);
    clearTimeout(limit);
    for (const message of this.messages.values()) message.attachment = undefined;
    if (this.memory.latest === this) this.memory.latest = undefined;
  }

  /** Items lie in the store from there on, and not in memory: an earlier start may have accepted them. */
  offer(lane: number, due: Buffer): void {
    this.lanes[lane]?.expect(due);
    if (lane === heldLane) this.expectHeld();
    this.pump();
  }

  /** Resolves when the acceptance of the item is saved, or was refused. */
  private async saved({ arrival }: QueueItem<I, O, E>): Promise<void> {
    await this.memory.saving.get(arrival.toString('latin1'))?.catch(() => undefined);
  }

  private added(given: MessageItems<O>, item: I, found?: Found<I, O, E>): QueueItem<I, O, E> {
    const message = this.messages.get(given.name) ?? given;
    const added = this.itemOf(message, item, found);
    this.items.set(added.id, added);
    message.users += 1;
    this.messages.set(message.name, message);
    return added;
  }

  private itemOf(message: MessageItems<O>, item: I, found?: Found<I, O, E>): QueueItem<I, O, E> {
    return new QueueItem(this.saving, message, item, found);
  }

  /** The item leaves memory: all of it is saved, or gone. */
  private release(item: QueueItem<I, O, E>): void {
    if (!this.forget(item) || item.isGone) return;
    if (item.isParked) {
      this.pump();
      return;
    }
    this.memory.latest?.offer(item.lane, item.due);
  }

  private forget(item: QueueItem<I, O, E>): boolean {
    if (this.items.get(item.id) !== item) return false;
    this.items.delete(item.id);
    for (const left of this.reads) left.add(item.id);
    const { message } = item;
    message.users -= 1;
    if (message.users > 0) return true;
    this.messages.delete(message.name);
    for (const left of this.reads) left.add(message.name);
    return true;
  }

  /** Resolves when the message is saved, with its items as they are by then. */
  private save(
    message: MessageItems<O>,
    items: readonly QueueItem<I, O, E>[],
    onRecord: (() => void) | undefined,
  ): Promise<void> {
    this.recorder.makeRoom(message.bytes);
    return together(() => {
      onRecord?.();
      for (const item of items) void this.changed(item);
      return this.recorder.changed(message);
    });
  }

  /** Writes a long list in parts; its items are not in memory. */
  private saveLong(message: MessageItems<O>, { items, onRecord, count }: Batch<I, O>): Promise<void> {
    const { arrival } = message;
    const lane = laneFor(count);
    const write = async (): Promise<void> => {
      await this.store.write(message.operations());
      for (let from = 0; from < items.length; from += writtenAtOnce) {
        // Other messages have their turn between the parts of a long list.
        await nextTick();
        await this.store.write(
          items.slice(from, from + writtenAtOnce).flatMap((item): Operation[] => [
            { table: records, put: this.keys.item(arrival, item.index), value: { state: 'accepted', item } },
            { table: timetable, put: this.keys.due(lane, 0, arrival, item.index), value: 0 },
          ]),
        );
      }
    };
    return this.recorder.longList(items.length * bytesPerItem, write).then(
      () =>
        together(() => {
          onRecord?.();
          message.complete();
          return this.recorder.changed(message);
        }),
      (fault: unknown) => {
        // It is refused: the node that it came from must not keep it for ever.
        if (!this.isClosing && !(fault instanceof TakenOver)) onRecord?.();
        throw fault;
      },
    );
  }

  /** A long list is saved: its items have their turn. */
  private expect({ arrival }: MessageItems<O>, { items, count }: Batch<I, O>): void {
    const lane = laneFor(count);
    this.memory.latest?.offer(lane, this.keys.due(lane, 0, arrival, items[0]?.index ?? 0));
  }

  /** Lets the items of a message leave that is not saved; in doubt, another process may carry them out. */
  private refuse(message: MessageItems<O>, items: readonly I[], reason: 'refused' | 'taken_over'): void {
    for (const item of items)
      this.track(
        (async () => {
          const outcome = await this.host.outcomeFor(this.itemOf(message, item), reason);
          const counts = message.countEmitted(item, this.host.kindsOf(outcome));
          const isLast = message.remaining === 0;
          const toEmit = { outcome, repeated: false, counts, isLast, mark: () => undefined };
          await this.host.emit(message, item, toEmit);
        })(),
      );
  }

  /** A close waits for the work; `ended` is called when it has ended, also in a fault. */
  private track(work: Promise<unknown>, ended?: () => void): void {
    this.underWay += 1;
    const land = (): void => {
      this.underWay -= 1;
      ended?.();
      if (this.underWay === 0) this.landed?.();
    };
    work.then(land, (fault: unknown) => {
      land();
      this.host.fault(fault);
    });
  }

  /** Counts an item that ends: its outcome takes up memory until it has left. */
  private trackEnd(work: Promise<void>): void {
    this.ending += 1;
    this.track(work, () => {
      this.ending -= 1;
      if (this.ending === mostEnding - 1) this.pump();
    });
  }

  /** Resolves when the steps of the item are saved. */
  private changed(item: QueueItem<I, O, E>): Promise<void> {
    return this.recorder.changed(item);
  }

  private pump(): void {
    if (!this.isStarted || this.isClosing) return;
    const most = this.careful.isOn ? 1 : 2 * this.options.width;
    while (this.active < most && this.ending < mostEnding) {
      const item = this.nextAtHand();
      if (!item) break;
      this.take(item);
    }
    if (this.ending < mostEnding)
      for (const lane of this.lanes)
        if (lane.hasMore && !lane.isReading && lane.hand.length < mostAtHand / 4)
          this.track(this.readLane(lane));
    const { held } = this;
    if (held.hand.length === 0 && !held.isReading && !held.hasMore) this.letClockGo();
    for (const wake of this.waiting) wake();
  }

  /** Lanes take turns. */
  private nextAtHand(): QueueItem<I, O, E> | undefined {
    for (const _ of this.lanes) {
      const lane = this.lanes[this.nextLane];
      this.nextLane = (this.nextLane + 1) % this.lanes.length;
      const item = lane?.hand.shift();
      if (item) return item;
    }
    return undefined;
  }

  /** Brings the next items of a lane to hand. */
  private async readLane(lane: Lane<QueueItem<I, O, E>>): Promise<void> {
    lane.isReading = true;
    // What is saved during the read may miss this page: `expect` sets this again.
    lane.hasMore = false;
    const { from, prefix } = lane;
    const to = lane === this.held ? key(prefix, this.options.clock.now() + 1) : endOf(prefix);
    try {
      const read = await this.reading(async (left) => {
        const range = { from, to, limit: readAtOnce };
        const isBefore = Buffer.compare(from, to) < 0;
        const found = isBefore ? await this.store.keys(timetable, range) : [];
        const last = found.at(-1);
        if (found.length === readAtOnce) lane.hasMore = true;
        if (lane === this.held && !lane.hasMore && isBefore) lane.readTo(to);
        else lane.readTo(last ? nextKey(last) : from);
        return Promise.all(found.map((due) => this.read(due, lane.number, left)));
      });
      for (const item of read)
        if (item && this.isClosing) this.release(item);
        else if (item) lane.hand.push(item);
    } finally {
      lane.isReading = false;
    }
    if (lane === this.held) this.expectHeld();
    this.pump();
  }

  /** Reads with a set of the ids of the items that leave memory meanwhile: they may be read in an old state. */
  private async reading<T>(read: (left: Set<string>) => Promise<T>): Promise<T> {
    const left = new Set<string>();
    this.reads.add(left);
    try {
      return await read(left);
    } finally {
      this.reads.delete(left);
    }
  }

  /** The item that an entry of the timetable names; undefined when it is in memory, not meant, or not there. */
  private async read(
    due: Buffer,
    lane: number,
    left: Set<string>,
    isMeant: (record: ItemRecord<I, O, E>, arrival: Buffer) => boolean = () => true,
  ): Promise<QueueItem<I, O, E> | undefined> {
    const { arrival, index } = itemAt(due);
    const id = idOf(arrival, index);
    const isElsewhere = (): boolean => this.items.has(id) || left.has(id);
    // A list that is being saved is expected once it is complete.
    if (isElsewhere() || this.memory.saving.has(arrival.toString('latin1'))) return undefined;
    const at = this.keys.item(arrival, index);
    const found = (await this.store.get<ItemRecord<I, O, E>>(records, at))?.value;
    if (found && !isMeant(found, arrival)) return undefined;
    const isLost = !found && (await this.store.hasLost(records, at, nextKey(at)));
    const message = found?.single
      ? MessageItems.ofSingle<O>(this.keys, arrival, found.single)
      : found || isLost
        ? await this.messageAt(arrival)
        : undefined;
    const isListLost = found && !message && (await this.isListLost(arrival));
    if (isElsewhere()) return undefined;
    if (message && !this.messages.has(message.name) && left.delete(message.name))
      return this.read(due, lane, left, isMeant);
    if (
      message ? !message.record.isComplete && message.record.startId !== this.startId : !isLost && !isListLost
    ) {
      this.drop(at, due);
      return undefined;
    }
    if (message && !message.record.isComplete) return undefined;
    const isKnown = found && (message ?? found.outcome !== undefined);
    const record = isKnown ? found : { state: 'started' as const, item: found?.item ?? ({ index } as I) };
    return this.added(message ?? this.unknownMessage(arrival), record.item, { record, due, lane });
  }

  private async messageAt(arrival: Buffer): Promise<MessageItems<O> | undefined> {
    const name = this.keys.list(arrival).toString('latin1');
    const known = this.messages.get(name);
    if (known) return known;
    const found = await MessageItems.ofList<O>(this.store, this.keys, arrival);
    return this.messages.get(name) ?? found;
  }

  private isListLost(arrival: Buffer): Promise<boolean> {
    const at = this.keys.list(arrival);
    return this.store.hasLost(records, at, nextKey(at));
  }

  /** In the place of what cannot be read any more. */
  private unknownMessage(arrival: Buffer): MessageItems<O> {
    const { space, type } = this.options;
    return MessageItems.ofSingle<O>(this.keys, arrival, {
      at: 0,
      space,
      type,
      startId: '',
      // All that a node reads of it is optional but the advisor.
      shared: { advisor: '' } as O,
      count: 1,
    });
  }

  /** Removes an entry of the timetable that leads nowhere, and what was never accepted. */
  private drop(item: Buffer, due: Buffer): void {
    this.writeAside([
      { table: records, remove: item },
      { table: timetable, remove: due },
    ]);
  }

  /** Whether the node has closed during a wait. */
  private hasClosed(): boolean {
    return this.isClosing;
  }

  private writeAside(operations: readonly Operation[]): void {
    // A close waits for it: the next start of the node relies on it.
    this.track(this.store.write(operations));
  }

  /** It is the item's turn, once its message is in memory. */
  private take(item: QueueItem<I, O, E>): void {
    const loading = item.message.load(this.store);
    if (!loading) {
      this.turn(item);
      return;
    }
    this.active += 1;
    this.track(
      loading.then(() => {
        if (this.isClosing) this.release(item);
        else this.turn(item);
      }),
      () => {
        this.active -= 1;
        this.pump();
      },
    );
  }

  private turn(item: QueueItem<I, O, E>): void {
    const reason = item.isFinished ? undefined : this.reasonNotTo(item);
    if (item.isFinished) this.trackEnd(this.emitAgain(item));
    else if (reason) this.endWithout(reason, item);
    else {
      this.active += 1;
      this.track(this.carryOut(item));
    }
  }

  private reasonNotTo({ message, item, state, notBefore }: QueueItem<I, O, E>): Reason | undefined {
    const { record, arrival } = message;
    const { space, type, clock, resumeWithin } = this.options;
    const isHeld = notBefore !== undefined && notBefore > clock.now();
    const isPatient = this.isPatient({ message });
    if (state === 'started') return 'unknown';
    if (!isHeld && !isPatient && this.store.peers?.isInDoubt(record.at)) return 'unknown';
    if (!isPatient && this.careful.isSuspect(this.nameOf(arrival, item))) return 'crashes';
    if (record.type !== type) return 'retyped';
    if (record.space !== space) return 'moved';
    if (this.cancels.isMeant(arrival, item)) return 'reset';
    if (record.startId === this.startId || isPatient) return undefined;
    const age = notBefore === undefined ? this.store.now() - record.at : clock.now() - notBefore;
    return age > resumeWithin ? 'stale' : undefined;
  }

  private isPatient({ message }: Pick<QueueItem<I, O, E>, 'message'>): boolean {
    return this.options.isPatient?.(message.record.shared) ?? false;
  }

  /** Unique in the store. */
  private nameOf(arrival: Buffer, { index }: I): string {
    return `${this.options.node} ${arrival.toString('hex')} ${index}`;
  }

  private async carryOut(item: QueueItem<I, O, E>): Promise<void> {
    const release = this.keepClockStill();
    item.take(release);
    let outcome: E | undefined;
    let held: Held | Parked | undefined;
    try {
      // Work that is only parked brings no process down.
      outcome = await (this.careful.isOn && !this.isPatient(item)
        ? this.careful.turn(this.nameOf(item.arrival, item.item), () => this.host.work(item))
        : this.host.work(item));
    } catch (thrown) {
      if (!(thrown instanceof Held || thrown instanceof Parked)) throw thrown;
      held = thrown;
    } finally {
      release();
      this.active -= 1;
    }
    const settle = item.putDown();
    let step: Promise<void> | undefined;
    // An outcome is saved also while the node closes.
    if (outcome !== undefined) this.trackEnd(this.finish(item, outcome));
    else if (held && item.isReset) {
      if (held instanceof Parked) held.settled();
      this.endWithout('reset', item);
    } else if (held instanceof Parked) step = this.park(item, held);
    else if (held) step = this.hold(item, held);
    else {
      if (item.state === 'started') item.set('accepted');
      step = this.changed(item).then(() => this.release(item));
    }
    if (settle) this.changed(item).then(settle, settle);
    this.pump();
    await step;
    this.pump();
  }

  /**
   * Keeps a simulator's clock, which can be moved, still until the item has started; from then on its request does.
   * Otherwise a text that waited for its hours would find them over. An item that itself waits for the clock must not
   * keep it still for ever.
   */
  private keepClockStill(): () => void {
    const release = this.options.clock.keepStill?.();
    if (!release) return () => undefined;
    let left = clockTicks.count;
    const tick = (): void => {
      if (left-- > 0) limit = setTimeout(tick, clockTicks.ms).unref();
      else release();
    };
    let limit = setTimeout(tick, clockTicks.ms).unref();
    return () => {
      clearTimeout(limit);
      release();
    };
  }

  private letClockGo(): void {
    this.still?.();
    this.still = undefined;
  }

  private endWithout(reason: Reason, item: QueueItem<I, O, E>): void {
    if (item.isEnding) return;
    item.isEnding = true;
    this.trackEnd(this.host.outcomeFor(item, reason).then((outcome) => this.finish(item, outcome)));
  }

  /** Saves the outcome; then lets it leave. */
  private async finish(item: QueueItem<I, O, E>, outcome: E): Promise<void> {
    await this.saveOutcome(item, outcome);
    await this.emit(item, outcome, false);
  }

  private saveOutcome(item: QueueItem<I, O, E>, outcome: E): Promise<void> {
    const wasParked = item.isParked;
    if (wasParked) this.parkedCount -= 1;
    item.set(this.isClosing ? 'finished' : 'emitting', outcome);
    if (wasParked) this.host.changed?.();
    return this.changed(item);
  }

  /** Resolves when the outcome is saved, and does not wait until it has left. */
  private async conclude(item: QueueItem<I, O, E>, outcome: E): Promise<void> {
    await this.saveOutcome(item, outcome);
    this.trackEnd(this.emit(item, outcome, false));
  }

  /** Emits an outcome that was saved. One that was certainly not emitted is first saved as perhaps emitted. */
  private async emitAgain(item: QueueItem<I, O, E>): Promise<void> {
    const outcome = item.outcome as E;
    if (item.state === 'finished') await this.finish(item, outcome);
    else await this.emit(item, outcome, true);
  }

  private async emit(item: QueueItem<I, O, E>, outcome: E, repeated: boolean): Promise<void> {
    const { message } = item;
    if (this.isClosing) return this.keepFinished(item, outcome);
    const kinds = this.host.kindsOf(outcome);
    const counts = message.countEmitted(item.item, kinds);
    let offer: string | undefined;
    const hasArrived = await this.host.emit(message, item.item, {
      outcome,
      repeated,
      counts,
      isLast: message.remaining === 0,
      mark: (msg) => {
        offer = handOver.offer(msg, () => this.emitted(item, kinds), offer);
      },
    });
    if (offer !== undefined && hasArrived) handOver.arrived(offer);
    else if (hasArrived) this.emitted(item, kinds);
    else {
      if (offer !== undefined) handOver.withdraw(offer);
      message.uncountEmitted(item.item, kinds);
      await this.keepFinished(item, outcome);
    }
  }

  private emitted(item: QueueItem<I, O, E>, kinds: readonly string[]): void {
    const { message } = item;
    item.remove();
    message.countSaved(item.item, kinds);
    void this.recorder.changed(message);
    this.changed(item).then(
      () => {
        this.release(item);
        this.pump();
      },
      (fault: unknown) => {
        this.release(item);
        this.host.fault(fault);
      },
    );
  }

  private async keepFinished(item: QueueItem<I, O, E>, outcome: E): Promise<void> {
    item.set('finished', outcome);
    await this.changed(item);
    this.release(item);
  }

  private async hold(item: QueueItem<I, O, E>, { notBefore, delays }: Held): Promise<void> {
    const release = this.keepClockStill();
    item.hold(notBefore, delays);
    if (!this.hasHome) item.inNextCommit.push(this.putHome());
    this.hasHome = true;
    await this.changed(item).catch(released(release));
    // What was cancelled meanwhile was not found among those held.
    if (this.cancels.isMeant(item.arrival, item.item)) this.endWithout('reset', item);
    else if (item.isToRecheck && !this.isClosing) this.held.hand.push(item);
    else this.release(item);
    release();
  }

  /** From now on, only `end` and a cancellation end the item. */
  private async park(item: QueueItem<I, O, E>, { operations, settled }: Parked): Promise<void> {
    item.park();
    item.inNextCommit.push(...operations);
    if (!this.hasHome) item.inNextCommit.push(this.putHome());
    this.hasHome = true;
    this.parkedCount += 1;
    this.host.changed?.();
    await this.changed(item).finally(settled);
    if (!item.isParked || item.isEnding) return;
    if (this.cancels.isMeant(item.arrival, item.item)) this.endWithout('reset', item);
    else this.release(item);
  }

  /**
   * Ends a parked item, and writes `removals` with its outcome; resolves when that is saved. An item that has ended in
   * another way is not ended again.
   */
  async end(arrival: Buffer, index: number, outcome: E, removals: readonly Operation[]): Promise<void> {
    const item = await this.takeParked(arrival, index);
    if (this.hasClosed()) {
      if (item) this.forget(item);
      return;
    }
    if (!item) {
      await this.store.write(removals);
      return;
    }
    item.inNextCommit.push(...removals);
    // A cancellation that came before takes precedence.
    if (this.cancels.isMeant(arrival, item.item)) this.endWithout('reset', item);
    else await this.conclude(item, outcome);
  }

  /** Ends a parked item as cancelled; false when there is none. */
  async cancelParked(arrival: Buffer, index: number): Promise<boolean> {
    const item = await this.takeParked(arrival, index);
    if (item) this.endWithout('reset', item);
    return item !== undefined;
  }

  /** Parked items: all, or those for these numbers. */
  async *parked(phones?: readonly string[]): AsyncGenerator<AcceptedItem<I, O>> {
    for await (const [arrival, index] of this.parkedAt(phones ? { phones } : {})) {
      const found = await this.parkedItem(itemName(this.options.node, arrival, index));
      if (found) yield found;
    }
  }

  /** A parked item by its name outside the queue; undefined when there is none. */
  async parkedItem(name: Buffer): Promise<AcceptedItem<I, O> | undefined> {
    const { arrival, index } = itemIn(name);
    const found = await this.reading((left) => this.findParked(arrival, index, left));
    return found && this.itemOf(found.message, found.record.item);
  }

  /** The number of parked items. */
  get waitingCount(): number {
    return this.parkedCount;
  }

  /** Resolves when what was accepted before is parked, where it is to be. */
  async settled(): Promise<void> {
    await this.whenSaved();
    const isOpen = ({ isFinished, isGone, lane }: QueueItem<I, O, E>): boolean =>
      !isFinished && !isGone && lane !== heldLane;
    const isBusy = (lane: Lane<QueueItem<I, O, E>>): boolean =>
      lane !== this.held && (lane.hasMore || lane.isReading);
    while (!this.isClosing && (this.lanes.some(isBusy) || [...this.items.values()].some(isOpen)))
      await this.someLeft();
  }

  /** Resolves when everything that was accepted before is saved, or was refused. */
  async whenSaved(): Promise<void> {
    await Promise.allSettled(this.memory.saving.values());
  }

  private async *parkedAt({ phones, list, index }: CancelRecord): AsyncGenerator<readonly [Buffer, number]> {
    const { allParked, parkedOf } = this.keys;
    if (list && index !== undefined) yield [list, index];
    else if (phones) for (const phone of new Set(phones)) yield* this.numbered(phone);
    else
      for await (const at of this.keysUnder(records, list ? parkedOf(list) : allParked)) {
        const { arrival, index: place } = itemAt(at);
        yield [arrival, place];
      }
  }

  /** The items of this node that are parked or held for a number. */
  private async *numbered(phone: string): AsyncGenerator<readonly [Buffer, number]> {
    const { node, space } = this.options;
    const prefix = numbersOf(this.store, space, phone);
    for await (const at of this.keysUnder(timetable, prefix)) {
      const named = numberedIn(at, prefix);
      if (named.node === node) yield [named.arrival, named.index];
    }
  }

  private async *keysUnder(table: Table, prefix: Buffer): AsyncGenerator<Buffer> {
    for (let last: Buffer | undefined; !this.isClosing;) {
      const found = await this.store.keys(table, { ...after(prefix, last), limit: readAtOnce });
      yield* found;
      last = found.at(-1);
      if (!last || found.length < readAtOnce) return;
      // Reads may be answered at once: others have their turn between two pages.
      await nextTick();
    }
  }

  /** Brings a parked item into memory, with its message; undefined when there is none. */
  private async takeParked(arrival: Buffer, index: number): Promise<QueueItem<I, O, E> | undefined> {
    const known = this.items.get(idOf(arrival, index));
    if (known) return known.isParked && !known.isEnding ? known : undefined;
    const found = await this.reading((left) => this.findParked(arrival, index, left));
    const isTaken = this.items.has(idOf(arrival, index));
    if (!found || isTaken) return isTaken ? this.takeParked(arrival, index) : undefined;
    const { message, record } = found;
    return this.added(message, record.item, { record });
  }

  private async findParked(
    arrival: Buffer,
    index: number,
    left: Set<string>,
  ): Promise<{ readonly message: MessageItems<O>; readonly record: ItemRecord<I, O, E> } | undefined> {
    const at = this.keys.parked(arrival, index);
    for (;;) {
      const found = (await this.store.get<ItemRecord<I, O, E>>(records, at))?.value;
      if (!found && !(await this.store.hasLost(records, at, nextKey(at)))) return undefined;
      const message =
        (found?.single
          ? MessageItems.ofSingle<O>(this.keys, arrival, found.single)
          : await this.messageAt(arrival)) ?? this.unknownMessage(arrival);
      await message.load(this.store);
      const isOld = left.delete(idOf(arrival, index)) || left.delete(message.name);
      if (!isOld) return { message, record: found ?? { state: 'accepted', item: { index } as I } };
    }
  }

  /** Sets the alarm for the first held item. One search is under way at a time: what comes meanwhile is met by the next. */
  private expectHeld(): void {
    this.searches += 1;
    if (this.searches > 1 || this.isClosing) return;
    // A clock that can be moved must not pass the time of what is held now.
    this.track(this.setAlarm(), this.keepClockStill());
  }

  private async setAlarm(): Promise<void> {
    const { clock } = this.options;
    const to = endOf(this.held.prefix);
    let until: number | undefined;
    let count = 0;
    while (this.searches > 0 && !this.isClosing) {
      this.searches = 1;
      const { from } = this.held;
      const [first] = await this.store.keys(timetable, { from, to, limit: 1 });
      until = first && dueAt(first);
      count = first ? await this.store.count(timetable, from, to) : 0;
      this.searches -= 1;
    }
    this.forgetAlarm?.();
    if (until === undefined || this.isClosing) return;
    const wake = (): void => {
      this.still ??= this.keepClockStill();
      // The next alarm is set when they are read.
      this.held.hasMore = true;
      this.pump();
    };
    if (until <= clock.now()) {
      wake();
      return;
    }
    this.forgetAlarm = atTime(clock, until, wake);
    this.host.held(count, until);
  }

  /** Gives the held items of a number their turn. */
  private async recheckNumber(phone: string): Promise<void> {
    for await (const [arrival, index] of this.numbered(phone)) await this.recheckItem(arrival, index);
  }

  private async recheckItem(arrival: Buffer, index: number): Promise<void> {
    const known = this.items.get(idOf(arrival, index));
    if (known) {
      known.isToRecheck = true;
      return;
    }
    const item = await this.reading(async (left) => {
      const at = this.keys.item(arrival, index);
      const found = (await this.store.get<ItemRecord<I, O, E>>(records, at))?.value;
      if (found?.state !== 'accepted' || found.notBefore === undefined) return undefined;
      return this.read(this.keys.due(heldLane, found.notBefore, arrival, index), heldLane, left);
    });
    if (item && (await this.hasRoom())) this.held.hand.push(item);
    else if (item) this.release(item);
    this.pump();
  }

  /** Resolves when there is room for another item; with false when the node closes. */
  private async hasRoom(): Promise<boolean> {
    while (!this.isClosing && (this.ending >= mostEnding || this.held.hand.length >= mostAtHand))
      await this.someLeft();
    return !this.isClosing;
  }

  /** Resolves when something has happened, or the node closes. */
  private someLeft(): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.waiting.delete(wake);
        resolve();
      };
      this.waiting.add(wake);
    });
  }

  private cancelAll(record: CancelRecord, arrival = newArrival(this.store.now())): void {
    this.cancels.add([arrival, record]);
    this.writeAside([{ table: records, put: this.keys.cancel(arrival), value: record }]);
    const isMeant = (each: QueueItem<I, O, E>): boolean => this.cancels.isMeant(each.arrival, each.item);
    for (const lane of this.lanes) {
      const cancelled = lane.hand.filter((each) => !each.isFinished && isMeant(each));
      lane.hand.splice(0, Infinity, ...lane.hand.filter((each) => !cancelled.includes(each)));
      for (const item of cancelled) this.endWithout('reset', item);
    }
    for (const item of this.items.values()) if (isMeant(item)) item.cancel(byReset);
    if (this.isStarted) this.cancelSaved();
    this.pump();
  }

  /** Ends what cancellations are for. One pass is under way at a time: what comes meanwhile is met by the next. */
  private cancelSaved(): void {
    if (this.isCancelling) return;
    this.isCancelling = true;
    this.track(
      this.cancelPasses().finally(() => {
        this.isCancelling = false;
      }),
    );
  }

  private async cancelPasses(): Promise<void> {
    while (!this.cancels.isEmpty && !this.isClosing) {
      const met = this.cancels.all;
      await this.whenSaved();
      const cancels = new Cancels(...met);
      for (const lane of this.lanes)
        await this.endSaved(
          lane,
          ({ state, item }, arrival) => state === 'accepted' && cancels.isMeant(arrival, item),
        );
      for (const [, record] of met)
        for await (const [arrival, index] of this.parkedAt(record))
          await this.endParked(arrival, index, (item) => cancels.isMeant(arrival, item.item));
      // What is in memory meets the cancellation as it ends.
      const isMeant = (each: QueueItem<I, O, E>): boolean =>
        !each.isFinished && !each.isGone && cancels.isMeant(each.arrival, each.item);
      while (!this.hasClosed() && [...this.items.values()].some(isMeant)) await this.someLeft();
      // The ends are saved before their cancellation is forgotten.
      await this.recorder.flush();
      if (this.hasClosed()) return;
      await this.store.write(
        met.map(([arrival]): Operation => ({ table: records, remove: this.keys.cancel(arrival) })),
      );
      this.cancels.forget(met);
    }
  }

  /** What was accepted for another service, or by a node of another type, does not stay until its time comes. */
  private async moveHome(): Promise<void> {
    const isForeign = (item: QueueItem<I, O, E>): boolean => this.reasonNotTo(item) !== undefined;
    await this.endSaved(this.held, () => true, isForeign);
    for await (const [arrival, index] of this.parkedAt({})) await this.endParked(arrival, index, isForeign);
    if (!this.isClosing) await this.store.write([this.putHome()]);
  }

  private get home(): string {
    return `${this.options.type} ${this.options.space}`;
  }

  private putHome(): Operation {
    return { table: records, put: this.keys.home, value: this.home };
  }

  private async endParked(
    arrival: Buffer,
    index: number,
    isMeant: (item: QueueItem<I, O, E>) => boolean,
  ): Promise<void> {
    if (!(await this.hasRoom())) return;
    const item = await this.takeParked(arrival, index);
    const reason = item && isMeant(item) && this.reasonNotTo(item);
    if (item && reason) this.endWithout(reason, item);
    else if (item) this.forget(item);
  }

  /** Gives those items of a lane their turn that are meant. */
  private async endSaved(
    { number, prefix }: Lane<QueueItem<I, O, E>>,
    isMeant: (record: ItemRecord<I, O, E>, arrival: Buffer) => boolean,
    isEnded: (item: QueueItem<I, O, E>) => boolean = () => true,
  ): Promise<void> {
    for (let last: Buffer | undefined; !this.isClosing;) {
      const found = await this.reading(async (left) => {
        const dues = await this.store.keys(timetable, { ...after(prefix, last), limit: readAtOnce });
        return { dues, items: await Promise.all(dues.map((due) => this.read(due, number, left, isMeant))) };
      });
      for (const item of found.items) {
        if (!item) continue;
        const hasRoom = await this.hasRoom();
        await item.message.load(this.store);
        if (!hasRoom || this.hasClosed() || !isEnded(item)) this.release(item);
        // Damage may hide what it is for.
        else this.turn(item);
      }
      last = found.dues.at(-1);
      if (!last || found.dues.length < readAtOnce) return;
      // Reads may be answered at once: others have their turn between two pages.
      await nextTick();
    }
  }

  private async readCancels(): Promise<void> {
    for (let last: Buffer | undefined; ;) {
      const range = { ...after(this.keys.cancels, last), limit: readAtOnce };
      const found = await this.store.page<CancelRecord>(records, range);
      this.cancels.add(...found.map(({ key: at, value }) => [arrivalIn(at), value] as const));
      last = found.at(-1)?.key;
      if (!last) return;
    }
  }

  /** Removes the parts of long lists that were never accepted: an earlier start was broken off. */
  private async dropUnaccepted(): Promise<void> {
    const { lists, list, itemsOf, message } = this.keys;
    for (let last: Buffer | undefined; !this.isClosing;) {
      const range = { ...after(lists, last), limit: readAtOnce };
      const found = await this.store.page<ListRecord<O>>(records, range);
      for (const entry of found) {
        const arrival = arrivalIn(entry.key);
        const { isComplete, startId } = entry.value;
        const isOwn = startId === this.startId || this.memory.saving.has(arrival.toString('latin1'));
        if (isComplete || isOwn) continue;
        // An earlier start may have completed it during the read.
        const removed = (keys: readonly Buffer[]): Promise<boolean> =>
          this.store.write(
            keys.map((remove): Operation => ({ table: records, remove })),
            [unchanged(records, entry.key, entry)],
          );
        const items = { ...after(itemsOf(arrival), undefined), limit: writtenAtOnce };
        let keys = await this.store.keys(records, items);
        // Their entries in the timetable are dropped as they are met.
        while (keys.length > 0 && (await removed(keys))) keys = await this.store.keys(records, items);
        await removed([message(arrival), list(arrival)]);
      }
      last = found.at(-1)?.key;
      if (!last || found.length < readAtOnce) return;
    }
  }

  /** Writes the timetable anew where entries of it were lost, as after damage. */
  private async restoreTimetable(): Promise<void> {
    const { dues, items, due } = this.keys;
    if (!(await this.store.hasLost(timetable, dues, endOf(dues)))) return;
    for (let last: Buffer | undefined; !this.isClosing;) {
      const range = { ...after(items, last), limit: readAtOnce };
      const found = await this.store.page<ItemRecord<I, O, E>>(records, range);
      await this.store.write(
        found.map(({ key: at, value: { state, notBefore } }): Operation => {
          const { arrival, index } = itemAt(at);
          const isHeld = state === 'accepted' && notBefore !== undefined;
          const put = isHeld ? due(heldLane, notBefore, arrival, index) : due(0, 0, arrival, index);
          return { table: timetable, put, value: 0 };
        }),
      );
      last = found.at(-1)?.key;
      if (!last || found.length < readAtOnce) return;
    }
  }
}
