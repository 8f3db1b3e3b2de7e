import { setTimeout as pause } from 'node:timers/promises';
import { openPostgres } from '../../../lib/state/postgres';
import { key } from '../../../lib/state/store';
import { sealerOf } from './sealer';

/** A separate process that saves something and runs until it is killed. */
const run = async (url: string, group: string): Promise<void> => {
  const handle = openPostgres({
    url,
    group,
    sealer: async () => sealerOf('test'),
    warn: console.error,
    leaseFor: 2000,
    pulseEvery: 100,
  });
  const store = await handle.opened;
  await store.write([{ table: 'work', put: key('item', 'n'), value: 'of the killed' }]);
  console.log('written');
  for (;;) {
    await pause(50);
    const isWritten = await store
      .write([{ table: 'work', put: key('beside'), value: 0 }])
      .catch((fault: unknown) => String(fault));
    if (isWritten === true) continue;
    await (await handle.opened).write([{ table: 'work', put: key('item', 'n'), value: 'in another slot' }]);
    console.log(`${isWritten}: refused, and opened again`);
    break;
  }
  setInterval(() => undefined, 1000);
};

void run(process.argv[2] ?? '', process.argv[3] ?? '');
