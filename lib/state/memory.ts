import { createHmac, randomBytes } from 'node:crypto';
import { decode, encode } from './sealing';
import {
  asName,
  checkSize,
  checkWrite,
  storeClosed,
  tables,
  type Condition,
  type StoreEntry,
  type Operation,
  type Range,
  type Store,
  type Table,
} from './store';

const fullBlock = 512;

/** Keys in order, in blocks: an insertion moves at most one block. */
class OrderedKeys {
  private readonly blocks: string[][] = [[]];

  /** The block that a key belongs to: the last one that does not begin after the key. */
  private blockOf(key: string): number {
    let low = 0;
    let high = this.blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      const first = this.blocks[middle]?.[0];
      if (first !== undefined && first <= key) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** The place of a key in its block, or the place where it would be inserted. */
  private static placeOf(block: readonly string[], key: string): number {
    let low = 0;
    let high = block.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((block[middle] ?? '') < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  add(key: string): void {
    const at = this.blockOf(key);
    const block = this.blocks[at] ?? [];
    block.splice(OrderedKeys.placeOf(block, key), 0, key);
    if (block.length <= fullBlock) return;
    // Keys often arrive in order, so the last block is left nearly full and the next begins nearly empty.
    const leftInBlock = at === this.blocks.length - 1 ? fullBlock : fullBlock >> 1;
    this.blocks.splice(at + 1, 0, block.splice(leftInBlock));
  }

  delete(key: string): void {
    const at = this.blockOf(key);
    const block = this.blocks[at] ?? [];
    block.splice(OrderedKeys.placeOf(block, key), 1);
    if (block.length === 0 && this.blocks.length > 1) this.blocks.splice(at, 1);
  }

  *from(start: string): Generator<string> {
    let at = this.blockOf(start);
    let place = OrderedKeys.placeOf(this.blocks[at] ?? [], start);
    for (; at < this.blocks.length; at++, place = 0) {
      const block = this.blocks[at] ?? [];
      for (; place < block.length; place++) yield block[place] ?? '';
    }
  }

  *before(end: string): Generator<string> {
    let at = this.blockOf(end);
    let place = OrderedKeys.placeOf(this.blocks[at] ?? [], end) - 1;
    for (; at >= 0; place = (this.blocks[--at]?.length ?? 0) - 1) {
      const block = this.blocks[at] ?? [];
      for (; place >= 0; place--) yield block[place] ?? '';
    }
  }

  count(start: string, end: string): number {
    if (start >= end) return 0;
    const first = this.blockOf(start);
    const last = this.blockOf(end);
    let count =
      OrderedKeys.placeOf(this.blocks[last] ?? [], end) -
      OrderedKeys.placeOf(this.blocks[first] ?? [], start);
    for (let at = first; at < last; at++) count += this.blocks[at]?.length ?? 0;
    return count;
  }
}

interface MemoryRecord {
  /** Encoded bytes, so that a record never shares objects with the code that wrote it. */
  readonly bytes: Buffer;
  readonly version: number;
}

class MemoryTable {
  readonly records = new Map<string, MemoryRecord>();
  readonly keys = new OrderedKeys();
  bytes = 0;

  put(key: string, record: MemoryRecord): void {
    const before = this.records.get(key);
    if (before) this.bytes -= before.bytes.length;
    else {
      this.keys.add(key);
      this.bytes += key.length;
    }
    this.bytes += record.bytes.length;
    this.records.set(key, record);
  }

  remove(key: string): void {
    const before = this.records.get(key);
    if (!before) return;
    this.bytes -= before.bytes.length + key.length;
    this.records.delete(key);
    this.keys.delete(key);
  }

  *range({ from, to, limit, skip = 0, reverse }: Range): Generator<string> {
    const [start, end] = [asName(from), asName(to)];
    let [toSkip, left] = [skip, limit];
    for (const key of reverse ? this.keys.before(end) : this.keys.from(start)) {
      if (left <= 0 || (reverse ? key < start : key >= end)) return;
      if (toSkip-- > 0) continue;
      left -= 1;
      yield key;
    }
  }
}

export interface MemoryStore extends Store {
  /** Bytes of all records and their keys. */
  readonly held: number;
}

export interface MemoryStoreOptions {
  readonly clock?: { now(): number };
}

/** A store that keeps every promise of `Store` but survival. */
export const createMemoryStore = ({ clock = Date }: MemoryStoreOptions = {}): MemoryStore => {
  const memory = { wait: new MemoryTable(), work: new MemoryTable() } satisfies Record<Table, MemoryTable>;
  const secret = randomBytes(32);
  let version = 0;
  let latest = 0;
  let isClosed = false;

  const entryOf = <T>(key: Buffer, { bytes, version: recorded }: MemoryRecord): StoreEntry<T> => ({
    key,
    value: decode(bytes) as T,
    version: recorded,
  });

  const holds = ({ table, key, version: expected }: Condition): boolean =>
    memory[table].records.get(asName(key))?.version === expected;

  /** Encodes the value before anything is changed. */
  const prepare = (operation: Operation): (() => void) => {
    const table = memory[operation.table];
    if ('remove' in operation) return () => table.remove(asName(operation.remove));
    const [key, bytes] = [asName(operation.put), encode(operation.value)];
    checkSize(bytes.length);
    return () => table.put(key, { bytes, version: ++version });
  };

  return {
    durable: false,
    trouble: undefined,
    unwritten: 0,
    get held() {
      return tables.reduce((sum, table) => sum + memory[table].bytes, 0);
    },
    onChange: () => () => undefined,
    now: () => (latest = Math.max(latest, clock.now())),
    hash: (text) => createHmac('sha256', secret).update(text).digest().subarray(0, 16),
    get: async <T>(table: Table, key: Buffer) => {
      const record = memory[table].records.get(asName(key));
      return record && entryOf<T>(key, record);
    },
    page: async <T>(table: Table, range: Range) =>
      Array.from(memory[table].range(range)).flatMap((key) => {
        const record = memory[table].records.get(key);
        return record ? [entryOf<T>(Buffer.from(key, 'latin1'), record)] : [];
      }),
    keys: async (table, range) => Array.from(memory[table].range(range), (key) => Buffer.from(key, 'latin1')),
    count: async (table, from, to) => memory[table].keys.count(asName(from), asName(to)),
    hasLost: async () => false,
    write: async (operations, conditions = []) => {
      if (isClosed) throw storeClosed();
      checkWrite(operations, conditions);
      if (!conditions.every(holds)) return false;
      for (const apply of operations.map(prepare)) apply();
      return true;
    },
    close: async () => {
      isClosed = true;
    },
  };
};
