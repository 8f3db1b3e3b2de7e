import type * as lmdb from 'lmdb';
import type { Database, RootDatabase } from 'lmdb';
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { devNull } from 'node:os';
import { basename, dirname } from 'node:path';
import type { Change, Table } from './commit-queue';
import { reasonOf, type Range } from './store';
import { second } from '../durations';
import { tried } from '../kinds';

/**
 * lmdb has native code, so it is loaded only when a store is opened. A failed `require` can be repeated, a failed
 * `import` cannot.
 */
export const loadLmdb = () => require('lmdb') as typeof lmdb;

/** Whether lmdb has no native code for this platform. Without a free file descriptor, its other faults look the same. */
export const isWithoutBinary = (fault: unknown): boolean => {
  try {
    closeSync(openSync(devNull, 'r'));
  } catch {
    return false;
  }
  const { code } = fault as { readonly code?: string };
  return code === 'ERR_DLOPEN_FAILED' || reasonOf(fault).startsWith('No native build was found');
};

type Raw = Database<Buffer, Buffer>;

/**
 * The record of who may write. It changes by condition alone, and every commit is made on the condition that it is
 * unchanged.
 */
export interface Ownership {
  /** Undefined when the last owner gave the file up. */
  readonly holder?: string | undefined;
  readonly address?: string | undefined;
  readonly pid?: number;
  /** The number of the last commit, and the store's time when it was made. */
  readonly commit: number;
  readonly time: number;
}

/** A file with a newer format is left alone. */
export const formatVersion = 1;

export interface Format {
  readonly version: number;
  readonly keyId?: string | undefined;
  /** Records were lost whose keys are unknown. */
  readonly hasLostKeys?: boolean;
}

/** Small records that belong to the file as a whole. */
interface Meta {
  readonly format: Format;
  readonly owner: Ownership;
}

const keyOf = (name: keyof Meta): Buffer => Buffer.from(name);
const bytesOf = (value: object): Buffer => Buffer.from(JSON.stringify(value));

const firstKey = Buffer.from([0]);
/** The empty key sorts before all others, but lmdb accepts no empty key. */
const startOf = (key: Buffer): Buffer => (key.length === 0 ? firstKey : key);

const optionsOf = ({ from, to, limit, skip: offset = 0, reverse = false }: Range) =>
  reverse
    ? { reverse, start: to, end: startOf(from), exclusiveStart: true, inclusiveEnd: true, limit, offset }
    : { start: startOf(from), end: to, limit, offset };

/** Damage that lmdb does not report itself. The code is lmdb's own for a damaged page (MDB_CORRUPTED). */
class DamagedFile extends Error {
  readonly code = -30796;
  override readonly message = 'a page that is damaged';
}

/** lmdb rejects with the reason in a second promise, `commitError`, which must be caught as well. */
const withReason = async (written: Promise<boolean>): Promise<boolean> => {
  try {
    return await written;
  } catch (fault) {
    await (fault as { commitError?: Promise<never> }).commitError;
    throw fault;
  }
};

const diskPage = 4096;
const megabyte = 1024 * 1024;
/** The most space that a commit is expected to need. A higher estimate would refuse commits that fit. */
const mostNeeded = 64 * megabyte;
const spare = megabyte;
/** While this many bytes are free, the free space is read once a second. */
const plenty = 512 * megabyte;
const lookEvery = second;

/** The free space of the disk is checked before each commit: lmdb may end the process when one of its writes fails. */
class FreeSpace {
  private isEnoughUntil = -Infinity;

  constructor(private readonly directory: string) {}

  /** Throws when a commit of this many changes and bytes may not fit. */
  check(changes: number, bytes: number): void {
    if (performance.now() < this.isEnoughUntil) return;
    const found = tried(() => statfsSync(this.directory));
    // Not every file system says it.
    if (!found?.blocks) return;
    const free = found.bavail * found.bsize;
    if (free > plenty) this.isEnoughUntil = performance.now() + lookEvery;
    // Each change may copy a whole page.
    const needed = Math.min(changes * diskPage + bytes, mostNeeded) + spare;
    if (free >= needed) return;
    throw new Error(`no space left on the disk, of which ${Math.floor(free / megabyte)} MB are free`);
  }
}

/** More than lmdb needs to open a file. */
const descriptorsNeeded = 8;

/**
 * Throws when lmdb could not open its files, which would end the process, or when something else is in their place: a
 * pipe would block whoever reads it. The files are not opened for this, because closing one would end lmdb's locks in it.
 */
export const checkFiles = (path: string): void => {
  for (const each of [path, `${path}-lock`]) {
    if (!lstatSync(each, { throwIfNoEntry: false })) continue;
    if (!statSync(each).isFile()) throw new Error(`${basename(each)} is not a file`);
    accessSync(each, constants.R_OK | constants.W_OK);
  }
  const opened: number[] = [];
  try {
    while (opened.length < descriptorsNeeded) opened.push(openSync(devNull, 'r'));
  } finally {
    for (const each of opened) closeSync(each);
  }
};

