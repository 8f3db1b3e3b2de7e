import should from 'should';
import { Later } from '../../../lib/outbox/queue';
import { systemClock, type Clock } from '../../../lib/service/clock';
import { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Store } from '../../../lib/state/store';
import { nextIteration } from '../../support/event-loop';
import { gate } from '../../support/gate';
import { acceptMany, requestsOn, type Host, type Requests } from '../../support/outbox/requests';
import { overStore } from '../../support/state/over-store';

/** Reads are answered immediately, as from a file; a commit takes a tick. */
const fileStore = (): Store => {
  const memory = createMemoryStore();
  return overStore(memory, {
    write: async (operations, conditions) => {
      await nextIteration();
      return memory.write(operations, conditions);
    },
  });
};

/** A node that counts the items that have started to end and have not left. */
class CountingNode {
  readonly told: string[] = [];
  /** The most items on their way out at once. */
  most = 0;
  readonly outbox: Requests;
  private leaving = 0;

  constructor(store: Store, work: Host['work'], clock: Clock = systemClock) {
    const outcomeFor: Host['outcomeFor'] = async (_item, reason) => this.end(reason);
    const emit: Host['emit'] = async (_job, _item, { outcome }) => {
      await nextIteration();
      this.told.push(outcome);
      this.leaving -= 1;
      return true;
    };
    this.outbox = requestsOn(store, { work, outcomeFor, emit }, { clock });
  }

  end(outcome: string): string {
    this.leaving += 1;
    this.most = Math.max(this.most, this.leaving);
    return outcome;
  }

  accept(count: number): void {
    acceptMany(this.outbox, count);
  }

  async haveLeft(count: number): Promise<void> {
    while (this.told.length < count) await nextIteration();
  }
}

describe('a great many texts that end at once', () => {
  const count = 4000;
  const none: Host['work'] = () => Promise.reject(new Error('nothing is sent'));

  for (const [what, accept] of [
    ['a list', (node: CountingNode) => node.accept(count)],
    ['single ones', (node: CountingNode) => Array.from({ length: count }, () => node.accept(1))],
  ] as const)
    it(`leave some at a time when they are cancelled: ${what}`, async () => {
      const store = fileStore();
      const before = new CountingNode(store, none);
      accept(before);
      before.outbox.reset();
      await before.outbox.close();

      const node = new CountingNode(store, none);
      await node.outbox.start();
      await node.haveLeft(count);
      await node.outbox.close();
      should(node.most).be.below(1000);
      should(new Set(node.told)).eql(new Set(['reset']));
    });

  it('leave some at a time when nothing has to be sent for any of them', async () => {
    const node: CountingNode = new CountingNode(fileStore(), async () => node.end('wrong'));
    await node.outbox.start();
    node.accept(count);
    await node.haveLeft(count);
    await node.outbox.close();
    should(node.most).be.below(1000);
  });
});

describe('a great many held texts that become due', () => {
  const count = 2000;

  it('are read as there is room for them, and others have their turn meanwhile', async () => {
    const clock = new MovableClock(() => 1_750_000_000_000);
    const notBefore = clock.now() + 60_000;
    const store = fileStore();
    let reads = 0;
    const counting: Store = overStore(store, {
      get: (table, key) => {
        if (key.toString('latin1').startsWith('item\0')) reads += 1;
        return store.get(table, key);
      },
    });
    let held = 0;
    const { opened, open } = gate();
    const node: CountingNode = new CountingNode(
      counting,
      async () => {
        if (clock.now() < notBefore) {
          held += 1;
          throw new Later(notBefore);
        }
        await opened;
        return node.end('sent');
      },
      clock,
    );
    await node.outbox.start();
    for (let each = 0; each < count; each++) {
      node.accept(1);
      if (each % 20 === 0) await nextIteration();
    }
    while (held < count) await nextIteration();
    for (let turns = 0; turns < 50; turns++) await nextIteration();
    reads = 0;
    const moved = clock.move(60_000);
    for (let turns = 0; turns < 500; turns++) await nextIteration();
    should(reads).be.within(1, 200);
    open();
    await node.haveLeft(count);
    await moved;
    await node.outbox.close();
  });

  it('do not block the event loop while a reset searches for others among them', async () => {
    const clock = new MovableClock(() => 1_750_000_000_000);
    const notBefore = clock.now() + 60_000;
    const store = fileStore();
    let turns = 0;
    let sweptIn = new Set<number>();
    const watching: Store = overStore(store, {
      keys: (table, range) => {
        if (range.from.toString('latin1').startsWith('item\0')) sweptIn.add(turns);
        return store.keys(table, range);
      },
    });
    let held = 0;
    const node = new CountingNode(
      watching,
      async () => {
        held += 1;
        throw new Later(notBefore);
      },
      clock,
    );
    await node.outbox.start();
    node.accept(count);
    while (held < count) await nextIteration();
    for (let left = 50; left > 0; left--) await nextIteration();
    sweptIn = new Set();
    node.outbox.reset(['+12025550199']);
    for (; turns < 300; turns++) await nextIteration();
    should(sweptIn.size).be.aboveOrEqual(count / 64);
    await node.outbox.close();
  });
});
