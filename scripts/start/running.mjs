import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';

const host = '127.0.0.1';
const patience = 2000;

/** The file is beside the directory and not in it, because `--fresh` moves the directory. */
const fileOf = (data) => `${data}-running.json`;

const read = (file) => {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
};

const isAlive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (fault) {
    return fault.code === 'EPERM';
  }
};

/** What the process at this socket answers; undefined when it does not answer. */
const answerAt = (door) =>
  new Promise((resolve) => {
    let answer = '';
    const socket = connect(door, host);
    socket.setEncoding('utf8');
    socket.setTimeout(patience, () => {
      resolve(undefined);
      socket.destroy();
    });
    socket.on('data', (part) => (answer += part));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(answer));
  });

/**
 * The process that uses this directory. After a kill, the file names a socket at which nobody, or another process,
 * answers. The process id alone may belong to another program by now: it counts only while the socket exists but is
 * silent (Ctrl-Z).
 */
const runningOn = async (data) => {
  const noted = read(fileOf(data));
  if (!noted) return undefined;
  const answer = await answerAt(noted.door);
  return answer === data || (answer === undefined && isAlive(noted.pid)) ? noted : undefined;
};

const openDoor = (data) =>
  new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.end(data);
    });
    server.once('error', reject);
    server.listen(0, host, () => {
      server.unref();
      resolve(server.address().port);
    });
  });

/** False when the file already exists: of two processes that start at once, one creates it. */
const isCreated = (file, text) => {
  try {
    writeFileSync(file, text, { flag: 'wx' });
    return true;
  } catch (fault) {
    if (fault.code !== 'EEXIST') throw fault;
    return false;
  }
};

/** Readers find either the old file or the new one, never a half. */
const replace = (file, text) => {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
};

/**
 * Claims the directory until this process exits. Resolves with the `other` process that has it, or with a function that
 * saves this one's address.
 */
export const claim = async (data) => {
  const file = fileOf(data);
  const own = { pid: process.pid, door: await openDoor(data) };
  while (!isCreated(file, JSON.stringify(own))) {
    const other = await runningOn(data);
    if (other) return { other };
    rmSync(file, { force: true });
  }
  process.once('exit', () => rmSync(file, { force: true }));
  return { note: (address) => replace(file, JSON.stringify({ ...own, address })) };
};
