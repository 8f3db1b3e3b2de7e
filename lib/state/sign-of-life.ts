import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readdirSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { tried } from '../kinds';
import { second } from '../durations';

/** The most bytes in the name of a socket. The limits of the systems differ; that of macOS is the lowest. */
const longestName = 100;
const answerWithin = second;

/** Calls `use` with a path that is short enough for a socket. On Linux, a descriptor stands in for a long directory. */
const throughShortPath = async <T>(path: string, use: (short: string) => Promise<T>): Promise<T> => {
  if (process.platform !== 'linux' || Buffer.byteLength(path) <= longestName) return use(path);
  const descriptor = openSync(dirname(path), 'r');
  try {
    return await use(`/proc/self/fd/${descriptor}/${basename(path)}`);
  } finally {
    closeSync(descriptor);
  }
};

const listenAt = (address: string): Promise<Server | undefined> =>
  throughShortPath(
    address,
    (short) =>
      new Promise<Server | undefined>((done) => {
        const server = createServer((socket) => {
          socket.on('error', () => undefined);
          socket.end();
        });
        // Accepting a connection may fail later, as where too many files are open.
        server.on('error', () => done(undefined));
        server.listen(short, () => {
          server.unref();
          done(server);
        });
      }),
  ).catch(() => undefined);

/**
 * The first place is the directory itself, which every process that shares it can see. Some mounted file systems hold
 * no sockets, so the second is the temporary folder.
 */
const candidates = (): readonly string[] => {
  const name = `owner-${process.pid}-${randomBytes(8).toString('hex')}`;
  if (process.platform === 'win32') return [`\\\\.\\pipe\\advisor-texting-${name}`];
  return [`${name}.sock`, join(tmpdir(), `advisor-texting-${name}.sock`)];
};

/**
 * Opens a socket that shows that this process lives: the system closes it with the process, however the process ends.
 * Other processes connect to its address, which is undefined where no socket can be opened.
 */
export const showLife = async (directory: string) => {
  for (const address of candidates()) {
    const server = await listenAt(resolve(directory, address));
    if (!server) continue;
    return {
      address,
      close: () =>
        new Promise<void>((done) => {
          server.close(() => {
            forget(directory, address);
            done();
          });
        }),
    };
  }
  return { address: undefined, close: () => Promise.resolve() };
};

/** Removes the socket that a dead process has left; one that stays, as in a directory that cannot be written, does no harm. */
export const forget = (directory: string, address: string): void => {
  if (process.platform !== 'win32') tried(() => rmSync(resolve(directory, address), { force: true }));
};

type Life = 'lives' | 'dead' | 'unknown';

const lifeByError: Readonly<Record<string, Life>> = {
  ECONNREFUSED: 'dead',
  // The queue of connections is full: too many processes ask at once.
  EAGAIN: 'lives',
  // A Windows pipe ends with its process. The name of a socket may be invisible from here.
  ENOENT: process.platform === 'win32' ? 'dead' : 'unknown',
};

/**
 * Whether a process listens at the address. A stopped or busy process counts as living, because the system accepts
 * connections for it. `unknown`: the socket cannot be seen from here, as from another container or another temporary
 * folder.
 */
export const lifeOf = (directory: string, address: string | undefined): Promise<Life> => {
  if (address === undefined) return Promise.resolve('unknown');
  return throughShortPath(
    resolve(directory, address),
    (short) =>
      new Promise<Life>((done) => {
        const socket = connect(short);
        const settle = (life: Life): void => {
          socket.destroy();
          done(life);
        };
        socket.setTimeout(answerWithin, () => settle('lives'));
        socket.once('connect', () => settle('lives'));
        socket.once('error', ({ code = '' }: NodeJS.ErrnoException) =>
          settle(lifeByError[code] ?? 'unknown'),
        );
      }),
  ).catch(() => 'unknown');
};

const socketName = /^owner-(\d+)-[0-9a-f]+\.sock$/;

/**
 * The process id of an owner that shows life in the directory. The socket is asked before the file is opened: a process
 * that was stopped in the middle of a commit would block whoever opens its file.
 */
export const livingOwner = async (directory: string, except?: string): Promise<number | undefined> => {
  for (const name of readdirSync(directory)) {
    const pid = socketName.exec(name)?.[1];
    if (pid !== undefined && name !== except && (await lifeOf(directory, name)) === 'lives')
      return Number(pid);
  }
  return undefined;
};
