import { randomBytes } from 'node:crypto';
import { setImmediate as nextTick } from 'node:timers/promises';
import { second } from '../durations';
import { Listeners } from '../listeners';
import { atTime, closeLimit, longestSleep, within, type Clock } from '../service/clock';
import { wokenBy } from '../service/concurrency';
import {
  endOf,
  nextKey,
  keysUnder,
  pagesUnder,
  TakenOver,
  under,
  type Changed,
  type Operation,
  type Store,
} from '../state/store';
import { carefulTurnsOf, type CarefulTurns } from './careful-turns';
import { handOver, type Claim } from './hand-over';
import {
  Item,
  itemId,
  messageId,
  QueuedMessage,
  type Found,
  type Items,
  type ItemTools,
  type Service,
} from './item';
import type { Outcome } from './outcome';
import { Cancels, Lane, memoryOf, type QueueMemory } from './queue-memory';
import { QueueReader } from './queue-reader';
import {
  arrivalAt,
  arrivalIn,
  dueIn,
  heldLane,
  indexedUnder,
  indexOf,
  itemAt,
  keysOf,
  laneFor,
  laterLane,
  newArrival,
  records,
  timetable,
  type CancelRecord,
  type ItemData,
  type ItemRecord,
  type Place,
  type QueueKeys,
  type Seen,
  type Shared,
} from './records';
import { dropUnaccepted, removeIndexed, restoreTimetable } from './repairs';

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
  | 'refused'
  /** It may be saved: the process that took over the store then carries it out. */
  | 'taken_over';

/** Thrown by work that must not start yet: the item has another turn at that time. */
export class Later extends Error {
  constructor(
    readonly notBefore: number,
    /** How often the work was tried and delayed. */
    readonly delays?: number,
    /** For a wait: the status that was seen, if it is new. */
    readonly seen?: Seen,
  ) {
    super('later');
  }
}

export interface QueueOptions<D extends ItemData, S extends Shared> {
  readonly store: Store;
  readonly node: string;
  /** What a node of another type accepted under the same id is not carried out. */
  readonly type: string;
  /** The environment and its service: what was accepted for another is not carried out here. */
  readonly space: string;
  /** The most requests at once. As many items again are started ahead, so that a slow disk delays none. */
  readonly width: number;
  /** Milliseconds after which what has not started is too old to start after a restart. */
  readonly resumeWithin: number;
  /** The clock by which items are held. */
  readonly clock: Clock;
  readonly waitClock?: Clock;
  readonly service: Service;
  /**
   * Gives the outcome of an item; throws nothing but `Later`. Undefined when a close interrupted the work: the item
   * stays saved as not started. With a reason, the item ends without its work.
   */
  work(item: Item<D, S>, reason?: Reason): Promise<Outcome | undefined>;
  /**
   * Counts the outcome of an item and emits it, for its duplicates too; `offer` marks the messages. False when it did
   * not arrive, because this node is closing.
   */
  emit(item: Item<D, S>, outcome: Outcome, offer?: number): Promise<boolean>;
  /** The number of waits or of held items has changed. */
  changed(): void;
  fault(fault: unknown): void;
}

interface Saved<D extends ItemData, S extends Shared> {
  readonly message: QueuedMessage<S>;
  readonly record: ItemRecord<D, S>;
}

interface Taken<D extends ItemData, S extends Shared> {
  readonly item: Item<D, S>;
  readonly isNew: boolean;
}

/** Too much waits for a store that is slow, full, unavailable or owned by another process. */
export class QueueFull extends Error {}
const mostUnwritten = 32 * 1024 * 1024;
/** Roughly the bytes that an item of a long list takes in the store. */
const bytesPerItem = 32;
const writtenAtOnce = 1000;
const readAtOnce = 64;
/** The most items of a lane at hand; the others stay in the store. */
const mostAtHand = 128;
/** While the outcomes of so many items are being saved or emitted, no other is taken up. */
const mostEnding = 256;
/** Ticks for which an item may keep the clock still: a machine that sleeps meanwhile loses one, not all. */
const clockTicks = { count: 10, ms: 50 };
const retriedAfter = second;

/**
 * The items of one node, from accepted to emitted. The queue is the store: memory holds the items in work, and some at
 * hand.
 *
 * - Each step is saved before the next: accepted, started (before a request leaves), finished (before the outcome
 *   leaves), emitted.
 * - An item is in memory once, over deploys too: whoever needs it takes that one, and a read that meets it is void.
 * - One of them holds it: a hand, its turn, or who took it up from the store. It lets go of it by `release`.
 * - It ends once. What ends it in the place of its work sets `isEnding`, in the tick in which it decides that, and the item
 *   leaves memory with that end: after each `await`, an item may have ended.
 * - It leaves memory when all its changes are saved, not just handed over: from then on, others read it.
 */
export class Queue<D extends ItemData = ItemData, S extends Shared = Shared> {
  readonly startId = randomBytes(6).toString('base64url');
  heldItems: { readonly count: number; readonly notBefore: number } | undefined;
  private readonly keys: QueueKeys;
  readonly store: Store;
  private readonly careful: CarefulTurns;
  private readonly cancels = new Cancels();
  private readonly lanes: Lane<Item<D, S>>[];
  private readonly held: Lane<Item<D, S>>;
  private readonly waitClock: Clock;
  private readonly memory: QueueMemory<D, S>;
  private readonly tools: ItemTools;
  private readonly items: Map<string, Item<D, S>>;
  private readonly messages: Map<string, QueuedMessage<S>>;
  /**
   * For each read under way, the ids of the items that left memory since it began: it may find them in an old state.
   */
  private readonly reads = new Set<Set<string>>();
  private nextLane = 0;
  /** A wait that the look of another ends stays here until its own look is over. */
  private readonly inWork = new Set<Item<D, S>>();
  private ending = 0;
  private underWay = 0;
  private isStarted = false;
  private isClosing = false;
  private isCancelling = false;
  private readonly turns = new Listeners();
  private losses: number | undefined;
  private forgetCalm: (() => void) | undefined;
  /** Damaged waits in the index of a number that their record no longer tells. */
  private readonly damaged = new Set<string>();
  private unindexing: Promise<void> | undefined;
  /** The timer for writing moves in the timetable. */
  private moving: { readonly at: number; readonly forget: () => void } | undefined;

