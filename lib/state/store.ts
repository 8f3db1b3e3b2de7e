import { systemClock, type Clock } from '../service/clock';
import { day } from '../durations';

/**
 * Where everything lives that must not be lost: texts on their way, waits, authorizations, the simulator's state.
 * Ordered records by key. Nothing above knows whether that is a file here, a server shared by several machines, or memory.
 */
export interface Store {
  /** False when nothing survives the process: every status then says so. */
  readonly durable: boolean;
  /** Other processes work with it at the same time. */
  readonly isShared?: boolean;
  /** This process, as the others know it; where there are none, it has no name. */
  readonly processName?: string;
  /** Which part of what several processes share; where there are none, it has no name. */
  readonly part?: string;
  /** The other parts, each as a store to be read alone. */
  others?(): readonly Store[];
  /** Has whoever works with this part do something; resolves as `tellOthers` does. */
  tellHolder?(order: StoreOrder): Promise<void>;
  /** False once another has taken over all that a process had: from then on, nothing it writes is accepted. */
  isAlive?(processName: string): Promise<boolean>;
  /** Another process has taken it over for good: it is to be opened anew. */
  readonly isLost?: boolean;
  /** Why nothing can be written at the moment, as a sentence for status and log; undefined while all is well. */
  readonly trouble: string | undefined;
  /** Called when `trouble` begins or ends. */
  onChange(listener: () => void): () => void;
  /** Bytes handed to `write` that are not on record yet. */
  readonly unwritten: number;
  /** Milliseconds since the epoch by the store's own time, which never runs back: for ages, never for display. */
  now(): number;
  /** A stand-in of 16 bytes for what is personal in a key, such as a phone number: keys are readable on disk. */
  hash(text: string): Buffer;
  get<T>(table: Table, key: Buffer): Promise<Entry<T> | undefined>;
  /** Read in one turn of the event loop; a record that cannot be read is set aside, once, and missing here. */
  page<T>(table: Table, range: Range): Promise<readonly Entry<T>[]>;
  /** As `page`, but the keys alone: nothing is unsealed. */
  keys(table: Table, range: Range): Promise<readonly Buffer[]>;
  /** How many keys there are from `from` up to `to`, exclusive; reads keys alone. */
  count(table: Table, from: Buffer, to: Buffer): Promise<number>;
  /**
   * Whether a record of this range could not be read, now or in an earlier process, as after damage. Of a page that was
   * lost whole nobody knows what was on it: then it may have been whatever was written at `at` or later before the loss.
   */
  hasLost(table: Table, from: Buffer, to: Buffer, at?: number): Promise<boolean>;
  /**
   * All or nothing; resolves when it would survive a power cut. False when a condition did not hold: then nothing was
   * written. What is written in one turn of the event loop is one commit, and writes take effect in the order they came.
   * While nothing can be written (disk full, another owner, server away), it waits. Rejects only when the store closes
   * before, when another process takes it over, or when a record is too large.
   */
  write(operations: readonly Operation[], conditions?: readonly Condition[]): Promise<boolean>;
  /** Commits that were confirmed are gone: what was accepted at `at` may have come further than the record says. */
  isInDoubt?(at: number): boolean;
  /**
   * Has whoever works with the other parts of it do something, also with what processes that ended have left. Resolves when
   * all that live have done so.
   */
  tellOthers?(order: StoreOrder): Promise<void>;
  /** Stores that have the same one can be written to in one commit. */
  readonly joint?: JointWriter;
  /** Waits for what was handed to `write`, as far as that can be written, and gives the store up. */
  close(): Promise<void>;
}

/** What one process has the others do. To do it twice is to do it once. */
export interface StoreOrder {
  readonly kind: string;
  /** When it was given, by the store's time. */
  readonly at: number;
}

/** Writes to several stores at once: all or nothing. */
export interface JointWriter {
  write(
    parts: readonly { readonly store: Store; readonly operations: readonly Operation[] }[],
  ): Promise<boolean>;
}

/** Another process has taken the store over. In doubt: what was to be written may have been, just before. */
export class TakenOver extends Error {
  constructor(readonly isInDoubt: boolean) {
    super('another process has taken over the store');
  }
}

/** In one table, texts that come and go would bloat the waits that lie still for a day. */
export type Table = 'wait' | 'work';
export const tables = ['wait', 'work'] as const satisfies readonly Table[];

/** Changes with every put of a record. Compared, never calculated with. */
export type Version = number | string;

export interface Entry<T> {
  readonly key: Buffer;
  readonly value: T;
  readonly version: Version;
}

