import { randomBytes } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';
import { minute, second } from '../durations';
import { atTime, closeLimit, type Clock } from '../service/clock';
import { endOf, key, nextKey, TakenOver, type Operation, type Store, type Table } from '../state/store';
import { Cancels } from './cancels';
import { carefulTurnsOf, type CarefulTurns } from './careful-turns';
import { handOver } from './hand-over';
import { MessageItems, type Batch, type OutboxItem } from './message-items';
import {
  byReset,
  DelayedLane,
  heldLane,
  idOf,
  isResetBy,
  isWaitLane,
  Lane,
  laneFor,
  laterLane,
  memoryOf,
  QueueItem,
  type AcceptedItem,
  type Found,
  type InMemory,
  type ItemSaving,
  type ItemTurn,
} from './queue-item';
import { QueueReader } from './queue-reader';
import { dropUnaccepted, restoreTimetable } from './repairs';
import { recorderOf, together, type Recorder } from './recorder';
import {
  after,
  arrivalAt,
  arrivalIn,
  dueAt,
  itemAt,
  indexedIn,
  indexKeysOf,
  indexOf,
  keysOf,
  laneIn,
  newArrival,
  records,
  timetable,
  type CancelRecord,
  type Counts,
  type ItemRecord,
  type QueueKeys,
  type Seen,
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
    /** For a wait: the status that was seen, where it is new. */
    readonly seen?: Seen,
  ) {
    super('held');
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
   * * From an item to its outcome; throws `Held` and nothing else. Undefined when a close interrupted the work: the
   * item stays saved as not started.
   */
  work(turn: ItemTurn<I, O>): Promise<E | undefined>;
  /** The outcome of an item that ends without its work. */
  outcomeFor(accepted: ItemTurn<I, O>, reason: Reason): Promise<E>;
  /** Lets an outcome leave, its duplicates with it. False when it did not arrive, because this node is closing. */
  emit(message: MessageItems<O>, item: I, toEmit: OutcomeToEmit<E>): Promise<boolean>;
  /** The kinds under which an outcome is counted. */
  kindsOf(outcome: E): readonly string[];
  /** Called when the number of waits has changed. */
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
  readonly waits?: WaitOptions<O>;
}

/** For a node whose items may be waits: they have a turn again and again, at any age, and never start. */
export interface WaitOptions<O> {
  /** The clock by which they are due. */
  readonly clock: Clock;
  /** Milliseconds to the next turn, at most; undefined where the items of a message are no waits. */
  readonly longestPause: (shared: O) => number | undefined;
}

