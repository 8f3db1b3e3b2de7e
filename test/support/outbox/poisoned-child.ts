import { openEmbedded } from '../../../lib/state/embedded';
import { openPostgres, storeOf } from '../../../lib/state/postgres';
import { TakenOver, type Store } from '../../../lib/state/store';
import { sealerOf } from '../state/sealer';
import { acceptOne, requestsOn, type Requests } from './requests';

const sealer = sealerOf('test');
const warn = (): void => undefined;

/** A slot without work is removed, even while a queue starts on it; a dropped outcome is reported. */
const fault = (thrown: unknown): void => {
  if (!(thrown instanceof TakenOver) && !String(thrown).includes('is dropped')) throw thrown;
};

/**
 * An outbox that dies when it is the turn of the item for `poison` (`run`), or when it emits its outcome (`emit`), and
 * prints its output.
 */
const deadly = (store: Store, when: string): Requests =>
  requestsOn(store, {
    work: async (item) => {
      if (item.data.phone === 'poison' && when === 'run') process.kill(process.pid, 'SIGKILL');
      await item.start();
      return 'sent';
    },
    emit: async (_job, { phone = '' }, { outcome }) => {
      if (phone === 'poison' && when === 'emit') process.kill(process.pid, 'SIGKILL');
      process.stdout.write(`${phone} ${outcome}\n`);
      return true;
    },
    fault,
  });

/** Opens the store in a directory or a database; `goOn` is called with each store whose items this process has. */
const open = async (
  place: string,
  goOn: (store: Store) => Promise<void>,
): Promise<{ readonly store: Store; close(): Promise<void> }> => {
  if (!place.startsWith('postgres:')) {
    const store = await openEmbedded({ directory: place, sealer, warn });
    return { store, close: () => store.close() };
  }
  const url = `${place}&application_name=process-${process.pid}`;
  const group = 'poisoned';
  const handle = openPostgres({
    url,
    group,
    sealer: async () => sealer,
    warn,
    leaseFor: 3000,
    pulseEvery: 50,
  });
  const close = (): Promise<void> => handle.close();
  const store = storeOf(await handle.opened, close);
  handle.database.onOrphan((slot) => {
    goOn(storeOf(slot, close)).catch(fault);
  });
  return { store, close };
};

/** With `accept`, accepts the item among forty others, and exits. */
const run = async (place: string, what: string): Promise<void> => {
  const outboxes: Requests[] = [];
  const goOn = async (store: Store): Promise<void> => {
    const outbox = deadly(store, what);
    outboxes.push(outbox);
    if (what !== 'accept') await outbox.start();
  };
  const { store, close } = await open(place, goOn);
  await goOn(store);
  if (what === 'accept') {
    const [outbox] = outboxes;
    for (let each = 0; outbox && each < 41; each++)
      acceptOne(outbox, each === 20 ? 'poison' : `number ${each}`);
    // Everything is saved before the first turn.
    await outbox?.close();
    await close();
    return;
  }
  setInterval(() => undefined, 1000);
  process.once('SIGTERM', () => {
    void Promise.all(outboxes.map((each) => each.close()))
      .then(close)
      .then(() => process.exit(0));
  });
};

const [place = '', what = ''] = process.argv.slice(2);
void run(place, what);
