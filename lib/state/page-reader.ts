import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/**
 * Reads an lmdb file without lmdb, whose native code may crash or loop forever on a damaged page. Only pages under the
 * newest root are read: a freed page still holds old records, and to bring those back would send texts twice.
 *
 * The layout is data version 2 of lmdb, little-endian, 64 bits. A page is a header (number 8 bytes, transaction 8,
 * padding 2, flags 2, lower 2, upper 2), then an offset of 2 bytes for each node. A node is its size or page number (2
 * + 2), flags 2, the length of the key 2, the key, and the data.
 */
const headLength = 24;
const nodeHead = 8;
const magic = 0xbeefc0de;
const dataVersion = 2;
const branch = 0x01;
const leaf = 0x02;
const overflow = 0x04;
const isLarge = 0x01;
const isTree = 0x02;
const pageSizes = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
const noPage = 0xffffffffffffffffn;
const deepest = 32;

export type Tree = ReturnType<typeof treeAt>;
type Meta = NonNullable<ReturnType<typeof metaAt>>;

interface Node {
  readonly key: Buffer;
  readonly data: Buffer;
  readonly flags: number;
}

export class NotReadable extends Error {}

const treeAt = (bytes: Buffer, at: number, name: string) => {
  const root = bytes.readBigUInt64LE(at + 40);
  return {
    name,
    pages: [8, 16, 24].reduce((sum, offset) => sum + Number(bytes.readBigUInt64LE(at + offset)), 0),
    records: Number(bytes.readBigUInt64LE(at + 32)),
    root: root === noPage ? undefined : Number(root),
  };
};

const metaAt = (bytes: Buffer, at: number) => {
  const start = at + headLength;
  if (bytes.length < start + 144 || bytes.readUInt32LE(start) !== magic) return undefined;
  if ((bytes.readUInt32LE(start + 4) & 0xffff) !== dataVersion) return undefined;
  const dbs = start + 24;
  const pageSize = bytes.readUInt32LE(dbs);
  if (!pageSizes.includes(pageSize)) return undefined;
  return {
    transaction: bytes.readBigUInt64LE(dbs + 104),
    pageSize,
    free: treeAt(bytes, dbs, 'free'),
    main: treeAt(bytes, dbs + 48, 'main'),
  };
};

/** The roots of the last two transactions, each on a page of its own. */
const metasIn = (head: Buffer): readonly Meta[] => {
  const first = metaAt(head, 0);
  const sizes = first ? [first.pageSize] : pageSizes;
  const second = sizes.map((size) => metaAt(head, size)).find((meta, at) => meta?.pageSize === sizes[at]);
  return [first, second].filter((meta) => meta !== undefined);
};

export class PageReader {
  private readonly descriptor: number;
  private readonly meta: Meta;
  readonly size: number;
  /** The number of pages that could not be read so far. */
  lost = 0;

  /** Throws when the file has no sound root. */
  constructor(path: string) {
    this.descriptor = openSync(path, 'r');
    try {
      this.size = fstatSync(this.descriptor).size;
      const metas = metasIn(this.bytesAt(0, 0x10000 + 4096));
      const [newest] = [...metas].sort((a, b) => Number(b.transaction - a.transaction));
      if (!newest) throw new NotReadable('it does not begin as a database does');
      this.meta = newest;
      // The other root may be the newer one.
      this.lost = 2 - metas.length;
    } catch (fault) {
      closeSync(this.descriptor);
      throw fault;
    }
  }

  get transaction(): bigint {
    return this.meta.transaction;
  }

  get pageSize(): number {
    return this.meta.pageSize;
  }

  close(): void {
    closeSync(this.descriptor);
  }

  /** All tables that can be read; the others are counted in `lost`. */
  tables(): readonly Tree[] {
    return [...this.records(this.meta.main)].flatMap(({ key, data, flags }) =>
      flags & isTree && data.length >= 48 ? [treeAt(data, 0, key.toString().replace(/\0+$/, ''))] : [],
    );
  }

