import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/** Runs work under a name that no other process holds at the same time, or for longer than so many milliseconds. */
export type Lease = <T>(name: string, work: () => Promise<T>, longest?: number) => Promise<T>;

/** Longer than a token request may take. */
const abandonedAfter = 60_000;
const lookEvery = 50;

interface Holder {
  readonly pid: number;
  readonly host: string;
  readonly since?: number;
}

const own: Holder = { pid: process.pid, host: hostname(), since: performance.timeOrigin };

const isGone = ({ pid, host, since }: Holder): boolean => {
  if (host !== own.host) return false;
  // In a container every process may have the number of the one before it.
  if (pid === own.pid) return since !== own.since;
  try {
    process.kill(pid, 0);
    return false;
  } catch (fault) {
    return (fault as NodeJS.ErrnoException).code === 'ESRCH';
  }
};

/** A lease that another holds, and since when we know of it: clocks may have been set back since it was taken. */
interface Watched {
  takenAt: number;
  since: number;
}

/** Whether the holder was killed, or has had its time. A file just being written reads as empty: that is no proof. */
const isAbandoned = async (path: string, watched: Watched, longest: number): Promise<boolean> => {
  try {
    const { mtimeMs } = await stat(path);
    if (mtimeMs !== watched.takenAt) Object.assign(watched, { takenAt: mtimeMs, since: performance.now() });
    if (Math.max(Date.now() - mtimeMs, performance.now() - watched.since) > longest) return true;
    return isGone(JSON.parse(await readFile(path, 'utf8')) as Holder);
  } catch {
    return false;
  }
};

/** Renaming picks one winner among those who all found the lease abandoned. False where it cannot be broken. */
const breakLease = async (path: string): Promise<boolean> => {
  const grave = `${path}.${randomUUID()}`;
  try {
    await rename(path, grave);
  } catch (fault) {
    return (fault as NodeJS.ErrnoException).code === 'ENOENT';
  }
  await rm(grave, { force: true }).catch(() => undefined);
  return true;
};

const take = async (path: string): Promise<'taken' | 'held' | 'impossible'> => {
  try {
    const file = await open(path, 'wx', 0o600);
    // On a full disk it stays empty, and is held all the same.
    await file.writeFile(JSON.stringify(own)).catch(() => undefined);
    await file.close().catch(() => undefined);
    return 'taken';
  } catch (fault) {
    return (fault as NodeJS.ErrnoException).code === 'EEXIST' ? 'held' : 'impossible';
  }
};

/**
 * Several processes on one user directory would otherwise spend a rotating refresh token twice, which kills the whole
 * authorization, or write over what another has just written. Where no file can be made there is no second process to
 * fear, and the work simply runs.
 */
export const fileLease = (userDir: string): Lease => {
  const folder = join(userDir, 'advisor-texting');
  return async (name, work, longest = abandonedAfter) => {
    const path = join(folder, `${name}.lease`);
    await mkdir(folder, { recursive: true, mode: 0o700 }).catch(() => undefined);
    let result = await take(path);
    const watched = { takenAt: Number.NaN, since: 0 };
    while (result === 'held') {
      if (!(await isAbandoned(path, watched, longest))) await pause(lookEvery);
      else if (!(await breakLease(path))) break;
      result = await take(path);
    }
    try {
      return await work();
    } finally {
      if (result === 'taken') await rm(path, { force: true }).catch(() => undefined);
    }
  };
};

export const noLease: Lease = (_name, work) => work();