  constructor(private readonly options: QueueOptions<D, S>) {
    const { store, node, clock, waitClock = clock, service } = options;
    const keys = keysOf(node);
    this.keys = keys;
    this.store = store;
    this.losses = store.engine.losses;
    this.careful = carefulTurnsOf(store);
    this.waitClock = waitClock;
    this.held = new Lane(heldLane, keys.lane(heldLane), clock);
    this.lanes = Array.from({ length: laterLane }, (_, number) =>
      number === heldLane ? this.held : new Lane(number, keys.lane(number)),
    );
    this.lanes.push(new Lane(laterLane, keys.lane(laterLane), waitClock));
    this.tools = { node, keys, store, service };
    this.memory = memoryOf(store, node);
    this.items = this.memory.items;
    this.messages = this.memory.messages;
  }

  get waitCount(): number {
    return this.memory.waitCount;
  }

  get isBusy(): boolean {
    return Array.from(this.items.values()).some(({ isRiding }) => !isRiding);
  }

  get reader(): QueueReader<S> {
    const { node, space } = this.options;
    return new QueueReader(this.store, node, space, (arrival, data) => this.cancels.isMeant(arrival, data));
  }

  /** The progress of lists that are not completely emitted. */
  get progress(): { readonly done: number; readonly total: number } {
    let done = 0;
    let total = 0;
    for (const { record, remaining } of this.messages.values()) {
      if (record.count === 1 || remaining === 0) continue;
      done += record.count - remaining;
      total += record.count;
    }
    return { done, total };
  }

  /** How late the looks of waits are, in milliseconds. */
  get lateBy(): number {
    const now = this.waitClock.now();
    let late = 0;
    for (const { hand } of this.lanes) {
      const [first] = hand;
      if (!first?.isWait || first.isFinished) continue;
      const { clockAt, at } = first.message.record;
      late = Math.max(late, now - (first.dueAt > 0 ? first.dueAt : (clockAt ?? at)));
    }
    return late;
  }

  /** Resumes what an earlier start of this node left, before anything new. Retries while the store cannot be read. */
  async start(): Promise<void> {
    this.forgetCalm = this.careful.onCalm(() => {
      this.pump();
    });
    for (let isFirst = true; !this.isClosing; isFirst = false)
      try {
        await this.resume();
        return;
      } catch (fault) {
        if (isFirst) this.options.fault(fault);
        await within(this.waitClock, retriedAfter, this.someLeft());
      }
  }

  private async resume(): Promise<void> {
    this.memory.latest = this;
    await this.careful.ready();
    // A start before this one may still be saving a cancellation.
    await Promise.allSettled(this.memory.cancelling);
    await this.readCancels();
    const home = (await this.store.get<string>(records, this.keys.home))?.value;
    await this.dropAndCount();
    await restoreTimetable(this.store, this.options.node);
    for (const lane of this.lanes) lane.hasMore = false;
    const isAny = (await this.store.keys(timetable, { ...under(this.keys.dues), limit: 1 })).length > 0;
    if (this.waitCount > 0) this.options.changed();
    if (this.isClosing) return;
    this.isStarted = true;
    for (const lane of this.lanes) lane.hasMore ||= isAny;
    if (!this.cancels.isEmpty) this.cancelSaved();
    if (home !== this.home) this.track(this.moveHome(home));
    this.pump();
  }

  private async dropAndCount(): Promise<void> {
    const { memory, keys, store } = this;
    const isOwn = (startId: string, arrival: Buffer): boolean =>
      startId === this.startId || this.isBeingSaved(arrival);
    const count = async (): Promise<number> =>
      memory.areWaitsCounted ? 0 : store.count(records, keys.waits, keys.waitsOf(memory.born));
    const isAny = (await count()) > 0;
    const dropping = dropUnaccepted(store, this.options.node, isOwn);
    if (isAny) await dropping;
    else this.track(dropping);
    const before = await count();
    if (this.hasClosed()) return;
    memory.areWaitsCounted = true;
    memory.waitCount += before;
  }

  /** The outcome that came with the message is saved as emitted in the same commit, or after it. Throws `QueueFull`. */
  accept(message: Record<string, unknown>, batch: Items<D, S>, attachment?: unknown, claim?: Claim): void {
    if (this.store.engine.commits.unwritten > mostUnwritten) throw new QueueFull();
    const { items, shared } = batch;
    const { space, type, clock } = this.options;
    const at = this.store.now();
    const clockAt = clock.now();
    const accepted = QueuedMessage.accepted(this.tools, newArrival(this.store), message, batch, {
      at,
      ...(Math.abs(clockAt - at) >= second && { clockAt }),
      space,
      type,
      startId: this.startId,
    });
    accepted.attachment = attachment;
    const isWait = shared.pace !== undefined;
    const isInParts = !accepted.record.isComplete;
    const added = isInParts ? [] : items.map((data) => this.added(accepted, data, isWait));
    const last = added.at(-1);
    const lane = this.lanes[last?.lane ?? -1];
    const together = claim?.store.engine.commits === this.store.engine.commits ? claim : undefined;
    // What is saved under another fence, too, must not start before that.
    const isAtHand =
      (together?.store.engine ?? this.store.engine) === this.store.engine &&
      this.isStarted &&
      !this.isClosing &&
      last !== undefined &&
      lane !== undefined &&
      !lane.hasMore &&
      !lane.isReading &&
      lane.hand.length < mostAtHand;
    if (isWait) this.memory.waitCount += items.length;
    if (isAtHand) {
      lane.hand.push(...added);
      lane.readTo(last.due);
    }
    const saving = (
      isInParts ? this.saveInParts(accepted, items, isWait, together) : this.saveAcceptance(added, together)
    ).finally(() => {
      this.memory.saving.delete(accepted.id);
    });
    this.memory.saving.set(accepted.id, saving);
    const accepting = saving.then(
      () => {
        claim?.conclude();
        if (isWait) this.options.changed();
        if (isInParts) {
          const lane = laneFor(batch.count, isWait);
          this.memory.latest?.offer(this.keys.due(lane, 0, accepted.arrival, items[0]?.index ?? 0));
        } else if (!isAtHand) for (const item of added) this.release(item);
      },
      (fault: unknown) => {
        const isTaken = fault instanceof TakenOver;
        // Items at hand meet the same fault when they start, and fail with it; a wait never starts.
        const isLeftToStart = isAtHand && !isWait;
        for (const item of isLeftToStart ? [] : added) {
          item.isEnding = true;
          this.forget(item);
        }
        if (isWait && Buffer.compare(accepted.arrival, this.memory.born) > 0)
          this.memory.waitCount -= items.length;
        // The process that took over emits the outcome again that came with it, where that is in the same store.
        const isKept = isTaken ? together !== undefined : this.isClosing;
        if (isKept) claim?.keep();
        else claim?.conclude();
        if (!isKept && (isTaken || !isLeftToStart))
          this.refuse(accepted, items, isTaken && fault.isInDoubt ? 'taken_over' : 'refused');
        if (isTaken) return;
        this.pump();
        throw fault;
      },
    );
    this.track(accepting);
    if (!together) claim?.hold(accepting);
    if (isAtHand) this.pump();
  }

