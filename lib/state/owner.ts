import { createHash, randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The kernel refuses longer names for a socket. */
const longestName = 100;
const patience = 1000;

const addressesOf = (directory: string): readonly string[] => {
  const hash = createHash('sha256').update(directory).digest('hex').slice(0, 24);
  if (process.platform === 'win32') return [`\\\\.\\pipe\\advisor-texting-${hash}`];
  // Some mounted file systems hold no sockets.
  return [join(directory, 'owner.sock'), join(tmpdir(), `advisor-texting-${hash}.sock`)].filter(
    (address) => Buffer.byteLength(address) <= longestName,
  );
};

const listen = (address: string, token: string): Promise<Server | string> =>
  new Promise((resolve) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.end(token);
    });
    server.once('error', (fault: NodeJS.ErrnoException) => {
      resolve(fault.code ?? 'unknown');
    });
    server.listen(address, () => {
      server.unref();
      resolve(server);
    });
  });

/** The token of the process that listens there; undefined when nobody does. */
const listenerAt = (address: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    let token = '';
    const socket = connect(address);
    socket.setEncoding('utf8');
    socket.setTimeout(patience, () => {
      // It took the connection and is busy: it lives.
      socket.destroy();
      resolve('busy');
    });
    socket.on('data', (part: string) => (token += part));
    socket.on('error', () => {
      resolve(undefined);
    });
    socket.on('end', () => {
      resolve(token);
    });
  });

/**
 * One process per directory. Whoever listens on the directory's socket owns it; the system closes a socket with its
 * process, however that ends, so there is no process id to go stale and no heartbeat to wait for.
 * Returns how to give the directory up; undefined when another process has it.
 */
export const claim = async (directory: string): Promise<(() => Promise<void>) | undefined> => {
  const token = randomBytes(16).toString('hex');
  for (const address of addressesOf(directory)) {
    let server = await listen(address, token);
    if (server === 'EADDRINUSE') {
      if ((await listenerAt(address)) !== undefined) return undefined;
      rmSync(address, { force: true });
      server = await listen(address, token);
      if (server === 'EADDRINUSE') return undefined;
    }
    if (typeof server === 'string') continue;
    const owned = server;
    const release = (): Promise<void> =>
      new Promise((resolve) => {
        owned.close(() => {
          resolve();
        });
      });
    // Two that found the same abandoned socket may both have replaced it: the later one has it. The other leaves its
    // server open, for closing it would remove the winner's socket.
    const listener = await listenerAt(address);
    return listener === token || listener === undefined ? release : undefined;
  }
  return () => Promise.resolve();
};
