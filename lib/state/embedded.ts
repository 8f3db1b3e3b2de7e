import { chmodSync, mkdirSync, realpathSync } from 'node:fs';
import { loadLmdb, type Lmdb } from './database-file';
import { EmbeddedStore, type EmbeddedOptions } from './embedded-store';
import { createMemoryStore, type MemoryStore } from './memory';
import { NewerFormat, reasonOf, type Store } from './store';
import { processMemory } from '../process-memory';

export type { EmbeddedOptions } from './embedded-store';

interface SharedFile {
  users: number;
  readonly opening: Promise<Store>;
}

const sharedFiles = processMemory('stores', new Map<string, SharedFile>());
const closing = processMemory('stores', new Map<string, Promise<void>>());
/** A deploy closes and opens stores. A store in memory is kept, or a deploy would lose what is in it. */
const inMemory = processMemory('storesInMemory', new Map<string, MemoryStore>());

const openOnce = async (options: EmbeddedOptions): Promise<Store> => {
  const { directory, warn, clock } = options;
  const earlier = inMemory.get(directory);
  if (earlier) return earlier;
  const inMemoryBecause = (reason: string): Store => {
    warn(`${reason}: texts, waits and authorizations live in memory and are lost when this process ends.`);
    const store = createMemoryStore(clock && { clock });
    inMemory.set(directory, store);
    return store;
  };
  let lmdb: Lmdb;
  try {
    lmdb = await loadLmdb();
  } catch (fault) {
    return inMemoryBecause(`The database lmdb cannot be loaded on this machine (${reasonOf(fault)})`);
  }
  const store = new EmbeddedStore(lmdb, options);
  try {
    await store.start();
    return store;
  } catch (fault) {
    await store.close();
    if (!(fault instanceof NewerFormat)) throw fault;
    return inMemoryBecause(
      `The state in ${directory} was written by a newer version of this package and is left alone. Install that version again to go on with it`,
    );
  }
};

/** Two paths to one directory must lead to one store. */
const realPathOf = (directory: string): string => {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    chmodSync(directory, 0o700);
    return realpathSync(directory);
  } catch {
    // Opening the directory fails too, and says why.
    return directory;
  }
};

/**
 * Opens the store in a directory. A process has one for each directory, however many use it; it closes with its last
 * user.
 */
export const openEmbedded = async (options: EmbeddedOptions): Promise<Store> => {
  const directory = realPathOf(options.directory);
  let entry = sharedFiles.get(directory);
  if (!entry) {
    const before = closing.get(directory) ?? Promise.resolve();
    entry = { users: 0, opening: before.then(() => openOnce({ ...options, directory })) };
    sharedFiles.set(directory, entry);
  }
  entry.users += 1;
  const mine = entry;
  const store = await mine.opening;
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (!isOpen) return;
    isOpen = false;
    mine.users -= 1;
    if (mine.users > 0) return;
    sharedFiles.delete(directory);
    if (!store.durable) return;
    const ending = store.close();
    closing.set(directory, ending);
    await ending;
    if (closing.get(directory) === ending) closing.delete(directory);
  };
  return handleOf(store, close);
};

const handleOf = (store: Store, close: () => Promise<void>): Store => ({
  durable: store.durable,
  behind: store,
  get trouble() {
    return store.trouble;
  },
  get crashes() {
    return store.crashes ?? 0;
  },
  get isGone() {
    return store.isGone === true;
  },
  get unwritten() {
    return store.unwritten;
  },
  onChange: (listener) => store.onChange(listener),
  now: () => store.now(),
  hash: (text) => store.hash(text),
  get: (table, key) => store.get(table, key),
  page: (table, range) => store.page(table, range),
  keys: (table, range) => store.keys(table, range),
  count: (table, from, to) => store.count(table, from, to),
  hasLost: (table, from, to, at) => store.hasLost(table, from, to, at),
  hasLostKeys: async () => (await store.hasLostKeys?.()) ?? false,
  write: (operations, conditions) => store.write(operations, conditions),
  close,
});
