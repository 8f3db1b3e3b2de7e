import { setImmediate as nextTurn } from 'node:timers/promises';
import { second } from '../durations';
import { atTime, type Clock } from '../service/clock';
import { endOf, key, TakenOver, type StoreEntry, type Operation, type Store } from '../state/store';
import { OpenJob, type AcceptedItem, type OutboxItem, type NewJob, type ItemPage } from './open-job';
import { arrivalAt, Outbox, type Host, type OutboxOptions, type Reason } from './outbox';
import { carefulTurnsOf, type CarefulTurns } from './careful-turns';
import { hasNotEnded, QueueReader } from './queue-reader';
import { moveRetypedWaits } from './retyped-waits';
import { after, arrivalIn, heldIn, pageOf, type JobRecord, type ResetRecord } from './layout';

/** Thrown by work that must not start before a time: the item is saved as held, and has another turn then. */
export class Held extends Error {
  constructor(
    readonly notBefore: number,
    /** For work that was tried and is delayed: how often it has been. */
    readonly delays?: number,
  ) {
    super('held');
  }
}

/** The reason of a signal for work that is cancelled, and not to be carried on by the next start. */
const byReset = 'reset';

export const isResetBy = ({ reason }: AbortSignal): boolean => reason === byReset;

/** An item whose work begins. */
export interface ItemTurn<I, O> extends AcceptedItem<I, O> {
  /** Aborts when what has not begun is cancelled, or the node closes; `isResetBy` tells which. */
  readonly signal: AbortSignal;
  /** Puts the item on record as begun, with these operations. Awaited before a request that must not be made twice. */
  readonly begin: (operations?: readonly Operation[]) => Promise<void>;
  /** Puts the item on record as not begun: its request was certainly not carried out, and is to be made later. */
  readonly undo: (operations?: readonly Operation[]) => Promise<void>;
  /** Adds operations to the commit that ends the turn. `settled` is called when that is written, or cannot be. */
  readonly atEnd: (operations: readonly Operation[], settled: () => void) => void;
  /** Where the steps are put on record. */
  readonly store: Store;
  /** How often the work was tried and delayed before. */
  readonly delays: number;
}

export interface RequestHost<I extends OutboxItem, O, E> extends Host<I, O, E> {
  /**
   * From an item to its outcome; throws `Held` and nothing else. Undefined when a close broke the work off: the item
   * stays on record as not begun.
   */
  work(turn: ItemTurn<I, O>): Promise<E | undefined>;
  /** The outcome of an item that ends without its work. */
  outcomeFor(accepted: AcceptedItem<I, O>, reason: Reason): Promise<E>;
  /** Called with the number of held items, and the time until which the first is held. */
  held(count: number, notBefore: number): void;
}

export interface RequestOptions<I extends OutboxItem, O, E> extends OutboxOptions<RequestHost<I, O, E>> {
  /** The most requests at once; as many more items are begun ahead, so that a slow disk holds none up. */
  readonly width: number;
  /** Milliseconds after which what has not begun is too old to begin after a restart. */
  readonly resumeWithin: number;
  /** The clock by which items are held. */
  readonly clock: Clock;
}

/** The most jobs in memory whose items are yet to be done; the others lie in the store. */
const mostAtHand = 32;
/** The most items whose ends are on their way to the record or out of the node: while there are more, none is taken up. */
const mostEnding = 256;
/** The number of ticks for which an item may keep the clock still: a machine that stops meanwhile loses one, not all. */
const clockTicks = { count: 10, ms: 50 };

