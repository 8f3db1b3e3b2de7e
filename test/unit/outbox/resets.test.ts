import should from 'should';
import type { Consent, WaitItem, WaitShared } from '../../../lib/consent/consent';
import { Cancels } from '../../../lib/outbox/queue-memory';
import { itemAt, keysOf } from '../../../lib/outbox/records';
import { createMemoryStore } from '../../../lib/state/memory';
import { endOf, TakenOver, under, type Store } from '../../../lib/state/store';
import { World } from '../../support/consent/world';
import { nextIteration } from '../../support/event-loop';
import { isLong } from '../../support/extent';
import { gate } from '../../support/gate';
import { acceptOne, requestsOn, tellingWhom } from '../../support/outbox/requests';
import { WaitingQueue } from '../../support/outbox/waiting';
import { overStore } from '../../support/state/over-store';
import { until } from '../../support/until';

const phoneOf = (index: number): string => `+1202556${index.toString().padStart(4, '0')}`;
const count = isLong ? 2500 : 800;

const waitsOn = async (consent: Consent, told: string[]): Promise<WaitingQueue<WaitItem, WaitShared>> => {
  const outbox = new WaitingQueue<WaitItem, WaitShared>({
    consent,
    outcomeOf: (outcome) => (outcome.kind === 'not_accepted' ? outcome.reason : outcome.kind),
    ...tellingWhom(told),
  });
  await outbox.start();
  return outbox;
};

describe(`${count} resets, each of one number`, () => {
  it('are all carried out by the next start: nothing that was cancelled is sent', async () => {
    const store = createMemoryStore();
    const told: string[] = [];
    const outbox = () => requestsOn(store, { work: async () => 'sent', ...tellingWhom(told) });
    const before = outbox();
    for (let index = 0; index < count; index++) acceptOne(before, phoneOf(index));
    for (let index = 0; index < count; index++) before.reset([phoneOf(index)]);
    acceptOne(before, phoneOf(count));
    await before.close();

    const after = outbox();
    await after.start();
    while (told.length <= count) await nextIteration();
    await after.close();
    should(told.filter((each) => each.endsWith(' sent'))).eql([`${phoneOf(count)} sent`]);
    should(told.filter((each) => each.endsWith(' reset')).length).equal(count);
  });
});

describe('a cancel', () => {
  it('is confirmed when it is saved, so that a crash after that carries nothing out', async () => {
    const saved = createMemoryStore();
    let before = Promise.resolve();
    const store = overStore(saved, {
      write: async (...args: Parameters<Store['write']>) => {
        await before;
        return saved.write(...args);
      },
    });
    const outbox = requestsOn(store, { work: async () => 'sent', ...tellingWhom([]) });
    acceptOne(outbox, phoneOf(1));
    await outbox.whenSaved();
    const [key = Buffer.alloc(0)] = await saved.keys('work', { ...under(keysOf('node').items), limit: 1 });
    const saving = gate();
    before = saving.opened;
    let isConfirmed = false;
    const cancelling = outbox.cancel(itemAt(key).arrival, 0).then((isDone) => (isConfirmed = isDone));
    await nextIteration();
    await nextIteration();
    should(isConfirmed).be.false();
    saving.open();
    should(await cancelling).be.true();
    await outbox.close();
  });
});

describe('a reset of what was saved before the start', () => {
  it('is kept until the ends are saved, so that a crash before that carries nothing out', async () => {
    const saved = createMemoryStore();
    const told: string[] = [];
    const [reached, held] = [gate(), gate()];
    const { items, cancels } = keysOf('node');
    const store = overStore(saved, {
      write: async (...[operations, conditions]: Parameters<Store['write']>) => {
        const isEnd = operations.some(
          (each) => ('put' in each ? each.put : each.remove).indexOf(items) === 0,
        );
        if (isEnd) {
          reached.open();
          await held.opened;
        }
        return saved.write(operations, conditions);
      },
    });
    const before = requestsOn(saved, { work: async () => 'sent', ...tellingWhom([]) });
    acceptOne(before, phoneOf(1));
    before.reset();
    await before.close();

    const after = requestsOn(store, { work: async () => 'sent', ...tellingWhom(told) });
    await after.start();
    await reached.opened;
    for (let turns = 0; turns < 20; turns++) await nextIteration();
    const left = (): Promise<number> => saved.count('work', cancels, endOf(cancels));
    should([await left(), told]).eql([1, []]);
    held.open();
    await until(async () => (await left()) === 0, 'The end of the reset');
    await after.close();
    should(told).eql([`${phoneOf(1)} reset`]);
  });
});

