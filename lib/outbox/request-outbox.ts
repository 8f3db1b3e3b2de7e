import { endOf, type Entry } from '../state/store';
import { OpenJob, type Item, type NewJob, type Page } from './open-job';
import { newArrival, Outbox, type Host, type OutboxOptions } from './outbox';
import { QueueReader } from './queue-reader';
import { after, arrivalIn, pageOf, type JobRecord, type ResetRecord } from './records';

/** One item's turn. */
export interface Turn {
  /** Aborts when what has not begun is cancelled. */
  readonly signal: AbortSignal;
  /** On record as begun; awaited before a request leaves that must not be made twice. */
  readonly begin: () => Promise<void>;
  /** The request was certainly not carried out and waits: on record as not begun. */
  readonly undo: () => Promise<void>;
}

export interface RequestHost<I extends Item, O, E> extends Host<I, O, E> {
  /** From an item to its outcome. What it throws goes to `failed`. */
  work(job: OpenJob<I, O, E>, item: I, turn: Turn): Promise<E>;
  /** The outcome of work that threw. Undefined: a close broke it off, and it stays on record as not begun. */
  failed(thrown: unknown, isBrokenOff: boolean): E | undefined;
  /** The number an item is for, as `reset` names it. */
  phoneOf(item: I): string | undefined;
}

export interface RequestOptions<I extends Item, O, E> extends OutboxOptions<RequestHost<I, O, E>> {
  /** Requests at once; as many more items are begun ahead, so that a slow disk holds none up. */
  readonly width: number;
  /** Milliseconds after which what has not begun is too old to begin after a restart. */
  readonly resumeWithin: number;
}

/** Jobs in memory whose items are yet to be done; the others lie in the store. */
const mostAtHand = 32;
/** Why work was broken off that is not to be taken up again. */
const byReset = 'reset';

/** Items whose work is one request. */
export class RequestOutbox<I extends Item, O, E> extends Outbox<I, O, E, RequestHost<I, O, E>> {
  /** Jobs with items to be done, served in turn. */
  private queue: OpenJob<I, O, E>[] = [];
  private readonly open = new Set<OpenJob<I, O, E>>();
  private active = 0;
  /** The last job that was taken into memory. */
  private cursor: Buffer | undefined;
  /** There may be jobs after the cursor. */
  private hasBacklog = true;
  private isReading = false;
  private loading = 0;
  private isStarted = false;
  /** What breaks off an item at work whose request has not begun. */
  private readonly atWork = new Map<AbortController, { readonly arrival: Buffer; readonly item: I }>();
  private resets: (readonly [arrival: Buffer, reset: ResetRecord])[] = [];

  constructor(private readonly request: RequestOptions<I, O, E>) {
    super('work', request);
  }

  get isBusy(): boolean {
    return this.open.size > 0;
  }

  /** What is on record and has not ended, to be shown. */
  get reader(): QueueReader<I> {
    const { node, space } = this.options;
    const isCancelled = (arrival: Buffer, item: I): boolean => this.isReset(arrival, item);
    return new QueueReader<I>({ store: this.store, node, space, isCancelled });
  }

  /** How many messages are on record and not done. */
  count(): Promise<number> {
    return this.store.count(this.table, this.at.jobs, endOf(this.at.jobs));
  }

  /** How far the lists in memory have come. */
  get progress(): { readonly done: number; readonly total: number } {
    let done = 0;
    let total = 0;
    for (const { record, left } of this.open) {
      if (record.count < 2) continue;
      done += record.count - left;
      total += record.count;
    }
    return { done, total };
  }

  /** Goes on with what an earlier start of this node left, before anything new. */
  async start(): Promise<void> {
    const { from, to } = after(this.at.resets, undefined);
    const found = await this.store.page<ResetRecord>(this.table, { from, to, limit: 1000 });
    this.resets = [...found.map(({ key, value }) => [arrivalIn(key), value] as const), ...this.resets];
    this.isStarted = true;
    this.pump();
  }

  accept(input: NewJob<I, O>, attachment: unknown): void {
    const job = this.newJob(input);
    const isAtHand = this.isStarted && !this.hasBacklog && !job.isLong && this.queue.length < mostAtHand;
    if (isAtHand) {
      job.attachment = attachment;
      job.takeAll();
      this.cursor = this.at.job(job.arrival);
      this.take(job);
    } else this.hasBacklog = true;
    this.track(
      this.commit(job).then(() => {
        if (this.hasBacklog) this.pump();
      }),
    );
    if (isAtHand) this.pump();
  }

  /** Cancels what has not begun: all, or what is for these numbers. */
  reset(phones?: readonly string[]): void {
    this.addReset(phones ? { phones } : {});
  }

  /** Cancels one item that has not begun, or all of a job that have not; false when it has ended. */
  async cancel(job: Buffer, index?: number): Promise<boolean> {
    const found = await this.store.get<JobRecord<I, O>>(this.table, this.at.job(job));
    if (!found) return false;
    if (index !== undefined) {
      const page = await this.opened(found).page(this.store, pageOf(index));
      const isThere = page.items.some((item) => item.index === index);
      if (!isThere || page.ended.has(index) || page.told.has(index)) return false;
    }
    this.addReset(index === undefined ? { job } : { job, index });
    return true;
  }