  /** Cancels items that have not started: all, or those for these numbers. `at` is when another process received the reset. */
  reset(phones?: readonly string[], at?: number): void {
    void this.cancelAll(phones ? { phones } : {}, at === undefined ? undefined : arrivalAt(at));
  }

  /**
   * Cancels one item that has not started, or all such items of a list; false when it has started or finished. Resolves
   * when that is saved.
   */
  async cancel(arrival: Buffer, index?: number, isWait = false): Promise<boolean> {
    if (!(await this.reader.isWaiting(arrival, index, isWait))) return false;
    await this.cancelAll(index === undefined ? { list: arrival } : { list: arrival, index });
    return true;
  }

  recheck(phone: string): void {
    this.track(this.recheckNumber(phone));
  }

  /** Takes up no more items, and interrupts those that can be. What is accepted from now on is only saved. */
  stop(): void {
    this.isClosing = true;
    this.forgetCalm?.();
    this.moving?.forget();
    for (const lane of this.lanes) {
      lane.forgetAlarm?.();
      lane.letClockGo();
      for (const item of lane.hand.splice(0)) this.track(this.saved(item).then(() => this.release(item)));
    }
    for (const item of this.inWork) item.cancel(false);
    this.turns.call();
  }

  /** Waits for what has started, up to the limit of a close. Everything else stays saved for the next start. */
  async close(): Promise<void> {
    this.stop();
    const landed = async (): Promise<void> => {
      while (this.underWay > 0) await this.someLeft();
    };
    const limit = new Promise<void>((resolve) => {
      setTimeout(resolve, closeLimit).unref();
    });
    await Promise.race([landed(), limit]);
    handOver.concludeAll();
    await Promise.race([this.store.flush(), limit]);
    for (const message of this.messages.values()) message.attachment = undefined;
    if (this.memory.latest === this) this.memory.latest = undefined;
  }

  get unsavedCount(): number {
    return this.memory.saving.size;
  }

  /** Resolves when everything accepted so far is saved or refused. */
  async whenSaved(): Promise<void> {
    await Promise.allSettled(this.memory.saving.values());
  }

  // What is in memory.

  private isBeingSaved(arrival: Buffer): boolean {
    return this.memory.saving.has(messageId(arrival));
  }

  /** Resolves when the acceptance of the item is saved or refused. */
  private async saved({ message }: Item<D, S>): Promise<void> {
    await this.memory.saving.get(message.id)?.catch(() => undefined);
  }

  private added(given: QueuedMessage<S>, data: D, isWait: boolean, found?: Found<D, S>): Item<D, S> {
    const message = this.messageWith(given.id) ?? given;
    const added = new Item(this.tools, message, data, isWait, found);
    this.items.set(added.id, added);
    message.users += 1;
    this.messages.set(message.id, message);
    return added;
  }

  private release(item: Item<D, S>): void {
    if (item.isEnding) return;
    if (item.isMoved) this.ride(item);
    else if (item.moves > 0) item.isRiding = true;
    else this.leave(item);
  }

  private leave(item: Item<D, S>): void {
    if (!this.forget(item)) return;
    if (item.state !== 'gone' && item.hasPlace) this.memory.latest?.offer(item.due);
    // Held items are counted as they are read.
    else if ((item.heldUntil ?? 0) > this.options.clock.now()) this.held.hasMore = true;
  }

  private forget(item: Item<D, S>): boolean {
    if (this.items.get(item.id) !== item) return false;
    this.items.delete(item.id);
    for (const left of this.reads) left.add(item.id);
    for (const due of item.missed) this.memory.latest?.offer(due);
    const { message } = item;
    message.users -= 1;
    if (message.users > 0 || this.messages.get(message.id) !== message) return true;
    this.messages.delete(message.id);
    for (const left of this.reads) left.add(message.id);
    return true;
  }

  /** Items are in the store from there on, and not in memory: an earlier start may have accepted them. */
  offer(due: Buffer): void {
    this.lanes[dueIn(due).lane]?.expect(due);
    this.pump();
  }

  /** Another process had the store, so the item was not saved: it is read again from its place. */
  private readAgain(item: Item<D, S>, place: Buffer | undefined): void {
    if (this.forget(item) && place)
      this.waitClock.after(retriedAfter, () => this.memory.latest?.offer(place));
  }

  /** A close waits for the work; `ended` is called when it is over, even if it failed. */
  private track(work: Promise<unknown>, ended?: () => void): void {
    this.underWay += 1;
    const land = (): void => {
      this.underWay -= 1;
      ended?.();
      if (this.underWay === 0) this.turns.call();
    };
    work.then(land, (fault: unknown) => {
      land();
      this.options.fault(fault);
    });
  }

