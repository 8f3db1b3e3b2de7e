import { pagesUnder, unchanged, type Operation, type Store, type StoreEntry } from './store';

/** Records that move together from one store to another. */
export interface Movable<T = unknown> {
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

/**
 * Moves records; resolves with their number. Until all are copied, all are here, so that a move that was cut short can
 * be repeated or given up. What is copied again does not replace what is newer.
 */
export const moveRecords = async (from: Store, to: Store, movables: readonly Movable[]): Promise<number> => {
  const moved: Buffer[] = [];
  for (const { prefix, isMeant, copy, isNewer } of movables)
    for await (const page of pagesUnder<unknown>(from, table, prefix, atOnce)) {
      const copied = page.map(async (entry) => {
        if (isMeant?.(entry.value) === false) return;
        const { put, value } = copy(entry, to);
        const there = await to.get(table, put);
        // Where another process writes the record meanwhile, that one is newer.
        if (!there || isNewer?.(value, there.value) === true)
          await to.write([{ table, put, value }], [unchanged(table, put, there)]);
        moved.push(entry.key);
      });
      await Promise.all(copied);
    }
  for (let at = 0; at < moved.length; at += atOnce)
    await from.write(moved.slice(at, at + atOnce).map((remove): Operation => ({ table, remove })));
  return moved.length;
};
