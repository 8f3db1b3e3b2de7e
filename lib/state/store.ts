import { setImmediate as nextTick } from 'node:timers/promises';
import { systemClock, type Clock } from '../service/clock';
import {
  bytesIn,
  TakenOver,
  type Change,
  type CommitQueue,
  type Condition,
  type Fence,
  type Table,
  type Version,
} from './commit-queue';
import { recordName, versionOf, type Sealing } from './sealing';
import { day } from '../durations';
import { orMake } from '../process-memory';

export { TakenOver, type Condition, type Table, type Version };

/** A promise costs more than most reads, so an engine answers at once where it can. */
type Answer<T> = T | Promise<T>;

export interface Row {
  readonly key: Buffer;
  readonly value: Buffer;
}

/** Keeps bytes by key: in a file, in a database server that several machines share, or in memory. */
export interface Engine {
  /** False when nothing survives the end of the process: every status then says so. */
  readonly durable: boolean;
  readonly sealing: Sealing;
  /** Makes the commits of everything that is written with this engine. */
  readonly commits: CommitQueue;
  /** What is written now is written under this. Throws where this process must not write. */
  readonly fence: Fence;
  /** How many processes before this one have crashed in a row, each within a minute of its start. */
  readonly crashes: number;
  /** The reason why nothing can be written at the moment, as a sentence for status and log; undefined while writing works. */
  readonly trouble: string | undefined;
  /** The file or the tables are gone, or others are in their place: this does not resolve itself. */
  readonly isGone: boolean;
  /** How often another process has had the store: what was read before that may be done. */
  readonly losses?: number;
  /** Records were lost whose keys are unknown, as with a page of a file: any may be among them. Known after a read. */
  readonly hasLostKeys?: boolean;
  readonly peers?: Peers;
  /** Called when `trouble` begins or ends. */
  readonly onChange: (listener: () => void) => () => void;
  readonly now: () => number;
  /** The key among those of all processes, where several share the database. */
  fullKey?(key: Buffer): Buffer;
  // A range is never empty.
  get(table: Table, key: Buffer): Answer<Buffer | undefined>;
  range(table: Table, range: Range): Answer<readonly Row[]>;
  keys(table: Table, range: Range): Answer<readonly Buffer[]>;
  count(table: Table, from: Buffer, to: Buffer): Answer<number>;
  readonly warn: (text: string) => void;
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
  tellHolder(command: StoreCommand, longest?: number): Promise<void>;
  /** False once another process has taken over all parts of the named one: nothing that it writes is accepted any more. */
  isAlive(processName: string): Promise<boolean>;
  /** Another process has taken this part over for good: the store must be opened again. */
  readonly isLost: boolean;
  /** True when confirmed commits were lost: what was accepted at `at` may have come further than the record says. */
  isInDoubt(at: number): boolean;
  /**
   * Gives a command to all other parts of the store, also to those that were left by processes that ended. Resolves when
   * all living processes have carried it out, or after `longest` milliseconds: nobody may be able to.
   */
  tellOthers(command: StoreCommand, longest?: number): Promise<void>;
  /** Calls the listener when other processes have written, up to a second later. */
  readonly onNews: (listener: () => void) => () => void;
  /** Carries out the meant ones of the commands that lie in this part, which otherwise takes up to a second. */
  carryOut(isMeant: (command: StoreCommand) => boolean): Promise<void>;
}

