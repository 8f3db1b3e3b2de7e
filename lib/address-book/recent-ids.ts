import { createHash } from 'node:crypto';

/** How many numbers share a block. */
const blockSize = 256;
const wordsPerBlock = blockSize / 32;

/** Whole numbers, a bit each, in blocks: the ids of an address book lie close together. */
class Numbers {
  /** Where in `words` each block starts. */
  private readonly blocks = new Map<number, number>();
  private words = new Int32Array(64 * wordsPerBlock);

  has(number: number): boolean {
    const block = this.blocks.get(Math.floor(number / blockSize));
    return (
      block !== undefined && ((this.words[this.wordOf(block, number)] ?? 0) & (1 << (number & 31))) !== 0
    );
  }

  add(number: number): void {
    const name = Math.floor(number / blockSize);
    let block = this.blocks.get(name);
    if (block === undefined) {
      block = this.blocks.size * wordsPerBlock;
      this.blocks.set(name, block);
      if (block >= this.words.length) {
        const more = new Int32Array(2 * this.words.length);
        more.set(this.words);
        this.words = more;
      }
    }
    const word = this.wordOf(block, number);
    this.words[word] = (this.words[word] ?? 0) | (1 << (number & 31));
  }

  private wordOf(block: number, number: number): number {
    return block + ((number & (blockSize - 1)) >> 5);
  }
}

/** Characters: of a longer id, only a digest is kept. */
const longestId = 64;

const briefly = (id: number | string): number | string =>
  typeof id === 'string' && id.length > longestId ? createHash('sha256').update(id).digest('base64') : id;

/** A set of ids, and how many were added. */
class Generation {
  private readonly numbers = new Numbers();
  private readonly others = new Set<number | string>();
  size = 0;

  has(id: number | string): boolean {
    return Number.isSafeInteger(id) ? this.numbers.has(id as number) : this.others.has(id);
  }

  add(id: number | string): void {
    this.size += 1;
    if (Number.isSafeInteger(id)) this.numbers.add(id as number);
    else this.others.add(id);
  }
}

/**
 * The ids that were added last. Two generations bound the memory: at least the last `generation` ids are known, so that an
 * address book of that size is known whole.
 */
export class RecentIds {
  private recent = new Generation();
  private older = new Generation();

  constructor(private readonly generation = 100_000) {}

  has(given: number | string): boolean {
    const id = briefly(given);
    return this.recent.has(id) || (this.older.size > 0 && this.older.has(id));
  }

  add(given: number | string): void {
    if (this.recent.size >= this.generation) {
      this.older = this.recent;
      this.recent = new Generation();
    }
    this.recent.add(briefly(given));
  }
}
