import { randomBytes } from 'node:crypto';
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { tried } from '../kinds';
import type { Change } from './commit-queue';
import { checkFiles, DatabaseFile, formatVersion, type Format, type Ownership } from './database-file';
import { NotReadable, PageReader, type Tree } from './page-reader';
import { NewerFormat, tables } from './store';

/**
 * Codes of lmdb that mean damage: MDB_CORRUPTED, MDB_PAGE_NOTFOUND and MDB_INVALID; and those that follow when lmdb has
 * taken a damaged page for a good one: MDB_CURSOR_FULL, MDB_BAD_TXN, MDB_BAD_VALSIZE and MDB_PROBLEM.
 */
const damageCodes: ReadonlySet<unknown> = new Set([-30796, -30797, -30793, -30787, -30782, -30781, -30779]);

/** Whether lmdb itself reports that the file is damaged. Any other fault is unknown, and the file stays. */
export const isDamage = (fault: unknown): boolean =>
  damageCodes.has((fault as { readonly code?: unknown } | undefined)?.code);

const rebuiltTogether = 4 * 1024 * 1024;
/** A file that is larger and three quarters free is copied compact. */
const largeFile = 64 * 1024 * 1024;

/** Syncs a file or a directory, so that a new name survives a power cut. */
const syncPath = (path: string): void => {
  try {
    const descriptor = openSync(path, 'r');
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // Windows cannot sync a directory.
  }
};

const fileBeside = (path: string): string => `${path}.new-${randomBytes(6).toString('hex')}`;

/** A file gets its name only when it is whole: lmdb may crash on a file that a power cut left half written. */
const putInPlace = (made: string, path: string): void => {
  rmSync(`${made}-lock`, { force: true });
  rmSync(`${path}-lock`, { force: true });
  syncPath(made);
  renameSync(made, path);
  syncPath(dirname(path));
};

/** The file keeps its name until another takes its place: a start that finds none creates an empty one. */
const keepAside = (path: string, aside: string): void => {
  try {
    linkSync(path, aside);
  } catch {
    // Some file systems have no links.
    copyFileSync(path, aside);
  }
};

const removeLeftovers = (path: string): void => {
  const folder = dirname(path);
  for (const name of readdirSync(folder))
    if (name.startsWith(`${basename(path)}.new-`)) rmSync(join(folder, name), { force: true });
};

/** Reads all records without lmdb, and writes those that can be read to a new file. */
const rebuild = async (path: string, made: string): Promise<{ kept: number; lost: number }> => {
  let reader: PageReader | undefined;
  try {
    reader = new PageReader(path);
  } catch (fault) {
    if (!(fault instanceof NotReadable)) throw fault;
  }
  const file = new DatabaseFile(made);
  let [kept, lost] = [0, 0];
  try {
    await file.hand(undefined, { commit: 0, time: 0 });
    const trees = reader?.tables() ?? [];
    const { commit = 0, time = 0 } = (reader && metaIn<Ownership>(reader, trees, 'owner')) ?? {};
    const owner: Ownership = { commit, time };
    for (const place of tables) {
      const tree = trees.find(({ name }) => name === place);
      if (!reader || !tree) continue;
      let batch: Change[] = [];
      let [count, bytes] = [0, 0];
      const flush = async (): Promise<void> => {
        await file.commit(1, owner, batch);
        count += batch.length;
        [batch, bytes] = [[], 0];
      };
      for (const { key, data } of reader.records(tree)) {
        if (key.length === 0) continue;
        batch.push({ table: place, key, bytes: data });
        bytes += key.length + data.length;
        if (bytes > rebuiltTogether) await flush();
      }
      await flush();
      kept += count;
      lost += Math.max(0, tree.records - count);
    }
    lost = Math.max(lost, reader?.lost ?? 1);
    const format = reader && metaIn<Format>(reader, trees, 'format');
    await file.hand(1, owner, { ...format, ...(lost > 0 && { hasLostKeys: true }) });
  } finally {
    reader?.close();
    await file.close();
  }
  return { kept, lost };
};

/** A record of the table `meta` begins with its version, 8 bytes. */
const metaIn = <T>(reader: PageReader, trees: readonly Tree[], name: string): Partial<T> | undefined => {
  const tree = trees.find((each) => each.name === 'meta');
  if (!tree) return undefined;
  for (const { key, data } of reader.records(tree))
    if (key.toString() === name) return tried(() => JSON.parse(data.toString('utf8', 8)) as Partial<T>);
  return undefined;
};

