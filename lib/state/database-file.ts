import type { Database, RootDatabase } from 'lmdb';
import { chmodSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Range, Table } from './store';

/** Loaded when first needed. */
export const loadLmdb = () => import('lmdb');
export type Lmdb = Awaited<ReturnType<typeof loadLmdb>>;

type Raw = Database<Buffer, Buffer>;

/** A table; where records go that cannot be read; what belongs to the file as a whole. */
export type Place = Table | 'damaged' | 'meta';

export interface RawOperation {
  readonly place: Place;
  readonly key: Buffer;
  /** None: the record is removed. */
  readonly bytes: Buffer | undefined;
}

/** Who may write. Changed by condition alone, and every commit is made on the condition that it still holds. */
export interface Ownership {
  /** None when the file was given up. */
  readonly holder?: string | undefined;
  /** Where to ask whether the holder lives. */
  readonly address?: string | undefined;
  readonly pid?: number;
  /** The run of the system in which the holder lives. */
  readonly boot?: string | undefined;
  /** The last commit, and the store's time at it. */
  readonly commit: number;
  readonly time: number;
}

/** Of everything in the file; one that is newer is left alone. */
export const format = { version: 1 };

export class NewerFormat extends Error {
  override readonly message = 'it was written by a newer version of this package';
}

/** What is small and belongs to the file as a whole. */
interface Meta {
  readonly format: { readonly version: number };
  readonly owner: Ownership;
  /** Asks an owner of whom no sign of life can be seen to remove this. */
  readonly claim: { readonly holder: string };
}

const keyOf = (name: keyof Meta): Buffer => Buffer.from(name);
export const claimKey = keyOf('claim');
const bytesOf = (value: object): Buffer => Buffer.from(JSON.stringify(value));

/** Among the damaged records, whose names begin with their table and a slash. */
const lossKey = Buffer.from('loss');
export const lossOf = (time: number): RawOperation => ({
  place: 'damaged',
  key: lossKey,
  bytes: bytesOf({ time }),
});

const firstKey = Buffer.from([0]);
/** An empty key is before all others, and the database takes none. */
const startOf = (key: Buffer): Buffer => (key.length === 0 ? firstKey : key);

const isEmpty = ({ from, to, limit }: Range): boolean => limit <= 0 || Buffer.compare(from, to) >= 0;

const optionsOf = ({ from, to, limit, skip: offset = 0, reverse = false }: Range) =>
  reverse
    ? { reverse, start: to, end: startOf(from), exclusiveStart: true, inclusiveEnd: true, limit, offset }
    : { start: startOf(from), end: to, limit, offset };

/** The commit did not come about as far as is known; after an error of the disk only a new look at the file can tell. */
export class CommitFailed extends Error {
  constructor(
    readonly code: string | number | undefined,
    options: ErrorOptions,
  ) {
    super('the commit failed', options);
  }
}

const codeOf = (fault: unknown): string | number | undefined =>
  (fault as { readonly code?: string | number } | undefined)?.code;

/** As lmdb says it itself, where it does. */
export class DamagedFile extends Error {
  readonly code = -30796;
  override readonly message = 'a page that is damaged';
}

/** The reason comes in a promise of its own, which nobody may leave uncaught. */
const settled = async (written: Promise<boolean>): Promise<boolean> => {
  try {
    return await written;
  } catch (fault) {
    const reason: unknown = await (fault as { commitError?: Promise<never> }).commitError?.catch(
      (cause: unknown) => cause,
    );
    throw new CommitFailed(codeOf(reason ?? fault), { cause: reason ?? fault });
  }
};

const pageSize = 4096;
const megabyte = 1024 * 1024;
/** What a commit may need at most: beyond that, a guess would refuse what fits. */
const mostNeeded = 64 * megabyte;
/** What is left free. */
const spare = megabyte;
/** With so much free, one look a second is enough. */
const plenty = 512 * megabyte;
const lookEvery = 1000;

/** The free space of a disk, looked at before each commit: lmdb may end the process when a write of its own fails. */
class FreeSpace {
  private isEnoughUntil = -Infinity;

  constructor(private readonly directory: string) {}

  /** Throws when so many changes, of so many bytes, may not fit. */
  check(changes: number, bytes: number): void {
    if (performance.now() < this.isEnoughUntil) return;
    const free = this.free();
    if (free === undefined) return;
    if (free > plenty) this.isEnoughUntil = performance.now() + lookEvery;
    // Each change may copy a page.
    const needed = Math.min(changes * pageSize + bytes, mostNeeded) + spare;
    if (free >= needed) return;
    const cause = new Error(`no space left on the disk, of which ${Math.floor(free / megabyte)} MB are free`);
    throw new CommitFailed('ENOSPC', { cause });
  }

  /** Undefined where the file system does not say. */
  private free(): number | undefined {
    try {
      const { blocks, bavail, bsize } = statfsSync(this.directory);
      return blocks > 0 ? bavail * bsize : undefined;
    } catch {
      return undefined;
    }
  }
}

/**
 * One file of lmdb: bytes by key in a few tables. A commit is synced before it is visible, so that it survives a power
 * cut when its promise resolves, and is made off the event loop.
 */
