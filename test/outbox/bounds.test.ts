import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import should from 'should';
import type { Item } from '../../lib/outbox/open-job';
import { RequestOutbox, type RequestHost } from '../../lib/outbox/request-outbox';
import { systemClock } from '../../lib/service/clock';
import { openEmbedded } from '../../lib/state/embedded';
import { createMemoryStore } from '../../lib/state/memory';
import type { Store } from '../../lib/state/store';
import { sealerOf } from '../state/sealer';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('what is queued while the service is away', function () {
  this.timeout(120_000);
  let directory: string;
  let store: Store;

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'advisor-texting-bounds-'));
    store = await openEmbedded({ directory, sealer: sealerOf('word'), warn: () => undefined });
  });
  afterEach(async () => {
    await store.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('is counted by reading a thousand lists at most', async () => {
    let reads = 0;
    const memory = createMemoryStore();
    const counting = Object.assign(Object.create(memory) as Store, {
      get: (...args: Parameters<Store['get']>) => {
        reads += 1;
        return memory.get(...args);
      },
    });
    const outbox = new RequestOutbox<Item, object, string>({
      store: counting,
      node: 'node',
      space: 'space',
      width: 16,
      resumeWithin: 3_600_000,
      clock: systemClock,
      host: {} as RequestHost<Item, object, string>,
    });
    const items = [{ index: 0 }, { index: 1 }];
    for (let list = 0; list < 3000; list++)
      outbox.accept({ message: {}, order: { advisor: 'default' }, items, count: 2 }, undefined);
    outbox.accept({ message: {}, order: { advisor: 'default' }, items: [{ index: 0 }], count: 1 }, undefined);
    await outbox.close();
    reads = 0;
    should(await outbox.reader.count()).equal(6001);
    should(reads).equal(1000);
  });

  it('lies in the store: memory holds a page of it, however much that is', async () => {
    let answer = (_outcome: string): void => undefined;
    const answered = new Promise<string>((resolve) => {
      answer = resolve;
    });
    let told = 0;
    const host: RequestHost<Item, object, string> = {
      work: () => answered,
      failed: () => 'failed',
      refused: () => 'refused',
      phoneOf: () => undefined,
      kindsOf: (outcome) => [outcome],
      ended: (reason) => reason,
      held: () => undefined,
      emit: async () => {
        told += 1;
        return true;
      },
      fault: (fault) => {
        throw fault;
      },
    };
    const outbox = new RequestOutbox<Item, object, string>({
      store,
      node: 'node',
      space: 'space',
      width: 16,
      resumeWithin: 3_600_000,
      clock: systemClock,
      host,
    });
    await outbox.start();
    const count = 3000;
    const messages: WeakRef<object>[] = [];
    for (let n = 0; n < count; n++) {
      const message = { payload: `text ${n.toString()}` };
      messages.push(new WeakRef(message));
      outbox.accept({ message, order: {}, items: [{ index: 0 }], count: 1 }, undefined);
      if (n % 100 === 99) await nextTurn();
    }
    while ((await outbox.reader.count()) < count) await nextTurn();
    const heldBack = (): number => messages.filter((message) => message.deref() !== undefined).length;
    // What was written in the last turn is let go of a little later.
    for (const end = Date.now() + 60_000; heldBack() >= 200 && Date.now() < end;) {
      await nextTurn();
      collectGarbage();
    }
    should(heldBack()).be.below(200);
    answer('sent');
    while (told < count) await nextTurn();
    await outbox.close();
  });
});
