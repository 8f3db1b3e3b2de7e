import { pagesUnder, unchanged, type Operation, type Store, type StoreEntry } from './store';

/** Records that move together from one store to another. */
export interface Movable<T = unknown> {
  /** The first bytes of their keys. */
  readonly prefix: Buffer;
  /** Selects records; all are moved without it. */
  readonly isMeant?: (value: T) => boolean;
  /** The record as the other store has it, where hashes in keys differ. */
  readonly copy: (entry: StoreEntry<T>, to: Store) => { readonly put: Buffer; readonly value: T };
  /** Whether a record replaces one that the other store has already; without it, none does. */
  readonly isNewer?: (here: T, there: T) => boolean;
}

const table = 'work';
const atOnce = 200;

async function* pagesOf(
  store: Store,
  { prefix, isMeant }: Movable,
): AsyncGenerator<readonly StoreEntry<unknown>[]> {
  for await (const page of pagesUnder<unknown>(store, table, prefix, atOnce))
    yield page.filter(({ value }) => isMeant?.(value) !== false);
}

/**
 * Moves records; resolves with their number. Until all are copied, all are here, so that a move that was cut short can
 * be repeated or given up. What is copied again does not replace what is newer.
 */
export const moveRecords = async (from: Store, to: Store, movables: readonly Movable[]): Promise<number> => {
  let count = 0;
  for (const movable of movables) {
    const { copy, isNewer } = movable;
    for await (const page of pagesOf(from, movable)) {
      const copied = page.map(async (entry) => {
        const { put, value } = copy(entry, to);
        const there = await to.get(table, put);
        // Where another process writes the record meanwhile, that one is newer.
        if (!there || isNewer?.(value, there.value) === true)
          await to.write([{ table, put, value }], [unchanged(table, put, there)]);
      });
      await Promise.all(copied);
      count += page.length;
    }
  }
  for (const movable of movables)
    for await (const page of pagesOf(from, movable))
      await from.write(page.map(({ key: remove }): Operation => ({ table, remove })));
  return count;
};
