import { randomBytes } from 'node:crypto';
import { closeLimit, systemClock } from '../service/clock';
import { nextKey, type Operation, type Store, type Table } from '../state/store';
import { handOver } from './hand-over';
import { OpenJob, OpenJobs, type OutboxItem, type NewJob, type ItemPage } from './open-job';
import { newArrival } from './records';
import { QueueFull } from './queue';
import { recorderOf, together, type Recorder } from './recorder';
import { Resets, type Reset } from './resets';
import {
  after,
  arrivalIn,
  layout,
  type Ended,
  type JobRecord,
  type Layout,
  type MessageRecord,
  type ResetRecord,
} from './layout';

/** An outcome about to leave. */
export interface OutcomeToEmit<E> {
  readonly outcome: E;
  /** The outcome may have been told before the process was killed. */
  readonly repeated: boolean;
  /** How many outcomes of each kind have left, this one included. */
  readonly counts: Readonly<Record<string, number>>;
  /** The outcome is the last of its job. */
  readonly isLast: boolean;
  /** Called with each message of the outcome before it is sent. */
  readonly mark: (msg: object) => void;
}

export interface Removals {
  readonly operations: readonly Operation[];
  readonly committed: () => void;
}

/** The node, as its outbox sees it. */
export interface Host<I extends OutboxItem, O, E> {
  /** Lets an outcome leave, its duplicates with it. False when it did not arrive, because this node is closing. */
  emit(job: OpenJob<I, O, E>, item: I, toEmit: OutcomeToEmit<E>): Promise<boolean>;
  /** The kinds under which an outcome is counted. */
  kindsOf(outcome: E): readonly string[];
  fault(fault: unknown): void;
}

export interface OutboxOptions<H> {
  readonly store: Store;
  readonly node: string;
  /** The type of the node: what another type accepted under the same id is not carried out. */
  readonly type: string;
  /** The environment and the service it points to: what was accepted for another one is not carried out here. */
  readonly space: string;
  readonly host: H;
}

const mostUnwritten = 32 * 1024 * 1024;
/** About the number of bytes that an item of a long list takes on record. */
const bytesPerItem = 32;
/** The number of records that are read from the store at once. */
export const readAtOnce = 100;
/** The number of pages of a list that was never accepted that are removed in one commit, so that others have their turn. */
const pagesSweptAtOnce = 5;

/**
 * The items of one node, from accepted to told. Each step is on record before the next: accepted, begun (before a request
 * leaves), ended (before the outcome leaves), told. Memory holds what is in flight; everything else lies in the store,
 * and the next start of the node goes on from there.
 */
export abstract class Outbox<I extends OutboxItem, O, E, H extends Host<I, O, E>> {
  /** The name of this start of the node. */
  readonly life = randomBytes(6).toString('base64url');
  protected readonly keys: Layout;
  protected readonly store: Store;
  protected readonly host: H;
  protected readonly recorder: Recorder;
  protected readonly open = new OpenJobs<OpenJob<I, O, E>>();
  /**
   * Jobs that are accepted and not on record yet, in the order of arrival: also those of an earlier start of this node,
   * which has closed before the store took them.
   */
  protected readonly committing: Map<OpenJob<I, O, E>, Promise<void>>;
  protected readonly resets = new Resets();
  protected isClosing = false;
  private underWay = 0;
  private landed: (() => void) | undefined;

  constructor(
    protected readonly table: Table,
    protected readonly options: OutboxOptions<H>,
  ) {
    this.keys = layout(options.node);
    this.store = options.store;
    this.host = options.host;
    this.recorder = recorderOf(options.store);
    this.committing = this.recorder.committing(`${table} ${options.node}`) as typeof this.committing;
  }

  /** Waits for what has begun, up to the limit of a close. What has not begun stays on record for the next start. */
  async close(): Promise<void> {
    this.isClosing = true;
    let forget = (): void => undefined;
    const late = new Promise<void>((resolve) => {
      forget = systemClock.after(closeLimit, resolve);
    });
    const landed = new Promise<void>((resolve) => {
      this.landed = resolve;
      if (this.underWay === 0) resolve();
    });
    await Promise.race([landed, late]);
    handOver.concludeAll();
    await Promise.race([this.recorder.flush(), late]);
    forget();
  }

  /** The time of the environment's clock, where that is not the store's. */
  protected clockTime(_at: number): Pick<JobRecord<I, O>, 'clockAt'> {
    return {};
  }

