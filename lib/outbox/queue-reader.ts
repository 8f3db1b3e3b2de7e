import { endOf, pagesUnder, type Store, type StoreEntry } from '../state/store';
import {
  arrivalIn,
  itemAt,
  keysOf,
  records,
  type Counts,
  type ItemData,
  type ItemRecord,
  type ListRecord,
  type QueueKeys,
  type Shared,
  type SharedRecord,
} from './records';

export type Pending = Awaited<ReturnType<typeof pendingIn>>;

export const sumOfPending = (counts: readonly Pending[]): Pending =>
  counts.reduce((sum, { items, waits }) => ({ items: sum.items + items, waits: sum.waits + waits }), {
    items: 0,
    waits: 0,
  });

const readAtOnce = 100;

/** How many items have not been emitted, and how many waits. */
export const pendingIn = async (store: Store, node: string) => {
  const { items, waits } = keysOf(node);
  const count = (prefix: Buffer): Promise<number> => store.count(records, prefix, endOf(prefix));
  return { items: await count(items), waits: await count(waits) };
};

/** Reads what a node's queue has saved, for display: page by page, in the order of arrival, independent of the queue. */
export class QueueReader<S extends Shared = Shared> {
  private readonly keys: QueueKeys;

  constructor(
    private readonly store: Store,
    node: string,
    private readonly space: string,
    /** Whether the item must be cancelled as soon as it is read. */
    private readonly isCancelled = (_arrival: Buffer, _item: ItemData) => false,
  ) {
    this.keys = keysOf(node);
  }

  /** Items that have not been emitted, or lists. */
  count(kind: 'items' | 'lists' = 'items'): Promise<number> {
    const prefix = this.keys[kind];
    return this.store.count(records, prefix, endOf(prefix));
  }

  /** Messages of several items, and how far they have come. */
  async *lists(skip = 0) {
    for await (const { key: at, value } of this.saved<ListRecord>(this.keys.lists, skip)) {
      if (value.space !== this.space) continue;
      const arrival = arrivalIn(at);
      const counts = await this.store.get<Counts>(records, this.keys.counts(arrival));
      yield {
        arrival,
        advisor: value.shared.advisor,
        since: value.clockAt ?? value.at,
        total: value.count,
        done: counts?.value['total'] ?? 0,
      };
    }
  }

  /**
   * Items or waits that have not finished, in the order of arrival; those that `skip` passes over are not read. All times
   * are by the environment's clock.
   */
  async *items(skip = 0, kind: 'items' | 'waits' = 'items') {
    let list: { readonly arrival: Buffer; readonly shared: SharedRecord<S> | undefined } | undefined;
    for await (const { key: at, value } of this.saved<ItemRecord<ItemData, S>>(this.keys[kind], skip)) {
      const { arrival } = itemAt(at);
      const { item, single, state, notBefore, seen } = value;
      if (!single && !list?.arrival.equals(arrival)) list = { arrival, shared: await this.sharedAt(arrival) };
      const shared = single ?? list?.shared;
      const isOpen = state === 'accepted' || state === 'started';
      if (shared?.space !== this.space || !isOpen || this.isCancelled(arrival, item)) continue;
      yield {
        arrival,
        item,
        shared: shared.shared,
        seen,
        advisor: item.advisor ?? shared.shared.advisor,
        since: shared.clockAt ?? shared.at,
        isStarted: state === 'started',
        notBefore,
        isOfList: single === undefined,
      };
    }
  }

  /** Whether an item has not started, or a wait not ended; without an index, whether there is such a list. */
  async isWaiting(arrival: Buffer, index?: number, isWait = false): Promise<boolean> {
    const { store } = this;
    if (index === undefined) return (await store.get(records, this.keys.list(arrival))) !== undefined;
    const found = await store.get<ItemRecord>(records, this.keys.item(arrival, index, isWait));
    return found?.value.state === 'accepted';
  }

  private async sharedAt(arrival: Buffer): Promise<SharedRecord<S> | undefined> {
    return (await this.store.get<SharedRecord<S>>(records, this.keys.list(arrival)))?.value;
  }

  private async *saved<T>(prefix: Buffer, skip: number): AsyncGenerator<StoreEntry<T>> {
    for await (const page of pagesUnder<T>(this.store, records, prefix, readAtOnce, skip)) yield* page;
  }
}
