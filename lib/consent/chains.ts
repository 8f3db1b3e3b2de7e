import { Column, none } from './columns';

/** Many lists of rows, each in its own order; a row is in one of them at most. */
export class Chains {
  /** By list. */
  private readonly first = new Column(Int32Array, none);
  private readonly last = new Column(Int32Array, none);
  /** By row. */
  private readonly before = new Column(Int32Array, none);
  private readonly after = new Column(Int32Array, none);

  firstOf(list: number): number {
    return this.first.get(list);
  }

  lastOf(list: number): number {
    return this.last.get(list);
  }

  beforeOf(row: number): number {
    return this.before.get(row);
  }

  afterOf(row: number): number {
    return this.after.get(row);
  }

  /** Puts a row after another of the list, or first. */
  insert(list: number, row: number, before: number): void {
    const after = before === none ? this.first.get(list) : this.after.get(before);
    this.link(list, before, row);
    this.link(list, row, after);
  }

  remove(list: number, row: number): void {
    this.link(list, this.before.get(row), this.after.get(row));
  }

  private link(list: number, before: number, after: number): void {
    if (before === none) this.first.set(list, after);
    else this.after.set(before, after);
    if (after === none) this.last.set(list, before);
    else this.before.set(after, before);
  }
}