/** What is known of a file before lmdb opens it. */
interface Sight {
  readonly isDamaged: boolean;
  readonly isMostlyFree: boolean;
  readonly owner?: Partial<Ownership> | undefined;
}

const through = <T>(path: string, read: (reader: PageReader) => T): T => {
  const reader = new PageReader(path);
  try {
    return read(reader);
  } finally {
    reader.close();
  }
};

/**
 * Whether the reader finds damage. Pages change while they are read if another process writes to the file whose sign of
 * life cannot be seen from here.
 */
const findsDamage = (path: string, reader: PageReader, isThorough = false): boolean =>
  !reader.isSound(isThorough) && through(path, (again) => again.transaction === reader.transaction);

const firstSight = (path: string): Sight => {
  try {
    return through(path, (reader) => {
      const trees = reader.tables();
      const { version = 0 } = metaIn<Format>(reader, trees, 'format') ?? {};
      if (version > formatVersion) throw new NewerFormat();
      const isMostlyFree = reader.size > largeFile && reader.usedPages() * reader.pageSize * 4 < reader.size;
      const owner = metaIn<Ownership>(reader, trees, 'owner');
      return { isDamaged: findsDamage(path, reader), isMostlyFree, owner };
    });
  } catch (fault) {
    if (fault instanceof NotReadable) return { isDamaged: true, isMostlyFree: false };
    throw fault;
  }
};

// Starts that were cut short: a file that crashes the runtime does so at each start

const startsOf = (path: string): string => `${path}-starts`;
/** After this many starts in a row that ended within a minute and not cleanly, the whole file is read first. */
const suspiciousStarts = 2;

/** A disk that is full or read-only is reported elsewhere. */
const countStart = (path: string): number =>
  tried(() => {
    const before = existsSync(startsOf(path)) ? Number(readFileSync(startsOf(path), 'utf8')) || 0 : 0;
    writeFileSync(startsOf(path), String(before + 1), { mode: 0o600 });
    return before;
  }) ?? 0;

/** Called when a start went well. Where that fails, the next start reads the whole file without need. */
export const forgetStarts = (path: string): void => tried(() => rmSync(startsOf(path), { force: true }));

/** Makes sure that a sound file is there to be opened. No other process may have it open. */
export const prepareFile = async (
  path: string,
  warn: (text: string) => void,
  { isDamaged, isFirst }: { /** lmdb has reported damage. */ isDamaged: boolean; isFirst: boolean },
): Promise<Omit<Sight, 'isDamaged'> & { readonly crashes: number }> => {
  checkFiles(path);
  removeLeftovers(path);
  const isThere = existsSync(path);
  const sight = isThere ? firstSight(path) : { isDamaged: false, isMostlyFree: false };
  const crashes = isFirst ? countStart(path) : 0;
  if (!isThere) {
    const made = fileBeside(path);
    await new DatabaseFile(made).close();
    putInPlace(made, path);
  } else if (
    isDamaged ||
    sight.isDamaged ||
    (crashes >= suspiciousStarts && through(path, (reader) => findsDamage(path, reader, true)))
  ) {
    await replaceFile(path, warn, true);
    return { isMostlyFree: false, crashes };
  }
  return { ...sight, crashes };
};

/** Copies what can be read to a new file. This process must own a file that is not damaged, and have it closed. */
export const replaceFile = async (
  path: string,
  warn: (text: string) => void,
  isDamaged = false,
): Promise<void> => {
  const made = fileBeside(path);
  const { kept, lost } = await rebuild(path, made);
  if (lost > 0) {
    const date = new Date().toISOString().replaceAll(/[:.]/g, '-');
    const aside = join(dirname(path), `store-damaged-${date}.mdb`);
    keepAside(path, aside);
    warn(
      `The saved data was damaged. ${kept} record(s) could be read and were kept, ${lost} could not; the damaged ` +
        `file was set aside as ${aside}. Send lost texts and waits again.`,
    );
  } else if (isDamaged) warn('The saved data was damaged and has been rewritten. Nothing was lost.');
  putInPlace(made, path);
  forgetStarts(path);
};
