import { setImmediate as nextTurn } from 'node:timers/promises';
import { asName, type Operation, type Store } from '../state/store';
import { OpenJob, type OutboxItem, type NewJob, type ItemPage } from './open-job';
import { arrivalAt } from './records';
import { Outbox, readAtOnce, type Host, type OutboxOptions, type Removals } from './outbox';
import {
  after,
  arrivalIn,
  endedIn,
  itemIn,
  itemKey,
  layout,
  pageOf,
  type JobRecord,
  type ResetRecord,
} from './layout';

/** The entries by which polls find a wait `W`. */
export interface WaitPolling<W> {
  begin(waits: readonly W[]): { readonly operations: readonly Operation[]; readonly committed: () => void };
  /** Whether an entry, or one for this number, may have been lost, as after damage. */
  hasLost(phone?: string): Promise<boolean>;
  /** All waits for a number, of whichever node. */
  waitsFor(phone: string): AsyncIterable<W>;
  /** Whether polls find a wait. */
  isIntact(wait: W): Promise<boolean>;
  removals(wait: W): Promise<Removals & { readonly seen: () => Promise<unknown> }>;
  /** Polls these waits now, as there is room. */
  flush(waits: AsyncIterable<W>): Promise<void>;
  next(wait: W): number;
}

export interface WaitHost<I extends OutboxItem, O, E, W> extends Host<I, O, E> {
  /** The outcome of an item that cannot be waited for; undefined for one that can. */
  atOnce(item: I): E | undefined;
  waitOf(key: Buffer, item: I, order: O): W;
  /** The outcome of a cancelled wait; `seen` is the last known status of its number. */
  cancelled(reason: 'reset' | 'moved', item: I, seen: unknown): E;
  /** The same value for two items of one person. */
  personOf(item: I): unknown;
  /** Called with the number of waits that were cancelled because the environment points to another service now. */
  moved(count: number): void;
  changed(): void;
}

export interface WaitOptions<I extends OutboxItem, O, E, W> extends OutboxOptions<WaitHost<I, O, E, W>> {
  /** The polls of the environment at the service that it points to, or pointed to. */
  readonly polling: (space: string) => WaitPolling<W>;
}

/** Whether an item of a job is yet to begin; without an index, whether there is such a job. */
export const hasNotEnded = async (
  store: Store,
  node: string,
  arrival: Buffer,
  index?: number,
): Promise<boolean> => {
  const keys = layout(node);
  const found = await store.get<JobRecord<OutboxItem, unknown>>('wait', keys.job(arrival));
  if (!found || index === undefined) return found !== undefined;
  const page = await OpenJob.found('wait', keys, arrival, found.value).page(store, pageOf(index));
  const isThere = page.items.some((item) => item.index === index);
  return isThere && !page.begun.has(index) && !page.ended.has(index) && !page.told.has(index);
};

/** The number of waits of a long list that are written in one commit. */
const waitsAtOnce = 500;

/** The most waits that are read to say in a status how many people wait. */
const countedWaits = 1000;

export interface Outlook {
  /** When the next poll is due. */
  readonly next: number;
  /** How many people wait; undefined with too many to count. */
  readonly people: number | undefined;
}

/** Ends a hundred items at a time, so that they share commits. `end` gives nothing for one that is left as it is. */
const inBulk = async <T>(
  items: Iterable<T> | AsyncIterable<T>,
  end: (item: T) => Promise<void> | undefined,
): Promise<void> => {
  const ending: Promise<void>[] = [];
  for await (const item of items) {
    const one = end(item);
    if (!one) continue;
    // Its fault is met below, perhaps only after the next item was read.
    one.catch(() => undefined);
    ending.push(one);
    if (ending.length >= readAtOnce) await Promise.all(ending.splice(0));
  }
  await Promise.all(ending);
};

/** The numbers that resets are for; undefined when one of them is for all. */
const numbersIn = (resets: readonly ResetRecord[]): readonly string[] | undefined =>
  resets.some(({ phones }) => !phones) ? undefined : resets.flatMap(({ phones = [] }) => phones);

interface WaitingItem<I extends OutboxItem, O, E> {
  readonly job: OpenJob<I, O, E>;
  readonly page: ItemPage<I, E>;
  readonly item: I;
}

type Meant<I extends OutboxItem, O> = (record: JobRecord<I, O>, arrival: Buffer, item: I) => boolean;