  private trees(): readonly Tree[] {
    return [this.meta.free, this.meta.main, ...this.tables()];
  }

  /** The number of pages in use, as the file itself states it. */
  usedPages(): number {
    return this.trees().reduce((sum, { pages }) => sum + pages, 2);
  }

  /** Whether the root page of each table can be read, or, to be thorough, each record. */
  isSound(isThorough: boolean): boolean {
    for (const tree of this.trees()) {
      let left = tree.records;
      if (isThorough) for (const _ of this.records(tree)) left -= 1;
      else if (tree.root !== undefined) this.page(tree.root);
      if (isThorough && left !== 0) return false;
    }
    return this.lost === 0;
  }

  records({ root }: Tree): Iterable<Node> {
    return root === undefined ? [] : this.below(root, 0);
  }

  private *below(number: number, depth: number): Generator<Node> {
    const page = depth < deepest ? this.page(number) : undefined;
    if (!page) return;
    for (const at of page.nodes) {
      const [low, high] = [page.bytes.readUInt16LE(at), page.bytes.readUInt16LE(at + 2)];
      const flags = page.bytes.readUInt16LE(at + 4);
      const keyEnd = at + nodeHead + page.bytes.readUInt16LE(at + 6);
      const size = low + high * 0x10000;
      if (page.isBranch) {
        yield* this.below(size + flags * 0x100000000, depth + 1);
        continue;
      }
      const dataEnd = keyEnd + (flags & isLarge ? 24 : size);
      if (keyEnd > page.bytes.length || dataEnd > page.bytes.length) {
        this.lost += 1;
        continue;
      }
      const key = Buffer.from(page.bytes.subarray(at + nodeHead, keyEnd));
      const data = page.bytes.subarray(keyEnd, dataEnd);
      const whole = flags & isLarge ? this.largeAt(Number(data.readBigUInt64LE(0)), size) : Buffer.from(data);
      if (whole) yield { key, data: whole, flags };
    }
  }

  private largeAt(number: number, size: number): Buffer | undefined {
    const bytes = this.bytesAt(number * this.pageSize, headLength + size);
    if (bytes.length === headLength + size && this.isPage(bytes, number, overflow))
      return Buffer.from(bytes.subarray(headLength));
    this.lost += 1;
    return undefined;
  }

  private isPage(bytes: Buffer, number: number, kind: number): boolean {
    return (
      bytes.readBigUInt64LE(0) === BigInt(number) &&
      bytes.readBigUInt64LE(8) <= this.meta.transaction &&
      (bytes.readUInt16LE(18) & kind) !== 0
    );
  }

  private page(
    number: number,
  ): { readonly bytes: Buffer; readonly isBranch: boolean; readonly nodes: readonly number[] } | undefined {
    const bytes = this.bytesAt(number * this.pageSize, this.pageSize);
    const lower = bytes.length === this.pageSize ? bytes.readUInt16LE(20) : 0;
    const nodes = Array.from({ length: lower >> 1 }, (_, n) => headLength + n * 2)
      .filter((at) => at + 2 <= bytes.length)
      .map((at) => bytes.readUInt16LE(at) + headLength);
    const isSound =
      bytes.length === this.pageSize &&
      this.isPage(bytes, number, branch | leaf) &&
      nodes.every((at) => at + nodeHead <= bytes.length);
    if (isSound) return { bytes, isBranch: (bytes.readUInt16LE(18) & branch) !== 0, nodes };
    this.lost += 1;
    return undefined;
  }

  private bytesAt(position: number, length: number): Buffer {
    if (!Number.isSafeInteger(position) || position < 0 || position >= this.size) return Buffer.alloc(0);
    const bytes = Buffer.allocUnsafe(Math.min(length, this.size - position));
    return bytes.subarray(0, readSync(this.descriptor, bytes, 0, bytes.length, position));
  }
}