  /**
   * Counts an item that ends: its outcome takes memory until it has left. A simulator's clock stands still until then,
   * because the status shows the time.
   */
  private trackEnd(work: Promise<void>): void {
    const release = this.keepClockStill();
    this.ending += 1;
    this.track(work, () => {
      release();
      this.ending -= 1;
      if (this.ending === mostEnding - 1) this.pump();
    });
  }

  private changed(item: Item<D, S>): Promise<void> {
    if (item.message.losses === this.store.engine.losses) return this.store.save(item);
    this.forget(item);
    this.startOver();
    return Promise.reject(new TakenOver(false));
  }

  /** Another process has had the store: everything there is read again. */
  private startOver(): void {
    this.losses = this.store.engine.losses;
    for (const lane of this.lanes) {
      for (const item of lane.hand.splice(0))
        if (item.message.losses === this.losses) lane.hand.push(item);
        else this.forget(item);
      lane.expect(lane.prefix);
    }
    this.memory.born = newArrival(this.store);
    this.memory.waitCount = 0;
    this.memory.areWaitsCounted = false;
    this.track(this.dropAndCount());
  }

  /** For use after an `await`, where the compiler would take `isClosing` for unchanged. */
  private hasClosed(): boolean {
    return this.isClosing;
  }

  // Accepting.

  /** Writes a long list or a large message in parts; its items are not in memory. */
  private async saveInParts(
    message: QueuedMessage<S>,
    items: readonly D[],
    isWait: boolean,
    claim: Claim | undefined,
  ): Promise<void> {
    const operationsOf = (data: D): Operation[] => new Item(this.tools, message, data, isWait).operations();
    const bytes = items.length * bytesPerItem;
    this.store.engine.commits.unwritten += bytes;
    try {
      await nextTick();
      await this.store.write(message.operations());
      for (let from = 0; from < items.length; from += writtenAtOnce) {
        await nextTick();
        await this.store.write(items.slice(from, from + writtenAtOnce).flatMap(operationsOf));
      }
    } finally {
      this.store.engine.commits.unwritten -= bytes;
    }
    message.complete();
    await this.saveAcceptance([message], claim);
  }

  /** Saves an acceptance, and in the same commit that the outcome that came with it was emitted. */
  private saveAcceptance(jobs: Changed['jobs'], claim: Claim | undefined): Promise<void> {
    const saved: Promise<void>[] = [];
    claim?.conclude((emitted) => {
      const saving = this.store.saveTogether(jobs, emitted);
      saved.push(saving);
      return saving;
    });
    return saved[0] ?? this.store.saveTogether(jobs);
  }

  /** Emits the items of a message that was not saved; in doubt, another process may carry them out. */
  private refuse(message: QueuedMessage<S>, items: readonly D[], reason: 'refused' | 'taken_over'): void {
    const refuse = async (item: Item<D, S>): Promise<void> => {
      const outcome = await this.options.work(item, reason);
      if (outcome) await this.options.emit(item, outcome);
    };
    const isWait = message.record.shared.pace !== undefined;
    for (const data of items) this.track(refuse(new Item(this.tools, message, data, isWait)));
  }

  // Reading what is saved.

  private async reading<T>(read: (left: Set<string>) => Promise<T>): Promise<T> {
    const left = new Set<string>();
    this.reads.add(left);
    try {
      return await read(left);
    } finally {
      this.reads.delete(left);
    }
  }

  /** What is saved of an item; undefined when it is gone or was never accepted. One that damage took is unknown. */
  private async load(place: Place, left: Set<string>): Promise<Saved<D, S> | undefined> {
    const { arrival, index, isWait } = place;
    const at = this.keys.item(arrival, index, isWait);
    const found = (await this.store.get<ItemRecord<D, S>>(records, at))?.value;
    if (!found && !this.isLost(at)) return undefined;
    const message = found?.single
      ? QueuedMessage.ofSingle<S>(this.tools, arrival, found.single)
      : await this.messageAt(arrival);
    if (message && !this.messageWith(message.id) && left.delete(message.id)) return this.load(place, left);
    if (message ? !message.record.isComplete : found && !this.isLost(this.keys.list(arrival)))
      return undefined;
    const isKnown = found && (message ?? found.outcome !== undefined);
    return {
      message: message ?? this.unknownMessage(arrival),
      record: isKnown ? found : { state: 'started', item: found?.item ?? ({ index } as D) },
    };
  }

  private async messageAt(arrival: Buffer): Promise<QueuedMessage<S> | undefined> {
    const id = messageId(arrival);
    const known = this.messageWith(id);
    if (known) return known;
    const found = await QueuedMessage.ofList<S>(this.tools, arrival);
    return this.messageWith(id) ?? found;
  }

  /** A message in memory, unless another process has had the store since, and may have emitted others of its items. */
  private messageWith(id: string): QueuedMessage<S> | undefined {
    const known = this.messages.get(id);
    return known?.losses === this.store.engine.losses ? known : undefined;
  }

  private isLost(at: Buffer): boolean {
    return this.store.engine.hasLostKeys === true || this.store.isUnreadable(records, at);
  }

  /** Stands for a message that can no longer be read. */
  private unknownMessage(arrival: Buffer): QueuedMessage<S> {
    const { space, type } = this.options;
    return QueuedMessage.ofSingle<S>(this.tools, arrival, {
      at: 0,
      space,
      type,
      startId: '',
      // A node needs nothing else of it.
      shared: { advisor: '' } as S,
      count: 1,
    });
  }

  /** The same for an item that may leave memory meanwhile. */
  private find(place: Place): Promise<Saved<D, S> | undefined> {
    return this.reading(async (left) => {
      for (;;) {
        const found = await this.load(place, left);
        if (!left.delete(itemId(place.arrival, place.index))) return found;
      }
    });
  }

