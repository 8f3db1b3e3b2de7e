import { openEmbedded } from '../../../lib/state/next/embedded';
import { key } from '../../../lib/state/next/store';
import { sealerOf } from '../sealer';

/**
 * A process with a store, for tests that kill it. Prints `owner` and `trouble …` as they come, and with `write` the number
 * of each record once it is on record; with `hold` it begins to write on SIGUSR2. Ends, cleanly, on SIGTERM.
 */
const run = async (directory: string, name: string, work: string): Promise<void> => {
  const store = await openEmbedded({ directory, sealer: sealerOf('test'), warn: () => undefined });
  const tell = (): void => console.log(store.trouble === undefined ? 'owner' : `trouble ${store.trouble}`);
  tell();
  store.onChange(tell);
  let isStopping = false;
  process.once('SIGTERM', () => {
    isStopping = true;
    void store.close().then(() => process.exit(0));
  });
  const stay = setInterval(() => undefined, 1000);
  if (work === 'hold') await new Promise((resolve) => process.once('SIGUSR2', resolve));
  for (let n = 0; !isStopping; n++) {
    const value = { n, text: 'x'.repeat((n * 37) % 3000) };
    const done = await store
      .write([
        { table: 'work', put: key('a', name, n), value },
        { table: 'wait', put: key('b', name, n), value },
        ...(n >= 50 ? [{ table: 'wait' as const, remove: key('b', name, n - 50) }] : []),
      ])
      .catch(() => false);
    if (done) console.log(n);
  }
  clearInterval(stay);
};

void run(process.argv[2] ?? '', process.argv[3] ?? '', process.argv[4] ?? '');
