import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';

const host = '127.0.0.1';
const patience = 2000;

/** Beside the directory, not in it: `--fresh` moves that. */
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

/** What is said at this door; undefined when whoever is there says nothing. */
const heardAt = (door) =>
  new Promise((resolve) => {
    let heard = '';
    const socket = connect(door, host);
    socket.setEncoding('utf8');
    socket.setTimeout(patience, () => {
      resolve(undefined);
      socket.destroy();
    });
    socket.on('data', (part) => (heard += part));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(heard));
  });

/**
 * The one that runs on this directory. The file that a killed one has left names a door where nobody is, or somebody
 * else; a process id alone could be another program's by now, and counts only while the door is silent (Ctrl-Z).
 */
const runningOn = async (data) => {
  const noted = read(fileOf(data));
  if (!noted) return undefined;
  const heard = await heardAt(noted.door);
  return heard === data || (heard === undefined && isAlive(noted.pid)) ? noted : undefined;
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

/** False when there is one already: of two that start at once, one has it. */
const isCreated = (file, text) => {
  try {
    writeFileSync(file, text, { flag: 'wx' });
    return true;
  } catch (fault) {
    if (fault.code !== 'EEXIST') throw fault;
    return false;
  }
};

/** Whoever reads it meanwhile finds the old or the new, never a half. */
const replace = (file, text) => {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
};

/** Takes the directory until this process ends: gives the `other` that has it, or a way to note one's own address. */
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