/** Items that wait to be ended from outside. None of them is in memory. */
export class WaitOutbox<I extends OutboxItem, O, E, W extends { readonly item: Buffer }> extends Outbox<
  I,
  O,
  E,
  WaitHost<I, O, E, W>
> {
  private isSweepingResets = false;
  /** Items that have ended and are yet to be told, by their keys: each is told once in the life of the node. */
  private readonly toTell = new Set<string>();
  private waiting = 0;
  /** How many of `waiting` are on record. */
  private recorded = 0;
  private readonly counter = {
    operations: (): Operation[] => [{ table: this.table, put: this.keys.open, value: this.recorded }],
  };

  constructor(private readonly wait: WaitOptions<I, O, E, W>) {
    super('wait', wait);
  }

  /** The number of waits. */
  get count(): number {
    return this.waiting;
  }

  /** Reads what must be known before the first message is accepted. */
  async prepare(): Promise<void> {
    const [open] = await Promise.all([this.store.get<number>(this.table, this.keys.open), this.readResets()]);
    this.recorded = open?.value ?? 0;
    this.waiting += this.recorded;
  }

  /** Tells what ended before the start, and ends waits that were reset or belong to another service. */
  async start(): Promise<void> {
    await this.tellEnded();
    const { space } = this.options;
    const home = await this.store.get<string>(this.table, this.keys.home);
    if (home && home.value !== space) {
      const count = await this.sweep('moved', (record) => record.space !== space);
      if (count > 0) this.host.moved(count);
    }
    if (!this.isClosing && home?.value !== space)
      await this.store.write([{ table: this.table, put: this.keys.home, value: space }]);
    await this.sweepResets();
    await this.restoreLost();
    await this.sweepUnaccepted();
  }

  /** Writes the entries of a wait anew: polls cannot find it, because they were damaged. */
  restore(item: Buffer): Promise<boolean> {
    return this.withOpen(item, (job, page, found) => this.beginAgain(job, page, found));
  }

  /** Resolves when the waits are on record. */
  accept(input: NewJob<I, O>, attachment: unknown): Promise<void> {
    const job = this.newJob(input);
    job.attachment = attachment;
    this.retain(job);
    const waiting: I[] = [];
    const others: I[] = [];
    for (const item of input.items) (this.host.atOnce(item) === undefined ? waiting : others).push(item);
    this.waiting += waiting.length;
    this.host.changed();
    const { onRecord } = job;
    job.onRecord = () => {
      onRecord?.();
      this.record(waiting.length);
    };
    // With the job, it goes on record that they are yet to be told: no poll comes by them.
    const untold = others.map((item) => this.willTell(job, item));
    const accepted = this.commitWaits(job, waiting, untold);
    this.track(
      accepted
        .then(async () => {
          await inBulk(others, async (item) => {
            // The next start tells the rest.
            if (this.isClosing) return;
            const page = await job.page(this.store, pageOf(item.index));
            await this.endAtOnce(job, page, item);
          });
        })
        .finally(() => {
          this.dismiss(job);
        }),
    );
    return accepted;
  }

  /**
   * Called when a wait has ended: its outcome goes on record together with `removals`, and is then told. Resolves when
   * it is on record.
   */
  async end(item: Buffer, outcome: E, removals: readonly Operation[]): Promise<void> {
    const { arrival, index } = itemIn(item);
    const isFound = await this.withItem(arrival, index, async (job, page, found) => {
      const isReset = this.resets.isReset(arrival, found);
      const ended = isReset ? this.host.cancelled('reset', found, undefined) : outcome;
      await this.endItem(job, page, found, ended, removals);
    });
    if (!isFound && !this.isClosing) await this.store.write(removals);
  }

  /** Cancels all waits, or those for these numbers. `at` is when another process received the reset. */
  reset(phones?: readonly string[], at?: number): void {
    this.addReset(phones ? { phones } : {}, at === undefined ? undefined : arrivalAt(at));
    this.track(this.sweepResets());
  }

  /** Cancels one wait; false when it has ended. */
  cancelOne(item: Buffer): Promise<boolean> {
    return this.withOpen(item, (job, page, found) => this.cancel('reset', job, page, found));
  }

  /** Polls one wait now; false when it has ended. */
  checkOne(item: Buffer): Promise<boolean> {
    return this.withOpen(item, (job, _page, found) => {
      const one = (async function* (wait: W) {
        yield wait;
      })(this.waitOf(job, found));
      this.track(this.wait.polling(this.options.space).flush(one));
      return Promise.resolve();
    });
  }

  /** Polls all waits now, or those for these numbers; also those that were accepted before and are not on record yet. */
  flush(phones?: readonly string[]): void {
    this.flushOnRecord(phones).catch((fault: unknown) => {
      this.host.fault(fault);
    });
  }

  /** A close does not wait for it: the next start does not go on with it either. */
  private async flushOnRecord(phones: readonly string[] | undefined): Promise<void> {
    await Promise.allSettled(this.committing.values());
    await this.wait.polling(this.options.space).flush(this.waitsOf(this.waitingItems(phones)));
  }

  /** Undefined when nothing waits. With more jobs than are read, the next poll counts as due now. */
  async outlook(now: number): Promise<Outlook | undefined> {
    if (this.waiting === 0) return undefined;
    const entries = this.wait.polling(this.options.space);
    const jobs = await this.page(undefined, readAtOnce);
    if (jobs.length === readAtOnce) return { next: now, people: undefined };
    const isCounted = this.waiting <= countedWaits;
    const people = new Set<unknown>();
    let next = Infinity;
    for (const job of jobs) {
      for (let number = 0; number < (isCounted ? job.pageCount : 1); number++) {
        const page = await job.page(this.store, number);
        for (const item of page.items) {
          if (page.ended.has(item.index) || page.told.has(item.index)) continue;
          people.add(this.host.personOf(item));
          next = Math.min(next, entries.next(this.waitOf(job, item)));
        }
      }
    }
    return {
      next: next === Infinity ? now : Math.max(next, now),
      people: isCounted && people.size > 0 ? people.size : undefined,
    };
  }

  protected override withTold(job: OpenJob<I, O, E>, item: I): Operation[] {
    const remove = this.keys.ended(job.arrival, item.index);
    this.toTell.delete(asName(remove));
    return [{ table: this.table, remove }];
  }

  protected override withUnaccepted(arrival: Buffer, item: I, order: O): Promise<Removals> {
    const wait = this.host.waitOf(itemKey(this.options.node, arrival, item.index), item, order);
    return this.wait.polling(this.options.space).removals(wait);
  }

  private async commitWaits(
    job: OpenJob<I, O, E>,
    items: readonly I[],
    untold: readonly Operation[],
  ): Promise<void> {
    if (job.isLong) return this.commit(job, this.partsOf(job, items, untold));
    const { operations, committed } = this.begin(job, items);
    job.inNextCommit.push(...operations, ...untold);
    try {
      await this.commit(job);
    } finally {
      committed();
    }
  }

  /** A wait may be polled as soon as its part is written; its outcome waits until the job is on record. */
  private *partsOf(
    job: OpenJob<I, O, E>,
    items: readonly I[],
    untold: readonly Operation[],
  ): Generator<readonly Operation[]> {
    for (let from = 0; from < untold.length; from += waitsAtOnce)
      yield untold.slice(from, from + waitsAtOnce);
    for (let from = 0; from < items.length; from += waitsAtOnce) {
      const { operations, committed } = this.begin(job, items.slice(from, from + waitsAtOnce));
      try {
        yield operations;
      } finally {
        committed();
      }
    }
  }

  private begin(job: OpenJob<I, O, E>, items: readonly I[]): ReturnType<WaitPolling<W>['begin']> {
    return this.wait.polling(this.options.space).begin(items.map((item) => this.waitOf(job, item)));
  }

  private record(by: number): void {
    this.recorded = Math.max(0, this.recorded + by);
    this.recorder.changed(this.counter).catch((fault: unknown) => {
      this.host.fault(fault);
    });
  }

  private async endItem(
    job: OpenJob<I, O, E>,
    page: ItemPage<I, E>,
    item: I,
    outcome: E,
    removals: readonly Operation[],
  ): Promise<void> {
    job.inNextCommit.push(...removals);
    if (page.ended.has(item.index) || page.told.has(item.index)) {
      await this.changed(job, page);
      return;
    }
    job.inNextCommit.push(this.willTell(job, item));
    const onRecord = this.putEnd(job, page, item, outcome);
    this.waiting = Math.max(0, this.waiting - 1);
    this.record(-1);
    this.host.changed();
    await onRecord;
    this.track(this.tell(job, page, item, outcome, false));
  }

  /** Ends an item that cannot be waited for. */
  private async endAtOnce(job: OpenJob<I, O, E>, page: ItemPage<I, E>, item: I): Promise<void> {
    const outcome = this.host.atOnce(item);
    if (outcome !== undefined) await this.settle(job, page, item, outcome);
  }

  /** Notes that the outcome of an item is yet to be told: the result puts that on record. */
  private willTell(job: OpenJob<I, O, E>, item: I): Operation {
    const put = this.keys.ended(job.arrival, item.index);
    this.toTell.add(asName(put));
    return { table: this.table, put, value: 0 };
  }

  /** Tells what an earlier start has left; what ends in this one is told as it ends. */
  private async tellEnded(): Promise<void> {
    const { allEnded } = this.keys;
    for (let last: Buffer | undefined; !this.isClosing;) {
      const found = await this.store.keys(this.table, { ...after(allEnded, last), limit: readAtOnce });
      if (found.length === 0) return;
      for (const key of found) {
        last = key;
        const { arrival, index } = endedIn(key);
        const name = asName(key);
        const isFound = await this.withItem(arrival, index, async (job, page, item) => {
          if (this.toTell.has(name)) return;
          const ended = page.ended.get(index);
          if (ended) {
            this.toTell.add(name);
            await this.tellAgain(job, page, item, ended);
          } else if (!page.told.has(index) && this.host.atOnce(item) !== undefined) {
            this.toTell.add(name);
            await this.endAtOnce(job, page, item);
          } else this.writeAside([{ table: this.table, remove: key }]);
        });
        if (!isFound) this.writeAside([{ table: this.table, remove: key }]);
      }
    }
  }

  /** Cancels what the resets are for. One sweep is under way at a time: what comes meanwhile is met by the next. */
  private async sweepResets(): Promise<void> {
    if (this.isSweepingResets) return;
    this.isSweepingResets = true;
    try {
      while (!this.resets.isEmpty) {
        const met = this.resets.all;
        await Promise.allSettled(this.committing.values());
        const isMeant: Meant<I, O> = (_record, arrival, item) => this.resets.isReset(arrival, item);
        await this.sweep('reset', isMeant, numbersIn(met.map(([, record]) => record)));
        if (this.isClosing) return;
        await this.store.write(this.withoutResets(met));
        this.resets.forget(met);
      }
    } finally {
      this.isSweepingResets = false;
    }
  }

  private async restoreLost(): Promise<void> {
    const entries = this.wait.polling(this.options.space);
    if (this.isClosing || !(await entries.hasLost())) return;
    for await (const { job, page, item } of this.waitingItems())
      if (!(await entries.isIntact(this.waitOf(job, item)))) await this.beginAgain(job, page, item);
  }

  private async beginAgain(job: OpenJob<I, O, E>, page: ItemPage<I, E>, item: I): Promise<void> {
    if (job.record.space !== this.options.space) return;
    if (this.host.atOnce(item) !== undefined) {
      job.inNextCommit.push(this.willTell(job, item));
      return this.endAtOnce(job, page, item);
    }
    const { operations, committed } = this.begin(job, [item]);
    try {
      await this.store.write(operations);
    } finally {
      committed();
    }
  }

  private async sweep(
    reason: 'reset' | 'moved',
    isMeant: Meant<I, O>,
    phones?: readonly string[],
  ): Promise<number> {
    let count = 0;
    await inBulk(this.waitingItems(phones), ({ job, page, item }) => {
      if (!isMeant(job.record, job.arrival, item)) return undefined;
      count += 1;
      return this.cancel(reason, job, page, item);
    });
    return count;
  }

  private async cancel(
    reason: 'reset' | 'moved',
    job: OpenJob<I, O, E>,
    page: ItemPage<I, E>,
    item: I,
  ): Promise<void> {
    this.retain(job);
    try {
      const entries = this.wait.polling(job.record.space);
      const { operations, seen, committed } = await entries.removals(this.waitOf(job, item));
      try {
        await this.endItem(job, page, item, this.host.cancelled(reason, item, await seen()), operations);
      } finally {
        committed();
      }
    } finally {
      this.dismiss(job);
    }
  }

  private async *waitsOf(items: AsyncIterable<WaitingItem<I, O, E>>): AsyncGenerator<W> {
    for await (const { job, item } of items) yield this.waitOf(job, item);
  }

  /** The items that wait: all, or those for these numbers. */
  private async *waitingItems(phones?: readonly string[]): AsyncGenerator<WaitingItem<I, O, E>> {
    if (!phones) {
      yield* this.allWaiting();
      return;
    }
    const entries = this.wait.polling(this.options.space);
    for (const phone of new Set(phones)) {
      // What was lost is not found by its number.
      const isFound = !(await entries.hasLost(phone));
      yield* isFound ? this.waitingFor(phone, entries) : this.filtered(phone);
    }
  }

  private async *filtered(phone: string): AsyncGenerator<WaitingItem<I, O, E>> {
    for await (const each of this.allWaiting()) if (each.item.phone === phone) yield each;
  }

  private async *waitingFor(phone: string, entries: WaitPolling<W>): AsyncGenerator<WaitingItem<I, O, E>> {
    for await (const { item } of entries.waitsFor(phone)) {
      const { node, arrival, index } = itemIn(item);
      const job = node === this.options.node && !this.isClosing ? await this.jobAt(arrival) : undefined;
      if (job) yield* this.waitingIn(job, pageOf(index), (found) => found.index === index);
    }
  }

  /** All items that wait, in the order of arrival; a hundred jobs in memory at a time. */
  private async *allWaiting(): AsyncGenerator<WaitingItem<I, O, E>> {
    for (let last: Buffer | undefined; !this.isClosing;) {
      const reading = this.open.read();
      try {
        const jobs = await this.page(last, readAtOnce);
        const final = jobs.at(-1);
        if (!final) return;
        last = final.key;
        for (const each of jobs) {
          const job = reading.isOld(each.name) ? await this.jobAt(each.arrival) : this.retain(each);
          if (job) yield* this.waitingIn(job);
        }
      } finally {
        reading.end();
      }
      // Reads may be answered at once: others have their turn between two pages.
      await nextTurn();
    }
  }

  /** Those of a job, or of one page of it. Dismisses the job. */
  private async *waitingIn(
    job: OpenJob<I, O, E>,
    only?: number,
    isMeant: (item: I) => boolean = () => true,
  ): AsyncGenerator<WaitingItem<I, O, E>> {
    const [first, last] = only === undefined ? [0, job.pageCount - 1] : [only, only];
    try {
      for (let number = first; number <= last && !this.isClosing; number++) {
        if (number > first) await nextTurn();
        const page = await job.page(this.store, number);
        for (const item of page.items)
          if (isMeant(item) && !page.ended.has(item.index) && !page.told.has(item.index))
            yield { job, page, item };
      }
    } finally {
      this.dismiss(job);
    }
  }

  /** False when there is no such item. */
  private async withItem(
    arrival: Buffer,
    index: number,
    work: (job: OpenJob<I, O, E>, page: ItemPage<I, E>, item: I) => Promise<void>,
  ): Promise<boolean> {
    const job = await this.jobAt(arrival);
    if (!job) return false;
    try {
      const page = await job.page(this.store, pageOf(index));
      const item = page.items.find((each) => each.index === index);
      if (!item) return false;
      if (!this.isClosing) await work(job, page, item);
      return true;
    } finally {
      this.dismiss(job);
    }
  }

  /** As `withItem`, for an item that still waits; false for any other. */
  private async withOpen(
    item: Buffer,
    work: (job: OpenJob<I, O, E>, page: ItemPage<I, E>, item: I) => Promise<void>,
  ): Promise<boolean> {
    const { arrival, index } = itemIn(item);
    let isOpen = false;
    await this.withItem(arrival, index, async (job, page, found) => {
      isOpen = !page.ended.has(index) && !page.told.has(index);
      if (isOpen) await work(job, page, found);
    });
    return isOpen;
  }

  private async page(last: Buffer | undefined, limit: number): Promise<OpenJob<I, O, E>[]> {
    const found = await this.store.page<JobRecord<I, O>>(this.table, {
      ...after(this.keys.jobs, last),
      limit,
    });
    return found.map(({ key, value }) => OpenJob.found(this.table, this.keys, arrivalIn(key), value));
  }

  private waitOf(job: OpenJob<I, O, E>, item: I): W {
    return this.host.waitOf(itemKey(this.options.node, job.arrival, item.index), item, job.record.order);
  }
}
