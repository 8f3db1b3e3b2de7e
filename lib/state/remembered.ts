import { day } from '../durations';
import type { Movable } from './moving';
import { key, pagesUnder, removeUnder, unchanged, type Operation, type Store, type Table } from './store';

/**
 * Something that was done for a person at a service, and that is remembered so that it is not done again. All processes
 * share it, an environment that moves to another store takes it along, and a simulator that is reset forgets it.
 */
export interface Remembered {
  /** What it is about: the record's key has the hash of it. */
  readonly of: string;
  /** When it can be removed, by the store's time. */
  readonly until: number;
  /** Of what counts in all environments of a service: the one that has noted it. */
  readonly environment?: string | undefined;
}

/** The service in a `space`, for all environments that use it. */
export const serviceIn = (space: string): string => space.slice(space.indexOf('/'));

export const table: Table = 'work';
const all = key('known');
const pageSize = 100;
/** What is still in use is not removed: nothing is in work for so long. */
const removedAfter = day;
const sweptAt = new WeakMap<Store, number>();

/** The key of a record. `space` is the environment at a service, as items name it; `kind` may have several parts. */
export const rememberedKey = (store: Store, space: string, kind: readonly string[], of: string): Buffer =>
  key('known', space, ...kind, store.hash(of));

/** Removes what is no longer needed, a page at a time. Call it often: it does so once a day. */
export const sweepRemembered = async (store: Store): Promise<void> => {
  const now = store.now();
  if (now - (sweptAt.get(store) ?? -Infinity) < day) return;
  sweptAt.set(store, now);
  for await (const page of pagesUnder<Remembered>(store, table, all, pageSize)) {
    const old = page.filter(({ value }) => value.until + removedAfter <= now);
    if (old.length > 0)
      await store.write(
        old.map(({ key: remove }): Operation => ({ table, remove })),
        old.map((entry) => unchanged(table, entry.key, entry)),
      );
  }
};

export const forgetRemembered = async (store: Store, space: string): Promise<void> => {
  for (const each of [space, serviceIn(space)]) await removeUnder(store, table, key('known', each));
};

export const movableRemembered = (environment: string): Movable<Remembered>[] => [
  movableUnder(`${environment}/`),
  { ...movableUnder('/'), isMeant: (value) => value.environment === environment },
];

const movableUnder = (spaces: string): Movable<Remembered> => ({
  prefix: Buffer.concat([all, Buffer.from(spaces)]),
  copy: ({ key: at, value }, to) => {
    const hash = to.hash(value.of);
    return { put: Buffer.concat([at.subarray(0, -hash.length), hash]), value };
  },
  isNewer: (here, there) => here.until > there.until,
});
