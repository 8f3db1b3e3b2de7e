import { createHash } from 'node:crypto';

/** Characters: of a longer id, only a digest is kept. */
const longestId = 64;

const briefly = (id: number | string): number | string =>
  typeof id === 'string' && id.length > longestId ? createHash('sha256').update(id).digest('base64') : id;

/**
 * The ids that were added last. Two generations bound the memory: at least the last `generation` ids are known, so that an
 * address book of that size is known whole.
 */
export class RecentIds {
  private recent = new Set<number | string>();
  private older = new Set<number | string>();

  constructor(private readonly generation = 100_000) {}

  has(given: number | string): boolean {
    const id = briefly(given);
    return this.recent.has(id) || this.older.has(id);
  }

  add(given: number | string): void {
    if (this.recent.size >= this.generation) {
      this.older = this.recent;
      this.recent = new Set();
    }
    this.recent.add(briefly(given));
  }
}
