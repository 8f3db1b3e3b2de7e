const fewest = 64;

/**
 * Small numbers by when they are due, the soonest first; what is in it can be moved or taken out. Every look goes through
 * it, so its arrays are its own and plain.
 */
export class Heap<T extends number> {
  private items = new Int32Array(fewest);
  private count = 0;
  /** By item: when it is due, and its place in the heap, counted from one; zero when it is not in it. */
  private next = new Float64Array(fewest);
  private places = new Int32Array(fewest);

  get first(): T | undefined {
    return this.count > 0 ? this.at(0) : undefined;
  }

  /** When it is due, or was last. */
  nextOf(item: T): number {
    return this.next[item] ?? 0;
  }

  has(item: T): boolean {
    return this.placeOf(item) >= 0;
  }

  /** Puts an item in, or moves it, to be due at `next`. */
  put(item: T, next: number): void {
    this.makeRoom(item);
    this.next[item] = next;
    if (!this.has(item)) this.set(item, this.count++);
    this.move(item);
  }

  remove(item: T): void {
    const place = this.placeOf(item);
    if (place < 0) return;
    this.places[item] = 0;
    this.count -= 1;
    const last = this.at(this.count);
    if (last === item) return;
    this.set(last, place);
    this.move(last);
  }

  all(): T[] {
    return Array.from({ length: this.count }, (_, place) => this.at(place));
  }

  private at(place: number): T {
    return (this.items[place] ?? 0) as T;
  }

  private placeOf(item: T): number {
    return (this.places[item] ?? 0) - 1;
  }

  private set(item: T, place: number): void {
    this.items[place] = item;
    this.places[item] = place + 1;
  }

  /** To where it belongs: the others make way, and it is put down once. */
  private move(item: T): void {
    const next = this.nextOf(item);
    let place = this.placeOf(item);
    for (let above = (place - 1) >> 1; place > 0; above = (place - 1) >> 1) {
      const other = this.at(above);
      if (this.nextOf(other) <= next) break;
      this.set(other, place);
      place = above;
    }
    for (let below = 2 * place + 1; below < this.count; below = 2 * place + 1) {
      const right = below + 1;
      if (right < this.count && this.nextOf(this.at(right)) < this.nextOf(this.at(below))) below = right;
      const other = this.at(below);
      if (this.nextOf(other) >= next) break;
      this.set(other, place);
      place = below;
    }
    this.set(item, place);
  }

  private makeRoom(item: T): void {
    if (item < this.places.length) return;
    const size = 2 ** Math.ceil(Math.log2(item + 1));
    const { items, next, places } = this;
    this.items = new Int32Array(size);
    this.items.set(items);
    this.next = new Float64Array(size);
    this.next.set(next);
    this.places = new Int32Array(size);
    this.places.set(places);
  }
}
