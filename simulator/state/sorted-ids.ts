export type SortKey = string | number;

/** With more new ids than this, sorting all is cheaper than inserting each. */
const fewNewcomers = 32;

/**
 * Ids in the order of their keys; equal keys are in the order of the ids. Built once, then kept sorted by binary
 * search, so that neither a page nor a change sorts again. When an id is removed, `keyOf` must still give its old key.
 */
export class SortedIds {
  private ids: number[];
  /** Ids that were added since the last read. */
  private newcomers: number[] = [];

  constructor(
    ids: readonly number[],
    private readonly keyOf: (id: number) => SortKey,
  ) {
    this.ids = this.sorted(ids);
  }

  add(id: number): void {
    this.newcomers.push(id);
  }

  remove(id: number): void {
    this.takeIn();
    const at = this.position(id);
    if (this.ids[at] === id) this.ids.splice(at, 1);
  }

  slice(start: number, count: number, direction: 'asc' | 'desc'): number[] {
    this.takeIn();
    if (direction === 'asc') return this.ids.slice(start, start + count);
    const end = this.ids.length - start;
    return end <= 0 ? [] : this.ids.slice(Math.max(0, end - count), end).reverse();
  }

  private takeIn(): void {
    if (this.newcomers.length === 0) return;
    const { newcomers } = this;
    this.newcomers = [];
    if (newcomers.length > fewNewcomers) this.ids = this.sorted([...this.ids, ...newcomers]);
    else for (const id of newcomers) this.ids.splice(this.position(id), 0, id);
  }

  private sorted(ids: readonly number[]): number[] {
    return ids
      .map((id) => ({ id, key: this.keyOf(id) }))
      .sort((one, other) => compare(one.key, one.id, other.key, other.id))
      .map(({ id }) => id);
  }

  /** The position of `id`, or the position at which it would be inserted. */
  private position(id: number): number {
    const key = this.keyOf(id);
    let low = 0;
    let high = this.ids.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const there = this.ids[middle] ?? id;
      if (compare(this.keyOf(there), there, key, id) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const compare = (key: SortKey, id: number, otherKey: SortKey, otherId: number): number => {
  if (key === otherKey) return id - otherId;
  return key < otherKey ? -1 : 1;
};
