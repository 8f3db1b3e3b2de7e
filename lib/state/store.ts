import { systemClock, type Clock } from '../service/clock';
import { day } from '../durations';

/**
 * Ordered records by key: everything that must not be lost, such as texts on their way, waits, authorizations and the
 * simulator's state. It is a file, a database server that several machines share, or memory.
 */
export interface Store {
  /** False when nothing survives the end of the process: every status then says so. */
  readonly durable: boolean;
  /** An object that all handles of one store in this process have in common. */
  readonly backing?: object;
  /** How many processes before this one have crashed in a row, each within a minute of its start. */
  readonly crashes: number;
  /** The reason why nothing can be written at the moment, as a sentence for status and log; undefined while writing works. */
  readonly trouble: string | undefined;
  /** The file or the tables are gone, or others are in their place: this does not resolve itself. */
  readonly isGone: boolean;
  /** How often another process has had the store: what was read before that may be done. */
  readonly losses?: number | undefined;
  /** Called when `trouble` begins or ends. */
  onChange(listener: () => void): () => void;
  /** The number of bytes handed to `write` that are not saved yet. */
  readonly unwritten: number;
  /** The store's own time in epoch milliseconds. It never runs back; it is for ages, never for display. */
  readonly now: () => number;
  /** A hash of 16 bytes, for what is personal in a key, such as a phone number: keys are not encrypted on disk. */
  hash(text: string): Buffer;
  get<T>(table: Table, key: Buffer): Promise<StoreEntry<T> | undefined>;
  /**
   * Reads the range in one turn of the event loop. A record that cannot be read is left out, and set aside once; fewer
   * than `limit` records still mean that the range has no more.
   */
  page<T>(table: Table, range: Range): Promise<readonly StoreEntry<T>[]>;
  /** As `page`, but reads keys alone: nothing is decrypted. */
  keys(table: Table, range: Range): Promise<readonly Buffer[]>;
  /** The number of keys from `from` up to `to`, exclusive. */
  count(table: Table, from: Buffer, to: Buffer): Promise<number>;
  /**
   * Whether a record of this range could not be read, now or in an earlier process. When a whole page was lost, its
   * keys are unknown: then any record may be among them.
   */
  hasLost(table: Table, from: Buffer, to: Buffer): Promise<boolean>;
  /** Whether records may be lost whose keys are unknown. It is known once `hasLost` has been asked. */
  hasLostKeys(): Promise<boolean>;
  /**
   * Writes all operations or none; resolves when they would survive a power cut. False means that a condition did not
   * hold and nothing was written. All writes of one turn of the event loop are one commit, and they take effect in
   * order. A write waits while nothing can be written (disk full, another owner, server unreachable). It rejects only
   * when the store closes before, when another process takes it over, or when a record is too large.
   */
  write(operations: readonly Operation[], conditions?: readonly Condition[]): Promise<boolean>;
  /** The other processes that use the store at the same time; undefined where only one process can. */
  readonly peers?: Peers;
  /** Waits for writes in the queue, as far as they can be made, and gives the store up. */
  close(): Promise<void>;
}

/** Only for processes that share a store: each has a part of it. */
export interface Peers {
  /** The name of this process among those that share the store. */
  readonly processName: string;
  /** The name of this part of a shared store. */
  readonly part: string;
  /** Another process has this part: it can only be read. */
  readonly isElsewhere: boolean;
  /** The other parts of a shared store. */
  others(): readonly Store[];
  /** Gives a command to the process that works with this part; resolves as `tellOthers` does. */
  tellHolder(command: StoreCommand): Promise<void>;
  /** False once another process has taken over all parts of the named one: nothing that it writes is accepted any more. */
  isAlive(processName: string): Promise<boolean>;
  /** Another process has taken this part over for good: the store must be opened again. */
  readonly isLost: boolean;
  /** True when confirmed commits were lost: what was accepted at `at` may have come further than the record says. */
  isInDoubt(at: number): boolean;
  /**
   * Gives a command to all other parts of the store, also to those that were left by processes that ended. Resolves when
   * all living processes have carried it out.
   */
  tellOthers(command: StoreCommand): Promise<void>;
  /** Carries out the meant ones of the commands that lie in this part, which otherwise takes up to a second. */
  carryOut(isMeant: (command: StoreCommand) => boolean): Promise<void>;
  /** Stores with the same joint writer can be written to in one commit. */
  readonly joint: JointWriter;
}

/** A command of one process to others. Carrying it out twice has the same effect as once. */
export interface StoreCommand {
  readonly kind: string;
  /** When the command was given, by the store's time. */
  readonly at: number;
}

/** Writes to several stores at once: all or nothing. */
export interface JointWriter {
  write(
    parts: readonly { readonly store: Store; readonly operations: readonly Operation[] }[],
  ): Promise<boolean>;
}

/** The stored data was written by a newer version of this package, and is left alone. */
export class NewerFormat extends Error {
  override readonly message = 'it was written by a newer version of this package';
}

