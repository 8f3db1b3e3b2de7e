type Values = Uint8Array | Int32Array | Float64Array;

/** Rows whose values lie together: to grow, nothing is copied, and little is set aside that is not used. */
const together = 1024;
const partOf = (row: number): number => row >> 10;
const placeOf = (row: number): number => row & (together - 1);

/** No row, where one is meant. */
export const none = -1;

/**
 * A number for each of very many things: a hundred thousand objects take ten times the memory, and Node sets aside as
 * much again while they are young.
 */
export class Column {
  private readonly parts: Values[] = [];

  constructor(
    private readonly Kind: new (length: number) => Values,
    /** What is there before anything was set. */
    private readonly empty: number,
  ) {}

  get(row: number): number {
    return this.parts[partOf(row)]?.[placeOf(row)] ?? this.empty;
  }

  set(row: number, value: number): void {
    const number = partOf(row);
    while (number >= this.parts.length) this.parts.push(new this.Kind(together).fill(this.empty));
    const part = this.parts[number];
    if (part) part[placeOf(row)] = value;
  }
}

/** Short texts of one length, for each of very many things; the few of another length are kept beside. */
export class TextColumn {
  private readonly parts: Buffer[] = [];
  private readonly others = new Map<number, string>();

  constructor(private readonly length: number) {}

  get(row: number): string {
    const from = placeOf(row) * this.length;
    const part = this.parts[partOf(row)];
    return this.others.get(row) ?? part?.toString('latin1', from, from + this.length) ?? '';
  }

  set(row: number, text: string): void {
    const number = partOf(row);
    while (number >= this.parts.length) this.parts.push(Buffer.alloc(together * this.length));
    this.others.delete(row);
    this.parts[number]?.write(text, placeOf(row) * this.length, this.length, 'latin1');
    if (this.get(row) !== text) this.others.set(row, text);
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
