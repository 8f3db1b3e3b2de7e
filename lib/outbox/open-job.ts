import { nextKey, type Operation, type Store, type Table } from '../state/store';
import {
  pageOf,
  itemsPerPage,
  removalsOf,
  type Ended,
  type JobRecord,
  type Layout,
  type MessageRecord,
  type StepsRecord,
} from './layout';
import { liveMessages, storable, type Input } from './storable-message';
import { setVisits } from './visits';

/** One recipient of a message, or one contact, group or id. */
export interface OutboxItem {
  readonly index: number;
  /** The number that the item is for, as `reset` names it. */
  readonly phone?: string;
  /** The item's own advisor, in place of the message's. */
  readonly advisor?: string;
  /** Places of the same number and text again in the list: they are carried out once, and told with their original. */
  readonly duplicates?: readonly { readonly index: number }[];
}

/** An item that was accepted. */
export interface AcceptedItem<I, O> {
  readonly item: I;
  /** What holds for all items of the message. */
  readonly order: O;
  /** The entry of the list that the item was made from. */
  readonly entry: unknown;
  /** Unique among the items of a node, also over restarts. */
  readonly name: string;
  /** The service for which the item was accepted. */
  readonly space: string;
  /** When the item was accepted, by the store's time. */
  readonly since: number;
  /** The same object for all items of a message, while one of them is in memory. */
  readonly job: object;
}

/** A message and its items, as a node accepts them. */
export interface NewJob<I extends OutboxItem, O> {
  readonly message: Record<string, unknown>;
  readonly order: O;
  /** Duplicates are not among them: their originals name them. */
  readonly items: readonly I[];
  /** Duplicates included. */
  readonly count: number;
  /** What the list held for each item, by index. */
  readonly entries?: readonly unknown[] | undefined;
  /** Called as the job goes on record: what this call puts on record is in the same commit. */
  readonly onRecord?: (() => void) | undefined;
}

/** A hundred items of a job, and how far each has come. */
export class ItemPage<I extends OutboxItem, E> {
  readonly begun: Set<number>;
  readonly ended: Map<number, Ended<E>>;
  readonly told: Set<number>;
  /** Until when items are held, by index. */
  readonly held: Map<number, number>;
  /** How often the work of items was tried and delayed, by index. */
  readonly delays: Map<number, number>;
  /** Until when items were held that are no longer, by index. */
  private readonly released: Map<number, number>;

  constructor(
    readonly number: number,
    readonly items: readonly I[],
    steps?: StepsRecord<E>,
  ) {
    this.begun = new Set(steps?.begun);
    this.ended = new Map(steps?.ended);
    this.told = new Set(steps?.told);
    this.held = new Map(steps?.held);
    this.delays = new Map(steps?.delays);
    this.released = new Map(steps?.released);
  }

  hold(index: number, notBefore: number): void {
    this.begun.delete(index);
    this.released.delete(index);
    this.held.set(index, notBefore);
  }

  letGo(index: number): void {
    const notBefore = this.held.get(index);
    if (notBefore === undefined) return;
    this.held.delete(index);
    this.released.set(index, notBefore);
  }

  /** The time from which the age of an item counts, where it is or was held. */
  heldUntil(index: number): number | undefined {
    return this.held.get(index) ?? this.released.get(index);
  }

  end(index: number, ended: Ended<E>): void {
    this.begun.delete(index);
    this.released.delete(index);
    this.delays.delete(index);
    this.ended.set(index, ended);
  }

  get steps(): StepsRecord<E> {
    const { begun, ended, told, held, released, delays } = this;
    return {
      ...(begun.size > 0 && { begun: [...begun] }),
      ...(ended.size > 0 && { ended: [...ended] }),
      ...(told.size > 0 && { told: [...told] }),
      ...(held.size > 0 && { held: [...held] }),
      ...(released.size > 0 && { released: [...released] }),
      ...(delays.size > 0 && { delays: [...delays] }),
    };
  }
}

type Counts = Record<string, number>;

const weightOf = ({ duplicates }: OutboxItem): number => 1 + (duplicates?.length ?? 0);

/** The kind under which the duplicates of an outcome are counted once more. */
export const duplicatesOf = (kind: string): string => `duplicates ${kind}`;