  /** Brings a saved item into memory, or finds it there; undefined when it is gone or finished. */
  private async takeUp(
    place: Place,
    isMeant = (_: Place, _data: D) => true,
  ): Promise<Taken<D, S> | undefined> {
    const { arrival, index, isWait } = place;
    const id = itemId(arrival, index);
    const known = this.items.get(id);
    if (known)
      return known.isFinished || !isMeant(place, known.data)
        ? undefined
        : { item: known, isNew: known.endRide() };
    const found = await this.find(place);
    if (this.items.has(id)) return this.takeUp(place, isMeant);
    if (!found || !isMeant(place, found.record.item)) return undefined;
    const { message, record } = found;
    const { state, notBefore } = record;
    if (state === 'finished' || state === 'emitting') return undefined;
    const isHeld = state === 'accepted' && notBefore !== undefined;
    const lane = isHeld ? heldLane : laneFor(message.record.count, false);
    const due = this.keys.due(lane, isHeld ? notBefore : 0, arrival, index);
    return {
      item: this.added(message, record.item, isWait, { record, ...(!isWait && { due }) }),
      isNew: true,
    };
  }

  private async takeAll(
    places: readonly Place[],
    isMeant?: (place: Place, data: D) => boolean,
  ): Promise<Taken<D, S>[]> {
    const taken = await Promise.all(places.map((place) => this.takeUp(place, isMeant)));
    // What was in work may have left memory meanwhile.
    const isStale = (found: Taken<D, S> | undefined): boolean =>
      found !== undefined && !found.item.isFinished && this.items.get(found.item.id) !== found.item;
    for (let at = taken.findIndex(isStale); at >= 0; at = taken.findIndex(isStale)) {
      const place = places[at];
      taken[at] = place && (await this.takeUp(place, isMeant));
    }
    return taken.filter((found) => found !== undefined);
  }

  private async *placesUnder(prefix: Buffer, isWait: boolean): AsyncGenerator<readonly Place[]> {
    for await (const found of keysUnder(this.store, records, prefix, readAtOnce)) {
      yield found.map((at) => ({ ...itemAt(at), isWait }));
      if (this.isClosing) return;
    }
  }

  private async *placesFor(kind: 'number' | 'held', phone: string): AsyncGenerator<readonly Place[]> {
    const { node, space } = this.options;
    const prefix = indexOf(this.store, kind, space, { phone });
    for await (const found of indexedUnder(this.store, prefix, readAtOnce)) {
      yield found
        .filter((each) => each.node === node)
        .map(({ arrival, index }) => ({ arrival, index, isWait: kind === 'number' }));
      if (this.isClosing) return;
    }
  }

  /** The waits that a cancellation may be for. */
  private async *waitsMeant({ phones, list, index }: CancelRecord): AsyncGenerator<readonly Place[]> {
    const { waits, waitsOf } = this.keys;
    if (list && index !== undefined) yield [{ arrival: list, index, isWait: true }];
    else if (phones) for (const phone of new Set(phones)) yield* this.placesFor('number', phone);
    else yield* this.placesUnder(list ? waitsOf(list) : waits, true);
  }

  // Whose turn it is.

  private pump(): void {
    if (!this.isStarted || this.isClosing) return;
    if (this.losses !== this.store.engine.losses) this.startOver();
    while (this.inWork.size < this.mostInWork && this.ending < mostEnding) {
      const item = this.nextAtHand();
      if (!item) break;
      this.turn(item);
    }
    for (const lane of this.lanes) {
      if (lane.hasMore && !lane.isReading && lane.hand.length < mostAtHand / 4 && this.ending < mostEnding)
        this.track(this.readLane(lane));
      if (lane.still && lane.hand.length === 0 && !lane.isReading && !lane.hasMore) lane.letClockGo();
    }
    this.turns.call();
  }

  private get mostInWork(): number {
    return this.careful.isOn ? 1 : 2 * this.options.width;
  }

  private nextAtHand(): Item<D, S> | undefined {
    for (const _ of this.lanes) {
      const lane = this.lanes[this.nextLane];
      this.nextLane = (this.nextLane + 1) % this.lanes.length;
      for (let item = lane?.hand.shift(); item; item = lane?.hand.shift()) if (!item.isEnding) return item;
    }
    return undefined;
  }

  private async readLane(lane: Lane<Item<D, S>>): Promise<void> {
    const { from } = lane;
    lane.isReading = true;
    // What is saved during the read may be missing from this page: `expect` then sets it again.
    lane.hasMore = false;
    // A simulator's clock must not pass the time of what is due next.
    if (lane.clock) lane.still ??= this.keepClockStill();
    try {
      const read = await this.reading(async (left) => {
        const dues = await this.readDue(lane);
        return Promise.all(dues.map((due) => this.read(due, lane, left)));
      });
      for (const item of read)
        if (item && this.isClosing) this.release(item);
        else if (item) lane.hand.push(item);
    } catch {
      // The store reports its own problems.
      lane.expect(from);
      this.waitClock.after(retriedAfter, () => {
        this.pump();
      });
      return;
    } finally {
      lane.isReading = false;
    }
    this.pump();
  }

  /** The next due entries of a lane. Sets the alarm for the first that is not due. */
  private async readDue(lane: Lane<Item<D, S>>): Promise<readonly Buffer[]> {
    const { from, prefix, clock } = lane;
    const to = endOf(prefix);
    const found = await this.store.keys(timetable, { from, to, limit: readAtOnce });
    const firstLater = clock ? found.findIndex((each) => dueIn(each).time > clock.now()) : -1;
    const dues = firstLater < 0 ? [...found] : found.slice(0, firstLater);
    const next = found[dues.length];
    const isEarly = next !== undefined && lane.number === laterLane && (await this.isTooFar(next));
    if (lane === this.held) await this.countHeld(next);
    if (isEarly) dues.push(next);
    const last = dues.at(-1);
    lane.readTo(last ? nextKey(last) : from);
    lane.next = isEarly ? undefined : next;
    if (isEarly || dues.length === readAtOnce) lane.hasMore = true;
    lane.forgetAlarm?.();
    if (clock && lane.next && !this.isClosing) this.setAlarm(lane, clock, dueIn(lane.next).time);
    return dues;
  }

  private setAlarm(lane: Lane<Item<D, S>>, clock: Clock, until: number): void {
    const wake = (): void => {
      lane.still ??= this.keepClockStill();
      lane.hasMore = true;
      this.pump();
    };
    lane.forgetAlarm =
      lane === this.held
        ? atTime(clock, until, wake)
        : clock.after(Math.min(Math.ceil(until - clock.now()), longestSleep), wake);
  }