  /** A new job, which `commit` puts on record. Throws `QueueFull`. */
  protected newJob(input: NewJob<I, O>): OpenJob<I, O, E> {
    if (this.recorder.unwritten > mostUnwritten) throw new QueueFull();
    const at = this.store.now();
    const { space, type } = this.options;
    return OpenJob.accepted(this.table, this.keys, newArrival(at), input, {
      at,
      ...this.clockTime(at),
      space,
      type,
      life: this.life,
    });
  }

  /** Resolves when the job is on record. The `parts` of a long list are written before its job record. */
  protected commit(job: OpenJob<I, O, E>, parts: Iterable<readonly Operation[]> = []): Promise<void> {
    job.holders += 1;
    const committed = this.write(job, parts).finally(() => {
      this.committing.delete(job);
      this.dismiss(job);
    });
    this.committing.set(job, committed);
    return committed;
  }

  /** A close waits for the work; `ended` is called when it has ended, also in a fault. */
  protected track(work: Promise<void>, ended?: () => void): void {
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

  /** Resolves when the steps of the job are on record. Until then it stays in memory: the store has an older state. */
  protected changed(job: OpenJob<I, O, E>, page: ItemPage<I, E>): Promise<void> {
    job.dirty.add(page);
    job.holders += 1;
    const dismiss = (): void => {
      this.dismiss(job);
    };
    const written = this.recorder.changed(job);
    written.then(dismiss, dismiss);
    return written;
  }

  protected retain(job: OpenJob<I, O, E>): OpenJob<I, O, E> {
    const known = this.open.get(job.name) ?? job;
    this.open.add(known);
    known.holders += 1;
    return known;
  }

  protected dismiss(job: OpenJob<I, O, E>): void {
    job.holders -= 1;
    if (job.holders === 0 && (job.isOver || this.isAtRest(job))) this.open.remove(job);
  }

  /** The job that came with an arrival, in memory until the caller dismisses it; undefined when there is none. */
  protected async jobAt(arrival: Buffer): Promise<OpenJob<I, O, E> | undefined> {
    for (const [job, committed] of this.committing)
      if (job.arrival.equals(arrival)) await committed.catch(() => undefined);
    const key = this.keys.job(arrival);
    for (;;) {
      const known = this.open.get(key.toString('latin1'));
      if (known) return this.retain(known);
      const reading = this.open.read();
      const found = await this.store.get<JobRecord<I, O>>(this.table, key).finally(() => {
        reading.end();
      });
      const job = found && OpenJob.found<I, O, E>(this.table, this.keys, arrival, found.value);
      if (reading.isOld(key.toString('latin1'))) continue;
      if (!job) return undefined;
      if (!this.open.get(job.name)) this.cameIntoMemory(job);
      return this.retain(job);
    }
  }

  /** Puts the outcome on record; then lets it leave. */
  protected async settle(job: OpenJob<I, O, E>, page: ItemPage<I, E>, item: I, outcome: E): Promise<void> {
    await this.putEnd(job, page, item, outcome);
    await this.tell(job, page, item, outcome, false);
  }

  protected putEnd(job: OpenJob<I, O, E>, page: ItemPage<I, E>, item: I, outcome: E): Promise<void> {
    page.end(item.index, this.isClosing ? { outcome, untold: true } : { outcome });
    return this.changed(job, page);
  }

  /** Tells an outcome found on record. One that was certainly not told is first put on record as perhaps told. */
  protected async tellAgain(
    job: OpenJob<I, O, E>,
    page: ItemPage<I, E>,
    item: I,
    { outcome, untold }: Ended<E>,
  ): Promise<void> {
    if (untold) await this.settle(job, page, item, outcome);
    else await this.tell(job, page, item, outcome, true);
  }

  protected async tell(
    job: OpenJob<I, O, E>,
    page: ItemPage<I, E>,
    item: I,
    outcome: E,
    repeated: boolean,
  ): Promise<void> {
    if (this.isClosing) return this.keepUntold(job, page, item, outcome);
    const kinds = this.host.kindsOf(outcome);
    const counts = job.countEmitted(item, kinds);
    let offer: string | undefined;
    const hasArrived = await this.host.emit(job, item, {
      outcome,
      repeated,
      counts,
      isLast: job.remaining === 0,
      mark: (msg) => {
        offer = handOver.offer(msg, () => this.told(job, page, item, kinds), offer);
      },
    });
    if (offer !== undefined && hasArrived) handOver.arrived(offer);
    else if (hasArrived) this.told(job, page, item, kinds);
    else {
      if (offer !== undefined) handOver.withdraw(offer);
      job.uncountEmitted(item, kinds);
      await this.keepUntold(job, page, item, outcome);
    }
  }

  /** Removes the parts of long lists whose job record was never written: they were not accepted. */
  protected async sweepUnaccepted(): Promise<void> {
    const { table, keys, store } = this;
    for (let last: Buffer | undefined; !this.isClosing;) {
      const found = await store.keys(table, { ...after(keys.messages, last), limit: readAtOnce });
      for (const key of found) {
        const arrival = arrivalIn(key);
        const job = keys.job(arrival);
        const isOnItsWay = [...this.committing.keys()].some((each) => each.arrival.equals(arrival));
        if (isOnItsWay || (await store.count(table, job, nextKey(job))) > 0) continue;
        const order = (await store.get<MessageRecord>(table, key))?.value.order as O | undefined;
        const range = { ...after(keys.allItems(arrival), undefined), limit: pagesSweptAtOnce };
        for (
          let pages = await store.keys(table, range);
          pages.length > 0;
          pages = await store.keys(table, range)
        ) {
          const removals = pages.map((remove): Operation => ({ table, remove }));
          const written: (() => void)[] = [];
          try {
            for (const page of order === undefined ? [] : pages)
              for (const item of (await store.get<readonly I[]>(table, page))?.value ?? []) {
                const { operations, committed } = await this.withUnaccepted(arrival, item, order as O);
                removals.push(...operations);
                written.push(committed);
              }
            await store.write(removals);
          } finally {
            for (const committed of written) committed();
          }
        }
        await store.write([{ table, remove: key }]);
      }
      last = found.at(-1);
      if (!last) return;
    }
  }

  /** Reads the resets that are on record. */
  protected async readResets(): Promise<void> {
    for (let last: Buffer | undefined; ;) {
      const range = { ...after(this.keys.resets, last), limit: readAtOnce };
      const found = await this.store.page<ResetRecord>(this.table, range);
      this.resets.add(...found.map(({ key, value }) => [arrivalIn(key), value] as const));
      last = found.at(-1)?.key;
      if (!last) return;
    }
  }

  /** Puts a reset on record. */
  protected addReset(value: ResetRecord, arrival = newArrival(this.store.now())): void {
    this.resets.add([arrival, value]);
    this.writeAside([{ table: this.table, put: this.keys.reset(arrival), value }]);
  }

  protected withoutResets(resets: readonly Reset[]): readonly Operation[] {
    return resets.map(([arrival]) => ({ table: this.table, remove: this.keys.reset(arrival) }));
  }

  protected writeAside(operations: readonly Operation[]): void {
    // A close waits for it: the next start of the node relies on it.
    this.track(this.store.write(operations).then(() => undefined));
  }

  /** Called when a job comes into memory out of turn, for one of its items. */
  protected cameIntoMemory(_job: OpenJob<I, O, E>): void {
    return undefined;
  }

  /** The job may leave memory: everything is on record, and nothing is to be done. */
  protected isAtRest(job: OpenJob<I, O, E>): boolean {
    return job.isAtRest;
  }

  /** Operations to write in one commit with *told*, besides the records of the job. */
  protected withTold(_job: OpenJob<I, O, E>, _item: I): Operation[] {
    return [];
  }

  /** Removes what else was written for an item of a list that was never accepted; `committed` is called afterwards. */
  protected withUnaccepted(_arrival: Buffer, _item: I, _order: O): Promise<Removals> {
    return Promise.resolve({ operations: [], committed: () => undefined });
  }

  private told(job: OpenJob<I, O, E>, page: ItemPage<I, E>, item: I, kinds: readonly string[]): void {
    job.inNextCommit.push(...this.withTold(job, item));
    job.markTold(page, item, kinds);
    this.changed(job, page).catch((fault: unknown) => {
      this.host.fault(fault);
    });
  }

  private keepUntold(job: OpenJob<I, O, E>, page: ItemPage<I, E>, item: I, outcome: E): Promise<void> {
    page.end(item.index, { outcome, untold: true });
    return this.changed(job, page);
  }

  private async write(job: OpenJob<I, O, E>, parts: Iterable<readonly Operation[]>): Promise<void> {
    if (job.isLong)
      await this.recorder.longList(job.record.count * bytesPerItem, async () => {
        for (const some of [job.longParts(), parts])
          for (const part of some) {
            await this.store.write(part);
            // Other messages have their turn between the parts of a long list.
            await new Promise((resolve) => setImmediate(resolve));
          }
      });
    else this.recorder.makeRoom(job.bytes);
    await together(() => {
      job.onRecord?.();
      return this.recorder.changed(job);
    });
  }
}