const countIn = (counts: Counts, kinds: readonly string[], item: OutboxItem, sign: 1 | -1 = 1): void => {
  const add = (kind: string, by: number): void => {
    counts[kind] = (counts[kind] ?? 0) + by * sign;
  };
  for (const kind of kinds) add(kind, weightOf(item));
  if (item.duplicates) add(duplicatesOf(kinds[0] ?? ''), item.duplicates.length);
};

/** Pages of a long list that are written in one commit. */
const pagesAtOnce = 50;

/** A job in memory: on its way to the record, or with something in flight. */
export class OpenJob<I extends OutboxItem, O, E> {
  /** Where its record is. */
  readonly key: Buffer;
  /** Unique in this process. */
  readonly name: string;
  readonly toDo: { readonly page: ItemPage<I, E>; readonly item: I }[] = [];
  readonly dirty = new Set<ItemPage<I, E>>();
  /** Operations that belong into one commit with the next steps. */
  readonly inNextCommit: Operation[] = [];
  private readonly pages = new Map<number, ItemPage<I, E>>();
  private nextPage = 0;
  /** Pages whose items are in `toDo`, or have been. */
  private readonly queuedPages = new Set<number>();
  private areAllQueued = false;
  /** How many outcomes of each kind have left the node; `record.told` counts those that are on record as told. */
  private readonly emitted: Counts;
  /** Items that are yet to leave, duplicates included; `untold` are yet to be put on record as told. */
  remaining: number;
  private untold: number;
  isNew = false;
  private areCountsNew = false;
  private isRemoved = false;
  private original: Input | undefined;
  message: MessageRecord | undefined;
  /** About the number of bytes of a new job's message. */
  bytes = 0;
  onRecord: (() => void) | undefined;
  /** How many users keep the job in memory at the moment. */
  holders = 0;
  /** What the node keeps with a job in memory. */
  attachment: unknown;

  private constructor(
    private readonly table: Table,
    private readonly keys: Layout,
    readonly arrival: Buffer,
    public record: JobRecord<I, O>,
  ) {
    this.key = keys.job(arrival);
    this.name = this.key.toString('latin1');
    const told = record.told['total'] ?? 0;
    this.emitted = { ...record.told };
    this.remaining = record.count - told;
    this.untold = this.remaining;
  }

  static accepted<I extends OutboxItem, O, E>(
    table: Table,
    keys: Layout,
    arrival: Buffer,
    { message, items, entries, order, count, onRecord }: NewJob<I, O>,
    about: Pick<JobRecord<I, O>, 'at' | 'clockAt' | 'space' | 'type' | 'life'>,
  ): OpenJob<I, O, E> {
    const job = new OpenJob<I, O, E>(table, keys, arrival, { ...about, order, count, told: {} });
    const { dropped, bytes, ...stored } = storable({ message, entries });
    job.bytes = bytes;
    job.message = dropped ? { ...stored, dropped } : stored;
    if (dropped) liveMessages.keep(job.name, { message, entries });
    for (let number = 0, from = 0; number < job.pageCount; number++) {
      let to = from;
      while (to < items.length && pageOf(items[to]?.index ?? 0) === number) to += 1;
      job.pages.set(number, new ItemPage(number, items.slice(from, to)));
      from = to;
    }
    job.original = { message, entries };
    job.isNew = true;
    job.onRecord = onRecord;
    return job;
  }

  static found<I extends OutboxItem, O, E>(
    table: Table,
    keys: Layout,
    arrival: Buffer,
    record: JobRecord<I, O>,
  ): OpenJob<I, O, E> {
    const job = new OpenJob<I, O, E>(table, keys, arrival, record);
    job.message = record.single;
    return job;
  }

  get pageCount(): number {
    return Math.ceil(this.record.count / itemsPerPage);
  }

  /** A long job is written in several commits, its job record last. */
  get isLong(): boolean {
    return this.isNew && this.pageCount > 1;
  }

  /** The message as it came while this process has it, else as it was stored; `dropped` says that parts could not be. */
  get input(): Input & { readonly dropped: boolean } {
    const live = this.original ?? liveMessages.get(this.name);
    if (live) return { ...live, dropped: false };
    const { message = {}, entries, dropped = false, visits } = this.message ?? {};
    if (visits) setVisits(message, visits);
    return { message, entries, dropped };
  }