  private async countHeld(first: Buffer | undefined): Promise<void> {
    const before = this.heldItems;
    const count = first ? await this.store.count(timetable, first, endOf(this.held.prefix)) : 0;
    this.heldItems = first && { count, notBefore: dueIn(first).time };
    if (count !== (before?.count ?? 0) || this.heldItems?.notBefore !== before?.notBefore)
      this.options.changed();
  }

  /** Whether a wait is due later than its pace allows: the clock was set back, or the simulator was reset. */
  private async isTooFar(due: Buffer): Promise<boolean> {
    const place = dueIn(due);
    const left = place.time - this.waitClock.now();
    if (left <= longestSleep) return false;
    const found = await this.find(place);
    const { pollEvery = 0, thenEvery = 0 } = found?.message.record.shared.pace ?? {};
    // A look is late by a tenth of its interval at most.
    return left > Math.ceil(1.1 * Math.max(pollEvery, thenEvery));
  }

  /** The item of an entry in the timetable; undefined when it is in memory already, or gone. */
  private async read(
    due: Buffer,
    lane: Lane<Item<D, S>>,
    left: Set<string>,
  ): Promise<Item<D, S> | undefined> {
    const place = dueIn(due);
    const id = itemId(place.arrival, place.index);
    const isElsewhere = (): boolean => {
      const known = this.items.get(id);
      known?.meet(due);
      // It may have had an extra turn, or have ended and left this entry behind.
      if (!known && left.has(id) && place.isWait) lane.expect(due);
      return known !== undefined || left.has(id);
    };
    // A list that is saved in parts is read when it is complete.
    if (isElsewhere() || this.isBeingSaved(place.arrival)) return undefined;
    const found = await this.load(place, left);
    if (isElsewhere()) return undefined;
    if (found)
      return this.added(found.message, found.record.item, place.isWait, { record: found.record, due });
    // A close waits for the removal: the next start relies on it.
    this.track(
      this.store.write([
        { table: records, remove: this.keys.item(place.arrival, place.index, place.isWait) },
        { table: timetable, remove: due },
      ]),
    );
    return undefined;
  }

  /** Resolves when there is room for another item, with false when the node closes. */
  private async hasRoom(): Promise<boolean> {
    while (!this.isClosing && (this.ending >= mostEnding || this.held.hand.length >= mostAtHand))
      await this.someLeft();
    return !this.isClosing;
  }

  /** Resolves at the next turn of any item, or when the node closes. */
  private someLeft(): Promise<void> {
    return wokenBy(this.turns.add);
  }

  // A turn.

  private turn(item: Item<D, S>, isOutOfTurn = false): void {
    const { outcome } = item;
    const reason = outcome ? undefined : this.reasonNotTo(item);
    if (outcome) this.emitAgain(item, outcome);
    else if (reason) this.endWithout(reason, item);
    else this.track(this.carryOut(item, isOutOfTurn));
  }

  private reasonNotTo(item: Item<D, S>): Reason | undefined {
    const { message, state, heldUntil, isWait } = item;
    const { record } = message;
    const { space, type, clock, resumeWithin } = this.options;
    const isHeld = heldUntil !== undefined && heldUntil > clock.now();
    if (state === 'started') return 'unknown';
    if (!isHeld && !isWait && this.store.peers?.isInDoubt(record.at)) return 'unknown';
    if (!isWait && this.careful.suspects.includes(this.nameOf(item))) return 'crashes';
    if (record.type !== type) return 'retyped';
    if (record.space !== space) return 'moved';
    if (this.isCancelled(item)) return 'reset';
    if (record.startId === this.startId || isWait) return undefined;
    const age = heldUntil === undefined ? this.store.now() - record.at : clock.now() - heldUntil;
    return age > resumeWithin ? 'stale' : undefined;
  }

  private isCancelled({ arrival, data }: Item<D, S>): boolean {
    return this.cancels.isMeant(arrival, data);
  }

  /** The name of an item's turn, or of its emission, for careful turns: unique in the store. */
  private nameOf({ id }: Item<D, S>, step: '' | ' emitted' = ''): string {
    return `${this.options.node} ${id}${step}`;
  }

  private async carryOut(item: Item<D, S>, isOutOfTurn: boolean): Promise<void> {
    const release = this.keepClockStill();
    item.started = release;
    this.inWork.add(item);
    item.isOutOfTurn = isOutOfTurn;
    item.isToRecheck = false;
    let outcome: Outcome | undefined;
    let later: Later | undefined;
    try {
      // A look needs no message.
      const loading = item.isWait ? undefined : item.message.load(this.store);
      if (loading) await loading;
      // A look crashes no process.
      if (!loading || (!this.isClosing && !item.isReset))
        outcome = await (this.careful.isOn && !item.isWait
          ? this.careful.turn(this.nameOf(item), () => this.options.work(item))
          : this.options.work(item));
    } catch (thrown) {
      if (!(thrown instanceof Later)) throw thrown;
      later = thrown;
    } finally {
      release();
      this.inWork.delete(item);
    }
    let step: Promise<void> | undefined;
    // An outcome is saved even while the node closes.
    if (item.isEnding) step = undefined;
    else if (outcome !== undefined) void this.finish(item, outcome);
    else if (item.isReset) this.endWithout('reset', item);
    else if (later) step = this.delay(item, later);
    else {
      if (item.state === 'started') item.set('accepted');
      step = this.changed(item).then(() => this.release(item));
    }
    const settle = item.endTurn();
    if (settle) this.changed(item).then(settle, settle);
    this.pump();
    await step;
    this.pump();
  }

