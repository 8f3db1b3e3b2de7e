import { createHmac, randomBytes } from 'node:crypto';
import { CommitQueue, type Batch, type Committer, type Table } from './commit-queue';
import { decode, encode, type Sealing } from './sealing';
import { asName, storeClosed, Store, type Engine, type Range, type Row } from './store';

const fullBlock = 512;

/** The first of `length` places that is not before what is looked for. */
const firstPlace = (length: number, isBefore: (place: number) => boolean): number => {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
};

/** Records by key. The keys are in order, in blocks: an insertion moves at most one block. */
class MemoryTable {
  readonly records = new Map<string, Buffer>();
  private readonly blocks: string[][] = [[]];

  /** The place of a key, or the place where it would be inserted. */
  private find(key: string): { readonly at: number; readonly block: string[]; readonly place: number } {
    const at = Math.max(
      0,
      firstPlace(this.blocks.length, (each) => (this.blocks[each]?.[0] ?? '') <= key) - 1,
    );
    const block = this.blocks[at] ?? [];
    return { at, block, place: firstPlace(block.length, (each) => (block[each] ?? '') < key) };
  }

  change(key: string, bytes: Buffer | undefined): void {
    const isThere = this.records.has(key);
    if (bytes) this.records.set(key, bytes);
    else this.records.delete(key);
    if (isThere === (bytes !== undefined)) return;
    const { at, block, place } = this.find(key);
    if (bytes) block.splice(place, 0, key);
    else block.splice(place, 1);
    if (block.length === 0 && this.blocks.length > 1) this.blocks.splice(at, 1);
    if (block.length <= fullBlock) return;
    // Keys often arrive in order, so the last block is left nearly full and the next begins nearly empty.
    const leftInBlock = at === this.blocks.length - 1 ? fullBlock : fullBlock >> 1;
    this.blocks.splice(at + 1, 0, block.splice(leftInBlock));
  }

  *range({ from, to, limit, skip = 0, reverse = false }: Range): Generator<string> {
    const [start, end] = [asName(from), asName(to)];
    const step = reverse ? -1 : 1;
    let [toSkip, left] = [skip, limit];
    let { at, place } = this.find(reverse ? end : start);
    if (reverse) place -= 1;
    for (let block = this.blocks[at]; block; block = this.blocks[(at += step)]) {
      if (place === Infinity) place = block.length - 1;
      for (; place >= 0 && place < block.length; place += step) {
        const key = block[place] ?? '';
        if (left <= 0 || (reverse ? key < start : key >= end)) return;
        if (toSkip-- > 0) continue;
        left -= 1;
        yield key;
      }
      place = reverse ? Infinity : 0;
    }
  }

  count(from: Buffer, to: Buffer): number {
    const [first, last] = [this.find(asName(from)), this.find(asName(to))];
    let count = last.place - first.place;
    for (let at = first.at; at < last.at; at++) count += this.blocks[at]?.length ?? 0;
    return count;
  }
}

/** The name of a key and a nonce, as they are before an encrypted record. */
const headLength = 21;

/** Encrypts nothing: what is in memory can be read there. */
const plainSealing = (): Sealing => {
  const secret = randomBytes(32);
  let version = 0;
  return {
    seal: (_table, _key, value) => {
      const head = Buffer.alloc(headLength);
      head.writeUIntBE(++version, 9, 6);
      return Buffer.concat([head, encode(value)]);
    },
    open: (_table, _key, sealed) => ({ value: decode(sealed.subarray(headLength)) }),
    hash: (text) => createHmac('sha256', secret).update(text).digest().subarray(0, 16),
  };
};

const keyOf = (name: string): Buffer => Buffer.from(name, 'latin1');

/** Keeps every promise of a store but survival. */
export class MemoryEngine implements Engine, Committer {
  readonly durable = false;
  readonly trouble = undefined;
  readonly isGone = false;
  readonly crashes = 0;
  readonly sealing = plainSealing();
  readonly commits = new CommitQueue(this);
  readonly fence = { isLost: false };
  private readonly tables = { wait: new MemoryTable(), work: new MemoryTable() };
  private latest = 0;

  constructor(private readonly clock: { now(): number } = Date) {}

  onChange(): () => void {
    return () => undefined;
  }

  readonly now = (): number => (this.latest = Math.max(this.latest, this.clock.now()));

  get(table: Table, key: Buffer): Buffer | undefined {
    return this.tables[table].records.get(asName(key));
  }

  range(table: Table, range: Range): readonly Row[] {
    const { records } = this.tables[table];
    return Array.from(this.tables[table].range(range), (name) => ({
      key: keyOf(name),
      value: records.get(name) ?? Buffer.alloc(0),
    }));
  }

  keys(table: Table, range: Range): readonly Buffer[] {
    return Array.from(this.tables[table].range(range), keyOf);
  }

  count(table: Table, from: Buffer, to: Buffer): number {
    return this.tables[table].count(from, to);
  }

  warn(): void {
    // Nothing in memory is damaged.
  }

  async apply(batch: Batch): Promise<boolean> {
    const changes = batch.begin((table, key) => this.get(table, key));
    for (const { table, key, bytes } of changes) this.tables[table].change(asName(key), bytes);
    return true;
  }

  close(): Promise<void> {
    return this.commits.close(storeClosed(), () => false);
  }
}

export const createMemoryStore = ({ clock }: { readonly clock?: { now(): number } } = {}): Store => {
  const engine = new MemoryEngine(clock);
  return new Store(engine, () => engine.close());
};