  acceptedItem(item: I): AcceptedItem<I, O> {
    const { order, space, at } = this.record;
    return {
      item,
      order,
      entry: this.input.entries?.[item.index],
      name: `${this.arrival.toString('hex')} ${item.index}`,
      space,
      since: at,
      job: this,
    };
  }

  /** Everything is told, and the records are removed or about to be. */
  get isOver(): boolean {
    return this.isRemoved;
  }

  /** Nothing of the job is in flight. */
  get isAtRest(): boolean {
    if (this.isNew || this.holders > 0 || this.dirty.size > 0) return false;
    for (const { ended } of this.pages.values()) if (ended.size > 0) return false;
    return true;
  }

  /** All items of a new job are to be done. */
  queueAll(): void {
    for (const page of this.pages.values()) for (const item of page.items) this.toDo.push({ page, item });
    this.markRead();
  }

  /** All items of a job that is not on record yet. */
  *newItems(): Generator<I> {
    for (const { items } of this.pages.values()) yield* items;
  }

  /** No page is left to be read: what else is to be done, such as held items, is taken up by itself. */
  markRead(): void {
    this.nextPage = this.pageCount;
    this.areAllQueued = true;
  }

  /** False when the page is queued, or has been. */
  markQueued({ number }: ItemPage<I, E>): boolean {
    if (this.areAllQueued || this.queuedPages.has(number)) return false;
    this.queuedPages.add(number);
    return true;
  }

  /** Some of its items are held. */
  get isHeld(): boolean {
    for (const { held } of this.pages.values()) if (held.size > 0) return true;
    return false;
  }

  /** All its pages are in memory, or have been. */
  get isRead(): boolean {
    return this.nextPage >= this.pageCount;
  }

  /** The next item to be done; `load` when a page must be read for it. */
  next(): { readonly page: ItemPage<I, E>; readonly item: I } | 'load' | undefined {
    return this.toDo.shift() ?? (this.isRead ? undefined : 'load');
  }

  /** Takes items out that have not begun. */
  drop(isMeant: (item: I) => boolean): { readonly page: ItemPage<I, E>; readonly item: I }[] {
    const dropped = this.toDo.filter(({ item }) => isMeant(item));
    if (dropped.length > 0) this.toDo.splice(0, Infinity, ...this.toDo.filter(({ item }) => !isMeant(item)));
    return dropped;
  }

  load(store: Store): Promise<ItemPage<I, E>> {
    return this.page(store, this.nextPage++);
  }

  async page(store: Store, number: number): Promise<ItemPage<I, E>> {
    const known = this.pages.get(number);
    if (known) return known;
    const { table, keys, arrival, record } = this;
    const reading = Promise.all([
      store.get<StepsRecord<E>>(table, keys.steps(arrival, number)),
      record.single ? undefined : store.get<readonly I[]>(table, keys.items(arrival, number)),
      this.message ? undefined : store.get<MessageRecord>(table, keys.message(arrival)),
    ]);
    const [steps, items, message] = await reading;
    this.message ??= message?.value ?? { message: {} };
    const page = new ItemPage<I, E>(number, this.itemsOf(number, items?.value), steps?.value);
    // Where the steps were lost, nobody knows what had begun.
    const isInDoubt = store.isInDoubt?.(record.at) ?? false;
    const isUnsure = isInDoubt || (!steps && (await this.hasLostSteps(store, number)));
    // Later steps say more: a text that has begun with its acceptance may have been put off since.
    const hasBegun = isUnsure || (!steps && record.single?.begun === true);
    for (const { index } of page.items) {
      const isOpen = !page.ended.has(index) && !page.told.has(index);
      const isHeld = (page.held.get(index) ?? -Infinity) > (isInDoubt ? store.now() : -Infinity);
      if (isOpen && !isHeld && hasBegun) page.begun.add(index);
    }
    const meanwhile = this.pages.get(number);
    if (meanwhile) return meanwhile;
    this.pages.set(number, page);
    return page;
  }

  /** Whoever only reads a job needs no page twice. */
  forget(page: ItemPage<I, E>): void {
    this.pages.delete(page.number);
  }

  /** Counts an outcome that leaves; gives all that have left by then. */
  countEmitted(item: I, kinds: readonly string[]): Readonly<Counts> {
    countIn(this.emitted, kinds, item);
    this.remaining -= weightOf(item);
    return this.emitted;
  }