describe('a reset that another process has received', () => {
  it('cancels what came before, even if this process has another store whose clock is ahead', async () => {
    const told: string[] = [];
    const nodeOn = (ahead: number) => {
      const store = createMemoryStore({ clock: { now: () => Date.now() + ahead } });
      return requestsOn(store, { work: async () => 'sent', ...tellingWhom(told) });
    };
    const [ahead, node] = [nodeOn(3_600_000), nodeOn(0)];
    acceptOne(ahead, phoneOf(1));
    acceptOne(node, phoneOf(2));
    await node.whenSaved();
    node.reset(undefined, node.store.now() + 1);
    await node.start();
    while (told.length < 1) await nextIteration();
    should(told).eql([`${phoneOf(2)} reset`]);
    await Promise.all([ahead.close(), node.close()]);
  });
});

describe('a reset that comes while an earlier one is still searching for its waits', () => {
  it('finds its own, wherever they are', async () => {
    const world = new World();
    const told: string[] = [];
    let pages = 0;
    let onPage: (page: number) => void = () => undefined;
    const store = overStore(world.store, {
      keys: async (...[table, range]: Parameters<Store['keys']>) => {
        // As with a database: each read takes a moment.
        await nextIteration();
        if (range.from.toString('latin1').startsWith('wait\0')) onPage(++pages);
        return world.store.keys(table, range);
      },
    });
    const outbox = await waitsOn(await world.consentOn(store), told);
    const count = 1000;
    for (let index = 0; index < count; index++)
      await outbox.accept([{ index: 0, phone: phoneOf(index) }], { advisor: 'default', start: world.now() });
    await world.clock.move(1000);
    pages = 0;

    const late = [phoneOf(0), phoneOf(450), phoneOf(999)];
    onPage = (page) => {
      if (page === 9) outbox.reset(late);
    };
    // Of everything that came before anything did: it checks all waits.
    outbox.reset(undefined, 0);
    for (let turns = 0; turns < 500 && told.length < late.length; turns++) await nextIteration();
    await outbox.close();
    should(told.sort()).eql(late.map((phone) => `${phone} cancelled`));
  });
});

describe('a reset of what has not had its turn yet', () => {
  it('says of what an earlier process has started that it may have been sent', async () => {
    const store = createMemoryStore();
    const never = new Promise<never>(() => undefined);
    let started = 0;
    const killed = requestsOn(store, {
      work: async (item) => {
        if (item.data.phone === phoneOf(2)) await item.start();
        started += 1;
        return never;
      },
      ...tellingWhom([]),
    });
    await killed.start();
    for (let index = 0; index < 3; index++) acceptOne(killed, phoneOf(index));
    while (started < 3) await nextIteration();

    const told: string[] = [];
    const next = requestsOn(overStore(store), { work: () => never, ...tellingWhom(told) }, { width: 1 });
    await next.start();
    for (let turns = 0; turns < 20; turns++) await nextIteration();
    next.reset();
    while (told.length === 0) await nextIteration();
    should(told).eql([`${phoneOf(2)} unknown`]);
  });

  it('takes precedence over an acceptance that is seen right after it', async () => {
    const world = new World();
    const told: string[] = [];
    const consent = await world.consentOn(world.store);
    const outbox = await waitsOn(consent, told);
    const [phone, advisor] = [phoneOf(0), 'default'];
    await outbox.accept([{ index: 0, phone }], { advisor, start: world.now() });
    await world.clock.move(1000);
    outbox.reset([phone]);
    await consent.accepted(advisor, { phone }, { memberId: 7, state: 'accepted', lastChanged: null });
    while (told.length === 0) await nextIteration();
    await outbox.close();
    should(told).eql([`${phone} cancelled`]);
  });
});

describe('a wait whose look cannot read the store', () => {
  it('looks again later', async () => {
    const world = new World();
    const told: string[] = [];
    let failed = 0;
    let isAway = false;
    const store = overStore(world.store, {
      keys: async (...[table, range]: Parameters<Store['keys']>) => {
        if (isAway && range.limit === 16) {
          failed += 1;
          throw new Error('away');
        }
        return world.store.keys(table, range);
      },
    });
    const outbox = await waitsOn(await world.consentOn(store), told);
    await outbox.accept([{ index: 0, phone: phoneOf(0) }], { advisor: 'default', start: world.now() });
    await world.clock.move(1000);
    isAway = true;
    await world.clock.move(40_000);
    should(failed).be.above(0);
    isAway = false;
    world.answer = () => 'accepted';
    await world.clock.move(40_000);
    await outbox.close();
    should(told).eql([`${phoneOf(0)} accepted`]);
  });
});

