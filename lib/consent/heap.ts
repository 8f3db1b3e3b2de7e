import { Column } from './columns';

/** Small numbers by when they are due, the soonest first; what is in it can be moved or taken out. */
export class Heap<T extends number> {
  private readonly items = new Column(Int32Array, -1);
  private count = 0;
  /** By item, not by place. */
  private readonly next = new Column(Float64Array, 0);
  /** Its place in the heap, -1 when it is not in it. */
  private readonly places = new Column(Int32Array, -1);

  get first(): T | undefined {
    return this.count > 0 ? this.at(0) : undefined;
  }

  /** When it is due, or was last. */
  nextOf(item: T): number {
    return this.next.get(item);
  }

  has(item: T): boolean {
    return this.places.get(item) >= 0;
  }

  /** Puts an item in, or moves it, to be due at `next`. */
  put(item: T, next: number): void {
    this.next.set(item, next);
    if (!this.has(item)) this.set(item, this.count++);
    this.up(item);
    this.down(item);
  }

  remove(item: T): void {
    if (!this.has(item)) return;
    const place = this.places.get(item);
    this.places.set(item, -1);
    this.count -= 1;
    const last = this.at(this.count);
    if (last === item) return;
    this.set(last, place);
    this.up(last);
    this.down(last);
  }

  all(): T[] {
    return Array.from({ length: this.count }, (_, place) => this.at(place));
  }

  private at(place: number): T {
    return this.items.get(place) as T;
  }

  private set(item: T, place: number): void {
    this.items.set(place, item);
    this.places.set(item, place);
  }

  private up(item: T): void {
    const next = this.next.get(item);
    for (let place = this.places.get(item); place > 0;) {
      const parent = (place - 1) >> 1;
      const above = this.at(parent);
      if (this.next.get(above) <= next) return;
      this.set(above, place);
      this.set(item, parent);
      place = parent;
    }
  }

  private down(item: T): void {
    const next = this.next.get(item);
    for (let place = this.places.get(item); ;) {
      const left = 2 * place + 1;
      if (left >= this.count) return;
      const right = left + 1;
      const isRight = right < this.count && this.next.get(this.at(right)) < this.next.get(this.at(left));
      const below = isRight ? right : left;
      const child = this.at(below);
      if (this.next.get(child) >= next) return;
      this.set(child, place);
      this.set(item, below);
      place = below;
    }
  }
}