  /**
   * Keeps a simulator's clock still until the item has started; from then on its request does. Otherwise a text that
   * was held until its hours would find them over. An item that itself waits for the clock must not keep it still
   * forever.
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

  /** The item has another turn later. A wait keeps its place in the timetable after an extra turn. */
  private async delay(item: Item<D, S>, { notBefore, delays, seen }: Later): Promise<void> {
    const release = this.keepClockStill();
    const { savedDue } = item;
    item.delay(notBefore, delays, seen);
    try {
      if (item.isToSave) await this.changed(item);
      // It was cancelled, or ended, during its work.
      if (item.isEnding || this.isCancelled(item)) this.endWithout('reset', item);
      else if (item.isToRecheck && !this.isClosing) this.held.hand.push(item);
      else this.release(item);
    } catch (fault) {
      this.readAgain(item, savedDue);
      throw fault;
    } finally {
      release();
    }
  }

  /**
   * The move of a wait in the timetable is written with the next commit, within a twentieth of its interval: a look
   * that changes nothing else needs no commit of its own. If a crash loses it, a look comes early.
   */
  private ride(item: Item<D, S>): void {
    const { waitClock: clock } = this;
    const { savedDue } = item;
    item.isRiding = true;
    item.moves += 1;
    const saved = (isSaved: boolean): void => {
      item.moves -= 1;
      if (!item.endRide()) return;
      if (isSaved) this.release(item);
      else this.readAgain(item, savedDue);
    };
    this.store.ride(item).then(
      () => saved(true),
      () => saved(false),
    );
    const write = (): void => {
      this.moving?.forget();
      this.moving = undefined;
      this.track(this.store.save(item), this.keepClockStill());
    };
    const at = clock.now() + Math.floor((item.dueAt - clock.now()) / 20);
    if (this.isClosing) write();
    else if (!this.moving || at < this.moving.at) {
      this.moving?.forget();
      this.moving = { at, forget: clock.after(at - clock.now(), write) };
    }
  }

  // The end of an item.

  private endWithout(reason: Reason, item: Item<D, S>): void {
    // A look may have ended it while others were read.
    if (item.isEnding || item.isFinished) return;
    item.isEnding = true;
    // Only a damaged record says that a wait has started.
    const unindexed = item.isWait && reason === 'unknown' ? this.unindex(item) : Promise.resolve();
    this.trackEnd(
      unindexed
        .then(() => this.options.work(item, reason))
        .then((outcome) => outcome && this.finish(item, outcome)),
    );
  }

  /** Removes a damaged wait from the indexes. One pass at a time serves all that ask meanwhile. */
  private async unindex({ id }: Item<D, S>): Promise<void> {
    const { node } = this.options;
    this.damaged.add(id);
    await this.unindexing;
    if (!this.damaged.has(id)) return;
    const met = new Set(this.damaged);
    this.damaged.clear();
    this.unindexing = removeIndexed(
      this.store,
      (each) => each.node === node && met.has(itemId(each.arrival, each.index)),
    );
    await this.unindexing;
  }

  /** Saves the outcome, then emits it; resolves when it is saved. */
  private finish(item: Item<D, S>, outcome: Outcome): Promise<void> {
    item.set(this.isClosing ? 'finished' : 'emitting', outcome);
    const saved = this.changed(item);
    this.trackEnd(saved.then(() => this.emit(item, outcome)));
    return saved;
  }

  private countWait({ isWait }: Item<D, S>, by: 1 | -1): void {
    if (!isWait) return;
    this.memory.waitCount += by;
    this.options.changed();
  }

  /** Emits a saved outcome. One that was certainly not emitted is first saved as perhaps emitted. */
  private emitAgain(item: Item<D, S>, outcome: Outcome): void {
    const name = this.nameOf(item, ' emitted');
    // The first crash may have had another cause. After the second, the outcome has probably left, and would crash the
    // process again.
    if (this.careful.suspects.filter((each) => each === name).length > 1) {
      this.options.fault(new Error('an outcome is dropped, because to emit it crashes the process'));
      item.count([]);
      this.countWait(item, -1);
      this.emitted(item);
    } else if (item.state === 'finished') void this.finish(item, outcome);
    else this.trackEnd(this.emit(item, outcome));
  }

  private async emit(item: Item<D, S>, outcome: Outcome): Promise<void> {
    if (!this.careful.isOn) return this.emitNow(item, outcome);
    await this.careful.turn(this.nameOf(item, ' emitted'), () => this.emitNow(item, outcome));
  }

  private async emitNow(item: Item<D, S>, outcome: Outcome): Promise<void> {
    const loading = item.message.load(this.store);
    if (loading) await loading;
    if (this.isClosing) return this.keepFinished(item, outcome);
    const offer = handOver.offer(
      {
        store: this.store,
        emitted: (save) => this.emitted(item, save),
        taken: (by, save) => {
          item.take(by);
          this.track(this.saveEmission(item, save));
        },
        keep: () => {
          if (item.message.losses === this.store.engine.losses) {
            item.uncount();
            this.countWait(item, 1);
          }
          this.readAgain(item, item.savedDue);
        },
        hold: (until) => this.track(until.catch(() => undefined)),
      },
      item.taken,
    );
    let isEmitted = false;
    this.countWait(item, -1);
    try {
      isEmitted = await this.options.emit(item, outcome, offer);
    } catch (thrown) {
      // It stays saved as perhaps emitted, so the next start emits it again.
      this.forget(item);
      throw thrown;
    } finally {
      if (isEmitted) handOver.arrived(offer);
      else {
        handOver.withdraw(offer);
        item.uncount();
        this.countWait(item, 1);
      }
    }
    if (!isEmitted) await this.keepFinished(item, outcome);
  }

  /** Saves how far the outcome has been emitted; with `save`, in one commit with its acceptance by another node. */
  private saveEmission(item: Item<D, S>, save?: (changed: Changed) => Promise<void>): Promise<void> {
    const isOurs = item.message.losses === this.store.engine.losses;
    return save && isOurs ? save({ store: this.store, jobs: [item] }) : this.changed(item);
  }

  private emitted(item: Item<D, S>, save?: (changed: Changed) => Promise<void>): void {
    item.remove();
    this.saveEmission(item, save).then(
      () => {
        this.leave(item);
        this.pump();
      },
      (fault: unknown) => {
        this.leave(item);
        this.options.fault(fault);
      },
    );
  }

