import { openEmbedded } from '../../../lib/state/embedded';
import { sealerOf } from '../state/sealer';
import { acceptOne, requestsOn } from './requests';

/**
 * A process with an outbox, which dies whenever it is the turn of the item for `poison`. With `accept` it accepts that
 * item among forty others, and ends. Prints what comes out.
 */
const run = async (directory: string, what: string): Promise<void> => {
  const store = await openEmbedded({ directory, sealer: sealerOf('test'), warn: () => undefined });
  const outbox = requestsOn(store, {
    work: async ({ item, begin }) => {
      if (item.phone === 'poison') process.kill(process.pid, 'SIGKILL');
      await begin();
      return 'sent';
    },
    emit: async (_job, { phone = '' }, { outcome }) => {
      process.stdout.write(`${phone} ${outcome}\n`);
      return true;
    },
  });
  if (what === 'accept') {
    for (let each = 0; each < 41; each++) acceptOne(outbox, each === 20 ? 'poison' : `number ${each}`);
    // All of it is on record before the first turn.
    await outbox.close();
    await store.close();
    return;
  }
  await outbox.start();
  setInterval(() => undefined, 1000);
  process.once('SIGTERM', () => {
    void outbox
      .close()
      .then(() => store.close())
      .then(() => process.exit(0));
  });
};

const [directory = '', what = ''] = process.argv.slice(2);
void run(directory, what);
