export interface Queued {
  /** When it is due. */
  next: number;
  /** Its place in the heap, -1 when it is in none. */
  place: number;
}

/** The soonest first; what is in it can be moved or taken out. */
export class Heap<T extends Queued> {
  private readonly items: T[] = [];

  get first(): T | undefined {
    return this.items[0];
  }

  /** Puts an item in, or moves it, to be due at `next`. */
  put(item: T, next: number): void {
    item.next = next;
    if (item.place < 0) item.place = this.items.push(item) - 1;
    this.up(item);
    this.down(item);
  }

  remove(item: T): void {
    if (item.place < 0) return;
    const last = this.items.pop();
    const { place } = item;
    item.place = -1;
    if (last === undefined || last === item) return;
    this.set(last, place);
    this.up(last);
    this.down(last);
  }

  all(): readonly T[] {
    return this.items;
  }

  private set(item: T, place: number): void {
    this.items[place] = item;
    item.place = place;
  }

  private up(item: T): void {
    while (item.place > 0) {
      const parent = (item.place - 1) >> 1;
      const above = this.items[parent];
      if (above === undefined || above.next <= item.next) return;
      this.set(above, item.place);
      this.set(item, parent);
    }
  }

  private down(item: T): void {
    for (;;) {
      const left = this.items[2 * item.place + 1];
      const right = this.items[2 * item.place + 2];
      if (left === undefined) return;
      const child = right !== undefined && right.next < left.next ? right : left;
      if (child.next >= item.next) return;
      const { place } = child;
      this.set(child, item.place);
      this.set(item, place);
    }
  }
}