/** A command of one process to others. Carrying it out twice has the same effect as once. */
export interface StoreCommand {
  readonly kind: string;
  /** When the command was given, by the store's time. */
  readonly at: number;
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

export const tables = ['wait', 'work'] as const satisfies readonly Table[];

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

export const largestWrite = 64 * 1024 * 1024;
/** A length that every engine accepts. */
const longestKey = 1024;

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

/** Changes a record to what `change` makes of it, again where others have changed it meanwhile; undefined removes it. */
export const changeRecord = async <T extends object>(
  store: Store,
  table: Table,
  key: Buffer,
  change: (known: T | undefined) => T | undefined,
  /** Written in the same commit. */
  more: readonly Operation[] = [],
): Promise<T | undefined> => {
  for (;;) {
    const entry = await store.get<T>(table, key);
    const value = change(entry?.value);
    if (value === entry?.value) return value;
    const operation = value ? { table, put: key, value } : { table, remove: key };
    if (await store.write([operation, ...more], [unchanged(table, key, entry)])) return value;
  }
};

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

/** The range of all keys that begin with `prefix`. */
export const under = (prefix: Buffer): Pick<Range, 'from' | 'to'> => ({ from: prefix, to: endOf(prefix) });

async function* pagesOf<T>(
  range: Range,
  read: (range: Range) => Promise<readonly T[]>,
  keyOf: (found: T) => Buffer,
): AsyncGenerator<readonly T[]> {
  for (let left = range; ;) {
    const page = await read(left);
    if (page.length > 0) yield page;
    const last = page.at(-1);
    if (!last || page.length < range.limit) return;
    left = { ...range, from: nextKey(keyOf(last)), skip: 0 };
    // Reads may be answered at once: others get a tick between two pages.
    await nextTick();
  }
}

/** All keys that begin with `prefix`, a page at a time. */
export const keysUnder = (store: Store, table: Table, prefix: Buffer, limit: number, skip = 0) =>
  pagesOf(
    { ...under(prefix), limit, skip },
    (range) => store.keys(table, range),
    (found) => found,
  );

/** All records whose keys begin with `prefix`, a page at a time. */
export const pagesUnder = <T>(store: Store, table: Table, prefix: Buffer, limit: number, skip = 0) =>
  pagesOf(
    { ...under(prefix), limit, skip },
    (range) => store.page<T>(table, range),
    (found) => found.key,
  );

/** Removes all records whose keys begin with `prefix`. */
export const removeUnder = async (store: Store, table: Table, prefix: Buffer): Promise<void> => {
  for await (const found of keysUnder(store, table, prefix, 500))
    await store.write(found.map((remove) => ({ table, remove })));
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

export const isShared = (key: Buffer): boolean =>
  sharedKinds.has(key.toString('utf8', 0, Math.max(0, key.indexOf(0))));

/** The versions of records that cannot be decrypted, by engine, because several stores may be over one. */
const unreadable = new WeakMap<Engine, Map<string, Version>>();

/** Something with steps to save: an item, or what the items of a message share. */
interface Recordable {
  operations(): readonly Operation[];
}

/** What has changed and is not saved yet, and where it will be. */
export interface Changed {
  readonly store: Store;
  readonly jobs: readonly Recordable[];
}

/** The steps that the next write saves, and those who wait for it. */
interface GatheredSteps {
  readonly jobs: Set<Recordable>;
  readonly written: Promise<void>;
  readonly write: () => void;
}

/** The most steps that are gathered before they are written: until then, messages take up memory. */
const mostGathered = 256;
/** The fewest records that are read at once where many in a row cannot be decrypted. */
const readOn = 100;

const isEmpty = ({ from, to, limit }: Range): boolean => limit <= 0 || Buffer.compare(from, to) >= 0;

const checkKey = (key: Buffer): void => {
  if (key.length === 0) throw new Error('a record without a key');
  if (key.length > longestKey) throw new Error(`a key of ${key.length} bytes, at most ${longestKey}`);
};

/**
 * Ordered records by key: everything that must not be lost, such as texts on their way, waits, authorizations and the
 * simulator's state. They are encrypted, and lie in an engine.
 */
export class Store {
  /** The store's own time in epoch milliseconds. It never runs back; it is for ages, never for display. */
  readonly now: () => number;
  /** Where several processes use the store at the same time. */
  readonly peers: Peers | undefined;
  private readonly unreadable: Map<string, Version>;
  private newlyUnreadable = 0;
  private gathered: GatheredSteps | undefined;
  /** Settles when all steps so far are saved or have failed: who waits for them learns of that by its own promise. */
  private settled: Promise<unknown> = Promise.resolve();

  constructor(
    readonly engine: Engine,
    /** Waits for writes in the queue, as far as they can be made, and gives the store up. */
    readonly close: () => Promise<void> = () => Promise.resolve(),
  ) {
    this.now = engine.now;
    this.peers = engine.peers;
    this.unreadable = orMake(unreadable, engine, () => new Map<string, Version>());
  }

  /** A hash of 16 bytes, for what is personal in a key, such as a phone number: keys are not encrypted on disk. */
  hash(text: string): Buffer {
    return this.engine.sealing.hash(text);
  }

  async get<T>(table: Table, key: Buffer): Promise<StoreEntry<T> | undefined> {
    const read = this.engine.get(table, key);
    const value = read instanceof Promise ? await read : read;
    if (!value && this.unreadable.size > 0) this.unreadable.delete(recordName(table, key));
    return value && this.opened<T>(table, { key, value });
  }

  /**
   * Reads the range in one turn of the event loop. A record that cannot be read is left out; fewer than `limit`
   * records still mean that the range has no more.
   */
  async page<T>(table: Table, range: Range): Promise<readonly StoreEntry<T>[]> {
    const entries: StoreEntry<T>[] = [];
    // Where records cannot be decrypted, it reads on until the page is full or the range ends.
    for (let left = range; !isEmpty(left);) {
      const read = this.engine.range(table, left);
      const rows = read instanceof Promise ? await read : read;
      for (const row of rows) {
        const entry = entries.length < range.limit && this.opened<T>(table, row);
        if (entry) entries.push(entry);
      }
      const last = rows.at(-1);
      if (!last || entries.length === range.limit || rows.length < left.limit) return entries;
      const bounds = range.reverse ? { to: last.key } : { from: nextKey(last.key) };
      left = { ...left, ...bounds, limit: Math.max(range.limit, readOn), skip: 0 };
      await nextTick();
    }
    return entries;
  }

  /** As `page`, but reads keys alone: nothing is decrypted. */
  async keys(table: Table, range: Range): Promise<readonly Buffer[]> {
    return isEmpty(range) ? [] : this.engine.keys(table, range);
  }

  /** The number of keys from `from` up to `to`, exclusive. */
  async count(table: Table, from: Buffer, to: Buffer): Promise<number> {
    return isEmpty({ from, to, limit: 1 }) ? 0 : this.engine.count(table, from, to);
  }

  /** Whether the record is there, but could not be read when it was last asked for. */
  isUnreadable(table: Table, key: Buffer): boolean {
    return this.unreadable.has(recordName(table, key));
  }

  /**
   * Writes all operations or none; resolves when they would survive a power cut. False means that a condition did not
   * hold and nothing was written; in a condition, a record that cannot be read counts as missing. All writes of one
   * turn of the event loop are one commit, and they take effect in order. A write waits while nothing can be written
   * (disk full, another owner, server unreachable). It rejects only when the store closes before, when another process
   * takes it over, or when a record is too large.
   */
  async write(operations: readonly Operation[], conditions: readonly Condition[] = []): Promise<boolean> {
    const { engine } = this;
    for (const { key } of conditions) checkKey(key);
    return engine.commits.add({
      fences: [engine.fence],
      changes: this.changesOf(operations),
      conditions: conditions.map(({ table, key, version = this.unreadable.get(recordName(table, key)) }) => ({
        ...{ table, key: engine.fullKey?.(key) ?? key },
        ...(version !== undefined && { version }),
      })),
    });
  }

  /**
   * Resolves when the steps of the job up to now are saved. All steps of one tick are one write, so an outcome that one
   * node emits and another accepts is saved as emitted and accepted together.
   */
  save(job: Recordable): Promise<void> {
    return this.gather(job, true);
  }

  /** Saves steps that are not urgent with the next commit, whenever there is one. */
  ride(job: Recordable): Promise<void> {
    return this.gather(job, false);
  }

  /**
   * Saves steps in one commit with those in another store with the same commits: a node may emit an outcome from the store
   * of an ended process, or of another environment, and the next node accepts it in its own store.
   */
  async saveTogether(jobs: readonly Recordable[], other?: Changed): Promise<void> {
    if (!other || other.store === this) {
      const [written] = [...jobs, ...(other?.jobs ?? [])].map((job) => this.save(job));
      return written;
    }
    const parts: readonly Changed[] = [other, { store: this, jobs }];
    const writing = this.engine.commits.add({
      fences: parts.map(({ store }) => store.engine.fence),
      changes: parts.flatMap(({ store, jobs }) => store.changesOf(jobs.flatMap((job) => job.operations()))),
      conditions: [],
    });
    for (const { store } of parts) store.noteSettled(writing);
    await writing;
  }

  /** Writes the steps that are gathered; resolves when all steps are saved. */
  async flush(): Promise<void> {
    this.gathered?.write();
    await this.settled;
  }

  private opened<T>(table: Table, row: Row): StoreEntry<T> | undefined {
    const { unreadable } = this;
    const opened = this.engine.sealing.open(table, row.key, row.value);
    const version = versionOf(row.value);
    if (opened) {
      if (unreadable.size > 0) unreadable.delete(recordName(table, row.key));
      return { key: row.key, value: opened.value as T, version };
    }
    const name = recordName(table, row.key);
    if (!unreadable.has(name) && ++this.newlyUnreadable === 1) setImmediate(() => this.reportUnreadable());
    unreadable.set(name, version);
    return undefined;
  }

  private reportUnreadable(): void {
    this.engine.warn(
      `${this.newlyUnreadable} saved record(s) are damaged and count as lost. Everything else continues.`,
    );
    this.newlyUnreadable = 0;
  }

  private changesOf(operations: readonly Operation[]): readonly Change[] {
    const { engine } = this;
    const changes = operations.map((each): Change => {
      const key = 'put' in each ? each.put : each.remove;
      checkKey(key);
      const bytes = 'put' in each ? engine.sealing.seal(each.table, key, each.value) : undefined;
      return { table: each.table, key: engine.fullKey?.(key) ?? key, bytes };
    });
    checkSize(bytesIn(changes));
    return changes;
  }

  private gather(job: Recordable, isDue: boolean): Promise<void> {
    const { jobs, written, write } = (this.gathered ??= this.newSteps());
    jobs.add(job);
    this.engine.commits.beforeNext(write, isDue);
    // In a microtask: what belongs into the same commit may follow in this call.
    if (jobs.size === mostGathered) queueMicrotask(write);
    return written;
  }

  private newSteps(): GatheredSteps {
    const jobs = new Set<Recordable>();
    let write = (): void => undefined;
    const written = new Promise<void>((resolve) => {
      write = () => {
        if (this.gathered?.jobs !== jobs) return;
        this.gathered = undefined;
        const operations = [...jobs].flatMap((job) => job.operations());
        // The steps may be on their way already.
        const writing = operations.length === 0 ? this.settled : this.write(operations);
        this.noteSettled(writing);
        resolve(writing.then(() => undefined));
      };
    });
    written.catch(() => undefined);
    return { jobs, written, write };
  }

  private noteSettled(written: Promise<unknown>): void {
    this.settled = Promise.allSettled([this.settled, written]);
  }
}
