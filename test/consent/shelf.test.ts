import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { recommended, type Pace } from '../../lib/consent/schedule';
import { openStore } from '../../lib/state/embedded';
import type { Store, Table } from '../../lib/state/store';
import { sealerOf } from '../state/sealer';
import { ann, begin, bob, forPhone, hours, seconds, World } from './fixtures';

const phoneOf = (number: number): string => `+1202${String(number).padStart(7, '0')}`;
const phones = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, index) => phoneOf(from + index));
const known = { memberId: 7, state: 'accepted', lastChanged: 1 };

describe('many waits on disk', () => {
  let directory: string;
  let store: Store;

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'advisor-texting-shelf-'));
    store = await openStore({ directory, sealer: sealerOf('shelf'), warn: () => undefined });
  });

  afterEach(async () => {
    await store.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const keys = async (): Promise<string[]> => {
    const found: string[] = [];
    for await (const [key] of store.table('waits').entries()) found.push(key);
    return found;
  };

  /** Whom the waits are for, and what became of each. */
  const endings = (world: World): string[][] =>
    world.told.map(({ end, settled }) => [
      'phone' in settled.subject ? settled.subject.phone : '',
      settled.repeated ? `${end} repeated` : end,
    ]);

  const accept = async (world: World, accepted: readonly string[]): Promise<void> => {
    for (const phone of accepted) world.waits.accepted('default', { phone }, known);
    await world.waits.told();
  };

  it('of a list are few records, and all of them wait again', async () => {
    const world = new World(store);
    await world.attach().add(
      { payload: 1 },
      phones(1050).map((phone) => forPhone(phone)),
      recommended,
    );
    (await keys()).length.should.equal(1 + 11);
    world.restart();
    const node = world.attach();
    await node.ready;
    node.count.should.equal(1050);
    node.reset();
    await world.waits.told();
    should(world.told.map(({ settled }) => settled.subject)).eql(phones(1050).map((phone) => ({ phone })));
    world.told
      .every(({ end, settled }) => end === 'cancelled' && settled.message.payload === 1)
      .should.be.true();
    await node.detach();
    (await keys()).should.eql([]);
  });

  it('that came one by one are few records too, and those on disk from before', async () => {
    const world = new World(store);
    const node = world.attach();
    for (const phone of phones(450)) await node.add({ phone }, [forPhone(phone)], recommended);
    (await keys()).filter((key) => !key.includes('/m/')).length.should.be.below(202);
    const before = world.waits;
    world.restart();
    const next = world.attach();
    await next.ready;
    next.count.should.equal(450);
    before.stop();
    await accept(world, phones(450));
    should(world.told.map(({ settled }) => settled.message)).eql(phones(450).map((phone) => ({ phone })));
    await next.detach();
    (await keys()).should.eql([]);
  });

  it('stay as they were when some of them have ended', async () => {
    const world = new World(store);
    const node = world.attach();
    await node.add(
      {},
      phones(250).map((phone) => forPhone(phone)),
      recommended,
    );
    const ended = [phoneOf(0), phoneOf(99), phoneOf(100), phoneOf(249)];
    await accept(world, ended);
    await node.detach();
    world.restart();
    const next = world.attach();
    await next.ready;
    next.count.should.equal(246);
    endings(world).should.eql(ended.map((phone) => [phone, 'accepted']));
    await accept(world, phones(250));
    endings(world)
      .map(([phone]) => phone)
      .sort()
      .should.eql(phones(250));
    await next.detach();
    (await keys()).should.eql([]);
  });

  it('told and killed before that was noted are told again, and marked as repeated', async () => {
    const world = new World(store);
    await world.attach().add(
      {},
      phones(150).map((phone) => forPhone(phone)),
      recommended,
    );
    await accept(world, [phoneOf(3), phoneOf(120)]);
    world.restart();
    const node = world.attach();
    await node.ready;
    node.count.should.equal(148);
    endings(world)
      .slice(2)
      .should.eql([
        [phoneOf(3), 'accepted repeated'],
        [phoneOf(120), 'accepted repeated'],
      ]);
    await node.detach();
    world.restart();
    const next = world.attach();
    await next.ready;
    next.count.should.equal(148);
    world.told.length.should.equal(4);
  });

  it('are told once when a deploy comes directly after', async () => {
    const world = new World(store);
    const node = world.attach();
    await node.add(
      {},
      phones(300).map((phone) => forPhone(phone)),
      recommended,
    );
    for (let from = 0; from < 300; from += 50) {
      const current = from === 0 ? node : world.attach();
      await current.ready;
      await accept(world, phones(25, from));
      await current.detach();
    }
    const last = world.attach();
    await last.ready;
    last.count.should.equal(150);
    world.told.length.should.equal(150);
    world.told.every(({ settled }) => !settled.repeated).should.be.true();
  });

  it('that cannot be put in order for want of space wait all the same', async () => {
    let isFull = false;
    const table = store.table('waits');
    const write = table.write.bind(table);
    table.write = (writes) => {
      if (isFull && writes.some((each) => 'remove' in each)) throw new Error('no space');
      return write(writes);
    };
    const tables = store.table.bind(store);
    const world = new World({
      ...store,
      table: <T>(name: string) => (name === 'waits' ? (table as unknown as Table<T>) : tables<T>(name)),
    });
    const node = world.attach();
    await node.ready;
    isFull = true;
    for (const phone of phones(205)) await node.add({ phone }, [forPhone(phone)], recommended);
    node.count.should.equal(205);
    world.warnings.length.should.equal(1);
    isFull = false;
    for (const phone of phones(1, 205)) await node.add({ phone }, [forPhone(phone)], recommended);
    await accept(world, phones(206));
    should(world.told.map(({ settled }) => settled.message.phone)).eql(phones(206));
    await node.detach();
    (await keys()).should.eql([]);
  });

  it('each give up when their own pace says so, also after a restart', async () => {
    const world = new World(store);
    const node = world.attach();
    const paceOf = (number: number): Pace => ({ ...recommended, giveUpAfter: hours(1 + (number % 3)) });
    for (const [number, phone] of phones(300).entries()) {
      await node.add({}, [forPhone(phone)], number % 4 === 3 ? recommended : paceOf(number));
    }
    (await keys()).filter((key) => key.includes('/p/')).length.should.be.above(0);
    world.restart();
    const next = world.attach();
    await next.ready;
    const waiting = async (after: number): Promise<number> => {
      await world.clock.move(after);
      await world.waits.told();
      return next.count;
    };
    const givingUp = (hour: number): number =>
      phones(300).filter((_, number) => number % 4 !== 3 && number % 3 === hour - 1).length;
    (await waiting(hours(1) + seconds(60))).should.equal(300 - givingUp(1));
    (await waiting(hours(1))).should.equal(300 - givingUp(1) - givingUp(2));
    (await waiting(hours(1))).should.equal(75);
    await next.detach();
  });

  it('wait again as an earlier version wrote them', async () => {
    const pace = { ...recommended, giveUpAfter: hours(1) };
    const group = (message: string, waits: unknown[], more: object): object => ({
      message,
      advisor: 'default',
      start: begin,
      count: waits.length,
      waits,
      ...more,
    });
    const groups = [
      group('mb0000000000000001abcdef', [[0, ann]], {}),
      group('mb0000000000000002abcdef', [[0, bob]], { pace }),
    ];
    const message = { message: { payload: 1 }, dropped: false, contexts: [] };
    await store.table('waits').write([
      { put: 'node/p/mb0000000000000001abcdef', value: { groups } },
      { put: 'node/m/mb0000000000000001abcdef', value: message },
      { put: 'node/m/mb0000000000000002abcdef', value: message },
    ]);
    const world = new World(store);
    const node = world.attach();
    await node.ready;
    node.count.should.equal(2);
    await world.clock.move(hours(2));
    await world.waits.told();
    endings(world).should.eql([[bob, 'expired']]);
    await accept(world, [ann]);
    endings(world).should.eql([
      [bob, 'expired'],
      [ann, 'accepted'],
    ]);
    await node.detach();
    (await keys()).should.eql([]);
  });
});