  private async keepFinished(item: Item<D, S>, outcome: Outcome): Promise<void> {
    // An outcome that may have been emitted before a kill still may have been.
    item.set(item.isRepeated ? 'emitting' : 'finished', outcome);
    await this.changed(item);
    this.leave(item);
  }

  // Waits.

  /** Ends the waits for which `decide` gives an outcome, in this order; resolves when that is saved. */
  async endWaits(
    waits: readonly Omit<Place, 'isWait'>[],
    decide: (wait: Item<D, S>) => Outcome | undefined,
  ): Promise<void> {
    // A start has not read the cancellations yet: its waits look for themselves.
    if (!this.isStarted || !(await this.hasRoom())) return;
    const saved: Promise<void>[] = [];
    for (const { item, isNew } of await this.takeAll(waits.map((each) => ({ ...each, isWait: true })))) {
      if (!item.isOpenWait) continue;
      // A cancellation that came before takes precedence.
      const isCancelled = this.isCancelled(item);
      const outcome = this.isClosing || isCancelled ? undefined : decide(item);
      if (outcome !== undefined) {
        item.isEnding = true;
        saved.push(this.finish(item, outcome));
      } else if (isCancelled && !this.isClosing) this.endWithout('reset', item);
      else if (isNew) this.release(item);
    }
    await Promise.all(saved);
  }

  /** Looks now, for all waits or those for these numbers. They keep their places in the timetable. */
  async flush(phones?: readonly string[]): Promise<void> {
    await this.whenSaved();
    for await (const places of this.waitsMeant(phones ? { phones } : {}))
      for (const { arrival, index } of places) await this.check(arrival, index);
  }

  /** Looks now for one wait; false when it has ended. */
  async check(arrival: Buffer, index: number): Promise<boolean> {
    while (!this.isClosing && (!this.isStarted || this.inWork.size >= this.mostInWork)) await this.someLeft();
    const found = await this.takeUp({ arrival, index, isWait: true });
    if (found?.isNew && this.hasClosed()) this.release(found.item);
    else if (found?.isNew) this.turn(found.item, true);
    return found?.item.isOpenWait === true;
  }

  // Held items.

  private async recheckNumber(phone: string): Promise<void> {
    for await (const places of this.placesFor('held', phone))
      for (const place of places) {
        const known = this.items.get(itemId(place.arrival, place.index));
        if (known) known.isToRecheck = true;
        const taken = known ? undefined : await this.takeUp(place);
        if (!taken?.isNew) continue;
        const { item } = taken;
        if (item.heldUntil !== undefined && (await this.hasRoom())) this.held.hand.push(item);
        else this.release(item);
        this.pump();
      }
  }

  // Cancelling.

  private cancelAll(record: CancelRecord, arrival = newArrival(this.store)): Promise<unknown> {
    this.cancels.add([arrival, record]);
    const { cancelling } = this.memory;
    const written = this.store.write([{ table: records, put: this.keys.cancel(arrival), value: record }]);
    cancelling.add(written);
    this.track(written, () => cancelling.delete(written));
    for (const lane of this.lanes) {
      const cancelled = lane.hand.filter((each) => !each.isFinished && this.isCancelled(each));
      lane.hand.splice(0, Infinity, ...lane.hand.filter((each) => !cancelled.includes(each)));
      // What an earlier process started may have been carried out.
      for (const item of cancelled) this.endWithout(this.reasonNotTo(item) ?? 'reset', item);
    }
    for (const item of this.items.values()) if (this.isCancelled(item)) item.cancel(true);
    if (this.isStarted) this.cancelSaved();
    this.pump();
    return written;
  }

  /** Carries out the cancellations. One pass runs at a time: the next one meets what comes meanwhile. */
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
      const isMeant = ({ arrival }: { arrival: Buffer }, data: D): boolean => cancels.isMeant(arrival, data);
      const wereInMemory = await this.endSaved(this.placesUnder(this.keys.items, false), isMeant);
      for (const [, record] of met) await this.endSaved(this.waitsMeant(record), isMeant);
      // Items in memory meet the cancellation at the end of their turn.
      const isOpen = (item: Item<D, S>): boolean => !item.isFinished && isMeant(item, item.data);
      while (!this.hasClosed() && [...this.items.values()].some(isOpen)) await this.someLeft();
      if (wereInMemory) continue;
      // The ends are saved before their cancellation is forgotten.
      await this.store.flush();
      if (this.hasClosed()) return;
      await this.store.write(
        met.map(([arrival]): Operation => ({ table: records, remove: this.keys.cancel(arrival) })),
      );
      this.cancels.forget(met);
    }
  }

  /**
   * Ends the saved items that are meant and that there is a reason to end. True when some were in memory: an earlier
   * start may leave them as they are.
   */
  private async endSaved(
    pages: AsyncIterable<readonly Place[]>,
    isMeant?: (place: Place, data: D) => boolean,
  ): Promise<boolean> {
    let wereInMemory = false;
    for await (const places of pages) {
      if (!(await this.hasRoom())) break;
      for (const { item, isNew } of await this.takeAll(places, isMeant)) {
        const reason = this.isClosing ? undefined : this.reasonNotTo(item);
        if (reason && (isNew || item.isWait)) this.endWithout(reason, item);
        else if (reason) wereInMemory = true;
        else if (isNew) this.release(item);
      }
    }
    return wereInMemory;
  }

  private async readCancels(): Promise<void> {
    for await (const page of pagesUnder<CancelRecord>(this.store, records, this.keys.cancels, readAtOnce))
      this.cancels.add(...page.map(({ key: at, value }) => [arrivalIn(at), value] as const));
  }

  /** Items for another service, or of a node of another type, end now, not when their time comes. */
  private async moveHome(from: string | undefined): Promise<void> {
    if (from !== undefined) {
      await this.endSaved(this.placesUnder(this.keys.items, false));
      await this.endSaved(this.waitsMeant({}));
    }
    if (!this.isClosing) await this.store.write([{ table: records, put: this.keys.home, value: this.home }]);
  }

  private get home(): string {
    return `${this.options.type} ${this.options.space}`;
  }
}