/**
 * One lmdb file: bytes by key, in a few tables. A commit is made off the event loop. It is synced before it is visible,
 * so that it survives a power cut once its promise resolves.
 */
export class DatabaseFile {
  private readonly root: RootDatabase<Buffer, Buffer>;
  private readonly metaTable: Raw;
  private readonly places: Readonly<Record<Table, Raw>>;
  private readonly space: FreeSpace;

  constructor(readonly path: string) {
    this.space = new FreeSpace(dirname(path));
    // The type declarations of lmdb lack `permissionsMode` and `txnStartThreshold`.
    const options = {
      permissionsMode: 0o600,
      encoding: 'binary',
      keyEncoding: 'binary',
      maxDbs: 8,
      overlappingSync: false,
      // When a commit fails, the batching of lmdb leaves rejected promises that nobody can catch.
      eventTurnBatching: false,
      txnStartThreshold: 1,
    } as const;
    checkFiles(path);
    // lmdb makes its lock in memory that is mapped to the file: on a full disk, that ends the process.
    if (!existsSync(`${path}-lock`)) this.space.check(0, 0);
    this.root = loadLmdb().open<Buffer, Buffer>(path, options);
    try {
      const open = (name: string, useVersions = false): Raw =>
        this.root.openDB<Buffer, Buffer>(name, { encoding: 'binary', keyEncoding: 'binary', useVersions });
      this.metaTable = open('meta', true);
      this.places = {
        wait: open('wait'),
        work: open('work'),
      };
      for (const each of [path, `${path}-lock`]) chmodSync(each, 0o600);
    } catch (fault) {
      void this.root.close();
      throw fault;
    }
  }

  /** From here on, reads see the last commit of any process. */
  refresh(): void {
    this.root.resetReadTxn();
  }

  meta<K extends keyof Meta>(name: K): { readonly value: Meta[K]; readonly version: number } | undefined {
    const entry = this.metaTable.getEntry(keyOf(name));
    return entry && { value: JSON.parse(entry.value.toString()) as Meta[K], version: entry.version ?? 0 };
  }

  get(place: Table, key: Buffer): Buffer | undefined {
    return this.places[place].getBinary(key);
  }

  range(place: Table, range: Range): readonly { key: Buffer; value: Buffer }[] {
    const found = Array.from(this.places[place].getRange(optionsOf(range)));
    if (found.length < range.limit) this.checkEnd(place, range, found.at(-1)?.key);
    return found;
  }

  keys(place: Table, range: Range): readonly Buffer[] {
    const found = Array.from(this.places[place].getKeys(optionsOf(range)));
    if (found.length < range.limit) this.checkEnd(place, range, found.at(-1));
    return found;
  }

  /**
   * lmdb may end a range early at a damaged page, without an error. Read from its other end, the range then ends
   * elsewhere.
   */
  private checkEnd(place: Table, { from, to, reverse = false }: Range, last: Buffer | undefined): void {
    if (!last) return;
    const options = optionsOf({ from, to, limit: 1, reverse: !reverse });
    const [other] = this.places[place].getKeys(options);
    if (!other?.equals(last)) throw new DamagedFile();
  }

  count(place: Table, from: Buffer, to: Buffer): number {
    return this.places[place].getKeysCount({ start: startOf(from), end: to });
  }

  /** False when another process owns the file by now: nothing was written. */
  async commit(version: number, owner: Ownership, changes: readonly Change[]): Promise<boolean> {
    let bytes = 0;
    for (const change of changes) bytes += change.bytes?.length ?? 0;
    this.space.check(changes.length, bytes);
    return this.write(version, () => {
      for (const { table, key, bytes } of changes)
        void (bytes ? this.places[table].put(key, bytes) : this.places[table].remove(key));
      void this.metaTable.put(keyOf('owner'), bytesOf(owner), version);
    });
  }

  /** Changes the owner, unless somebody has changed it since version `before` was read. */
  hand(
    before: number | undefined,
    owner: Ownership,
    format: Omit<Format, 'version'> | undefined = this.meta('format')?.value,
  ): Promise<boolean> {
    return this.write(before, () => {
      void this.metaTable.put(keyOf('format'), bytesOf({ ...format, version: formatVersion }), 1);
      void this.metaTable.put(keyOf('owner'), bytesOf(owner), (before ?? 0) + 1);
    });
  }

  close(): Promise<void> {
    return this.root.close();
  }

  private write(ownerVersion: number | undefined, action: () => void): Promise<boolean> {
    const key = keyOf('owner');
    return withReason(
      ownerVersion === undefined
        ? this.metaTable.ifNoExists(key, action)
        : this.metaTable.ifVersion(key, ownerVersion, action),
    );
  }
}
