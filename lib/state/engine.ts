import { bytesIn, type Change } from './commit-queue';
import { versionOf, type Sealing } from './sealing';
import {
  asideKey,
  asName,
  checkSize,
  isAside,
  nextKey,
  type Condition,
  type Operation,
  type Range,
  type Store,
  type StoreEntry,
  type Table,
} from './store';
import { second } from '../durations';

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

type StoreMethods =
  'hash' | 'get' | 'page' | 'keys' | 'count' | 'hasLost' | 'hasLostKeys' | 'write' | 'backing' | 'peers';

/** Keeps bytes by key. */
export interface Engine extends Omit<Store, StoreMethods> {
  readonly sealing: Sealing;
  /** Records were lost whose keys are unknown, as with a page of a file. Each read brings it up to date. */
  readonly hasLostKeys?: boolean;
  get(table: Table, key: Buffer): Answer<Buffer | undefined>;
  range(table: Table, range: Range): Answer<readonly Row[]>;
  keys(table: Table, range: Range): Answer<readonly Buffer[]>;
  count(table: Table, from: Buffer, to: Buffer): Answer<number>;
  write(changes: readonly RecordChange[], conditions: readonly Condition[]): Promise<boolean>;
  warn(text: string): void;
}

/** Milliseconds for which it is known that nothing of a range was set aside: every text asks that. */
const knownFor = 10 * second;

/** The records of an engine that could not be decrypted. They are kept under other keys, and count as lost. */
class SetAside {
  private readonly moving = new Set<string>();
  private moves = 0;
  private newly = 0;
  /** Ranges of which nothing was set aside, by the buffer of their start: whoever asks often keeps that. */
  private readonly sound = new WeakMap<
    Buffer,
    { readonly to: Buffer; readonly at: number; readonly by: string }
  >();

  constructor(private readonly engine: Engine) {}

  add(table: Table, { key, value: bytes }: Row): void {
    const aside = asideKey(table, key);
    const name = asName(aside);
    if (this.moving.has(name) || isAside(key)) return;
    this.moving.add(name);
    const move = [
      { table: 'work', key: aside, bytes },
      { table, key },
    ] as const;
    const moved = (): void => {
      this.moves += 1;
      this.moving.delete(name);
    };
    // What could not be moved counts as moving: it is reported once.
    this.engine.write(move, [{ table, key, version: versionOf(bytes) }]).then(moved, () => undefined);
    this.newly += 1;
    if (this.newly > 1) return;
    setImmediate(() => {
      const text = `${this.newly} saved record(s) were damaged and were set aside. Everything else continues.`;
      this.newly = 0;
      this.engine.warn(text);
    });
  }

  async has(table: Table, from: Buffer, to: Buffer): Promise<boolean> {
    const { engine, moving } = this;
    if (engine.hasLostKeys) return true;
    const by = `${table} ${this.moves} ${engine.losses ?? 0}`;
    const known = engine.trouble === undefined && moving.size === 0 ? this.sound.get(from) : undefined;
    if (known?.by === by && known.to.equals(to) && performance.now() - known.at < knownFor) return false;
    const [first, end] = [asideKey(table, from), asideKey(table, to)];
    for (const each of moving) if (each >= asName(first) && each < asName(end)) return true;
    const found = await engine.keys('work', { from: first, to: end, limit: 1 });
    if (found.length > 0 || this.engine.hasLostKeys) return true;
    this.sound.set(from, { to, at: performance.now(), by });
    return false;
  }
}

/** By engine, because several stores may be over one. */
const setAside = new WeakMap<Engine, SetAside>();

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
  const aside = setAside.get(engine) ?? new SetAside(engine);
  setAside.set(engine, aside);
  const open = <T>(table: Table, row: Row): StoreEntry<T> | undefined => {
    const opened = engine.sealing.open(table, row.key, row.value);
    if (opened) return { key: row.key, value: opened.value as T, version: versionOf(row.value) };
    aside.add(table, row);
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
    now: engine.now,
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
    hasLost: (table, from, to) => aside.has(table, from, to),
    hasLostKeys: async () => engine.hasLostKeys === true,
    write: async (operations, conditions = []) => {
      checkKeys(conditions);
      return engine.write(changesOf(engine.sealing, operations), conditions);
    },
    close: close ?? (() => engine.close()),
  };
};
