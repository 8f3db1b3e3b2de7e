import { endOf, type StoreEntry, type Store, type Table } from '../state/store';
import { OpenJob, type OutboxItem, type ItemPage } from './open-job';
import { readAtOnce } from './outbox';
import { after, arrivalIn, itemKey, jobKey, layout, pageOf, type JobRecord, type Layout } from './layout';

/** An item that has been accepted and has not ended. */
export interface Queued<I> {
  /** Its name outside its outbox; see `itemIn`. */
  readonly key: Buffer;
  readonly item: I;
  readonly advisor: string;
  /** When the item was accepted, by the store's time. */
  readonly since: number;
  readonly isBegun: boolean;
  /** The time until which the item is held, in epoch milliseconds. */
  readonly notBefore: number | undefined;
  /** The name of the item's list; undefined for an item that came alone. */
  readonly list: Buffer | undefined;
}

/** A job of several items, and how far it has come. */
export interface QueuedList {
  readonly key: Buffer;
  readonly advisor: string;
  readonly since: number;
  readonly total: number;
  readonly done: number;
}

interface QueuedOrder {
  readonly advisor: string;
}

export interface QueueSource<I> {
  readonly store: Store;
  readonly node: string;
  readonly space: string;
  /** Whether the item is to be cancelled as soon as it is read. */
  isCancelled(arrival: Buffer, item: I): boolean;
}

/** Whether an item of a job is yet to begin; without an index, whether there is such a job. */
export const hasNotEnded = async (
  store: Store,
  table: Table,
  node: string,
  arrival: Buffer,
  index?: number,
): Promise<boolean> => {
  const keys = layout(node);
  const found = await store.get<JobRecord<OutboxItem, unknown>>(table, keys.job(arrival));
  if (!found || index === undefined) return found !== undefined;
  const page = await OpenJob.found(table, keys, arrival, found.value).page(store, pageOf(index));
  const isThere = page.items.some((item) => item.index === index);
  return isThere && !page.begun.has(index) && !page.ended.has(index) && !page.told.has(index);
};

/** The most lists that are read to count the items in the queue; the rest is estimated. */
export const mostListsCounted = 1000;
const table = 'work';

/**
 * Reads what a node's outbox of requests has on record, for display: page by page, in the order of arrival, independent
 * of the outbox in memory.
 */
export class QueueReader<I extends OutboxItem> {
  private readonly keys: Layout;

  constructor(private readonly source: QueueSource<I>) {
    this.keys = layout(source.node);
  }

  /**
   * Items that have not been told, duplicates included. Above a thousand lists, the rest is estimated by the average
   * length of those read: lists are carried out in the order of arrival, so nearly all of theirs are yet to be told.
   */
  async count(): Promise<number> {
    const { jobs } = this.keys;
    const [all, lists] = await Promise.all([
      this.source.store.count(table, jobs, endOf(jobs)),
      this.listCount(),
    ]);
    let count = all - lists;
    let read = 0;
    let items = 0;
    for await (const { total, done } of this.lists()) {
      count += total - done;
      items += total;
      read += 1;
      if (read === mostListsCounted) return count + Math.round(((lists - read) * items) / read);
    }
    return count;
  }

  /** The number of lists, counted by keys: no record is read. */
  listCount(): Promise<number> {
    const { lists } = this.keys;
    return this.source.store.count(table, lists, endOf(lists));
  }

  async *lists(skip = 0): AsyncGenerator<QueuedList> {
    for await (const arrival of this.arrivalsOfLists(skip)) {
      const found = await this.source.store.get<JobRecord<I, QueuedOrder>>(table, this.keys.job(arrival));
      if (found?.value.space !== this.source.space) continue;
      const { at, clockAt = at, count, order, told } = found.value;
      const { advisor } = order;
      const key = jobKey(this.source.node, arrival);
      yield { key, advisor, since: clockAt, total: count, done: told['total'] ?? 0 };
    }
  }

  /** Items in the order of arrival; single items that `skip` passes over are not read. */
  async *items(skip = 0): AsyncGenerator<Queued<I>> {
    const { jobs } = this.keys;
    let left = skip;
    let from = jobs;
    for await (const list of this.arrivalsOfLists()) {
      const key = this.keys.job(list);
      left = yield* this.singles(from, key, left);
      from = after(jobs, key).from;
      const found = await this.source.store.get<JobRecord<I, QueuedOrder>>(table, key);
      if (!found) continue;
      for await (const item of this.openItems(list, found.value)) if (left-- <= 0) yield item;
      left = Math.max(left, 0);
    }
    yield* this.singles(from, endOf(jobs), left);
  }

  /** Returns how many items are still to be passed over. */
  private async *singles(from: Buffer, to: Buffer, skip: number): AsyncGenerator<Queued<I>, number> {
    const { store } = this.source;
    const count = skip > 0 ? await store.count(table, from, to) : 0;
    if (count <= skip && skip > 0) return skip - count;
    let start = from;
    for (let first = skip; ; first = 0) {
      const page: readonly StoreEntry<JobRecord<I, QueuedOrder>>[] = await store.page(table, {
        from: start,
        to,
        limit: readAtOnce,
        skip: first,
      });
      for (const { key, value } of page) yield* this.openItems(arrivalIn(key), value);
      const last = page.at(-1);
      if (!last || page.length < readAtOnce) return 0;
      start = after(this.keys.jobs, last.key).from;
    }
  }

  private async *openItems(arrival: Buffer, record: JobRecord<I, QueuedOrder>): AsyncGenerator<Queued<I>> {
    const { store, node, space } = this.source;
    if (record.space !== space) return;
    const job = OpenJob.found<I, QueuedOrder, unknown>(table, this.keys, arrival, record);
    const list = record.count > 1 ? jobKey(node, arrival) : undefined;
    for (let number = 0; number < job.pageCount; number++) {
      const page: ItemPage<I, unknown> = await job.page(store, number);
      for (const item of page.items) {
        const { index } = item;
        if (page.ended.has(index) || page.told.has(index) || this.source.isCancelled(arrival, item)) continue;
        yield {
          key: itemKey(node, arrival, index),
          item,
          advisor: item.advisor ?? record.order.advisor,
          since: record.clockAt ?? record.at,
          isBegun: page.begun.has(index),
          notBefore: page.held.get(index),
          list,
        };
      }
      job.forget(page);
    }
  }

  private async *arrivalsOfLists(skip = 0): AsyncGenerator<Buffer> {
    const { lists } = this.keys;
    for (let last: Buffer | undefined; ;) {
      const range = { ...after(lists, last), limit: readAtOnce, ...(!last && { skip }) };
      const page: readonly StoreEntry<0>[] = await this.source.store.page(table, range);
      for (const { key } of page) yield arrivalIn(key);
      last = page.at(-1)?.key;
      if (!last || page.length < readAtOnce) return;
    }
  }
}