/** Thrown when too much waits for a store that is slow, full, unavailable or owned by another process. */
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
/** Milliseconds: so a clock that was set is noticed. */
const longestSleep = minute;
/** Milliseconds after which a read that failed is made again. */
const retriedAfter = second;

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
  private readonly held: DelayedLane<QueueItem<I, O, E>>;
  private readonly later: DelayedLane<QueueItem<I, O, E>>;
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
  /** The type and the space that held items and waits belong to are saved. */
  private hasHome = false;
  /** Passes that wait for room. */
  private readonly waiting = new Set<() => void>();
  private landed: (() => void) | undefined;
  private losses: number | undefined;
  private forgetCalm: (() => void) | undefined;
  /** Waits that have not ended. */
  private openWaits = 0;
  /** What arrived before was accepted by an earlier start. */
  private readonly born: Buffer;
  /** The timer that has moves written, and when it fires. */
  private moving: { readonly at: number; readonly forget: () => void } | undefined;

  constructor(private readonly options: QueueOptions<I, O, E>) {
    const { store, node } = options;
    this.keys = keysOf(node);
    this.store = store;
    this.losses = store.losses;
    this.host = options.host;
    this.recorder = recorderOf(store);
    this.careful = carefulTurnsOf(store);
    const { keys } = this;
    this.born = newArrival(store.now());
    this.held = new DelayedLane(heldLane, keys.lane(heldLane), options.clock);
    this.later = new DelayedLane(laterLane, keys.lane(laterLane), options.waits?.clock ?? options.clock);
    this.lanes = Array.from({ length: laterLane + 1 }, (_, number) => {
      if (number === heldLane) return this.held;
      return number === laterLane ? this.later : new Lane(number, keys.lane(number));
    });
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
    const { waits } = this.keys;
    const home = (await this.store.get<string>(records, this.keys.home))?.value;
    this.hasHome = home !== undefined;
    const countBefore = (): Promise<number> => this.store.count(records, waits, this.keys.waitsOf(this.born));
    let before = await countBefore();
    const isOwn = (startId: string, arrival: Buffer): boolean =>
      startId === this.startId || this.memory.saving.has(arrival.toString('latin1'));
    const dropping = dropUnaccepted(this.store, this.options.node, isOwn);
    if (before > 0) {
      await dropping;
      before = await countBefore();
    } else this.track(dropping);
    this.openWaits += before;
    await restoreTimetable(this.store, this.options.node, before > 0 && !this.hasHome);
    for (const lane of this.lanes) lane.hasMore = false;
    const isAny =
      (await this.store.keys(timetable, { ...after(this.keys.dues, undefined), limit: 1 })).length > 0;
    if (this.openWaits > 0) this.host.changed?.();
    if (this.isClosing) return;
    this.isStarted = true;
    for (const lane of this.lanes) lane.hasMore ||= isAny;
    if (!this.cancels.isEmpty) this.cancelSaved();
    if (this.hasHome && home !== this.home) this.track(this.moveHome());
    this.pump();
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
    const isWait = this.isWait(batch.shared);
    const lane = this.lanes[laneFor(batch.count, isWait)];
    const isAtHand =
      this.isStarted &&
      !this.isClosing &&
      !isLong &&
      message.bytes <= largestAtHand &&
      lane !== undefined &&
      !lane.hasMore &&
      !lane.isReading &&
      lane.hand.length < mostAtHand;
    const items = isLong ? [] : batch.items.map((item) => this.added(message, item, isWait));
    if (isWait) this.openWaits += batch.items.length;
    if (isAtHand) {
      lane.hand.push(...items);
      for (const { due } of items.slice(-1)) lane.readTo(nextKey(due));
    }
    const saved = isLong ? this.saveLong(message, batch) : this.save(message, items, batch.onSaved);
    const name = message.arrival.toString('latin1');
    const saving = saved.finally(() => {
      this.memory.saving.delete(name);
    });
    this.memory.saving.set(name, saving);
    this.track(
      saving.then(
        () => {
          if (isWait) this.host.changed?.();
          if (isLong) this.expect(message, batch);
          else if (!isAtHand) for (const item of items) this.release(item);
        },
        (fault: unknown) => {
          const isTaken = fault instanceof TakenOver;
          // Items at hand meet the same fault as they start, and leave with it; a wait never starts.
          const isLeftToStart = isAtHand && !isWait;
          for (const item of isLeftToStart ? [] : items) {
            item.isEnding = true;
            this.forget(item);
          }
          if (isWait) this.openWaits -= batch.items.length;
          // What came with an outcome of another node is emitted again by the process that took over.
          const isRefused = isTaken ? !batch.onSaved : !isLeftToStart && !this.isClosing;
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
  async cancel(arrival: Buffer, index?: number, isWait = false): Promise<boolean> {
    if (!(await this.reader.isWaiting(arrival, index, isWait))) return false;
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
    this.forgetCalm?.();
    this.moving?.forget();
    for (const lane of [this.held, this.later]) {
      lane.forgetAlarm?.();
      lane.letClockGo();
    }
    for (const { hand } of this.lanes)
      for (const item of hand.splice(0))
        if (!item.isEnding) this.track(this.saved(item).then(() => this.release(item)));
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
    this.recorder.changed(this.memory.moves).catch(() => undefined);
    handOver.concludeAll();
    await Promise.race([this.recorder.flush(), late]);
    clearTimeout(limit);
    for (const message of this.messages.values()) message.attachment = undefined;
    if (this.memory.latest === this) this.memory.latest = undefined;
  }

  /** Items lie in the store from there on, and not in memory: an earlier start may have accepted them. */
  offer(number: number, due: Buffer, moved?: string): void {
    if (moved !== undefined) for (const left of this.reads) left.add(moved);
    this.lanes[number]?.expect(due);
    const delayed = this.delayedLane(number);
    if (delayed) this.expectDue(delayed);
    this.pump();
  }

  /** Another process had the store: what lies there is read again, and not in a hurry. */
  offerLater(due: Buffer): void {
    this.later.clock.after(retriedAfter, () => this.memory.latest?.offer(laneIn(due), due));
  }

  /** Resolves when the acceptance of the item is saved, or was refused. */
  private async saved({ arrival }: QueueItem<I, O, E>): Promise<void> {
    await this.memory.saving.get(arrival.toString('latin1'))?.catch(() => undefined);
  }

  private isWait(shared: O): boolean {
    return this.options.waits?.longestPause(shared) !== undefined;
  }

  private added(
    given: MessageItems<O>,
    item: I,
    isWait: boolean,
    found?: Found<I, O, E>,
  ): QueueItem<I, O, E> {
    const message = this.messages.get(given.name) ?? given;
    const added = new QueueItem(this.saving, message, item, isWait, found);
    this.items.set(added.id, added);
    message.users += 1;
    this.messages.set(message.name, message);
    return added;
  }

  /** The item leaves memory: all of it is saved, or gone. */
  private release(item: QueueItem<I, O, E>): void {
    if (this.forget(item) && !item.isGone && item.hasPlace) this.memory.latest?.offer(item.lane, item.due);
  }

  private forget(item: QueueItem<I, O, E>): boolean {
    if (this.items.get(item.id) !== item) return false;
    this.items.delete(item.id);
    for (const left of this.reads) left.add(item.id);
    if (item.missed) this.memory.latest?.offer(item.missed.lane, item.missed.due);
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
    onSaved: (() => void) | undefined,
  ): Promise<void> {
    this.recorder.makeRoom(message.bytes);
    return together(() => {
      onSaved?.();
      for (const item of items) void this.changed(item);
      return this.recorder.changed(message);
    });
  }

  /** Writes a long list in parts; its items are not in memory. */
  private saveLong(message: MessageItems<O>, { items, onSaved, count }: Batch<I, O>): Promise<void> {
    const { arrival, record } = message;
    const isWait = this.isWait(record.shared);
    const lane = laneFor(count, isWait);
    const at = isWait ? this.keys.wait : this.keys.item;
    const indexKeys = (item: I): readonly Buffer[] =>
      isWait ? indexKeysOf(this.store, this.options.node, record, arrival, item, isWait, undefined) : [];
    const write = async (): Promise<void> => {
      await this.store.write(message.operations());
      for (let from = 0; from < items.length; from += writtenAtOnce) {
        // Other messages have their turn between the parts of a long list.
        await nextTick();
        await this.store.write(
          items
            .slice(from, from + writtenAtOnce)
            .flatMap((item): Operation[] => [
              { table: records, put: at(arrival, item.index), value: { state: 'accepted', item } },
              { table: timetable, put: this.keys.due(lane, 0, arrival, item.index), value: 0 },
              ...indexKeys(item).map((put) => ({ table: timetable, put, value: 0 })),
            ]),
        );
      }
    };
    return this.recorder.longList(items.length * bytesPerItem, write).then(
      () =>
        together(() => {
          onSaved?.();
          message.complete();
          return this.recorder.changed(message);
        }),
      (fault: unknown) => {
        // It is refused: the node that it came from must not keep it forever.
        if (!this.isClosing && !(fault instanceof TakenOver)) onSaved?.();
        throw fault;
      },
    );
  }

  /** A long list is saved: its items have their turn. */
  private expect({ arrival }: MessageItems<O>, { items, count, shared }: Batch<I, O>): void {
    const lane = laneFor(count, this.isWait(shared));
    this.memory.latest?.offer(lane, this.keys.due(lane, 0, arrival, items[0]?.index ?? 0));
  }

  /** Lets the items of a message leave that is not saved; in doubt, another process may carry them out. */
  private refuse(message: MessageItems<O>, items: readonly I[], reason: 'refused' | 'taken_over'): void {
    for (const item of items)
      this.track(
        (async () => {
          const isWait = this.isWait(message.record.shared);
          const outcome = await this.host.outcomeFor(
            new QueueItem(this.saving, message, item, isWait),
            reason,
          );
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
    if (!item.isOutdated) return this.recorder.changed(item);
    this.forget(item);
    this.startOver();
    return Promise.reject(new TakenOver(false));
  }

  /** Another process has had the store: what lies there is read again. */
  private startOver(): void {
    this.losses = this.store.losses;
    for (const lane of this.lanes) {
      for (const item of lane.hand.splice(0))
        if (item.isOutdated) this.forget(item);
        else lane.hand.push(item);
      lane.expect(lane.prefix);
    }
    this.expectDue(this.held);
    this.expectDue(this.later);
  }

  private pump(): void {
    if (!this.isStarted || this.isClosing) return;
    if (this.losses !== this.store.losses) this.startOver();
    while (this.active < this.mostActive && this.ending < mostEnding) {
      const item = this.nextAtHand();
      if (!item) break;
      this.take(item);
    }
    if (this.ending < mostEnding)
      for (const lane of this.lanes)
        if (lane.hasMore && !lane.isReading && lane.hand.length < mostAtHand / 4)
          this.track(this.readLane(lane));
    for (const lane of [this.held, this.later])
      if (lane.hand.length === 0 && !lane.isReading && !lane.hasMore) lane.letClockGo();
    for (const wake of this.waiting) wake();
  }

  private get mostActive(): number {
    return this.careful.isOn ? 1 : 2 * this.options.width;
  }

  /** Lanes take turns. */
  private nextAtHand(): QueueItem<I, O, E> | undefined {
    for (const _ of this.lanes) {
      const lane = this.lanes[this.nextLane];
      this.nextLane = (this.nextLane + 1) % this.lanes.length;
      for (let item = lane?.hand.shift(); item; item = lane?.hand.shift()) if (!item.isEnding) return item;
    }
    return undefined;
  }

  /** Brings the next items of a lane to hand. */
  private async readLane(lane: Lane<QueueItem<I, O, E>>): Promise<void> {
    lane.isReading = true;
    // What is saved during the read may miss this page: `expect` sets this again.
    lane.hasMore = false;
    const { from, prefix } = lane;
    const delayed = this.delayedLane(lane.number);
    const to = delayed ? this.dueUntil(delayed) : endOf(prefix);
    try {
      const read = await this.reading(async (left) => {
        const range = { from, to, limit: readAtOnce };
        const isBefore = Buffer.compare(from, to) < 0;
        const found = isBefore ? await this.store.keys(timetable, range) : [];
        const last = found.at(-1);
        if (found.length === readAtOnce) lane.hasMore = true;
        if (delayed && !lane.hasMore && isBefore) lane.readTo(to);
        else lane.readTo(last ? nextKey(last) : from);
        return Promise.all(found.map((due) => this.read(due, lane.number, left)));
      });
      for (const item of read)
        if (item && this.isClosing) this.release(item);
        else if (item) lane.hand.push(item);
    } catch {
      // The store reports its own problems.
      lane.expect(from);
      this.later.clock.after(retriedAfter, () => {
        this.pump();
      });
      return;
    } finally {
      lane.isReading = false;
    }
    if (delayed) this.expectDue(delayed);
    this.pump();
  }

  private delayedLane(number: number): DelayedLane<QueueItem<I, O, E>> | undefined {
    return [this.held, this.later].find((lane) => lane.number === number);
  }

  /** The end of the range of what is due now. */
  private dueUntil(lane: DelayedLane<QueueItem<I, O, E>>): Buffer {
    const now = key(lane.prefix, lane.clock.now() + 1);
    const { early } = lane;
    lane.early = undefined;
    return early && Buffer.compare(early, now) > 0 ? nextKey(early) : now;
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
    const isElsewhere = (): boolean => {
      const known = this.items.get(id);
      known?.meet(due, lane);
      // It may have had a turn out of turn, or have ended and left this entry behind.
      if (!known && left.has(id) && isWaitLane(lane)) this.lanes[lane]?.expect(due);
      return known !== undefined || left.has(id) || this.memory.moves.has(id);
    };
    // A list that is being saved is expected once it is complete.
    if (isElsewhere() || this.memory.saving.has(arrival.toString('latin1'))) return undefined;
    const isWait = isWaitLane(lane);
    const at = isWait ? this.keys.wait(arrival, index) : this.keys.item(arrival, index);
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
    return this.added(message ?? this.unknownMessage(arrival), record.item, isWait, { record, due, lane });
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

  /** Replaces a message that can no longer be read. */
  private unknownMessage(arrival: Buffer): MessageItems<O> {
    const { space, type } = this.options;
    return MessageItems.ofSingle<O>(this.keys, arrival, {
      at: 0,
      space,
      type,
      startId: '',
      // Everything that a node reads of it is optional, except the advisor.
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
    // A look needs no message.
    const loading = item.isWait ? undefined : item.message.load(this.store);
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

  private reasonNotTo({ message, item, state, notBefore, isWait }: QueueItem<I, O, E>): Reason | undefined {
    const { record, arrival } = message;
    const { space, type, clock, resumeWithin } = this.options;
    const isHeld = notBefore !== undefined && notBefore > clock.now();
    if (state === 'started') return 'unknown';
    if (!isHeld && !isWait && this.store.peers?.isInDoubt(record.at)) return 'unknown';
    if (!isWait && this.careful.isSuspect(this.nameOf(arrival, item))) return 'crashes';
    if (record.type !== type) return 'retyped';
    if (record.space !== space) return 'moved';
    if (this.cancels.isMeant(arrival, item)) return 'reset';
    if (record.startId === this.startId || isWait) return undefined;
    const age = notBefore === undefined ? this.store.now() - record.at : clock.now() - notBefore;
    return age > resumeWithin ? 'stale' : undefined;
  }

  /** Unique in the store. */
  private nameOf(arrival: Buffer, { index }: I): string {
    return `${this.options.node} ${arrival.toString('hex')} ${index}`;
  }

  private async carryOut(item: QueueItem<I, O, E>, isOutOfTurn = false): Promise<void> {
    const release = this.keepClockStill();
    item.take(release, isOutOfTurn);
    let outcome: E | undefined;
    let held: Held | undefined;
    try {
      // A look brings no process down.
      outcome = await (this.careful.isOn && !item.isWait
        ? this.careful.turn(this.nameOf(item.arrival, item.item), () => this.host.work(item))
        : this.host.work(item));
    } catch (thrown) {
      if (!(thrown instanceof Held)) throw thrown;
      held = thrown;
    } finally {
      release();
      this.active -= 1;
    }
    const settle = item.putDown();
    let step: Promise<void> | undefined;
    // An outcome is saved also while the node closes.
    if (item.isEnding) step = undefined;
    else if (outcome !== undefined) this.trackEnd(this.finish(item, outcome));
    else if (item.isReset) this.endWithout('reset', item);
    else if (held && item.isWait) step = this.postpone(item, held);
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
   * * Keeps a simulator's clock, which can be moved, still until the item has started; from then on its request does.
   * Otherwise a text that waited for its hours would find them over. An item that itself waits for the clock must not
   * keep it still forever.
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
    if (!item.isFinished) this.uncount(item);
    item.set(this.isClosing ? 'finished' : 'emitting', outcome);
    return this.changed(item);
  }

  private uncount({ isWait }: QueueItem<I, O, E>): void {
    if (!isWait) return;
    this.openWaits -= 1;
    this.host.changed?.();
  }

  /** Emits an outcome that was saved. One that was certainly not emitted is first saved as perhaps emitted. */
  private async emitAgain(item: QueueItem<I, O, E>): Promise<void> {
    const outcome = item.outcome as E;
    this.uncount(item);
    if (item.state === 'finished') await this.finish(item, outcome);
    else await this.emit(item, outcome, true);
  }

  private async emit(item: QueueItem<I, O, E>, outcome: E, repeated: boolean): Promise<void> {
    const { message } = item;
    const loading = message.load(this.store);
    if (loading) await loading;
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
    if (!item.isOutdated) {
      message.countSaved(item.item, kinds);
      void this.recorder.changed(message);
    }
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
    const lost = this.whenLost(item, release);
    item.hold(notBefore, delays);
    if (!this.hasHome) item.inNextCommit.push(this.putHome());
    this.hasHome = true;
    await this.changed(item).catch(lost);
    // What was cancelled meanwhile was not found among those held.
    if (this.cancels.isMeant(item.arrival, item.item)) this.endWithout('reset', item);
    else if (item.isToRecheck && !this.isClosing) this.held.hand.push(item);
    else this.release(item);
    release();
  }

  /** For an item whose step cannot be saved: it is read again from where it lies. */
  private whenLost(item: QueueItem<I, O, E>, release: () => void): (fault: unknown) => never {
    const place = item.hasPlace ? item.due : undefined;
    return (fault) => {
      release();
      if (this.forget(item) && place) this.offerLater(place);
      throw fault;
    };
  }

  /** A wait has its next turn later. Out of turn, it keeps its place in the timetable. */
  private async postpone(item: QueueItem<I, O, E>, { notBefore, seen }: Held): Promise<void> {
    const { isOutOfTurn } = item;
    const release = this.keepClockStill();
    const lost = this.whenLost(item, release);
    if (seen) item.see(seen);
    if (!isOutOfTurn) item.postpone(notBefore);
    if (!this.hasHome) item.inNextCommit.push(this.putHome());
    const isToSave = item.isToSave || !this.hasHome;
    this.hasHome = true;
    if (isToSave) await this.changed(item).catch(lost);
    // What was cancelled meanwhile met it in work.
    if (item.isEnding) release();
    else if (this.cancels.isMeant(item.arrival, item.item)) this.endWithout('reset', item);
    else if (isToSave) this.release(item);
    else {
      if (!isOutOfTurn) this.move(item);
      this.forget(item);
    }
    release();
  }

  /** Has the move of a wait in the timetable written with others, before a twentieth of its pause has passed. */
  private move(item: QueueItem<I, O, E>): void {
    const { moves } = this.memory;
    const { clock } = this.later;
    moves.add(item.id, item.takeMove());
    this.recorder.ride(moves);
    const write = (): void => {
      this.moving?.forget();
      this.moving = undefined;
      this.track(this.recorder.changed(moves), this.keepClockStill());
    };
    const at = clock.now() + Math.floor((item.dueAt - clock.now()) / 20);
    if (moves.isFull || this.isClosing) write();
    else if (!this.moving || at < this.moving.at) {
      this.moving?.forget();
      this.moving = { at, forget: clock.after(at - clock.now(), write) };
    }
  }

  /** Ends waits, in this order, for which `decide` gives an outcome; resolves when that is saved. */
  async endWaits(
    places: readonly { readonly arrival: Buffer; readonly index: number }[],
    decide: (accepted: AcceptedItem<I, O>) => E | undefined,
  ): Promise<void> {
    // A start has not read the cancellations yet: its waits look for themselves.
    if (!this.isStarted || !(await this.hasRoom())) return;
    const take = ({ arrival, index }: (typeof places)[number]): ReturnType<typeof this.takeWait> =>
      this.takeWait(arrival, index);
    const taken = new Map(
      await Promise.all(places.map(async (place) => [place, await take(place)] as const)),
    );
    // What was in work may have left memory meanwhile.
    const isStale = (place: (typeof places)[number]): boolean => {
      const item = taken.get(place)?.item;
      return item?.isOpenWait === true && this.items.get(item.id) !== item;
    };
    for (let stale = places.find(isStale); stale; stale = places.find(isStale))
      taken.set(stale, await take(stale));
    const saved: Promise<void>[] = [];
    for (const found of taken.values()) {
      const item = found?.item;
      if (!item?.isOpenWait) continue;
      // A cancellation that came before takes precedence.
      const isCancelled = this.cancels.isMeant(item.arrival, item.item);
      const outcome = this.isClosing || isCancelled ? undefined : decide(item);
      if (outcome !== undefined) saved.push(this.conclude(item, outcome));
      else if (isCancelled && !this.isClosing) this.endWithout('reset', item);
      else if (found?.isNew) this.forget(item);
    }
    await Promise.all(saved);
  }

  /** Resolves when the outcome is saved, and does not wait until it has left. */
  private async conclude(item: QueueItem<I, O, E>, outcome: E): Promise<void> {
    item.isEnding = true;
    const saved = this.saveOutcome(item, outcome);
    this.trackEnd(saved.then(() => this.emit(item, outcome, false)));
    await saved;
  }

  /** Gives waits a turn now: all, or those for these numbers. They keep their places in the timetable. */
  async flush(phones?: readonly string[]): Promise<void> {
    await this.whenSaved();
    for await (const [arrival, index] of this.waitsMeant(phones ? { phones } : {}))
      await this.check(arrival, index);
  }

  /** Gives one wait a turn now; false when it has ended. */
  async check(arrival: Buffer, index: number): Promise<boolean> {
    while (!this.isClosing && (!this.isStarted || this.active >= this.mostActive)) await this.someLeft();
    const found = await this.takeWait(arrival, index);
    if (!found?.isNew) return found !== undefined;
    const reason = this.reasonNotTo(found.item);
    if (this.hasClosed()) this.forget(found.item);
    else if (reason) this.endWithout(reason, found.item);
    else {
      this.active += 1;
      this.track(this.carryOut(found.item, true));
    }
    return true;
  }

  /** The waits that have not ended. */
  async *waits(): AsyncGenerator<AcceptedItem<I, O>> {
    for await (const [arrival, index] of this.waitsMeant({})) {
      const known = this.items.get(idOf(arrival, index));
      if (known?.isOpenWait) yield known;
      if (known) continue;
      const found = await this.reading((left) => this.findWait(arrival, index, left));
      if (found)
        yield new QueueItem(this.saving, found.message, found.record.item, true, { record: found.record });
    }
  }

  /** The number of waits that have not ended. */
  get waitCount(): number {
    return this.openWaits;
  }

  /** How late turns of waits are, in milliseconds. */
  get lateBy(): number {
    const now = this.later.clock.now();
    let late = 0;
    for (const { number, hand } of this.lanes) {
      const [first] = isWaitLane(number) ? hand : [];
      if (!first || first.isFinished) continue;
      const { clockAt, at } = first.message.record;
      late = Math.max(late, now - (first.dueAt > 0 ? first.dueAt : (clockAt ?? at)));
    }
    return late;
  }

  /** Resolves when everything that was accepted before is saved, or was refused. */
  async whenSaved(): Promise<void> {
    await Promise.allSettled(this.memory.saving.values());
  }

  /** The waits that a cancellation may be for. */
  private async *waitsMeant({
    phones,
    list,
    index,
  }: CancelRecord): AsyncGenerator<readonly [Buffer, number]> {
    const { waits, waitsOf } = this.keys;
    if (list && index !== undefined) yield [list, index];
    else if (phones) for (const phone of new Set(phones)) yield* this.indexed('number', phone);
    else
      for await (const at of this.keysUnder(records, list ? waitsOf(list) : waits)) {
        const { arrival, index: place } = itemAt(at);
        yield [arrival, place];
      }
  }

  /** The items of this node that wait, or are held, for a number. */
  private async *indexed(kind: 'number' | 'held', phone: string): AsyncGenerator<readonly [Buffer, number]> {
    const { node, space } = this.options;
    for await (const at of this.keysUnder(timetable, indexOf(this.store, kind, space, { phone }))) {
      const found = indexedIn(at);
      if (found.node === node) yield [found.arrival, found.index];
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

  /** Brings a wait into memory, with its message; undefined when there is none. */
  private async takeWait(
    arrival: Buffer,
    index: number,
  ): Promise<{ readonly item: QueueItem<I, O, E>; readonly isNew: boolean } | undefined> {
    const id = idOf(arrival, index);
    const known = this.items.get(id);
    if (known) return known.isOpenWait ? { item: known, isNew: false } : undefined;
    const found = await this.reading((left) => this.findWait(arrival, index, left));
    if (this.items.has(id)) return this.takeWait(arrival, index);
    if (!found) return undefined;
    const { message, record } = found;
    return { item: this.added(message, record.item, true, { record }), isNew: true };
  }

  private async findWait(
    arrival: Buffer,
    index: number,
    left: Set<string>,
  ): Promise<{ readonly message: MessageItems<O>; readonly record: ItemRecord<I, O, E> } | undefined> {
    const at = this.keys.wait(arrival, index);
    for (;;) {
      const found = (await this.store.get<ItemRecord<I, O, E>>(records, at))?.value;
      if (found ? found.state !== 'accepted' : !(await this.store.hasLost(records, at, nextKey(at))))
        return undefined;
      const message =
        (found?.single
          ? MessageItems.ofSingle<O>(this.keys, arrival, found.single)
          : await this.messageAt(arrival)) ?? this.unknownMessage(arrival);
      const isOld = left.delete(idOf(arrival, index)) || left.delete(message.name);
      if (isOld) continue;
      return { message, record: found ?? { state: 'accepted', item: { index } as I } };
    }
  }

  /** Sets the alarm for the first item of a lane. One search is under way at a time: what comes meanwhile is met by the next. */
  private expectDue(lane: DelayedLane<QueueItem<I, O, E>>): void {
    lane.searches += 1;
    if (lane.searches > 1 || this.isClosing) return;
    const retry = (): void => {
      lane.searches = 0;
      if (!this.isClosing) lane.forgetAlarm = lane.clock.after(retriedAfter, () => this.expectDue(lane));
    };
    // A clock that can be moved must not pass the time of what is due next.
    this.track(this.setAlarm(lane).catch(retry), this.keepClockStill());
  }

  private async setAlarm(lane: DelayedLane<QueueItem<I, O, E>>): Promise<void> {
    const { clock, prefix } = lane;
    const to = endOf(prefix);
    let first: Buffer | undefined;
    let count = 0;
    while (lane.searches > 0 && !this.isClosing) {
      lane.searches = 1;
      const { from } = lane;
      [first] = await this.store.keys(timetable, { from, to, limit: 1 });
      if (first && lane === this.held) count = await this.store.count(timetable, from, to);
      lane.early = first && lane === this.later && (await this.isTooFar(first)) ? first : undefined;
      lane.searches -= 1;
    }
    lane.forgetAlarm?.();
    if (!first || this.isClosing) return;
    const until = dueAt(first);
    const wake = (): void => {
      lane.still ??= this.keepClockStill();
      // The next alarm is set when they are read.
      lane.hasMore = true;
      this.pump();
    };
    if (until <= clock.now() || lane.early) wake();
    else if (lane === this.held) {
      lane.forgetAlarm = atTime(clock, until, wake);
      this.host.held(count, until);
    } else {
      const left = Math.ceil(until - clock.now());
      lane.forgetAlarm = clock.after(Math.min(left, longestSleep), () => {
        if (clock.now() >= until) wake();
        else this.expectDue(lane);
      });
    }
  }

  /** Whether a wait is due later than its pace allows: the clock was set back, or a simulator was reset. */
  private async isTooFar(due: Buffer): Promise<boolean> {
    const left = dueAt(due) - this.later.clock.now();
    if (left <= longestSleep) return false;
    const { arrival, index } = itemAt(due);
    const found = await this.reading((lost) => this.findWait(arrival, index, lost));
    return !found || left > (this.options.waits?.longestPause(found.message.record.shared) ?? 0);
  }

  /** Gives the held items of a number their turn. */
  private async recheckNumber(phone: string): Promise<void> {
    for await (const [arrival, index] of this.indexed('held', phone)) await this.recheckItem(arrival, index);
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
        if (!isWaitLane(lane.number))
          await this.endSaved(
            lane,
            ({ state, item }, arrival) => state === 'accepted' && cancels.isMeant(arrival, item),
          );
      for (const [, record] of met)
        for await (const [arrival, index] of this.waitsMeant(record))
          await this.endWait(arrival, index, (item) => cancels.isMeant(arrival, item.item));
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
    for await (const [arrival, index] of this.waitsMeant({})) await this.endWait(arrival, index, isForeign);
    if (!this.isClosing) await this.store.write([this.putHome()]);
  }

  private get home(): string {
    return `${this.options.type} ${this.options.space}`;
  }

  private putHome(): Operation {
    return { table: records, put: this.keys.home, value: this.home };
  }

  private async endWait(
    arrival: Buffer,
    index: number,
    isMeant: (item: QueueItem<I, O, E>) => boolean,
  ): Promise<void> {
    if (!(await this.hasRoom())) return;
    const found = await this.takeWait(arrival, index);
    if (found?.item.isOpenWait && this.items.get(found.item.id) !== found.item)
      return this.endWait(arrival, index, isMeant);
    const reason = found && isMeant(found.item) ? this.reasonNotTo(found.item) : undefined;
    if (found && reason) this.endWithout(reason, found.item);
    else if (found?.isNew) this.forget(found.item);
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
}
