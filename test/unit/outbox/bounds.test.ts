import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import type { WaitItem, WaitShared } from '../../../lib/consent/consent';
import type { ItemData } from '../../../lib/outbox/records';
import { QueueFull } from '../../../lib/outbox/queue';
import { openEmbedded } from '../../../lib/state/embedded';
import { createMemoryStore } from '../../../lib/state/memory';
import { TooLarge, type Store } from '../../../lib/state/store';
import { bob, seconds, World } from '../../support/consent/world';
import { sealerOf } from '../../support/state/sealer';
import { nextIteration } from '../../support/event-loop';
import { gate } from '../../support/gate';
import { itInLongRun } from '../../support/extent';
import { collectGarbage } from '../../support/memory';
import { acceptOne, nobodys, plainHost, requestsOn, type Host } from '../../support/outbox/requests';
import { WaitingQueue } from '../../support/outbox/waiting';
import { overStore } from '../../support/state/over-store';

const refusing = (): never => {
  throw new Error('nothing is to be done');
};
const idleHost = { ...plainHost, work: refusing, outcomeFor: refusing, emit: refusing };

/** A host that emits each outcome, and counts them. */
const telling = (
  work: () => Promise<string>,
): { readonly host: Pick<Host, 'work' | 'emit'>; readonly told: () => number } => {
  let told = 0;
  const emit = async (): Promise<boolean> => {
    told += 1;
    return true;
  };
  return { host: { work, emit }, told: () => told };
};

/** A store whose writes wait for `open`, and that keeps nothing of them. */
const slowStore = (): { readonly store: Store; readonly open: () => void } => {
  const { opened, open } = gate();
  const memory = createMemoryStore();
  const store = overStore(memory, {
    write: async () => {
      await opened;
      return true;
    },
  });
  return { store, open };
};

const listOf = (count: number): ItemData[] => Array.from({ length: count }, (_, index) => ({ index }));

describe('long lists that a slow store has not saved yet', () => {
  itInLongRun(
    'are rejected beyond a million recipients, and accepted again when the earlier ones are saved',
    async () => {
      const { store, open } = slowStore();
      const outbox = requestsOn(store, idleHost);
      const items = listOf(150_000);
      const accept = (): void => {
        outbox.accept({}, { shared: nobodys, items, count: items.length });
      };
      for (let list = 0; list < 7; list++) accept();
      should(accept).throw(QueueFull);
      open();
      await outbox.whenSaved();
      accept();
      await outbox.close();
    },
  );
});

describe('a long list of waits that is being saved', () => {
  it('blocks nobody: others are polled at their times, and its own once it is saved', async () => {
    const world = new World();
    await world.add(bob);
    const { opened, open } = gate();
    // The message and a part of its items.
    let writes = 2;
    const store = overStore(world.store, {
      write: async (...args: Parameters<Store['write']>) => {
        if (writes-- <= 0) await opened;
        return world.store.write(...args);
      },
    });
    const outbox = new WaitingQueue<WaitItem, WaitShared>({
      consent: await world.consentOn(store),
      outcomeOf: ({ kind }) => kind,
      emit: refusing,
    });
    const phoneOf = (index: number): string => `+1202556${index.toString().padStart(4, '0')}`;
    const items = listOf(1200).map(({ index }) => ({ index, phone: phoneOf(index) }));
    const accepted = outbox.accept(items, { advisor: 'default', start: world.now() });
    const polled = (): number => new Set(world.polls.map(({ of }) => of)).size - 1;
    while (writes > -1) await nextIteration();
    await world.clock.move(seconds(95));
    should(world.times(bob).length).equal(4);
    should(polled()).equal(0);
    open();
    await accepted;
    await outbox.start();
    await world.clock.move(seconds(35));
    should(polled()).equal(1200);
    await outbox.close();
  });
});

