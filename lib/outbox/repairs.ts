import { memoryOf } from './queue-memory';
import {
  key,
  keysUnder,
  pagesUnder,
  unchanged,
  type Operation,
  type Store,
  type StoreEntry,
} from '../state/store';
import {
  arrivalIn,
  heldLane,
  indexedIn,
  indexKeysOf,
  itemAt,
  keysOf,
  laneFor,
  newArrival,
  records,
  timetable,
  type CancelRecord,
  type Indexed,
  type ItemRecord,
  type ListRecord,
  type SharedRecord,
} from './records';

const readAtOnce = 64;
const indexedAtOnce = 1000;
/** A start waits for the removal. */
const removedAtOnce = 1000;

/** Rewrites the timetable and the indexes of a node where entries were lost, as after damage. */
export const restoreTimetable = async (store: Store, node: string): Promise<void> => {
  const { items, waits, list, due } = keysOf(node);
  if (!store.engine.hasLostKeys) return;
  const placesOf = async ({ key: at, value }: StoreEntry<ItemRecord>, isWait: boolean): Promise<Buffer[]> => {
    const { arrival, index } = itemAt(at);
    const { state, notBefore, item, single, seen } = value;
    const isHeld = state === 'accepted' && notBefore !== undefined;
    const shared = single ?? (await store.get<SharedRecord>(records, list(arrival)))?.value;
    const isIndexed = shared && (isHeld || (isWait && state === 'accepted'));
    const indexKeys = isIndexed ? indexKeysOf(store, node, shared, arrival, item, isWait, seen) : [];
    const [lane, time] = isHeld ? [heldLane, notBefore] : [laneFor(1, isWait), 0];
    return [...indexKeys, due(lane, time, arrival, index)];
  };
  for (const kind of [items, waits])
    for await (const page of pagesUnder<ItemRecord>(store, records, kind, readAtOnce)) {
      const places = await Promise.all(page.map((each) => placesOf(each, kind === waits)));
      await store.write(places.flat().map((put): Operation => ({ table: timetable, put, value: 0 })));
    }
};

/**
 * Cancels a wait whose node does not run: nothing finds it from now on, and it ends if the node returns. False when it
 * has ended or was cancelled, belongs to none of these spaces, or when its node runs here.
 */
export const cancelPausedWait = async (
  store: Store,
  spaces: readonly unknown[],
  node: string,
  arrival: Buffer,
  index: number,
): Promise<boolean> => {
  const { latest, cancelling } = memoryOf(store, node);
  if (latest) return false;
  const { item: itemKey, list, cancel } = keysOf(node);
  const write = async (): Promise<boolean> => {
    const at = itemKey(arrival, index, true);
    const found = await store.get<ItemRecord>(records, at);
    if (found?.value.state !== 'accepted') return false;
    const { item, single, seen } = found.value;
    const shared = single ?? (await store.get<SharedRecord>(records, list(arrival)))?.value;
    if (!shared || !spaces.includes(shared.space)) return false;
    const indexKeys = indexKeysOf(store, node, shared, arrival, item, true, seen);
    const [first] = indexKeys;
    const indexed = first && (await store.get(timetable, first));
    if (!indexed) return false;
    const value: CancelRecord = { list: arrival, index };
    return store.write(
      [
        { table: records, put: cancel(newArrival(store)), value },
        ...indexKeys.map((remove): Operation => ({ table: timetable, remove })),
      ],
      [unchanged(records, at, found), unchanged(timetable, first, indexed)],
    );
  };
  // A start of the node waits for it.
  const written = write();
  cancelling.add(written);
  return written.finally(() => cancelling.delete(written));
};

/** Removes what finds waits and held items by number that are meant: one whose record is damaged tells no number. */
export const removeIndexed = async (store: Store, isMeant: (item: Indexed) => boolean): Promise<void> => {
  for (const kind of ['number', 'member', 'held'])
    for await (const found of keysUnder(store, timetable, key(kind), indexedAtOnce)) {
      const meant = found.filter((at) => isMeant(indexedIn(at)));
      if (meant.length > 0) await store.write(meant.map((remove) => ({ table: timetable, remove })));
    }
};

/**
 * Removes the parts of long lists that were never accepted: an earlier start, for which `isOwn` is false, was
 * interrupted.
 */
export const dropUnaccepted = async (
  store: Store,
  node: string,
  isOwn: (startId: string, arrival: Buffer) => boolean,
): Promise<void> => {
  const { lists, list, itemsOf, waitsOf, message } = keysOf(node);
  const remove = (at: Buffer): Operation => ({ table: records, remove: at });
  for await (const page of pagesUnder<ListRecord>(store, records, lists, readAtOnce))
    for (const entry of page) {
      const arrival = arrivalIn(entry.key);
      if (entry.value.isComplete || isOwn(entry.value.startId, arrival)) continue;
      // An earlier start may have completed it during the read.
      const write = (operations: readonly Operation[]): Promise<boolean> =>
        store.write(operations, [unchanged(records, entry.key, entry)]);
      for (const kind of [itemsOf(arrival), waitsOf(arrival)])
        for await (const found of pagesUnder<ItemRecord>(store, records, kind, removedAtOnce)) {
          // Their entries in the timetable are dropped as they are met.
          const indexKeys = found.flatMap(({ value: { item } }) =>
            indexKeysOf(store, node, entry.value, arrival, item, true, undefined),
          );
          const operations = [
            ...found.map(({ key: at }) => remove(at)),
            ...indexKeys.map((at): Operation => ({ table: timetable, remove: at })),
          ];
          if (!(await write(operations))) break;
        }
      await write([message(arrival), list(arrival)].map(remove));
    }
};
