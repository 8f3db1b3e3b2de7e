import { once } from 'node:events';
import should from 'should';
import { hour } from '../../../lib/durations';
import { Later } from '../../../lib/outbox/queue';
import { systemClock, type Clock } from '../../../lib/service/clock';
import { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Range, Store, Table } from '../../../lib/state/store';
import { nextIteration } from '../../support/event-loop';
import { gate } from '../../support/gate';
import { acceptMany, acceptOne, requestsOn, type Host, type Requests } from '../../support/outbox/requests';
import { overStore } from '../../support/state/over-store';

const sends: Host['work'] = async (item) => {
  await item.start();
  return 'sent';
};

const pass = async (turns: number): Promise<void> => {
  for (let left = turns; left > 0; left--) await nextIteration();
};

/** A node whose starts share a store, like those of a deploy. */
class Node {
  readonly told: string[] = [];

  constructor(
    private readonly store: Store,
    private readonly clock: Clock = systemClock,
  ) {}

  make(host: Partial<Host> = {}): Requests {
    const emit: Host['emit'] = async (_job, { index, phone }, { outcome }) => {
      this.told.push(`${phone ?? index} ${outcome}`);
      return true;
    };
    return requestsOn(this.store, { work: sends, emit, ...host }, { clock: this.clock });
  }

  async haveLeft(count: number): Promise<void> {
    for (let turns = 0; turns < 2000 && this.told.length < count; turns++) await nextIteration();
    should(this.told.length).equal(count);
  }
}

describe('the next start of a node, after the close of the previous one has timed out', () => {
  it('sends a long list that the store saves only then', async () => {
    const memory = createMemoryStore();
    const { opened, open } = gate();
    let writes = 0;
    const write: Store['write'] = async (...args) => {
      writes += 1;
      if (writes > 2) await opened;
      return memory.write(...args);
    };
    const node = new Node(overStore(memory, { write }));
    const before = node.make();
    await before.start();
    acceptMany(before, 2500);
    await pass(10);
    const closed = before.close();
    const after = node.make();
    await after.start();
    await pass(100);
    open();
    await node.haveLeft(2500);
    await Promise.all([closed, after.close()]);
    should(new Set(node.told).size).equal(2500);
  });

  it('drops no list that is completed while it searches for those that were never accepted', async () => {
    const memory = createMemoryStore();
    const [saving, looking] = [gate(), gate()];
    let [writes, looks] = [0, 0];
    const write: Store['write'] = async (...args) => {
      writes += 1;
      if (writes > 2) await saving.opened;
      return memory.write(...args);
    };
    const page: Store['page'] = async <T>(table: Table, range: Range) => {
      const found = await memory.page<T>(table, range);
      if (range.from.toString('latin1').startsWith('list') && found.length > 0) {
        looks += 1;
        await looking.opened;
      }
      return found;
    };
    const node = new Node(overStore(memory, { write, page }));
    const before = node.make();
    await before.start();
    acceptMany(before, 130);
    while (writes < 3) await nextIteration();
    const closed = before.close();
    const after = node.make();
    await after.start();
    while (looks === 0) await nextIteration();
    saving.open();
    await closed;
    looking.open();
    await node.haveLeft(130);
    await after.close();
  });

  it('sends what that one was reading', async () => {
    const memory = createMemoryStore();
    const { opened, open } = gate();
    let slow = '';
    const get: Store['get'] = async <T>(table: Table, key: Buffer) => {
      const found = await memory.get<T>(table, key);
      if (slow !== '' && JSON.stringify(found)?.includes(slow)) await opened;
      return found;
    };
    const node = new Node(overStore(memory, { get }));
    const first = node.make();
    for (const phone of ['a', 'b', 'c']) acceptOne(first, phone);
    await first.close();

    slow = '"phone":"c"';
    const before = node.make();
    await before.start();
    await pass(5);
    const closed = before.close();
    slow = '';
    const after = node.make();
    await after.start();
    await pass(20);
    open();
    await node.haveLeft(3);
    await Promise.all([closed, after.close()]);
    should(node.told.sort()).eql(['a sent', 'b sent', 'c sent']);
  });

  it('sends what that one accepted at the very last', async () => {
    const node = new Node(createMemoryStore());
    const before = node.make();
    await before.start();
    await pass(20);
    const closed = before.close();
    acceptOne(before, 'late');
    const after = node.make();
    await after.start();
    await node.haveLeft(1);
    await Promise.all([closed, after.close()]);
    should(node.told).eql(['late sent']);
  });
});

describe('a node that closes and is still reading messages', () => {
  it('does not take up again what it interrupts, and keeps what it reads for the next start', async () => {
    const node = new Node(createMemoryStore());
    let turns = 0;
    const before = node.make({
      work: async ({ signal }) => {
        turns += 1;
        if (!signal.aborted) await once(signal, 'abort');
        return undefined;
      },
    });
    await before.start();
    acceptOne(before, 'interrupted');
    while (turns < 1) await nextIteration();
    before.stop();
    await pass(20);
    acceptOne(before, 'read late');
    await pass(20);
    await before.close();
    should(turns).equal(1);
    const after = node.make();
    await after.start();
    await node.haveLeft(2);
    await after.close();
    should(node.told).eql(['interrupted sent', 'read late sent']);
  });
});

describe('the outcome of a text that was held for long', () => {
  it('leaves at the next start if its node closed as it was cancelled, whatever its time', async () => {
    const clock = new MovableClock(() => 1_750_000_000_000);
    const node = new Node(createMemoryStore({ clock }), clock);
    const cancelled = gate();
    const isCancelling = gate();
    let held = 0;
    const before = node.make({
      work: async () => {
        held += 1;
        throw new Later(clock.now() + 10 * hour);
      },
      outcomeFor: async (_item, reason) => {
        isCancelling.open();
        await cancelled.opened;
        return reason;
      },
    });
    await before.start();
    acceptOne(before, 'held');
    while (held < 1) await nextIteration();
    await pass(20);
    before.reset();
    await isCancelling.opened;
    const closed = before.close();
    cancelled.open();
    await closed;
    const after = node.make();
    await after.start();
    await node.haveLeft(1);
    await after.close();
    should(node.told).eql(['held reset']);
  });
});

describe('an outcome that was emitted before a kill', () => {
  it('is marked as repeated, even if a deploy right after the next start keeps it back', async () => {
    const memory = createMemoryStore();
    const told: string[] = [];
    /** What a process does that was killed as it emitted, that is deployed as it emits, and that emits. */
    const process = async (arrival: Promise<boolean>): Promise<Requests> => {
      const emit: Host['emit'] = (_message, _item, { repeated }) => {
        told.push(repeated ? 'repeated' : 'first');
        return arrival;
      };
      const outbox = requestsOn(overStore(memory), { work: sends, emit });
      await outbox.start();
      return outbox;
    };
    acceptOne(await process(new Promise(() => undefined)), 'told');
    while (told.length < 1) await nextIteration();
    const deployed = await process(Promise.resolve(false));
    while (told.length < 2) await nextIteration();
    await deployed.close();
    const last = await process(Promise.resolve(true));
    while (told.length < 3) await nextIteration();
    await last.close();
    should(told).eql(['first', 'repeated', 'repeated']);
  });
});