/** The data key of the store cannot be unwrapped with the secrets of this process. */
export class OtherSecret extends Error {
  override readonly message = 'it is encrypted with another credentialSecret';
}

export const reasonOf = (fault: unknown): string =>
  (fault instanceof Error && fault.message) || String(fault);

/** Another process has taken the store over. `isInDoubt` means that the write may have been made just before. */
export class TakenOver extends Error {
  constructor(readonly isInDoubt: boolean) {
    super('another process has taken over the store');
  }
}

/** Texts come and go, waits lie still for a day: in one table, the texts would bloat the waits. */
export type Table = 'wait' | 'work';
export const tables = ['wait', 'work'] as const satisfies readonly Table[];

/** Changes with every put of the record. Versions can only be compared for equality. */
export type Version = number | string;

export interface StoreEntry<T> {
  readonly key: Buffer;
  readonly value: T;
  readonly version: Version;
}

/** Keys from `from` up to `to`, exclusive. */
export interface Range {
  readonly from: Buffer;
  readonly to: Buffer;
  readonly limit: number;
  /** The number of records to pass over first; only their keys are read. */
  readonly skip?: number;
  readonly reverse?: boolean;
}

export type Operation =
  | { readonly table: Table; readonly put: Buffer; readonly value: unknown }
  | { readonly table: Table; readonly remove: Buffer };

/** The record has not changed since it was read; without `version`, the record does not exist. */
export interface Condition {
  readonly table: Table;
  readonly key: Buffer;
  readonly version?: Version;
}

export const largestWrite = 64 * 1024 * 1024;
/** Bytes: writes that wait are put into one commit up to this size, so that none takes long. */
export const largestCommit = 4 * 1024 * 1024;

/** Thrown for a write that is larger than any engine accepts. */
export class TooLarge extends Error {}

/** Thrown for a read or write after the close, such as the end of a request that a deploy did not wait for. */
export class StoreClosed extends Error {}

export const storeClosed = (): Error => new StoreClosed('the store is closed');

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

/** Joins the parts of a key: a text ends with a zero byte, a whole number takes six bytes, bytes are copied. */
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

/** The condition that a record is still as it was read, or still missing. */
export const unchanged = (
  table: Table,
  key: Buffer,
  read: { readonly version: Version } | undefined,
): Condition => (read ? { table, key, version: read.version } : { table, key });

/** The clock for ages: the store, whose time never runs back. For a simulator it is its own clock, which can be moved. */
export const ageClock = (
  { service, clock }: { readonly service: string; readonly clock: Clock },
  store: Store,
): Clock =>
  service === 'simulator' ? clock : { now: store.now, after: systemClock.after.bind(systemClock) };

/** A key as text, one character for each byte: it sorts as the bytes do, and takes half the memory of a buffer. */
export const asName = (bytes: Buffer): string => bytes.toString('latin1');

/** The key that follows `key` immediately. */
export const nextKey = (key: Buffer): Buffer => Buffer.concat([key, Buffer.of(0)]);

/** Removes all records whose keys begin with `prefix`. */
export const removeUnder = async (store: Store, table: Table, prefix: Buffer): Promise<void> => {
  for (;;) {
    const found = await store.keys(table, { from: prefix, to: endOf(prefix), limit: 500 });
    if (found.length === 0) return;
    await store.write(found.map((remove) => ({ table, remove })));
  }
};

/** How long the data of a node or an environment that left the flow is kept, in case its id returns. */
export const keptAfterRemoval = 7 * day;

/** Kinds of records that all processes of a group share, by the first text of the key. */
const sharedKinds: ReadonlySet<string> = new Set([
  'identity',
  'grant',
  'known',
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

/** The first text of the keys of records that could not be read. */
const asideKind = 'damaged';
/** The key under which a record is kept that could not be read. */
export const asideKey = (table: Table, record: Buffer): Buffer => key(asideKind, table, record);
export const isAside = (record: Buffer): boolean => record.toString('latin1').startsWith(`${asideKind}\0`);

export const isShared = (key: Buffer): boolean => {
  const first = key.indexOf(0);
  if (first <= 0) return false;
  const name = key.toString('utf8', 0, first);
  if (sharedKinds.has(name)) return true;
  return name === asideKind && isShared(key.subarray(key.indexOf(0, first + 1) + 1));
};

/** All records whose keys begin with `prefix`, a page at a time. */
export async function* pagesUnder<T>(
  store: Store,
  table: Table,
  prefix: Buffer,
  limit: number,
  skip = 0,
): AsyncGenerator<readonly StoreEntry<T>[]> {
  for (let range = { from: prefix, to: endOf(prefix), limit, skip }; ;) {
    const page = await store.page<T>(table, range);
    if (page.length > 0) yield page;
    const last = page.at(-1);
    if (!last || page.length < limit) return;
    range = { ...range, from: nextKey(last.key), skip: 0 };
  }
}