  private addReset(value: ResetRecord): void {
    const arrival = newArrival(this.store.now());
    this.resets.push([arrival, value]);
    this.writeAside([{ table: this.table, put: this.at.reset(arrival), value }]);
    for (const job of this.queue)
      for (const { page, item } of job.drop((each) => this.isReset(job.arrival, each)))
        this.track(this.settle(job, page, item, this.host.ended('reset', item)));
    for (const [cancel, { arrival: came, item }] of this.atWork)
      if (this.isReset(came, item)) cancel.abort(byReset);
    this.hasBacklog = true;
    this.pump();
  }

  override async close(): Promise<void> {
    this.isClosing = true;
    for (const cancel of this.atWork.keys()) cancel.abort();
    await super.close();
  }

  protected override over(job: OpenJob<I, O, E>): void {
    this.open.delete(job);
  }

  private take(job: OpenJob<I, O, E>): void {
    this.open.add(job);
    this.queue.push(job);
  }

  private pump(): void {
    if (!this.isStarted || this.isClosing) return;
    while (this.active < 2 * this.request.width) {
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
    if (this.hasBacklog && !this.isReading && this.queue.length < mostAtHand / 2) this.track(this.read());
  }

  /** The next jobs of the store, up to the first that is still on its way there. */
  private async read(): Promise<void> {
    this.isReading = true;
    try {
      const { from, to } = after(this.at.jobs, this.cursor);
      const [first] = this.committing.keys();
      const found = await this.store.page<JobRecord<I, O>>(this.table, {
        from,
        to: first ? this.at.job(first.arrival) : to,
        limit: mostAtHand,
      });
      if (this.isClosing) return;
      if (found.length === 0 && first === undefined) {
        this.hasBacklog = this.committing.size > 0;
        this.forgetResets();
      }
      for (const entry of found) {
        this.cursor = entry.key;
        this.take(this.opened(entry));
      }
      if (found.length === 0) return;
    } finally {
      this.isReading = false;
    }
    this.pump();
  }

  private opened({ key, value }: Entry<JobRecord<I, O>>): OpenJob<I, O, E> {
    return OpenJob.found(this.table, this.at, arrivalIn(key), value);
  }

  /** Once everything that came before a reset has met it. */
  private forgetResets(): void {
    if (this.resets.length === 0 || this.hasBacklog || this.loading > 0) return;
    for (const job of this.open) if (!job.isRead) return;
    const done = this.resets;
    this.resets = [];
    this.writeAside(done.map(([arrival]) => ({ table: this.table, remove: this.at.reset(arrival) })));
  }

  /** Reads the next page of a job: settles what needs no work, and queues the rest. */
  private async load(job: OpenJob<I, O, E>): Promise<void> {
    this.loading += 1;
    const page = await job.load(this.store).finally(() => {
      this.loading -= 1;
    });
    if (this.isClosing) return;
    for (const item of page.items) {
      if (page.told.has(item.index)) continue;
      const ended = page.ended.get(item.index);
      const reason = this.reasonNotTo(job, page, item);
      if (ended) this.track(this.tellAgain(job, page, item, ended));
      else if (reason) this.track(this.settle(job, page, item, this.host.ended(reason, item)));
      else job.toDo.push({ page, item });
    }
    this.forgetResets();
    this.queue.push(job);
    this.pump();
  }

  private reasonNotTo({ record, arrival }: OpenJob<I, O, E>, page: Page<I, E>, item: I) {
    const isOld = record.life !== this.life;
    if (page.begun.has(item.index)) return 'unknown';
    if (record.space !== this.options.space) return 'moved';
    if (this.isReset(arrival, item)) return 'reset';
    return isOld && this.store.now() - record.at > this.request.resumeWithin ? 'stale' : undefined;
  }

  /** Whether it will be told as cancelled when its turn comes. */
  isReset(arrival: Buffer, item: I): boolean {
    if (this.resets.length === 0) return false;
    const phone = this.host.phoneOf(item);
    return this.resets.some(
      ([at, { phones, job, index }]) =>
        Buffer.compare(arrival, at) < 0 &&
        (phones === undefined || (phone !== undefined && phones.includes(phone))) &&
        (job === undefined || arrival.equals(job)) &&
        (index === undefined || item.index === index),
    );
  }

  private async carryOut(job: OpenJob<I, O, E>, page: Page<I, E>, item: I): Promise<void> {
    const cancel = new AbortController();
    const { signal } = cancel;
    this.atWork.set(cancel, { arrival: job.arrival, item });
    const turn: Turn = {
      signal,
      begin: () => {
        page.begun.add(item.index);
        return this.changed(job, page);
      },
      undo: () => {
        page.begun.delete(item.index);
        return this.changed(job, page);
      },
    };
    let outcome: E | undefined;
    try {
      outcome = await this.host.work(job, item, turn);
    } catch (thrown) {
      outcome = this.host.failed(thrown, this.isClosing && signal.reason !== byReset);
    }
    this.atWork.delete(cancel);
    this.active -= 1;
    // What is under way lands, also while its node closes.
    if (outcome !== undefined) this.track(this.settle(job, page, item, outcome));
    else if (page.begun.has(item.index)) await turn.undo();
    this.pump();
  }
}