describe('an item in work whose store another process has had meanwhile', () => {
  it('is neither started nor emitted: that process may have done so', async () => {
    const store = overStore(createMemoryStore(), {}, { losses: 0 });
    const [told, starts]: [string[], unknown[]] = [[], []];
    const outbox = requestsOn(store, {
      work: async (item) => {
        const items = await store.keys('work', { ...under(keysOf('node').items), limit: 1 });
        await store.write(items.map((remove) => ({ table: 'work', remove })));
        Object.assign(store.engine, { losses: 1 });
        starts.push(await item.start().catch((fault: unknown) => fault));
        return 'sent';
      },
      ...tellingWhom(told),
      fault: () => undefined,
    });
    acceptOne(outbox, phoneOf(0));
    await outbox.start();
    while (starts.length === 0) await nextIteration();
    for (let turns = 0; turns < 20; turns++) await nextIteration();
    await outbox.close();
    should(starts[0]).be.instanceOf(TakenOver);
    should(told).be.empty();
  });
});

describe('the scope of a reset', () => {
  const [early, middle, late] = [1, 2, 3].map((byte) => Buffer.alloc(12, byte)) as [Buffer, Buffer, Buffer];

  it('is what arrived before it, and nothing that arrived later', () => {
    const cancels = new Cancels();
    cancels.add([middle, {}]);
    should(cancels.isMeant(early, { index: 0 })).be.true();
    should(cancels.isMeant(middle, { index: 0 })).be.false();
    should(cancels.isMeant(late, { index: 0 })).be.false();
  });

  it('is its numbers, its list, or its item alone', () => {
    const cancels = new Cancels();
    cancels.add([middle, { phones: [phoneOf(1)] }]);
    should(cancels.isMeant(early, { index: 0, phone: phoneOf(1) })).be.true();
    should(cancels.isMeant(early, { index: 0, phone: phoneOf(2) })).be.false();
    should(cancels.isMeant(early, { index: 0 })).be.false();
    const other = Buffer.alloc(12, 0);
    cancels.add([late, { list: early, index: 4 }], [late, { list: other }]);
    should(cancels.isMeant(early, { index: 4 })).be.true();
    should(cancels.isMeant(early, { index: 5 })).be.false();
    should(cancels.isMeant(other, { index: 5 })).be.true();
  });

  it('ends when it is forgotten, and an older reset then applies again', () => {
    const cancels = new Cancels();
    cancels.add([middle, {}]);
    const older = cancels.all;
    cancels.add([late, {}]);
    should(cancels.isMeant(middle, { index: 0 })).be.true();
    cancels.forget(cancels.all.filter((reset) => !older.includes(reset)));
    should(cancels.isMeant(middle, { index: 0 })).be.false();
    should(cancels.isMeant(early, { index: 0 })).be.true();
    cancels.forget(older);
    should(cancels.isEmpty).be.true();
    should(cancels.isMeant(early, { index: 0 })).be.false();
  });
});

describe('an item whose message is read from the store as its turn comes', () => {
  const world = async () => {
    const memory = createMemoryStore();
    const told: string[] = [];
    let [isReading, open] = [false, (): void => undefined];
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const store: Store = overStore(memory, {
      get: async (table, key) => {
        isReading ||= key.toString('latin1').startsWith('message\0');
        if (isReading) await opened;
        return memory.get(table, key);
      },
    });
    const work = async ({ data }: { readonly data: { readonly phone?: string } }): Promise<string> => {
      told.push(`${data.phone ?? ''} begins`);
      return 'sent';
    };
    const outbox = () => requestsOn(store, { work, ...tellingWhom(told) });
    const before = outbox();
    const items = [{ index: 0, phone: phoneOf(0) }];
    // A longer message has a record of its own.
    before.accept({ payload: 'x'.repeat(2000) }, { shared: { advisor: '' }, items, count: 1 });
    await before.close();
    const after = outbox();
    await after.start();
    while (!isReading) await nextIteration();
    return { told, outbox, after, open };
  };

  it('is not carried out when a reset comes meanwhile', async () => {
    const { told, after, open } = await world();
    after.reset();
    open();
    while (told.length === 0) await nextIteration();
    await after.close();
    should(told).eql([`${phoneOf(0)} reset`]);
  });

  it('is left to the next start when the node closes meanwhile', async () => {
    const { told, outbox, after, open } = await world();
    const closed = after.close();
    open();
    await closed;
    should(told).be.empty();
    const next = outbox();
    await next.start();
    while (told.length < 2) await nextIteration();
    await next.close();
    should(told).eql([`${phoneOf(0)} begins`, `${phoneOf(0)} sent`]);
  });
});
