import { closeSync, openSync } from 'node:fs';
import files from 'node:fs/promises';
import net from 'node:net';
import { devNull } from 'node:os';
import { openEmbedded } from '../../../lib/state/embedded';
import { key } from '../../../lib/state/store';
import { sealerOf } from './sealer';

/** Prints a line before each call of a method. */
const reportCalls = <K extends string>(
  home: Record<K, (...args: never[]) => unknown>,
  name: K,
  line: string,
): void => {
  const method = home[name];
  home[name] = function (this: unknown, ...args) {
    console.log(line);
    return Reflect.apply(method, this, args);
  };
};

/** Prints a line after each claim of the store; `isStopped`, the process then waits for SIGUSR2. */
const stepByClaims = (isStopped: boolean): void => {
  const { writeFile } = files;
  files.writeFile = async (...args) => {
    await writeFile(...args);
    if (!String(args[0]).endsWith('-claim')) return;
    const told = isStopped && new Promise((resolve) => process.once('SIGUSR2', resolve));
    console.log('claims');
    await told;
  };
};

/** Time that passes so many times faster in this process. */
const hurry = (rate: number): void => {
  const { setTimeout: later } = globalThis;
  const { now } = performance;
  globalThis.setTimeout = ((run: () => void, ms = 0) => later(run, ms / rate)) as typeof setTimeout;
  performance.now = () => rate * now.call(performance);
};

/** Opens files until only so many more can be opened; the result closes them. */
const leaveDescriptors = (left: number): (() => void) => {
  const opened: number[] = [];
  const close = (count: number): void => {
    for (const each of opened.splice(opened.length - count)) closeSync(each);
  };
  try {
    for (;;) opened.push(openSync(devNull, 'r'));
  } catch {
    close(left);
    return () => close(opened.length);
  }
};

/**
 * A process with a store, for tests that kill it. Prints `owner` and `trouble …` as they happen, `asks`
 * whenever it asks for a sign of life, and `claims` when it has claimed the store from an owner that shows
 * none; with `STEPS=claims` it then waits for SIGUSR2. Its time passes `RATE` times faster. With `DESCRIPTORS` only so
 * many files can be opened until SIGUSR2. With `write` it writes forever, with `hold` only from SIGUSR2 on, with `burst` 150 records, five at a time, and prints the number of each once it is saved; with `read`
 * it counts the records. Exits cleanly on SIGTERM.
 */
const run = async (directory: string, name: string, work: string): Promise<void> => {
  const asked = new Promise((resolve) => process.once('SIGUSR2', resolve));
  hurry(Number(process.env['RATE'] ?? 1));
  reportCalls(net, 'connect', 'asks');
  stepByClaims(process.env['STEPS'] === 'claims');
  const stay = setInterval(() => undefined, 1000);
  console.log('begin');
  const descriptors = process.env['DESCRIPTORS'];
  if (descriptors !== undefined) void asked.then(leaveDescriptors(Number(descriptors)));
  const warn = (text: string): void => console.log(`warning ${text}`);
  const store = await openEmbedded({ directory, sealer: sealerOf('test'), warn });
  if (!store.engine.durable) console.log('in memory');
  const tell = (): void =>
    console.log(store.engine.trouble === undefined ? 'owner' : `trouble ${store.engine.trouble}`);
  tell();
  store.engine.onChange(tell);
  const stop = { isAsked: false };
  process.once('SIGTERM', () => {
    stop.isAsked = true;
    void store.close().then(() => process.exit(0));
  });
  if (work === 'hold') await asked;
  if (work === 'read') {
    for (const table of ['wait', 'work'] as const) {
      const range = { from: Buffer.alloc(0), to: Buffer.alloc(100, 0xff), limit: 1e6 };
      console.log(`${table} ${(await store.page(table, range)).length}`);
    }
    process.kill(process.pid, name === 'dies' ? 'SIGKILL' : 'SIGTERM');
  }
  const write = async (n: number): Promise<void> => {
    const value = { n, text: 'x'.repeat((n * 37) % 3000) };
    const done = await store
      .write([
        { table: 'work', put: key('a', name, n), value },
        { table: 'wait', put: key('b', name, n), value },
        ...(n >= 50 ? [{ table: 'wait' as const, remove: key('b', name, n - 50) }] : []),
      ])
      .catch(() => false);
    if (done) console.log(n);
  };
  const [together, most] = work === 'burst' ? [5, 150] : [1, Infinity];
  for (let n = 0; n < most && !stop.isAsked && work !== 'read'; n += together)
    await Promise.all(Array.from({ length: together }, (_, more) => write(n + more)));
  if (work === 'burst') await store.close();
  // A process that reads ends by its signal, which may arrive only later.
  if (work !== 'read') clearInterval(stay);
};

void run(process.argv[2] ?? '', process.argv[3] ?? '', process.argv[4] ?? '');
