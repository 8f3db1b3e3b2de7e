import { randomUUID } from 'node:crypto';
import { endOf, isShared, key, type Entry, type Operation, type Store, type Table } from './store';

/** Records that move together from one store to another. */
export interface Movable<T = unknown> {
  readonly table: Table;
  /** What their keys begin with. */
  readonly prefix: Buffer;
  /** Those that are meant; all unless told. */
  readonly isMeant?: (value: T) => boolean;
  /** What puts one there: hashes in keys differ from store to store. Under the same key unless told. */
  readonly copy?: (entry: Entry<T>, to: Store) => readonly Operation[];
}

/** Where work is put, seen by nobody until it is released. */
export interface Destination {
  readonly store: Store;
  /** From now on somebody goes on with it. To do so again changes nothing. */
  release(): Promise<void>;
  /** Removes what was put there, and the place. */
  discard(): Promise<void>;
}

/**
 * How far a move has come, on record where things are moved from. Nothing of it begins over there while a copy is here:
 * a crash would have it begin twice.
 */
interface Progress {
  /** Names the destination. */
  readonly id: string;
  /** Copied: what is left here is to be removed. Given up: what was put there is not to be used. */
  readonly state: 'copying' | 'copied' | 'given up';
}

const table = 'work';
const atOnce = 200;
const progressKey = (name: string): Buffer => key('moving', name);

async function* pagesOf<T>(store: Store, { table: from, prefix }: Movable<T>): AsyncGenerator<Entry<T>[]> {
  for (let start = prefix; ;) {
    const page = await store.page<T>(from, { from: start, to: endOf(prefix), limit: atOnce });
    if (page.length > 0) yield [...page];
    const last = page.at(-1);
    if (!last || page.length < atOnce) return;
    start = Buffer.concat([last.key, Buffer.alloc(1)]);
  }
}

/** Whether there is anything to be moved. */
export const isThere = async (store: Store, movable: Movable): Promise<boolean> => {
  for await (const page of pagesOf(store, movable))
    if (page.some((entry) => isMeant(movable, entry))) return true;
  return false;
};

const isMeant = (movable: Movable, { value }: Entry<unknown>): boolean => movable.isMeant?.(value) !== false;

const copyAll = async (from: Store, to: Store, movables: readonly Movable[]): Promise<number> => {
  let count = 0;
  for (const movable of movables) {
    for await (const page of pagesOf(from, movable)) {
      const own: Operation[] = [];
      const writes: Promise<boolean>[] = [];
      for (const entry of page) {
        if (!isMeant(movable, entry)) continue;
        const operations = movable.copy?.(entry, to) ?? [
          { table: movable.table, put: entry.key, value: entry.value },
        ];
        for (const operation of operations) {
          const place = 'put' in operation ? operation.put : operation.remove;
          // What all have in common may be there already, and newer.
          if (isShared(operation.table, place))
            writes.push(to.write([operation], [{ table: operation.table, key: place }]));
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
  // What the rest is found by is named first, and so goes last.
  for (const movable of [...movables].reverse()) {
    for await (const page of pagesOf(from, movable)) {
      const removals = page
        .filter((entry) => isMeant(movable, entry))
        .map(({ key: remove }): Operation => ({ table: movable.table, remove }));
      if (removals.length > 0) await from.write(removals);
    }
  }
};

/**
 * Moves records, once, whatever is killed meanwhile: the next call goes on. `movables` says what there is. Resolves with
 * how many were moved by this call.
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
  if (known?.state === 'given up') await (await open(known.id)).discard();
  const id = known && known.state !== 'given up' ? known.id : randomUUID();
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

/** The work is to be done here after all: what has been copied in full is gone, and the rest of a broken-off move stays. */
export const stayHere = async (
  from: Store,
  name: string,
  movables: () => Promise<readonly Movable[]>,
): Promise<void> => {
  const place = progressKey(name);
  const known = (await from.get<Progress>(table, place))?.value;
  if (known?.state === 'copied') await removeAll(from, await movables());
  if (known?.state === 'copying')
    await from.write([{ table, put: place, value: { ...known, state: 'given up' } satisfies Progress }]);
};
