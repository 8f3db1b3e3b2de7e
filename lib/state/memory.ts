import { createHmac, randomBytes } from 'node:crypto';
import { storeOver, type Engine } from './engine';
import { decode, encode, versionOf, type Sealing } from './sealing';
import { asName, storeClosed, type Condition, type Range, type Store, type Table } from './store';

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

class MemoryTable {
  readonly records = new Map<string, Buffer>();
  readonly keys = new OrderedKeys();

  change(key: string, bytes: Buffer | undefined): void {
    const isThere = this.records.has(key);
    if (bytes) {
      this.records.set(key, bytes);
      if (!isThere) this.keys.add(key);
    } else if (isThere) {
      this.records.delete(key);
      this.keys.delete(key);
    }
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

/** The name of a key and a nonce, as they are before an encrypted record. */
const headLength = 21;

/** Encrypts nothing: what is in memory can be read there. */
const plainSealing = (): Sealing => {
  const secret = randomBytes(32);
  let version = 0;
  return {
    keyId: 'none',
    seal: (_table, _key, value) => {
      const head = Buffer.alloc(headLength);
      head.writeUIntBE(++version, 9, 6);
      return Buffer.concat([head, encode(value)]);
    },
    open: (_table, _key, sealed) => ({ value: decode(sealed.subarray(headLength)) }),
    hash: (text) => createHmac('sha256', secret).update(text).digest().subarray(0, 16),
  };
};

/** Keeps every promise of a store but survival. A write is made at once. */
export const createMemoryEngine = (clock: { now(): number } = Date): Engine => {
  const memory = { wait: new MemoryTable(), work: new MemoryTable() } satisfies Record<Table, MemoryTable>;
  let latest = 0;
  let isClosed = false;
  const keyOf = (name: string): Buffer => Buffer.from(name, 'latin1');
  const holds = ({ table, key, version }: Condition): boolean => {
    const found = memory[table].records.get(asName(key));
    return (found && versionOf(found)) === version;
  };
  return {
    durable: false,
    trouble: undefined,
    isGone: false,
    crashes: 0,
    unwritten: 0,
    sealing: plainSealing(),
    onChange: () => () => undefined,
    now: () => (latest = Math.max(latest, clock.now())),
    get: (table, key) => memory[table].records.get(asName(key)),
    range: (table, range) =>
      Array.from(memory[table].range(range), (name) => ({
        key: keyOf(name),
        value: memory[table].records.get(name) ?? Buffer.alloc(0),
      })),
    keys: (table, range) => Array.from(memory[table].range(range), keyOf),
    count: (table, from, to) => memory[table].keys.count(asName(from), asName(to)),
    warn: () => undefined,
    write: async (changes, conditions) => {
      if (isClosed) throw storeClosed();
      if (!conditions.every(holds)) return false;
      for (const { table, key, bytes } of changes) memory[table].change(asName(key), bytes);
      return true;
    },
    close: async () => {
      isClosed = true;
    },
  };
};

export const createMemoryStore = ({ clock }: { readonly clock?: { now(): number } } = {}): Store =>
  storeOver(createMemoryEngine(clock));
