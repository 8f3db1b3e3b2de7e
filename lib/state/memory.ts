import { createHmac, randomBytes } from 'node:crypto';
import { decode, encode } from './codec';
import type { Store, Table, Write } from './store';

const createTable = <T>(): Table<T> & { readonly size: number } => {
  const records = new Map<string, Buffer>();

  const write = (writes: readonly Write<T>[]): Promise<void> => {
    for (const each of writes) {
      if ('put' in each) records.set(each.put, encode(each.value));
      else records.delete(each.remove);
    }
    return Promise.resolve();
  };

  return {
    get size() {
      return records.size;
    },
    get: (key) => {
      const bytes = records.get(key);
      return Promise.resolve(bytes && (decode(bytes) as T));
    },
    write,
    writeSoon: write,
    keyFrom: (start) => {
      let first: string | undefined;
      for (const key of records.keys()) if (key >= start && (first === undefined || key < first)) first = key;
      return Promise.resolve(first);
    },
    hasLost: () => Promise.resolve(false),
    async *entries(prefix = '') {
      const keys = [...records.keys()].filter((key) => key.startsWith(prefix)).sort();
      for (const key of keys) {
        const bytes = records.get(key);
        if (bytes) yield await Promise.resolve([key, decode(bytes) as T] as const);
      }
    },
  };
};

export interface MemoryStore extends Store {
  readonly isEmpty: boolean;
}

/** Where nothing can be kept on disk. Encoded all the same, so that a record is never shared with whoever wrote it. */
export const createMemoryStore = (): MemoryStore => {
  const tables = new Map<string, ReturnType<typeof createTable<unknown>>>();
  const key = randomBytes(32);
  return {
    durable: false,
    get isEmpty() {
      return [...tables.values()].every(({ size }) => size === 0);
    },
    table<T>(name: string): Table<T> {
      const found = tables.get(name) ?? createTable<unknown>();
      tables.set(name, found);
      return found as unknown as Table<T>;
    },
    hash: (text) => createHmac('sha256', key).update(text).digest('base64url'),
    close: () => Promise.resolve(),
  };
};