/** Items whose work is one request. */
export class RequestOutbox<I extends OutboxItem, O, E> extends Outbox<I, O, E, RequestHost<I, O, E>> {
  /** Jobs with items to be done, served in turn. */
  private queue: OpenJob<I, O, E>[] = [];
  private active = 0;
  private ending = 0;
  /** Sweeps that wait for room. */
  private readonly waiting = new Set<() => void>();
  /** The last job that was taken into memory. */
  private cursor: Buffer | undefined;
  /** Whether there may be jobs after the cursor. */
  private hasBacklog = true;
  private isReading = false;
  /** Work under way that needs the resets: until it has ended, none is forgotten. */
  private needingResets = 0;
  private isStarted = false;
  /** A time of the clock: items that are held until an earlier time have been taken up. */
  private takenUpUntil = 0;
  /** Counts the searches for the first held item: the latest sets the alarm. */
  private looks = 0;
  private forgetAlarm: (() => void) | undefined;
  /** Items at work, by the controller that aborts them. */
  private readonly atWork = new Map<AbortController, { readonly arrival: Buffer; readonly item: I }>();
  /** Numbers whose held items are to be judged again. */
  private readonly toJudge = new Set<string>();
  private judging: Promise<void> = Promise.resolve();
  private isJudgingDue = false;

  private readonly careful: CarefulTurns;
  private forgetCalm: (() => void) | undefined;

  constructor(private readonly request: RequestOptions<I, O, E>) {
    super('work', request);
    this.careful = carefulTurnsOf(request.store);
  }

  get isBusy(): boolean {
    return this.open.size > 0;
  }

  /** Reads what is on record and has not ended, for display. */
  get reader(): QueueReader<I> {
    const { node, space } = this.options;
    const isCancelled = (arrival: Buffer, item: I): boolean => this.resets.isReset(arrival, item);
    return new QueueReader<I>({ store: this.store, node, space, isCancelled });
  }

  /** The progress of lists that have outcomes still to leave. */
  get progress(): { readonly done: number; readonly total: number } {
    let done = 0;
    let total = 0;
    for (const { record, remaining: left } of this.open.values()) {
      if (record.count < 2 || left === 0) continue;
      done += record.count - left;
      total += record.count;
    }
    return { done, total };
  }

  /** Carries on what an earlier start of this node left, before anything new. */
  async start(): Promise<void> {
    await this.careful.ready();
    this.forgetCalm = this.careful.onCalm(() => {
      this.pump();
    });
    await moveRetypedWaits(this.store, this.options.node, this.options.type);
    await this.readResets();
    this.isStarted = true;
    this.track(this.sweepUnaccepted());
    this.pump();
    await this.expectHeld();
  }

  accept(input: NewJob<I, O>, attachment: unknown): void {
    const job = this.newJob(input);
    const isAtHand =
      this.isStarted && !this.hasBacklog && !this.isReading && !job.isLong && this.queue.length < mostAtHand;
    if (isAtHand) {
      job.attachment = attachment;
      job.queueAll();
      this.cursor = job.key;
      this.bringIntoMemory(job);
    } else this.hasBacklog = true;
    this.track(
      this.commit(job).then(
        () => {
          if (this.hasBacklog) this.pump();
        },
        (fault: unknown) => {
          if (fault instanceof TakenOver) {
            // What came with an outcome of another node is told again by the process that took over.
            if (!job.onRecord) this.refuse(job, fault.isInDoubt ? 'taken_over' : 'refused');
            return;
          }
          // What is at hand meets the same fault as it begins, and leaves with it.
          if (!isAtHand && !this.isClosing) this.refuse(job, 'refused');
          // What came later may have waited for this job.
          this.pump();
          throw fault;
        },
      ),
    );
    if (isAtHand) this.pump();
  }

  /** Lets the items of a job leave that is not on record; in doubt, another process may carry it out. */
  private refuse(job: OpenJob<I, O, E>, reason: 'refused' | 'taken_over'): void {
    for (const item of job.newItems()) this.track(this.tellRefused(job, item, reason));
  }

  private async tellRefused(job: OpenJob<I, O, E>, item: I, reason: Reason): Promise<void> {
    const outcome = await this.host.outcomeFor(job.acceptedItem(item), reason);
    const counts = job.countEmitted(item, this.host.kindsOf(outcome));
    const isLast = job.remaining === 0;
    await this.host.emit(job, item, { outcome, repeated: false, counts, isLast, mark: () => undefined });
  }

  /** Cancels items that have not begun: all, or those for these numbers. `at` is when another process received the reset. */
  reset(phones?: readonly string[], at?: number): void {
    this.cancelAll(phones ? { phones } : {}, at === undefined ? undefined : arrivalAt(at));
  }

