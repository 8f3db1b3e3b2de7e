type Values = Uint8Array | Int32Array | Float64Array;

const fewest = 64;

/**
 * A number for each of very many things, side by side: a hundred thousand objects take ten times the memory, and Node
 * sets aside as much again while they are young.
 */
export class Column {
  private values: Values;

  constructor(
    private readonly Kind: new (length: number) => Values,
    /** What is there before anything was set. */
    private readonly empty: number,
  ) {
    this.values = new Kind(fewest).fill(empty);
  }

  get(at: number): number {
    return this.values[at] ?? this.empty;
  }

  set(at: number, value: number): void {
    while (at >= this.values.length) {
      const { length } = this.values;
      const wider = new this.Kind(2 * length);
      wider.set(this.values);
      this.values = wider.fill(this.empty, length);
    }
    this.values[at] = value;
  }
}

/** Short texts of one length, for each of very many things; the few of another length are kept beside. */
export class TextColumn {
  private bytes: Buffer;
  private readonly others = new Map<number, string>();

  constructor(private readonly length: number) {
    this.bytes = Buffer.alloc(fewest * length);
  }

  get(at: number): string {
    const from = at * this.length;
    return this.others.get(at) ?? this.bytes.toString('latin1', from, from + this.length);
  }

  set(at: number, text: string): void {
    const from = at * this.length;
    while (from + this.length > this.bytes.length) {
      this.bytes = Buffer.concat([this.bytes], 2 * this.bytes.length);
    }
    this.others.delete(at);
    this.bytes.write(text, from, this.length, 'latin1');
    if (this.get(at) !== text) this.others.set(at, text);
  }
}

/** The rows of columns: one that was given back is given out again, so that columns do not grow for ever. */
export class Rows {
  private readonly free: number[] = [];
  /** So many were ever given out at once. */
  private most = 0;

  get size(): number {
    return this.most;
  }

  take(): number {
    return this.free.pop() ?? this.most++;
  }

  giveBack(row: number): void {
    this.free.push(row);
  }
}

/** Values of which there are a few, as numbers: each is kept once. */
export class Few<T> {
  private readonly numbers = new Map<T, number>();
  private readonly values: T[] = [];

  numberOf(value: T): number {
    const found = this.numbers.get(value);
    if (found !== undefined) return found;
    const number = this.values.push(value) - 1;
    this.numbers.set(value, number);
    return number;
  }

  find(value: T): number | undefined {
    return this.numbers.get(value);
  }

  at(number: number): T {
    // Numbers come from `numberOf` alone.
    return this.values[number] as T;
  }
}