export class DatabaseFile {
  private readonly root: RootDatabase<Buffer, Buffer>;
  private readonly metaTable: Raw;
  private readonly places: Readonly<Record<Place, Raw>>;
  private readonly space: FreeSpace;

  constructor(
    lmdb: Lmdb,
    readonly path: string,
  ) {
    this.space = new FreeSpace(dirname(path));
    // `permissionsMode` and `txnStartThreshold` are left out of lmdb's type declarations.
    const options = {
      permissionsMode: 0o600,
      encoding: 'binary',
      keyEncoding: 'binary',
      maxDbs: 8,
      overlappingSync: false,
      // Its own gathering leaves promises that nobody can catch when a commit fails.
      eventTurnBatching: false,
      txnStartThreshold: 1,
    } as const;
    this.root = lmdb.open<Buffer, Buffer>(path, options);
    try {
      const open = (name: string, useVersions = false): Raw =>
        this.root.openDB<Buffer, Buffer>(name, { encoding: 'binary', keyEncoding: 'binary', useVersions });
      this.metaTable = open('meta', true);
      this.places = {
        meta: this.metaTable,
        wait: open('wait'),
        work: open('work'),
        damaged: open('damaged'),
      };
      for (const each of [path, `${path}-lock`]) chmodSync(each, 0o600);
    } catch (fault) {
      void this.root.close();
      throw fault;
    }
  }

  /** From here on reads see what was committed last, by whichever process. */
  refresh(): void {
    this.root.resetReadTxn();
  }

  meta<K extends keyof Meta>(name: K): { readonly value: Meta[K]; readonly version: number } | undefined {
    const entry = this.metaTable.getEntry(keyOf(name));
    return entry && { value: JSON.parse(entry.value.toString()) as Meta[K], version: entry.version ?? 0 };
  }

  /** Valid until the next read. */
  peek(place: Place, key: Buffer): Buffer | undefined {
    return this.places[place].getBinaryFast(key);
  }

  /** The store's time when records were lost that nobody can name; undefined when that never happened. */
  get lossAt(): number | undefined {
    const found = this.places.damaged.getBinary(lossKey);
    return found && (JSON.parse(found.toString()) as { readonly time: number }).time;
  }

  get(place: Place, key: Buffer): Buffer | undefined {
    return this.places[place].getBinary(key);
  }

  range(place: Place, range: Range): readonly { key: Buffer; value: Buffer }[] {
    if (isEmpty(range)) return [];
    const found = Array.from(this.places[place].getRange(optionsOf(range)));
    if (found.length < range.limit) this.checkEnd(place, range, found.at(-1)?.key);
    return found;
  }

  keys(place: Place, range: Range): readonly Buffer[] {
    if (isEmpty(range)) return [];
    const found = Array.from(this.places[place].getKeys(optionsOf(range)));
    if (found.length < range.limit) this.checkEnd(place, range, found.at(-1));
    return found;
  }

  /** A page that is damaged may end a range early, and lmdb says nothing: from the other side it ends elsewhere. */
  private checkEnd(place: Place, { from, to, reverse = false }: Range, last: Buffer | undefined): void {
    if (!last) return;
    const options = optionsOf({ from, to, limit: 1, reverse: !reverse });
    const [other] = this.places[place].getKeys(options);
    if (!other?.equals(last)) throw new DamagedFile();
  }

  count(place: Place, from: Buffer, to: Buffer): number {
    if (Buffer.compare(from, to) >= 0) return 0;
    return this.places[place].getKeysCount({ start: startOf(from), end: to });
  }

  /** False when the owner is another one by now: then nothing was written. */
  async commit(version: number, owner: Ownership, operations: readonly RawOperation[]): Promise<boolean> {
    let bytes = 0;
    for (const operation of operations) bytes += operation.bytes?.length ?? 0;
    this.space.check(operations.length, bytes);
    return this.write(version, () => {
      for (const { place, key, bytes } of operations) {
        const table = this.places[place];
        void (bytes ? table.put(key, bytes) : table.remove(key));
      }
      void this.metaTable.put(keyOf('owner'), bytesOf(owner), version);
    });
  }

  /** Makes another the owner, if nobody did so since `before` was read. */
  hand(before: number | undefined, owner: Ownership): Promise<boolean> {
    return this.write(before, () => {
      void this.metaTable.put(keyOf('format'), bytesOf(format), 1);
      void this.metaTable.remove(claimKey);
      void this.metaTable.put(keyOf('owner'), bytesOf(owner), (before ?? 0) + 1);
    });
  }

  /** Without being the owner. */
  async claim(holder: string): Promise<void> {
    await settled(this.metaTable.put(claimKey, bytesOf({ holder }), 1));
  }

  close(): Promise<void> {
    return this.root.close();
  }

  private write(ownerVersion: number | undefined, action: () => void): Promise<boolean> {
    const key = keyOf('owner');
    return settled(
      ownerVersion === undefined
        ? this.metaTable.ifNoExists(key, action)
        : this.metaTable.ifVersion(key, ownerVersion, action),
    );
  }
}
