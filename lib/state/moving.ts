import { randomUUID } from 'node:crypto';
import { isShared, key, pagesUnder, type StoreEntry, type Operation, type Store, type Table } from './store';

/** Records that move together from one store to another. */
export interface Movable<T = unknown> {
  readonly table: Table;
  /** The first bytes of their keys. */
  readonly prefix: Buffer;
  /** Selects records; all are moved without it. */
  readonly isMeant?: (value: T) => boolean;
  /**
   * The operations that put a record into the other store, where hashes in keys differ. Without it, the key stays the
   * same.
   */
  readonly copy?: (entry: StoreEntry<T>, to: Store) => readonly Operation[];
}

/** A place for moved work. Nobody sees the work until it is released. */
export interface Destination {
  readonly store: Store;
  /** From now on, a process goes on with the work. Calling it again changes nothing. */
  release(): Promise<void>;
  /** Removes the work, and the place. */
  discard(): Promise<void>;
}

/**
 * How far a move has come, saved in the store that is moved from. The work does not begin in the other store while
 * there is a copy here: after a crash it would begin twice.
 */
interface Progress {
  /** The name of the destination. */
  readonly id: string;
  /**
   * `copying`: the copies at the destination must not be used. `copied`: the records that are left here must be removed.
   * `removed`: they have been removed, and records that are here now came later.
   */
  readonly state: 'copying' | 'copied' | 'removed';
}

const table = 'work';
const atOnce = 200;
const progressKey = (name: string): Buffer => key('moving', name);

const recordPages = <T>(store: Store, { table: from, prefix }: Movable<T>) =>
  pagesUnder<T>(store, from, prefix, atOnce);

/** Whether there is a record to move. */
export const isThere = async (store: Store, movable: Movable): Promise<boolean> => {
  for await (const page of recordPages(store, movable))
    if (page.some((entry) => isMeant(movable, entry))) return true;
  return false;
};

const isMeant = (movable: Movable, { value }: StoreEntry<unknown>): boolean =>
  movable.isMeant?.(value) !== false;

const copyAll = async (from: Store, to: Store, movables: readonly Movable[]): Promise<number> => {
  let count = 0;
  for (const movable of movables) {
    for await (const page of recordPages(from, movable)) {
      const own: Operation[] = [];
      const writes: Promise<boolean>[] = [];
      for (const entry of page) {
        if (!isMeant(movable, entry)) continue;
        const operations = movable.copy?.(entry, to) ?? [
          { table: movable.table, put: entry.key, value: entry.value },
        ];
        for (const operation of operations) {
          const place = 'put' in operation ? operation.put : operation.remove;
          // A record that all processes share may exist there already, and be newer.
          if (isShared(place)) writes.push(to.write([operation], [{ table: operation.table, key: place }]));
          else own.push(operation);
        }
        count += 1;
      }
      if (own.length > 0) writes.push(to.write(own));
      await Promise.all(writes);
    }
  }
  return count;
};

const removeAll = async (from: Store, movables: readonly Movable[]): Promise<void> => {
  // Records by which the others are found come first in the list, and are removed last.
  for (const movable of [...movables].reverse()) {
    for await (const page of recordPages(from, movable)) {
      const removals = page
        .filter((entry) => isMeant(movable, entry))
        .map(({ key: remove }): Operation => ({ table: movable.table, remove }));
      if (removals.length > 0) await from.write(removals);
    }
  }
};

/**
 * Moves records exactly once: a move that was cut short goes on with the next call. Resolves with the number of records
 * that this call moved.
 */
export const moveRecords = async (
  from: Store,
  name: string,
  movables: () => Promise<readonly Movable[]>,
  open: (id: string) => Promise<Destination>,
): Promise<number> => {
  const place = progressKey(name);
  const note = (progress: Progress): Promise<boolean> => from.write([{ table, put: place, value: progress }]);
  const known = (await from.get<Progress>(table, place))?.value;
  const all = await movables();
  if (!known && all.length === 0) return 0;
  // What was copied before may have been done here since.
  if (known?.state === 'copying') await (await open(known.id)).discard();
  if (known?.state === 'removed') await (await open(known.id)).release();
  const id = known?.state === 'copied' ? known.id : randomUUID();
  let count = 0;
  const destination = await open(id);
  if (known?.state !== 'copied') {
    await note({ id, state: 'copying' });
    count = await copyAll(from, destination.store, all);
    await note({ id, state: 'copied' });
  }
  await removeAll(from, all);
  await destination.release();
  await from.write([{ table, remove: place }]);
  return count;
};

/** The environment stays here: after a full copy, the records here are removed. */
export const stayHere = async (
  from: Store,
  name: string,
  movables: () => Promise<readonly Movable[]>,
): Promise<void> => {
  const place = progressKey(name);
  const known = (await from.get<Progress>(table, place))?.value;
  if (known?.state !== 'copied') return;
  await removeAll(from, await movables());
  await from.write([{ table, put: place, value: { ...known, state: 'removed' } satisfies Progress }]);
};