  /** Cancels one item that has not begun, or all such items of a job; false when it has begun or ended. */
  async cancel(job: Buffer, index?: number): Promise<boolean> {
    if (!(await hasNotEnded(this.store, this.table, this.options.node, job, index))) return false;
    this.cancelAll(index === undefined ? { job } : { job, index });
    return true;
  }

  private cancelAll(reset: ResetRecord, at?: Buffer): void {
    this.addReset(reset, at);
    for (const job of this.queue)
      for (const { page, item } of job.drop((each) => this.resets.isReset(job.arrival, each)))
        this.endWithout('reset', job, page, item);
    for (const [cancel, { arrival: came, item }] of this.atWork)
      if (this.resets.isReset(came, item)) cancel.abort(byReset);
    this.judgeHeld();
    this.hasBacklog = true;
    this.pump();
  }

  /** Items that are held for a number are judged again. */
  judgeAgain(phone: string): void {
    this.toJudge.add(phone);
    this.judgeHeld();
  }

  /** Has held items judged that were reset, or whose number is to be judged. One sweep serves all that come before it begins. */
  private judgeHeld(): void {
    if (this.isJudgingDue) return;
    this.isJudgingDue = true;
    this.needingResets += 1;
    this.judging = this.judging
      .catch(() => undefined)
      .then(() => {
        this.isJudgingDue = false;
        const phones = new Set(this.toJudge);
        this.toJudge.clear();
        return this.sweepHeld(
          (arrival, item) => phones.has(item.phone ?? '') || this.resets.isReset(arrival, item),
        );
      })
      .finally(() => {
        this.needingResets -= 1;
        this.forgetResets();
      });
    this.track(this.judging);
  }

  override async close(): Promise<void> {
    this.isClosing = true;
    this.forgetAlarm?.();
    this.forgetCalm?.();
    for (const cancel of this.atWork.keys()) cancel.abort();
    for (const wake of this.waiting) wake();
    await super.close();
  }

  /** A job of which only held items are left lies in the store alone. */
  protected override clockTime(at: number): Pick<JobRecord<I, O>, 'clockAt'> {
    const clockAt = this.request.clock.now();
    return Math.abs(clockAt - at) < second ? {} : { clockAt };
  }

  protected override isAtRest(job: OpenJob<I, O, E>): boolean {
    return job.isAtRest && job.isRead && job.toDo.length === 0 && job.isHeld;
  }

  protected override cameIntoMemory(job: OpenJob<I, O, E>): void {
    const isPassed = this.cursor !== undefined && Buffer.compare(job.key, this.cursor) <= 0;
    // The job was read before: its other items are held, or told.
    if (isPassed) job.markRead();
    else this.queue.push(job);
  }

  private bringIntoMemory(job: OpenJob<I, O, E>): void {
    this.open.add(job);
    this.queue.push(job);
  }

  private pump(): void {
    if (!this.isStarted || this.isClosing) return;
    const most = this.careful.isOn ? 1 : 2 * this.request.width;
    while (this.active < most && this.ending < mostEnding) {
      const job = this.queue.shift();
      if (!job) break;
      const next = job.next();
      if (next === 'load') this.track(this.load(job));
      else if (next) {
        this.queue.push(job);
        this.active += 1;
        this.track(this.carryOut(job, next.page, next.item));
      }
    }
    const isShort = this.queue.length < mostAtHand / 2 && this.ending < mostEnding;
    if (this.hasBacklog && !this.isReading && isShort) this.track(this.read());
    for (const wake of this.waiting) wake();
  }

  /** Counts an item that ends: its outcome takes up memory until it has left. */
  private trackEnd(work: Promise<void>): void {
    this.ending += 1;
    this.track(work, () => {
      this.ending -= 1;
      if (this.ending === mostEnding - 1) this.pump();
    });
  }