/** Keys from `from` up to `to`, exclusive. */
export interface Range {
  readonly from: Buffer;
  readonly to: Buffer;
  readonly limit: number;
  /** Passed over before the first: keys alone are read of them. */
  readonly skip?: number;
  readonly reverse?: boolean;
}

export type Operation =
  | { readonly table: Table; readonly put: Buffer; readonly value: unknown }
  | { readonly table: Table; readonly remove: Buffer };

/** The record has not changed since it was read; without a version, there is none. */
export interface Condition {
  readonly table: Table;
  readonly key: Buffer;
  readonly version?: Version;
}

/** Every engine holds a key of this length. */
const longestKey = 1024;
const largestWrite = 64 * 1024 * 1024;

export class TooLarge extends Error {}

/** Throws where a write is wrong in itself. */
export const checkWrite = (operations: readonly Operation[], conditions: readonly Condition[]): void => {
  const check = (key: Buffer): void => {
    if (key.length === 0) throw new Error('a record without a key');
    if (key.length > longestKey) throw new TooLarge(`a key of ${key.length} bytes, at most ${longestKey}`);
  };
  for (const operation of operations) check('put' in operation ? operation.put : operation.remove);
  for (const { key } of conditions) check(key);
};

export const checkSize = (bytes: number): void => {
  if (bytes > largestWrite)
    throw new TooLarge(`a write of ${bytes} bytes, at most ${largestWrite}: make the message smaller`);
};

const ofText = (part: string): Buffer => {
  if (part.includes('\0')) throw new Error('a key with a zero byte');
  return Buffer.from(`${part}\0`);
};

/** Six bytes hold every time in milliseconds until the year 10889. */
const ofNumber = (part: number): Buffer => {
  const bytes = Buffer.allocUnsafe(6);
  bytes.writeUIntBE(part, 0, 6);
  return bytes;
};

/** Parts in order: a text ends with a zero byte, a whole number takes six bytes, bytes stand as they are. */
export const key = (...parts: readonly (string | number | Buffer)[]): Buffer =>
  Buffer.concat(
    parts.map((part) =>
      typeof part === 'string' ? ofText(part) : typeof part === 'number' ? ofNumber(part) : part,
    ),
  );

/** The end of the range of all keys that begin with `prefix`. */
export const endOf = (prefix: Buffer): Buffer => {
  const end = Buffer.from(prefix);
  for (let at = end.length - 1; at >= 0; at--) {
    if (end[at] !== 0xff) {
      end[at] = (end[at] ?? 0) + 1;
      return end.subarray(0, at + 1);
    }
  }
  throw new Error('a prefix without an end');
};

/** That a record is still as it was read, or still missing. */
export const unchanged = (table: Table, key: Buffer, read: Entry<unknown> | undefined): Condition =>
  read ? { table, key, version: read.version } : { table, key };

/** What tells ages: the store, whose time never runs back; for what is at a simulator, its clock, which can be moved. */
export const ageClock = (
  { service, clock }: { readonly service: string; readonly clock: Clock },
  store: Store,
): Clock =>
  service === 'simulator' ? clock : { now: () => store.now(), after: systemClock.after.bind(systemClock) };

/** Removes all records whose keys begin with `prefix`. */
export const removeUnder = async (store: Store, table: Table, prefix: Buffer): Promise<void> => {
  for (;;) {
    const found = await store.keys(table, { from: prefix, to: endOf(prefix), limit: 100 });
    if (found.length === 0) return;
    await store.write(found.map((remove) => ({ table, remove })));
  }
};

/** How long the data of a node or an environment that left the flow is kept, in case its id returns. */
export const keptAfterRemoval = 7 * day;

/** Of these all processes that work together have one, and not each its own. By the first text of a key. */
const sharedKinds: ReadonlySet<string> = new Set([
  'grant',
  'once',
  'renewing',
  'link',
  'missed',
  'granted',
  'blocked',
  'event-told',
  'event-first',
  'failure',
  'absent',
  'present',
]);
/** And of these, in the space of an environment at a service: by the second text. */
const sharedInSpace = 'asked';

export const isShared = (_table: Table, key: Buffer): boolean => {
  const first = key.indexOf(0);
  if (first <= 0) return false;
  const name = key.toString('utf8', 0, first);
  if (sharedKinds.has(name)) return true;
  // Only the name of a space has a slash: the second text of other keys is the id of a node, which may be any word.
  return name.includes('/') && key.toString('utf8', first + 1, key.indexOf(0, first + 1)) === sharedInSpace;
};