describe('a queue during an outage of the service', function () {
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

  it('is counted without being read', async () => {
    let reads = 0;
    const memory = createMemoryStore();
    const counting = overStore(memory, {
      get: (...args: Parameters<Store['get']>) => {
        reads += 1;
        return memory.get(...args);
      },
    });
    const outbox = requestsOn(counting, idleHost);
    const items = [{ index: 0 }, { index: 1 }];
    for (let list = 0; list < 3000; list++)
      outbox.accept({}, { shared: { advisor: 'default' }, items, count: 2 });
    outbox.accept({}, { shared: { advisor: 'default' }, items: [{ index: 0 }], count: 1 });
    await outbox.close();
    reads = 0;
    should(await outbox.reader.count()).equal(6001);
    should(reads).equal(0);
  });

  it('is in the store: memory has one page of it, however long it is', async () => {
    let answer = (_outcome: string): void => undefined;
    const answered = new Promise<string>((resolve) => {
      answer = resolve;
    });
    const { host, told } = telling(() => answered);
    const outbox = requestsOn(store, host);
    await outbox.start();
    const count = 3000;
    const messages: WeakRef<object>[] = [];
    for (let n = 0; n < count; n++) {
      const message = { payload: `text ${n.toString()}` };
      messages.push(new WeakRef(message));
      outbox.accept(message, { shared: nobodys, items: [{ index: 0 }], count: 1 });
      if (n % 100 === 99) await nextIteration();
    }
    while ((await outbox.reader.count()) < count) await nextIteration();
    const heldBack = (): number => messages.filter((message) => message.deref() !== undefined).length;
    // What was written in the last tick is released a little later.
    for (const end = Date.now() + 60_000; heldBack() >= 200 && Date.now() < end;) {
      await nextIteration();
      collectGarbage();
    }
    should(heldBack()).be.below(200);
    answer('sent');
    while (told() < count) await nextIteration();
    await outbox.close();
  });

  it('is in the store even if a few large messages would fill the memory', async () => {
    const { opened, open } = gate();
    const { host, told } = telling(() => opened.then(() => 'sent'));
    const outbox = requestsOn(store, host, { width: 1 });
    await outbox.start();
    const messages: WeakRef<object>[] = [];
    for (let n = 0; n < 40; n++) {
      const message = { payload: `${n} `.repeat(100_000) };
      messages.push(new WeakRef(message));
      outbox.accept(message, { shared: nobodys, items: [{ index: 0 }], count: 1 });
      await nextIteration();
    }
    while ((await outbox.reader.count()) < 40) await nextIteration();
    const heldBack = (): number => messages.filter((message) => message.deref() !== undefined).length;
    for (const end = Date.now() + 60_000; heldBack() > 5 && Date.now() < end;) {
      await nextIteration();
      collectGarbage();
    }
    should(heldBack()).be.belowOrEqual(5);
    open();
    while (told() < 40) await nextIteration();
    await outbox.close();
  });

  it('is read with its message once, however many of a list have their turn at the same time', async () => {
    let reads = 0;
    const counting = overStore(store, {
      get: async (...args: Parameters<Store['get']>) => {
        if (args[1].toString('latin1').startsWith('message')) reads += 1;
        await nextIteration();
        return store.get(...args);
      },
    });
    const before = requestsOn(counting, idleHost);
    before.accept({}, { shared: nobodys, items: listOf(60), count: 60 });
    await before.close();
    const { host, told } = telling(async () => 'sent');
    const after = requestsOn(counting, host);
    await after.start();
    while (told() < 60) await nextIteration();
    await after.close();
    should(reads).equal(1);
  });

  it('rejects a list that is larger than a store accepts at once, and nothing else of the same moment', async () => {
    const told: string[] = [];
    const faults: unknown[] = [];
    const outbox = requestsOn(store, {
      work: async (item) => {
        await item.start();
        return 'sent';
      },
      emit: async (_message, { phone = 'large' }, { outcome }) => {
        told.push(`${phone} ${outcome}`);
        return true;
      },
      fault: (fault) => faults.push(fault),
    });
    await outbox.start();
    const text = 'x'.repeat(1024 * 1024);
    const items = listOf(80).map((item) => ({ ...item, text }));
    acceptOne(outbox, 'before');
    outbox.accept({}, { shared: nobodys, items, count: items.length });
    acceptOne(outbox, 'after');
    while (told.length < 82) await nextIteration();
    await outbox.close();
    should(told.toSorted()).eql(['after sent', 'before sent', ...items.map(() => 'large refused')]);
    should(faults.every((fault) => fault instanceof TooLarge)).be.true();
    should(await outbox.reader.count()).equal(0);
  });

  it('is saved even if the messages of one moment are together larger than a store accepts at once', async () => {
    const { host, told } = telling(async () => 'sent');
    const outbox = requestsOn(store, host);
    await outbox.start();
    // Quotes take two bytes each when saved, long names occur in each row, and ’ needs two bytes per character.
    const rows = Array.from({ length: 1000 }, () => ({ 'name of the client': 'Ann’s', n: 1 }));
    const payload = { csv: '"a","b"\n'.repeat(100_000), rows };
    const count = 100;
    for (let n = 0; n < count; n++)
      outbox.accept({ payload }, { shared: nobodys, items: [{ index: 0 }], count: 1 });
    while (told() < count) await nextIteration();
    await outbox.close();
    should(await outbox.reader.count()).equal(0);
  });
});
