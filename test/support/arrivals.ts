interface Waiting<T> {
  readonly count: number;
  /** Where the test waits. */
  readonly place: Error;
  readonly resolve: (things: T[]) => void;
}

/** Where tests wait for arrivals that have not come, for the report of a timeout. */
export const awaited = new Set<Error>();

/** Things that arrive in their own time, for a test to wait for without sleeping. */
export class Arrivals<T> {
  readonly all: T[] = [];
  private taken = 0;
  private readonly waiting: Waiting<T>[] = [];

  add(thing: T): void {
    this.all.push(thing);
    this.serve();
  }

  /** The next `count` that no test has waited for yet. */
  next(count = 1): Promise<T[]> {
    return new Promise((resolve) => {
      const place = new Error('waits');
      awaited.add(place);
      this.waiting.push({ count, resolve, place });
      this.serve();
    });
  }

  /** Those that no test waits for, for long tests. */
  forget(): void {
    this.all.length = this.taken = 0;
  }

  private serve(): void {
    const first = this.waiting[0];
    if (!first || this.all.length - this.taken < first.count) return;
    this.waiting.shift();
    awaited.delete(first.place);
    const things = this.all.slice(this.taken, this.taken + first.count);
    this.taken += first.count;
    first.resolve(things);
    this.serve();
  }
}
