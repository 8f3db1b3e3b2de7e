import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { recommended } from '../../lib/consent/schedule';
import { Waits } from '../../lib/consent/waits';
import { systemClock } from '../../lib/service/clock';
import type { Client } from '../../lib/service/types';
import { openStore } from '../../lib/state/embedded';
import { sealerOf } from '../state/sealer';

/** Begins waits, a thousand in all, and sees some of them accepted, until it is killed. */
const run = async (directory: string): Promise<void> => {
  const print = (line: string): void => {
    process.stdout.write(`${line}\n`);
  };
  const store = await openStore({ directory, sealer: sealerOf('test'), warn: print });
  const client: Client = {
    pausedUntil: 0,
    close: () => Promise.resolve(),
    call: () =>
      Promise.resolve({
        data: { memberId: 7, state: 'pending', lastChanged: 1 },
        status: 200,
        attempts: 1,
      } as never),
  };
  const waits = new Waits({
    environment: 'environment',
    store,
    client: () => client,
    clock: systemClock,
    concurrency: 16,
    warn: print,
  });
  const note = (file: string, line: string): void => {
    appendFileSync(join(directory, file), `${line}\n`);
  };
  const lines = (file: string): string[] =>
    existsSync(join(directory, file))
      ? readFileSync(join(directory, file), 'utf8').split('\n').slice(0, -1)
      : [];
  const accept = (n: number): void => {
    waits.accepted(
      'default',
      { phone: `+1202${String(5_550_000 + n)}` },
      { memberId: n, state: 'accepted', lastChanged: 1 },
    );
  };
  const node = waits.attach('node', ({ message, repeated }) => {
    setImmediate(() => {
      note('told', `${String(message.n)}${repeated ? ' repeated' : ''}`);
      print('told');
    });
    return Promise.resolve(true);
  });
  await node.ready;
  const begun = lines('offered').length;
  for (let n = begun; n < 1000; n++) {
    note('offered', String(n));
    await node.add(
      { n },
      [{ advisor: 'default', subject: { phone: `+1202${String(5_550_000 + n)}` } }],
      recommended,
    );
    note('begun', String(n));
    if (n % 2 === 1) accept(n - Math.floor(Math.random() * 10));
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (let n = 0; n < 1000; n++) accept(n);
  await waits.told();
  await store.close();
  waits.stop();
  print('done');
};

void run(process.argv[2] ?? '');
