import { spawn, spawnSync, execFileSync } from 'node:child_process';
import { cpSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A disk for one process that can be filled up and freed. */
export interface SmallDisk {
  /** A prefix for a command that makes it find the disk at the directory. */
  readonly before: readonly string[];
  /** Whether the system can detect that it is full before anything is written. */
  readonly tellsFree: boolean;
  fill(left?: number): void;
  makeRoom(pid: number): void;
  /** The final contents of the disk, at the directory itself. */
  unmount(): void;
}

/**
 * Bytes that a full disk still has: less than the store leaves free, and enough for a commit in flight. A
 * disk without any might crash the process in lmdb.
 */
const leftFree = 512 * 1024;

const inNamespace = ['unshare', '--user', '--map-root-user', '--mount', 'bash', '-c'] as const;

/** A file system of eight megabytes, which only processes started with `before` see at the directory. */
const mountedDisk = async (directory: string): Promise<SmallDisk> => {
  const [command, ...rest] = inNamespace;
  const mount = 'mount -t tmpfs -o size=8m small "$0" && echo mounted && exec cat';
  const holder = spawn(command, [...rest, mount, directory], { stdio: ['pipe', 'pipe', 'inherit'] });
  await new Promise<void>((resolve, reject) => {
    holder.stdout.once('data', () => resolve());
    holder.once('close', () => reject(new Error('The small disk could not be mounted.')));
  });
  // It exits with its input, which ends with this process.
  holder.unref();
  const pid = String(holder.pid);
  const seen = join('/proc', pid, 'root', directory);
  const filler = join(seen, 'filler');
  return {
    before: ['nsenter', '--target', pid, '--user', '--preserve-credentials', '--mount', '--'],
    tellsFree: true,
    fill: (left = leftFree) => {
      const { bavail, bsize } = statfsSync(seen);
      writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - left)));
    },
    makeRoom: () => rmSync(filler),
    unmount: () => {
      // A socket cannot be copied, and nobody answers there any more.
      cpSync(seen, directory, { recursive: true, filter: (path) => !path.endsWith('.sock') });
      holder.kill('SIGKILL');
    },
  };
};

/** Where the machine allows no mounts: files that may not exceed two megabytes. */
const limitedFiles: SmallDisk = {
  before: ['bash', '-c', 'ulimit -S -f 2000; exec "$@"', 'bash'],
  tellsFree: false,
  fill: () => undefined,
  makeRoom: (pid) => execFileSync('prlimit', ['--pid', String(pid), '--fsize=unlimited']),
  unmount: () => undefined,
};

export const smallDisk = async (directory: string): Promise<SmallDisk> => {
  const [command, ...rest] = inNamespace;
  const canMount =
    spawnSync(command, [...rest, 'mount -t tmpfs -o size=8m small "$0"', directory]).status === 0;
  return canMount ? mountedDisk(directory) : limitedFiles;
};
