import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { EmbeddedDatabase, type Sealer } from './database';
import { createMemoryStore, type MemoryStore } from './memory';
import { claim } from './owner';
import { isSound } from './probe';
import type { Store } from './store';

export type { Sealer } from './database';

export interface StoreOptions {
  readonly directory: string;
  readonly sealer: Sealer;
  readonly warn: (text: string) => void;
}

interface Opened {
  readonly store: Omit<Store, 'close'>;
  close(): Promise<void>;
}

interface Shared {
  users: number;
  readonly opening: Promise<Opened>;
}

const shared = new Map<string, Shared>();
const inMemory = new Map<string, MemoryStore>();
const closing = new Map<string, Promise<void>>();

const reasonOf = (fault: unknown): string => (fault instanceof Error ? fault.message : String(fault));

const setAside = (directory: string, file: string, warn: StoreOptions['warn']): void => {
  const aside = join(directory, `state-damaged-${new Date().toISOString().replaceAll(/[:.]/g, '-')}.mdb`);
  renameSync(file, aside);
  rmSync(`${file}-lock`, { force: true });
  warn(
    `The database of waits and sends was damaged and has been set aside as ${aside}; a new one was begun. ` +
      'Messages that were waiting for consent have to be sent in again.',
  );
};

const openDatabase = async (
  { directory, sealer, warn }: StoreOptions,
  release: () => Promise<void>,
): Promise<Opened> => {
  const file = join(directory, 'state.mdb');
  const { open } = await import('lmdb');
  const begin = (): EmbeddedDatabase => {
    // Left out of lmdb's type declarations; the directory is closed to others as well.
    const options = { permissionsMode: 0o600, encoding: 'binary', noSync: true, maxDbs: 32 } as const;
    return new EmbeddedDatabase(open<Buffer, string>(file, options), sealer, warn);
  };
  if (existsSync(file) && !(await isSound(file))) setAside(directory, file, warn);
  const database = begin();
  for (const each of [file, `${file}-lock`]) if (existsSync(each)) chmodSync(each, 0o600);
  return {
    store: { durable: true, table: (name) => database.table(name), hash: (text) => sealer.hash(text) },
    async close() {
      await database.close();
      await release();
    },
  };
};

/** A deploy closes and opens again, so what is in memory stays there for the life of the process. */
const openMemory = (directory: string): Opened => {
  const store = inMemory.get(directory) ?? createMemoryStore();
  inMemory.set(directory, store);
  return {
    store,
    close() {
      if (store.isEmpty) inMemory.delete(directory);
      return Promise.resolve();
    },
  };
};

const openOnce = async (options: StoreOptions): Promise<Opened> => {
  const { directory, warn } = options;
  if (inMemory.has(directory)) return openMemory(directory);
  let release: (() => Promise<void>) | undefined;
  try {
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    release = await claim(directory);
    if (!release) {
      warn(
        `Another process keeps its state in ${directory}: waits and sends of this one live in memory and are lost when ` +
          'it ends. Give each Node-RED its own user directory.',
      );
      return openMemory(directory);
    }
    return await openDatabase(options, release);
  } catch (fault) {
    await release?.();
    warn(
      `The state in ${directory} cannot be opened (${reasonOf(fault)}): waits and sends live in memory and are lost when ` +
        'this process ends. Make the directory writable and restart.',
    );
    return openMemory(directory);
  }
};

const prepare = (directory: string): string => {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    chmodSync(directory, 0o700);
    return realpathSync(directory);
  } catch {
    // Opening it will say why.
    return directory;
  }
};

/** One store per directory in a process, whoever asks; it closes with its last user. */
export const openStore = async (options: StoreOptions): Promise<Store> => {
  const directory = prepare(options.directory);
  let entry = shared.get(directory);
  if (!entry) {
    // A store of this directory that is still closing goes first.
    const before = closing.get(directory) ?? Promise.resolve();
    entry = { users: 0, opening: before.then(() => openOnce({ ...options, directory })) };
    shared.set(directory, entry);
  }
  entry.users += 1;
  const mine = entry;
  const opened = await mine.opening;
  let isOpen = true;
  return {
    durable: opened.store.durable,
    table: (name) => opened.store.table(name),
    hash: (text) => opened.store.hash(text),
    async close() {
      if (!isOpen) return;
      isOpen = false;
      mine.users -= 1;
      if (mine.users > 0) return;
      shared.delete(directory);
      const ending = opened.close();
      closing.set(directory, ending);
      await ending;
      if (closing.get(directory) === ending) closing.delete(directory);
    },
  };
};
