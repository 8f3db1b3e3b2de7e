import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import should from 'should';
import { recommended } from '../../lib/consent/schedule';
import type { NodeWaits } from '../../lib/consent/waits';
import { openStore } from '../../lib/state/embedded';
import { createMemoryStore } from '../../lib/state/memory';
import type { Store, Table, Write } from '../../lib/state/store';
import { sealerOf } from '../state/sealer';
import { forPhone, World } from './fixtures';

const phoneOf = (number: number): string => `+1202${String(number).padStart(7, '0')}`;
const known = { memberId: 7, state: 'accepted', lastChanged: 1 };

/** A store on another machine: writes arrive one after the other, those of many waits together later. */
class SlowStore implements Store {
  readonly durable = true;
  private readonly kept = createMemoryStore();
  private last: Promise<void> = Promise.resolve();
  refuses: (writes: readonly Write<unknown>[]) => boolean = () => false;

  static isPack(writes: readonly Write<unknown>[]): boolean {
    return writes.some((each) => 'put' in each && each.put.includes('/p/'));
  }

  table<T>(name: string): Table<T> {
    const table = this.kept.table<T>(name);
    const write = (writes: readonly Write<T>[]): Promise<void> => {
      const written = this.last.then(async () => {
        await pause(SlowStore.isPack(writes) ? 40 : 0);
        if (this.refuses(writes)) throw new Error('no space');
        await table.write(writes);
      });
      this.last = written.catch(() => undefined);
      return written;
    };
    const get = async (key: string): Promise<T | undefined> => {
      await nextTurn();
      return table.get(key);
    };
    return { ...table, get, write, writeSoon: write };
  }

  hash(text: string): string {
    return this.kept.hash(text);
  }

  close(): Promise<void> {
    return this.last;
  }

  async keys(): Promise<string[]> {
    const found: string[] = [];
    for await (const [key] of this.kept.table('waits').entries()) found.push(key);
    return found;
  }
}

describe('many waits on record', () => {
  it('are told once though the last arrives while the node closes and its store after it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'advisor-texting-shelf-'));
    const open = (): Promise<Store> =>
      openStore({ directory, sealer: sealerOf('shelf'), warn: () => undefined });
    const told: boolean[] = [];
    const attach = (world: World): NodeWaits =>
      world.waits.attach('node', async ({ repeated }) => {
        told.push(repeated);
        await nextTurn();
        return true;
      });
    const store = await open();
    const world = new World(store);
    const node = attach(world);
    await node.ready;
    const waits = Array.from({ length: 150 }, (_, index) => forPhone(phoneOf(index)));
    await node.add({}, waits, recommended);
    world.waits.accepted('default', { phone: phoneOf(3) }, known);
    while (told.length === 0) await Promise.resolve();
    await node.detach();
    await nextTurn();
    await store.close();

    const reopened = await open();
    const next = attach(new World(reopened));
    await next.ready;
    next.count.should.equal(149);
    told.should.eql([false]);
    // What writes to a store that is closed does so by now.
    await pause(200);
    await next.detach();
    await reopened.close();
    rmSync(directory, { recursive: true, force: true });
  });

  for (const isFull of [false, true]) {
    const what = isFull ? 'cannot be' : 'are only just being';
    it(`are told once each though they ${what} put together, on a store that takes its time`, async function () {
      this.timeout(20_000);
      const store = new SlowStore();
      store.refuses = (writes) => isFull && SlowStore.isPack(writes);
      const world = new World(store);
      const told: unknown[] = [];
      const attach = (): NodeWaits =>
        world.waits.attach('node', async ({ message }) => {
          told.push(message.n);
          await pause(2);
          return true;
        });
      const node = attach();
      await node.ready;
      const add = (n: number): Promise<unknown> =>
        node.add({ n }, [forPhone(phoneOf(n < 60 ? 0 : n))], recommended);
      await Promise.all(Array.from({ length: 199 }, (_, n) => add(n)));
      world.waits.accepted('default', { phone: phoneOf(0) }, known);
      while (told.length === 0) await nextTurn();
      // The two hundredth comes while the first are told.
      await Promise.all(Array.from({ length: 81 }, (_, n) => add(199 + n)));
      await world.waits.told();
      told.should.eql(Array.from({ length: 60 }, (_, n) => n));
      await node.detach();

      world.restart();
      const next = attach();
      await next.ready;
      next.count.should.equal(220);
      next.reset();
      await world.waits.told();
      should([...told].sort((one, other) => Number(one) - Number(other))).eql(
        Array.from({ length: 280 }, (_, n) => n),
      );
      await next.detach();
      await store.close();
      (await store.keys()).should.eql([]);
    });
  }

  it('leave nothing behind when the note that some were told could not be written at first', async () => {
    const store = new SlowStore();
    const world = new World(store);
    const node = world.attach();
    await node.ready;
    const waits = Array.from({ length: 100 }, (_, index) => forPhone(phoneOf(index)));
    await node.add({}, waits, recommended);
    world.waits.accepted('default', { phone: phoneOf(0) }, known);
    await world.waits.told();
    store.refuses = () => true;
    while (world.warnings.length === 0) await pause(10);
    store.refuses = () => false;
    node.reset();
    await world.waits.told();
    await node.detach();
    await store.close();
    world.told.length.should.equal(100);
    (await store.keys()).should.eql([]);
  });

  it('of a list do not lose their message to some of them that can no longer be read', async () => {
    const world = new World();
    const node = world.attach();
    await node.ready;
    const waits = Array.from({ length: 200 }, (_, index) => forPhone(phoneOf(index)));
    await node.add({ payload: 1 }, waits, recommended);
    const table = world.store.table('waits');
    const packs: string[] = [];
    for await (const [key] of table.entries('node/p/')) packs.push(key);
    await table.write([{ remove: packs[1] ?? '' }]);
    for (const index of [150, 0]) {
      world.waits.accepted('default', { phone: phoneOf(index) }, known);
      await world.waits.told();
      // Until it is noted.
      await pause(100);
    }
    should(world.told.map(({ settled }) => [settled.subject, settled.message])).eql([
      [{ phone: phoneOf(0) }, { payload: 1 }],
    ]);
    await node.detach();
  });

  it('that were few are told once over a deploy, on a store that takes its time and is full for a while', async () => {
    const store = new SlowStore();
    const world = new World(store);
    const node = world.attach();
    await node.ready;
    for (const n of [0, 1, 2]) await node.add({}, [forPhone(phoneOf(n))], recommended);
    world.waits.accepted('default', { phone: phoneOf(0) }, known);
    await world.waits.told();
    await node.detach();
    const next = world.attach();
    await next.ready;
    next.count.should.equal(2);

    store.refuses = (writes) => writes.every((each) => 'remove' in each);
    world.waits.accepted('default', { phone: phoneOf(1) }, known);
    while (world.warnings.length === 0) await pause(10);
    store.refuses = () => false;
    await next.detach();
    const last = world.attach();
    await last.ready;
    last.count.should.equal(1);
    should(world.told.map(({ settled }) => settled.repeated)).eql([false, false]);
    await last.detach();
  });
});
