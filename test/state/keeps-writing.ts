import { openStore } from '../../lib/state/embedded';
import { sealerOf } from './sealer';

/** Says a number only after its write has returned, without a turn of the event loop in between. */
const run = async (directory: string): Promise<void> => {
  const store = await openStore({ directory, sealer: sealerOf('test'), warn: console.error });
  const table = store.table<{ n: number }>('numbers');
  console.log(store.durable ? 'durable' : 'in memory');
  for (let n = 0; ; n++) {
    const key = String(n).padStart(8, '0');
    void table.write([
      { put: `a/${key}`, value: { n } },
      { put: `b/${key}`, value: { n } },
    ]);
    console.log(n);
    if (n % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
};

void run(process.argv[2] ?? '');
