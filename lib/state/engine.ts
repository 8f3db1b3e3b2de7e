import { bytesIn, type Change } from './commit-queue';
import { versionOf, type Sealing } from './sealing';
import {
  checkSize,
  nextKey,
  type Condition,
  type Operation,
  type Range,
  type Store,
  type StoreEntry,
  type Table,
} from './store';

/** A promise costs more than most reads, so an engine answers at once where it can. */
type Answer<T> = T | Promise<T>;

export interface Row {
  readonly key: Buffer;
  readonly value: Buffer;
}

/** A length that every engine accepts. */
const longestKey = 1024;

const checkKeys = (all: readonly { readonly key: Buffer }[]): void => {
  for (const { key } of all) {
    if (key.length === 0) throw new Error('a record without a key');
    if (key.length > longestKey) throw new Error(`a key of ${key.length} bytes, at most ${longestKey}`);
  }
};

export interface RecordChange extends Change {
  readonly table: Table;
}

type ByteMethods = 'get' | 'keys' | 'count' | 'write';

/** Keeps bytes by key. */
export interface Engine extends Omit<Store, 'backing' | 'peers' | 'hash' | 'page' | ByteMethods> {
  readonly sealing: Sealing;
  get(table: Table, key: Buffer): Answer<Buffer | undefined>;
  range(table: Table, range: Range): Answer<readonly Row[]>;
  keys(table: Table, range: Range): Answer<readonly Buffer[]>;
  count(table: Table, from: Buffer, to: Buffer): Answer<number>;
  write(changes: readonly RecordChange[], conditions: readonly Condition[]): Promise<boolean>;
  /** Called with each record that cannot be decrypted. */
  unreadable(table: Table, row: Row): void;
}

const rowsAtOnce = 1000;

/** Whether the test holds for a record of the range, which is read a page at a time. */
export const someRow = async (
  engine: Pick<Engine, 'range'>,
  table: Table,
  { from, to }: Pick<Range, 'from' | 'to'>,
  test: (row: Row) => boolean,
): Promise<boolean> => {
  for (let start = from; ;) {
    const rows = await engine.range(table, { from: start, to, limit: rowsAtOnce });
    if (rows.some(test)) return true;
    const last = rows.at(-1);
    if (!last || rows.length < rowsAtOnce) return false;
    start = nextKey(last.key);
  }
};

/** The operations as an engine takes them. */
export const changesOf = (sealing: Sealing, operations: readonly Operation[]): RecordChange[] => {
  const changes = operations.map((each): RecordChange =>
    'put' in each
      ? { table: each.table, key: each.put, bytes: sealing.seal(each.table, each.put, each.value) }
      : { table: each.table, key: each.remove },
  );
  checkKeys(changes);
  checkSize(bytesIn(changes));
  return changes;
};

/** The fewest records that are read at once where many in a row cannot be decrypted. */
const readOn = 100;

/** A store over an engine. `close` is given where it is one of several: what closing this one does. */
export const storeOver = (engine: Engine, close?: () => Promise<void>): Store => {
  const open = <T>(table: Table, row: Row): StoreEntry<T> | undefined => {
    const opened = engine.sealing.open(table, row.key, row.value);
    if (opened) return { key: row.key, value: opened.value as T, version: versionOf(row.value) };
    engine.unreadable(table, row);
    return undefined;
  };
  return {
    durable: engine.durable,
    ...(close && { backing: engine }),
    get trouble() {
      return engine.trouble;
    },
    get isGone() {
      return engine.isGone;
    },
    get losses() {
      return engine.losses;
    },
    get crashes() {
      return engine.crashes;
    },
    get unwritten() {
      return engine.unwritten;
    },
    onChange: (listener) => engine.onChange(listener),
    now: () => engine.now(),
    hash: (text) => engine.sealing.hash(text),
    get: async <T>(table: Table, key: Buffer) => {
      const read = engine.get(table, key);
      const value = read instanceof Promise ? await read : read;
      return value && open<T>(table, { key, value });
    },
    page: async <T>(table: Table, range: Range) => {
      const entries: StoreEntry<T>[] = [];
      // Where records cannot be decrypted, it reads on until the page is full or the range ends.
      for (let left = range; ;) {
        const read = engine.range(table, left);
        const rows = read instanceof Promise ? await read : read;
        for (const row of rows) {
          const entry = entries.length < range.limit && open<T>(table, row);
          if (entry) entries.push(entry);
        }
        const last = rows.at(-1);
        if (!last || entries.length === range.limit || rows.length < left.limit) return entries;
        const bounds = range.reverse ? { to: last.key } : { from: nextKey(last.key) };
        left = { ...left, ...bounds, limit: Math.max(range.limit, readOn), skip: 0 };
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    keys: async (table, range) => engine.keys(table, range),
    count: async (table, from, to) => engine.count(table, from, to),
    hasLost: (table, from, to, at) => engine.hasLost(table, from, to, at),
    hasLostKeys: () => engine.hasLostKeys(),
    write: async (operations, conditions = []) => {
      checkKeys(conditions);
      return engine.write(changesOf(engine.sealing, operations), conditions);
    },
    close: close ?? (() => engine.close()),
  };
};
