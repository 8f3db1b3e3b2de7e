import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';

/** The kernel refuses longer names for a socket; macOS is the strictest. */
const longestName = 100;
const patience = 1000;

/** Shows that its process lives: the system closes a socket with its process, however that ends. */
export interface SignOfLife {
  /** Where others ask; undefined where no socket can be had. */
  readonly address: string | undefined;
  close(): Promise<void>;
}

/**
 * A path that is short enough for a socket, while `use` runs. Linux reaches a long directory through a descriptor of it.
 */
const throughShortPath = async <T>(path: string, use: (short: string) => Promise<T>): Promise<T> => {
  if (process.platform !== 'linux' || Buffer.byteLength(path) <= longestName) return use(path);
  const descriptor = openSync(dirname(path), 'r');
  try {
    return await use(`/proc/self/fd/${descriptor}/${basename(path)}`);
  } finally {
    closeSync(descriptor);
  }
};

const listen = (address: string): Promise<Server | undefined> =>
  throughShortPath(
    address,
    (short) =>
      new Promise<Server | undefined>((done) => {
        const server = createServer((socket) => {
          socket.on('error', () => undefined);
          socket.end();
        });
        server.once('error', () => done(undefined));
        server.listen(short, () => {
          server.unref();
          done(server);
        });
      }),
  ).catch(() => undefined);

/** In the directory itself, which all that share it can see; some mounted file systems hold no sockets. */
const candidates = (): readonly string[] => {
  const name = `owner-${process.pid}-${randomBytes(8).toString('hex')}`;
  if (process.platform === 'win32') return [`\\\\.\\pipe\\advisor-texting-${name}`];
  return [`${name}.sock`, join(tmpdir(), `advisor-texting-${name}.sock`)];
};

export const showLife = async (directory: string): Promise<SignOfLife> => {
  for (const address of candidates()) {
    const server = await listen(resolve(directory, address));
    if (!server) continue;
    return {
      address,
      close: () =>
        new Promise((done) => {
          server.close(() => {
            forget(directory, address);
            done();
          });
        }),
    };
  }
  return { address: undefined, close: () => Promise.resolve() };
};

/** What a process that died has left. */
export const forget = (directory: string, address: string): void => {
  if (process.platform !== 'win32') rmSync(resolve(directory, address), { force: true });
};

type Life = 'lives' | 'dead' | 'unknown';

const lifeByError: Readonly<Record<string, Life>> = {
  ECONNREFUSED: 'dead',
  // Too many are asking at once.
  EAGAIN: 'lives',
  // A pipe of Windows goes with its process; a socket's name may just be out of sight.
  ENOENT: process.platform === 'win32' ? 'dead' : 'unknown',
};

/**
 * Whether somebody listens there. A process that is stopped or busy still counts as living, because the system takes
 * connections for it. Unknown: nothing is to be seen from here, as with a temporary folder or a container of its own.
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
        socket.setTimeout(patience, () => settle('lives'));
        socket.once('connect', () => settle('lives'));
        socket.once('error', ({ code = '' }: NodeJS.ErrnoException) =>
          settle(lifeByError[code] ?? 'unknown'),
        );
      }),
  ).catch(() => 'unknown');
};

const socketName = /^owner-(\d+)-[0-9a-f]+\.sock$/;

/**
 * The process id of an owner that shows life in the directory. To ask this way touches no database: a process that was
 * stopped in the middle of a commit would hold up whoever opens its file.
 */
export const livingOwner = async (directory: string, except?: string): Promise<number | undefined> => {
  for (const name of readdirSync(directory)) {
    const pid = socketName.exec(name)?.[1];
    if (pid !== undefined && name !== except && (await lifeOf(directory, name)) === 'lives')
      return Number(pid);
  }
  return undefined;
};

/** Names this run of the system: no process outlives it. Undefined where the system has no such name. */
export const bootId = (): string | undefined => {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return undefined;
  }
};