  /** Takes `countEmitted` back: the outcome did not arrive. */
  uncountEmitted(item: I, kinds: readonly string[]): void {
    countIn(this.emitted, kinds, item, -1);
    this.remaining += weightOf(item);
  }

  markTold(page: ItemPage<I, E>, item: I, kinds: readonly string[]): void {
    page.ended.delete(item.index);
    page.told.add(item.index);
    const told = { ...this.record.told };
    countIn(told, [...kinds, 'total'], item);
    this.record = { ...this.record, told };
    this.areCountsNew = true;
    this.untold -= weightOf(item);
  }

  /** All parts of a long list but its job record, which is written last: pages without one count for nothing. */
  *longParts(): Generator<Operation[]> {
    const { table, keys, arrival } = this;
    yield [{ table, put: keys.message(arrival), value: { ...this.message, order: this.record.order } }];
    const pages = [...this.pages.values()];
    for (let from = 0; from < pages.length; from += pagesAtOnce)
      yield pages
        .slice(from, from + pagesAtOnce)
        .map(({ number, items }) => ({ table, put: keys.items(arrival, number), value: items }));
  }

  /** What is to be written of the job now. */
  operations(): Operation[] {
    const { table, keys, arrival, record } = this;
    const operations = this.inNextCommit.splice(0);
    if (this.isRemoved) return operations;
    if (this.untold === 0) {
      this.isRemoved = true;
      liveMessages.forget(this.name);
      if (!this.isNew) operations.push(...removalsOf(table, keys, arrival, record.count));
      return operations;
    }
    if (this.isNew) this.addNew(operations);
    else if (this.areCountsNew) operations.push({ table, put: this.key, value: this.record });
    this.areCountsNew = false;
    for (const page of this.dirty) {
      operations.push({ table, put: keys.steps(arrival, page.number), value: page.steps });
    }
    this.dirty.clear();
    return operations;
  }

  private addNew(operations: Operation[]): void {
    const { table, keys, arrival } = this;
    const [page] = this.pages.values();
    const [item] = page?.items ?? [];
    if (this.record.count === 1 && page && item && this.message) {
      // The record of a single item says itself that it has begun: it needs no record of steps.
      const isBegun = page.begun.has(0) && page.ended.size === 0 && page.held.size === 0;
      const begun = isBegun && { begun: true as const };
      const single = { ...this.message, item, ...begun };
      this.record = { ...this.record, single };
      if (begun) this.dirty.delete(page);
    } else if (!this.isLong) for (const part of this.longParts()) operations.push(...part);
    operations.push({ table, put: this.key, value: this.record });
    if (this.record.count > 1) operations.push({ table, put: keys.list(arrival), value: 0 });
    this.isNew = false;
  }

  private hasLostSteps(store: Store, number: number): Promise<boolean> {
    const from = this.keys.steps(this.arrival, number);
    return store.hasLost(this.table, from, nextKey(from), this.record.at);
  }

  /** Of a page that cannot be read any more, only the indexes of its items are known. */
  private itemsOf(number: number, found: readonly I[] | undefined): readonly I[] {
    const { single, count } = this.record;
    if (single) return [single.item];
    if (found) return found;
    const from = number * itemsPerPage;
    const length = Math.min(itemsPerPage, count - from);
    return Array.from({ length }, (_, place) => ({ index: from + place }) as I);
  }
}

/** The jobs in memory: one object for each, for two would write over each other's steps. */
export class OpenJobs<J extends { readonly name: string }> {
  private readonly jobs = new Map<string, J>();
  /** For each read under way, the names of the jobs that have left memory since it began. */
  private readonly reads = new Set<Set<string>>();

  get size(): number {
    return this.jobs.size;
  }

  get(name: string): J | undefined {
    return this.jobs.get(name);
  }

  values(): Iterable<J> {
    return this.jobs.values();
  }

  add(job: J): void {
    this.jobs.set(job.name, job);
  }

  remove(job: J): void {
    if (this.jobs.get(job.name) !== job) return;
    this.jobs.delete(job.name);
    for (const left of this.reads) left.add(job.name);
  }

  /** Surrounds a read of the store: a job that left memory during the read may have been read in an old state. */
  read(): { isOld(name: string): boolean; end(): void } {
    const left = new Set<string>();
    this.reads.add(left);
    return { isOld: (name) => left.has(name), end: () => this.reads.delete(left) };
  }
}