  /** Resolves when `isFull` no longer holds; with false when the node closes. */
  private async hasRoom(isFull: () => boolean): Promise<boolean> {
    while (isFull() && !this.isClosing)
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.waiting.delete(wake);
          resolve();
        };
        this.waiting.add(wake);
      });
    return !this.isClosing;
  }

  /** The next jobs of the store, up to the first that is still on its way there. */
  private async read(): Promise<void> {
    this.isReading = true;
    // A message that is accepted during the read may miss this page: `accept` sets this again.
    this.hasBacklog = false;
    const { from, to } = after(this.keys.jobs, this.cursor);
    const [first] = this.committing.keys();
    const reading = this.open.read();
    let found: readonly StoreEntry<JobRecord<I, O>>[] | undefined;
    try {
      found = await this.store.page<JobRecord<I, O>>(this.table, {
        from,
        to: first?.key ?? to,
        limit: mostAtHand,
      });
    } finally {
      this.isReading = false;
      reading.end();
      if (found?.length !== 0 || first) this.hasBacklog = true;
    }
    if (this.isClosing) return;
    for (const entry of found) {
      const job = OpenJob.found<I, O, E>(this.table, this.keys, arrivalIn(entry.key), entry.value);
      this.cursor = entry.key;
      // The job may be in memory already, for an item that was held.
      if (!this.open.get(job.name) && !reading.isOld(job.name)) this.bringIntoMemory(job);
    }
    this.forgetResets();
    const onItsWay = first && this.committing.get(first);
    const goOn = (): void => {
      this.pump();
    };
    if (found.length > 0 || !onItsWay) goOn();
    else
      onItsWay.then(goOn, (fault: unknown) => {
        // The process that has taken over the store reads on.
        if (!(fault instanceof TakenOver)) goOn();
      });
  }

  /** Removes resets that everything before them has met: in one commit with the last such outcome, or later. */
  private forgetResets(): void {
    if (this.resets.isEmpty || this.isClosing) return;
    if (this.hasBacklog || this.isReading || this.needingResets > 0) return;
    for (const job of this.open.values()) if (!job.isRead) return;
    for (const { signal } of this.atWork.keys()) if (isResetBy(signal)) return;
    const met = this.resets.all;
    const removals = this.withoutResets(met);
    this.resets.forget(met);
    this.track(this.recorder.changed({ operations: () => removals }));
  }

  /** Reads the next page of a job: settles what needs no work, and queues the rest. */
  private async load(job: OpenJob<I, O, E>): Promise<void> {
    this.needingResets += 1;
    this.retain(job);
    try {
      const page = await job.load(this.store);
      if (this.isClosing) return;
      this.queuePage(job, page);
    } finally {
      // Only now have its items met the resets.
      this.needingResets -= 1;
      this.dismiss(job);
    }
    this.forgetResets();
    this.queue.push(job);
    this.pump();
  }

  private queuePage(job: OpenJob<I, O, E>, page: ItemPage<I, E>): void {
    if (job.markQueued(page)) for (const item of page.items) this.queueItem(job, page, item);
  }

  private queueItem(job: OpenJob<I, O, E>, page: ItemPage<I, E>, item: I): void {
    if (page.told.has(item.index)) return;
    const ended = page.ended.get(item.index);
    const reason = this.reasonNotTo(job, page, item);
    if (ended) this.trackEnd(this.tellAgain(job, page, item, ended));
    else if (reason) this.endWithout(reason, job, page, item);
    else if (!page.held.has(item.index)) job.toDo.push({ page, item });
  }

  private reasonNotTo({ record, arrival }: OpenJob<I, O, E>, page: ItemPage<I, E>, item: I) {
    const isOld = record.life !== this.life;
    if (page.begun.has(item.index)) return 'unknown';
    if (this.careful.isSuspect(this.nameOf(arrival, item))) return 'crashes';
    if (record.type !== this.options.type) return 'retyped';
    if (record.space !== this.options.space) return 'moved';
    if (this.resets.isReset(arrival, item)) return 'reset';
    if (!isOld) return undefined;
    const notBefore = page.heldUntil(item.index);
    const age = notBefore === undefined ? this.store.now() - record.at : this.request.clock.now() - notBefore;
    return age > this.request.resumeWithin ? 'stale' : undefined;
  }

  /** Unique in the store. */
  private nameOf(arrival: Buffer, { index }: I): string {
    return `${this.options.node} ${arrival.toString('hex')} ${index}`;
  }

  private async carryOut(job: OpenJob<I, O, E>, page: ItemPage<I, E>, item: I): Promise<void> {
    const cancel = new AbortController();
    const { signal } = cancel;
    this.atWork.set(cancel, { arrival: job.arrival, item });
    const release = this.keepClockStill();
    const ends: { readonly operations: readonly Operation[]; readonly settled: () => void }[] = [];
    const turn: ItemTurn<I, O> = {
      ...job.acceptedItem(item),
      signal,
      store: this.store,
      delays: page.delays.get(item.index) ?? 0,
      begin: (operations = []) => {
        release();
        page.begun.add(item.index);
        job.inNextCommit.push(...operations);
        return this.changed(job, page);
      },
      undo: (operations = []) => {
        page.begun.delete(item.index);
        job.inNextCommit.push(...operations);
        return this.changed(job, page);
      },
      atEnd: (operations, settled) => {
        ends.push({ operations, settled });
      },
    };
    let outcome: E | undefined;
    let held: Held | undefined;
    job.holders += 1;
    try {
      outcome = await (this.careful.isOn
        ? this.careful.turn(this.nameOf(job.arrival, item), () => this.host.work(turn))
        : this.host.work(turn));
    } catch (thrown) {
      if (!(thrown instanceof Held)) throw thrown;
      held = thrown;
    } finally {
      release();
      this.atWork.delete(cancel);
      this.active -= 1;
      job.holders -= 1;
    }
    for (const { operations } of ends) job.inNextCommit.push(...operations);
    let step: Promise<void> | undefined;
    // An outcome is put on record also while the node closes.
    if (outcome !== undefined) this.trackEnd(this.settle(job, page, item, outcome));
    else if (held && isResetBy(signal)) this.endWithout('reset', job, page, item);
    else if (held) step = this.holdBack(job, page, item, held);
    else if (page.begun.has(item.index)) step = turn.undo();
    if (ends.length > 0) {
      const settle = (): void => {
        for (const { settled } of ends) settled();
      };
      this.recorder.changed(job).then(settle, settle);
    }
    await step;
    this.forgetResets();
    this.pump();
  }

  /**
   * Keeps a simulator's clock, which can be moved, still until the item is begun; from then on its request
   * does. Otherwise a text that waited for its hours would find them over. An item that itself waits for the clock must
   * not keep it still for ever.
   */
  private keepClockStill(): () => void {
    const release = this.request.clock.keepStill?.();
    if (!release) return () => undefined;
    let left = clockTicks.count;
    const tick = (): void => {
      if (left-- > 0) limit = setTimeout(tick, clockTicks.ms);
      else release();
    };
    let limit = setTimeout(tick, clockTicks.ms);
    return () => {
      clearTimeout(limit);
      release();
    };
  }

  private endWithout(reason: Reason, job: OpenJob<I, O, E>, page: ItemPage<I, E>, item: I): void {
    this.letGo(job, page, item);
    this.retain(job);
    this.needingResets += 1;
    this.trackEnd(this.putEndWithout(reason, job, page, item));
  }

  private async putEndWithout(
    reason: Reason,
    job: OpenJob<I, O, E>,
    page: ItemPage<I, E>,
    item: I,
  ): Promise<void> {
    try {
      const outcome = await this.host.outcomeFor(job.acceptedItem(item), reason);
      const settled = this.settle(job, page, item, outcome);
      // The end is in the next commit, so the resets may be forgotten in that one. Without an end, they stay.
      this.needingResets -= 1;
      this.forgetResets();
      await settled;
    } finally {
      this.dismiss(job);
    }
  }

  private async holdBack(
    job: OpenJob<I, O, E>,
    page: ItemPage<I, E>,
    item: I,
    { notBefore, delays }: Held,
  ): Promise<void> {
    this.letGo(job, page, item);
    page.hold(item.index, notBefore);
    if (delays !== undefined) page.delays.set(item.index, delays);
    const put = this.keys.held(notBefore, job.arrival, item.index);
    job.inNextCommit.push({ table: this.table, put, value: 0 });
    this.needingResets += 1;
    try {
      await this.changed(job, page);
      this.takenUpUntil = Math.min(this.takenUpUntil, notBefore);
      // A reset that came meanwhile did not find the item among those held.
      if (this.resets.isReset(job.arrival, item)) this.endWithout('reset', job, page, item);
    } finally {
      this.needingResets -= 1;
    }
    await this.expectHeld();
  }

  /** The item is no longer held; that goes on record with its next step. */
  private letGo(job: OpenJob<I, O, E>, page: ItemPage<I, E>, { index }: I): void {
    const notBefore = page.held.get(index);
    if (notBefore === undefined) return;
    page.letGo(index);
    job.dirty.add(page);
    job.inNextCommit.push({ table: this.table, remove: this.keys.held(notBefore, job.arrival, index) });
  }

  /** Sets the alarm for the first held item. */
  private async expectHeld(): Promise<void> {
    const [from, to] = [key(this.keys.allHeld, this.takenUpUntil), endOf(this.keys.allHeld)];
    const look = ++this.looks;
    const [first] = await this.store.keys(this.table, { from, to, limit: 1 });
    if (!first || this.isClosing || look !== this.looks) return;
    const { notBefore } = heldIn(first);
    const { clock } = this.request;
    this.forgetAlarm?.();
    this.forgetAlarm = atTime(clock, notBefore, () => {
      this.track(this.wake());
    });
    this.host.held(await this.store.count(this.table, from, to), notBefore);
  }

  private async wake(): Promise<void> {
    const release = this.request.clock.keepStill?.();
    try {
      const until = this.request.clock.now() + 1;
      // Set before the sweep: an item that is held during it lowers this again.
      this.takenUpUntil = until;
      await this.sweepHeld(() => true, key(this.keys.allHeld, until));
    } finally {
      release?.();
    }
    await this.expectHeld();
  }

  /** Gives the held items that are meant their turn, a page at a time. */
  private async sweepHeld(
    isMeant: (arrival: Buffer, item: I) => boolean,
    to = endOf(this.keys.allHeld),
  ): Promise<void> {
    this.needingResets += 1;
    try {
      for (let from = this.keys.allHeld; !this.isClosing;) {
        const found = await this.store.page<0>(this.table, { from, to, limit: mostAtHand });
        const last = found.at(-1);
        if (!last) break;
        from = after(this.keys.allHeld, last.key).from;
        for (const entry of found) await this.resumeHeld(entry.key, isMeant);
        // Reads may be answered at once: others have their turn between two pages.
        await nextTurn();
      }
    } finally {
      this.needingResets -= 1;
    }
    this.forgetResets();
    this.pump();
  }

  private async resumeHeld(held: Buffer, isMeant: (arrival: Buffer, item: I) => boolean): Promise<void> {
    const { arrival, index } = heldIn(held);
    const job = await this.jobAt(arrival);
    if (!job) {
      this.writeAside([{ table: this.table, remove: held }]);
      return;
    }
    try {
      const page = await job.page(this.store, pageOf(index));
      if (this.isClosing) return;
      this.queuePage(job, page);
      const item = page.items.find((each) => each.index === index);
      if (!item || !page.held.has(index) || !isMeant(arrival, item)) return;
      const reasonNow = (): Reason | undefined => this.reasonNotTo(job, page, item);
      const isFull = (): boolean =>
        this.ending >= mostEnding || (!reasonNow() && this.queue.length >= mostAtHand);
      if (!(await this.hasRoom(isFull)) || !page.held.has(index)) return;
      const reason = reasonNow();
      if (reason) this.endWithout(reason, job, page, item);
      else {
        this.letGo(job, page, item);
        job.toDo.push({ page, item });
        if (!this.queue.includes(job)) this.queue.push(job);
        this.pump();
      }
    } finally {
      this.dismiss(job);
    }
  }
}
