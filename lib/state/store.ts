/**
 * Where waits, journal and asked-when live. Nothing above knows whether that is a file here or a server shared by
 * several machines.
 */
export interface Store {
  /** False when nothing survives the process: every status then says so. */
  readonly durable: boolean;
  table<T>(name: string): Table<T>;
  /** A stand-in of fixed length for a key that is itself personal, such as a phone number: keys are readable on disk. */
  hash(text: string): string;
  close(): Promise<void>;
}

export type Write<T> = { readonly put: string; readonly value: T } | { readonly remove: string };

/**
 * Records by key, in key order. A write is on disk when its promise resolves; the embedded store has written before
 * it returns, so a message handed to it in an input handler survives a kill the moment after.
 */
export interface Table<T> {
  get(key: string): Promise<T | undefined>;
  /** All or nothing. */
  write(writes: readonly Write<T>[]): Promise<void>;
  /**
   * For records whose loss only repeats work: on disk a moment later, gathered with others. That moment also lets an
   * outcome reach the next node before the record that would tell it again is gone.
   */
  writeSoon(writes: readonly Write<T>[]): Promise<void>;
  entries(prefix?: string): AsyncIterable<readonly [key: string, value: T]>;
  /** The first key that is not before `start`. */
  keyFrom(start: string): Promise<string | undefined>;
  /** Whether a record under this prefix was found that could not be read, now or in an earlier process. */
  hasLost(prefix: string): Promise<boolean>;
}
