import should from 'should';
import type { WaitItem, WaitShared } from '../../../lib/consent/consent';
import { hour, minute } from '../../../lib/durations';
import { Later } from '../../../lib/outbox/queue';
import {
  dueIn,
  itemAt,
  keysOf,
  laterLane,
  newArrival,
  records,
  timetable,
} from '../../../lib/outbox/records';
import { recommended } from '../../../lib/consent/pace';
import { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import { endOf, TakenOver, type Store } from '../../../lib/state/store';
import { World } from '../../support/consent/world';
import { until } from '../../support/until';
import { nextIteration } from '../../support/event-loop';
import { isLong } from '../../support/extent';
import { gate } from '../../support/gate';
import { never } from '../../support/outbox/process';
import { acceptOne, nobodys, requestsOn, tellingWhom } from '../../support/outbox/requests';
import { WaitingQueue } from '../../support/outbox/waiting';
import { overStore } from '../../support/state/over-store';

interface Person extends WaitItem {
  readonly phone: string;
  readonly isWrong?: true;
}

const phoneOf = (index: number): string => `+1202556${index.toString().padStart(4, '0')}`;
const people = (count: number): Person[] =>
  Array.from({ length: count }, (_, index) => ({ index, phone: phoneOf(index) }));

/** A node on the store of a world. What a killed one does is neither written nor emitted. */
class WaitingNode {
  readonly told: { readonly phone: string; readonly outcome: string; readonly repeated: boolean }[] = [];
  readonly faults: unknown[] = [];
  isKilled = false;
  /** Its outcomes do not arrive. */
  isMute = false;
  arrival: (phone: string) => Promise<void> = nextIteration;

  private constructor(
    private readonly world: World,
    public outbox: WaitingQueue<Person, WaitShared>,
  ) {}

  static async on(world: World, store: Store = world.store): Promise<WaitingNode> {
    const consent = await world.consentOn(
      overStore(store, {
        write: (...args: Parameters<Store['write']>) => (node.isKilled ? never : store.write(...args)),
      }),
    );
    const outbox = new WaitingQueue<Person, WaitShared>({
      consent,
      outcomeOf: (outcome) => (outcome.kind === 'not_accepted' ? outcome.reason : outcome.kind),
      emit: async (_message, { phone }, { outcome, repeated }) => {
        if (node.isKilled || node.isMute) return never;
        node.told.push({ phone, outcome, repeated });
        await node.arrival(phone);
        return true;
      },
      fault: (fault) => node.faults.push(fault),
      atOnce: ({ isWrong }) => (isWrong ? 'wrong' : undefined),
    });
    const node: WaitingNode = new WaitingNode(world, outbox);
    return node;
  }

  start(): Promise<void> {
    return this.outbox.start();
  }

  /** Resolves when they are saved. */
  save(items: readonly Person[]): Promise<void> {
    return this.outbox.accept(items, { advisor: 'default', start: this.world.now() });
  }

  /** Resolves when all have looked. */
  async accept(items: readonly Person[]): Promise<void> {
    const before = this.world.polls.length;
    await this.save(items);
    await until(() => this.world.polls.length >= before + items.length);
    await this.world.clock.move(10);
  }
}

const under = (prefix: Buffer): { from: Buffer; to: Buffer } => ({ from: prefix, to: endOf(prefix) });

describe('a recipient who cannot be waited for', () => {
  for (const count of [1, 3, 250])
    it(`has an outcome after a kill right after its acceptance: one of ${count}`, async () => {
      const world = new World();
      const before = await WaitingNode.on(world);
      const items = people(count).map((each) =>
        each.index === count - 1 ? { ...each, isWrong: true as const } : each,
      );
      await before.save(items);
      before.isKilled = true;
      const after = await WaitingNode.on(world);
      await after.start();
      await until(() => after.told.length > 0);
      should(after.told).eql([{ phone: phoneOf(count - 1), outcome: 'wrong', repeated: false }]);
      await after.outbox.close();
      const again = await WaitingNode.on(world);
      await again.start();
      should(again.told).eql([]);
    });
});

describe('a wait that ends while its node still emits what ended before its start', () => {
  const count = 250;

  it('is emitted once', async () => {
    const world = new World();
    const before = await WaitingNode.on(world);
    await before.start();
    await before.accept(people(count));
    before.isMute = true;
    world.answer = () => 'accepted';
    before.outbox.flush();
    const isEnded = (): boolean => before.outbox.count === 0;
    await until(isEnded);
    // The ends are saved within a few iterations.
    for (let turns = 0; turns < 5; turns++) await nextIteration();
    before.isKilled = true;

    const after = await WaitingNode.on(world);
    const { opened, open } = gate();
    after.arrival = (phone) => (phone === phoneOf(count) ? opened : nextIteration());
    await after.start();
    await until(() => after.told.length >= 5);
    await after.save([{ index: 0, phone: phoneOf(count) }]);
    open();
    await until(() => after.told.length > count);
    await after.outbox.close();
    const told = after.told.filter(({ phone }) => phone === phoneOf(count));
    should(told).eql([{ phone: phoneOf(count), outcome: 'accepted', repeated: false }]);
    should(after.told.length).equal(count + 1);
  });
});

describe('a flush or an acceptance right after the start', () => {
  const heldUp = async (): Promise<never> => {
    throw new Later(Date.now() + hour);
  };

  /** A wait that has looked, in the store of a node that has closed. */
  const waitingIn = async (store: Store): Promise<void> => {
    let looks = 0;
    const work = (): Promise<never> => {
      looks += 1;
      return heldUp();
    };
    const outbox = requestsOn(store, { work, emit: async () => true });
    await outbox.start();
    acceptOne(outbox, phoneOf(0), { ...nobodys, pace: recommended });
    await until(() => looks === 1);
    await outbox.close();
  };

  it('asks no other service about those who wait', async () => {
    const store = createMemoryStore();
    await waitingIn(store);
    const told: string[] = [];
    const work = async (): Promise<string> => 'asked';
    const outbox = requestsOn(store, { work, ...tellingWhom(told) }, { space: 'other' });
    const starting = outbox.start();
    await outbox.flush();
    await starting;
    await until(() => told.length > 0);
    should(told).eql([`${phoneOf(0)} moved`]);
    await outbox.close();
  });

  it('asks nobody who was cancelled before it', async () => {
    const store = createMemoryStore();
    await waitingIn(store);
    const at = keysOf('node').cancel(newArrival(store));
    await store.write([{ table: records, put: at, value: {} }]);
    const told: string[] = [];
    const work = async (): Promise<string> => 'asked';
    const outbox = requestsOn(store, { work, ...tellingWhom(told) });
    const starting = outbox.start();
    await outbox.flush();
    await starting;
    await until(() => told.length > 0);
    should(told).eql([`${phoneOf(0)} reset`]);
    await outbox.close();
  });

  it('ends nobody as accepted who was cancelled before it', async () => {
    const store = createMemoryStore();
    await waitingIn(store);
    const { cancel, cancels, waits: prefix } = keysOf('node');
    await store.write([{ table: records, put: cancel(newArrival(store)), value: {} }]);
    const { opened, open } = gate();
    const slow = overStore(store, {
      page: async (...[table, range]: Parameters<Store['page']>) => {
        if (range.from.subarray(0, cancels.length).equals(cancels)) await opened;
        return store.page(table, range);
      },
    });
    const [wait] = await store.keys(records, { from: prefix, to: endOf(prefix), limit: 1 });
    const told: string[] = [];
    const work = async (): Promise<string> => 'asked';
    const outbox = requestsOn(slow, { work, ...tellingWhom(told) });
    const starting = outbox.start();
    if (wait) await outbox.endWaits([itemAt(wait)], () => ({ port: 0, payload: 'accepted' }));
    open();
    await starting;
    await until(() => told.length > 0);
    should(told).eql([`${phoneOf(0)} reset`]);
    await outbox.close();
  });
});

describe('a wait whose place in the timetable is not saved yet', () => {
  it('keeps its node idle, looks when it is flushed, and has its place after a close', async () => {
    const store = createMemoryStore();
    const next = Date.now() + 4 * minute;
    let looks = 0;
    const work = async (): Promise<never> => {
      looks += 1;
      throw new Later(looks === 1 ? Date.now() : next);
    };
    const outbox = requestsOn(store, { work, emit: async () => true });
    const dues = keysOf('node').lane(laterLane);
    const places = async (): Promise<readonly number[]> =>
      (await store.keys(timetable, { from: dues, to: endOf(dues), limit: 10 })).map(
        (each) => dueIn(each).time,
      );
    await outbox.start();
    acceptOne(outbox, phoneOf(0), { ...nobodys, pace: recommended });
    await until(() => looks === 2 && !outbox.isBusy);
    should(await places()).not.containEql(next);
    await outbox.flush();
    await until(() => looks === 3 && !outbox.isBusy);
    await outbox.close();
    should(await places()).eql([next]);
  });
});

describe('a wait whose move in the timetable is on its way to the store', () => {
  it('looks at its next time although an acceptance that does not end it has met it', async () => {
    const base = createMemoryStore();
    const slow = gate();
    let looks = 0;
    let isSlow = false;
    const store = overStore(base, {
      write: async (...args: Parameters<Store['write']>) => {
        if (isSlow && args[0].some(({ table }) => table === timetable)) await slow.opened;
        return base.write(...args);
      },
    });
    const clock = new MovableClock(() => 1_750_000_000_000);
    const work = async (): Promise<never> => {
      looks += 1;
      throw new Later(clock.now() + (looks === 1 ? 0 : minute));
    };
    const outbox = requestsOn(store, { work, emit: async () => true }, { clock });
    await outbox.start();
    acceptOne(outbox, phoneOf(0), { ...nobodys, pace: recommended });
    await until(() => looks === 2 && !outbox.isBusy);
    isSlow = true;
    // Another commit takes the move along.
    await store.write([{ table: records, put: Buffer.from('other'), value: 0 }]);
    const [wait] = await store.keys(records, { ...under(keysOf('node').waits), limit: 1 });
    await outbox.endWaits([itemAt(wait ?? Buffer.alloc(0))], () => undefined);
    for (let turns = 0; turns < 20; turns++) await nextIteration();
    slow.open();
    for (let turns = 0; turns < 20; turns++) await nextIteration();
    await clock.move(minute);
    await until(() => looks === 3);
    await outbox.close();
  });
});

describe('entries in the timetable that a wait has left behind', () => {
  it('go with it, however many there are', async () => {
    const store = createMemoryStore();
    const { opened, open } = gate();
    const outbox = requestsOn(store, { work: () => opened.then(() => 'accepted'), emit: async () => true });
    await outbox.start();
    acceptOne(outbox, phoneOf(0), { ...nobodys, pace: recommended });
    await outbox.whenSaved();
    const [wait] = await store.keys(records, { ...under(keysOf('node').waits), limit: 1 });
    const { arrival, index } = itemAt(wait ?? Buffer.alloc(0));
    const left = [1, 2, 3].map((time) => keysOf('node').due(laterLane, time, arrival, index));
    await store.write(left.map((put) => ({ table: timetable, put, value: 0 })));
    for (const due of left) outbox.offer(due);
    for (let turns = 0; turns < 20; turns++) await nextIteration();
    open();
    const count = (): Promise<number> => store.count(timetable, Buffer.of(0), Buffer.of(0xff));
    for (let turns = 0; turns < 20; turns++) await nextIteration();
    should(await count()).equal(0);
    await outbox.close();
  });
});

describe('a search through many waits', () => {
  const count = 1000;

  it('leaves others their turn, even if reads are answered immediately', async () => {
    const world = new World();
    const node = await WaitingNode.on(world);
    await node.start();
    for (const { phone } of people(count)) await node.accept([{ index: 0, phone }]);
    let turns = 0;
    const reads = new Set<number>();
    const keys = world.store.keys.bind(world.store);
    world.store.keys = (table, range) => {
      if (range.from.toString('latin1').startsWith('wait\0')) reads.add(turns);
      return keys(table, range);
    };
    // Of everything that came before anything did.
    node.outbox.reset(undefined, 0);
    for (; turns < 100; turns++) await nextIteration();
    should(reads.size).be.aboveOrEqual(count / 100);
    await node.outbox.close();
  });

  it('is not needed to reset or flush a number, however many others wait', async () => {
    const world = new World();
    const node = await WaitingNode.on(world);
    await node.start();
    for (const { phone } of people(count)) await node.accept([{ index: 0, phone }]);
    let reads = 0;
    const keys = world.store.keys.bind(world.store);
    const get: Store['get'] = world.store.get.bind(world.store);
    const isItem = (key: Buffer): boolean => key.toString('latin1').startsWith('wait\0');
    world.store.keys = (table, range) => {
      if (isItem(range.from)) reads += count;
      return keys(table, range);
    };
    world.store.get = (table, key) => {
      if (isItem(key)) reads += 1;
      return get(table, key);
    };
    for (let each = 0; each < 100; each++) {
      node.outbox.flush([phoneOf(each)]);
      node.outbox.reset([phoneOf(each + 500)]);
      if (each % 10 === 0) await nextIteration();
    }
    await until(() => node.told.length === 100 && world.polls.length >= 100);
    should(node.told.map(({ phone }) => phone).sort()).eql(
      people(600)
        .slice(500)
        .map(({ phone }) => phone),
    );
    const polled = new Set(world.polls.map(({ of }) => of));
    should(people(100).every(({ phone }) => polled.has(phone))).be.true();
    should(reads).be.below(1000);
    await node.outbox.close();
  });

  it('for a flush does not block a deploy while the service does not answer', async () => {
    const world = new World();
    world.gate = never;
    const node = await WaitingNode.on(world);
    await node.start();
    await node.save(people(50));
    node.outbox.flush();
    await until(() => world.polls.length > 0);
    let isClosed = false;
    const closed = node.outbox.close().then(() => (isClosed = true));
    await until(() => isClosed);
    should(isClosed).be.true();
    await closed;
  });

  const many = isLong ? 5000 : 1500;
  it(`ends with the node, even in the middle of a list of ${many}`, async () => {
    const world = new World();
    const node = await WaitingNode.on(world);
    await node.start();
    await node.accept(people(many));
    node.outbox.reset();
    await until(() => node.told.length > 0);
    await node.outbox.close();
    should(node.outbox.count).be.above(many / 2);
    const after = await WaitingNode.on(world);
    await after.start();
    const cancelled = (): number => new Set([...node.told, ...after.told].map(({ phone }) => phone)).size;
    await until(() => cancelled() === many);
    await after.outbox.close();
  });

  it('that fails because of the store reports it, and does not crash Node-RED', async () => {
    const world = new World();
    let isTakenOver = false;
    const store = overStore(world.store, {
      get: async (...args: Parameters<Store['get']>) => {
        for (let turns = 0; turns < 3; turns++) await nextIteration();
        return world.store.get(...args);
      },
      write: (...args: Parameters<Store['write']>) =>
        isTakenOver ? Promise.reject(new TakenOver(false)) : world.store.write(...args),
    });
    const node = await WaitingNode.on(world, store);
    await node.start();
    for (const { phone } of people(20)) await node.accept([{ index: 0, phone }]);
    const unhandled: unknown[] = [];
    const note = (fault: unknown): void => void unhandled.push(fault);
    const others = process.listeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection').on('unhandledRejection', note);
    try {
      node.outbox.reset();
      isTakenOver = true;
      for (let turns = 0; turns < 100; turns++) await nextIteration();
    } finally {
      process.removeAllListeners('unhandledRejection');
      for (const each of others) process.on('unhandledRejection', each);
    }
    should(unhandled).eql([]);
    should(node.faults.every((fault) => fault instanceof TakenOver)).be.true();
    should(node.faults.length).be.above(0);
  });
});
