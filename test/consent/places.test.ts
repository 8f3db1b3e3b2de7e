import { setImmediate as nextTurn } from 'node:timers/promises';
import should from 'should';
import { Book } from '../../lib/consent/book';
import { recommended } from '../../lib/consent/schedule';
import { Shelf } from '../../lib/consent/shelf';
import { Telling } from '../../lib/consent/telling';
import type { Stored } from '../../lib/consent/wait-records';
import { createMemoryStore } from '../../lib/state/memory';
import { ann, bob, forPhone, refusal, seconds, World } from './fixtures';
import { gate } from '../support/gate';

const known = { memberId: 7, state: 'accepted', lastChanged: 1 };
const other = '+12025550103';

/** Waits are places in memory that are used again: nobody may be taken for who was there before. */
describe('waits that take the place of others', () => {
  const ends = (world: World): unknown[][] => world.told.map(({ end, settled }) => [settled.message.n, end]);

  it('are told in the order of arrival when their member accepts, whatever places they got', async () => {
    const world = new World();
    const node = world.attach();
    for (const phone of [ann, bob]) await node.add({ n: 0 }, [forPhone(phone)], recommended);
    for (const phone of [ann, bob]) node.reset(phone);
    await world.waits.told();
    await node.add({ n: 1 }, [forPhone(ann)], recommended);
    await node.add({ n: 2 }, [forPhone(bob)], recommended);
    await world.clock.move(seconds(10));
    world.waits.accepted('default', { memberId: 7 }, known);
    await world.waits.told();
    ends(world)
      .slice(2)
      .should.eql([
        [1, 'accepted'],
        [2, 'accepted'],
      ]);
  });

  it('do not get the answer of a look that began for those, and who begins anew looks anew', async () => {
    const world = new World();
    const { opened, open } = gate();
    world.lookups.gate = opened;
    const node = world.attach();
    await node.add({ n: 1 }, [forPhone(ann)], recommended);
    await world.clock.move(seconds(4));
    should(world.lookups.times(ann).length).equal(1);
    node.reset(ann);
    await world.waits.told();
    // In this order: the first of them gets what is free.
    await node.add({ n: 2 }, [forPhone(bob)], recommended);
    await node.add({ n: 3 }, [forPhone(ann)], recommended);
    world.lookups.answer = (of) => (of === ann ? refusal('forbidden', 403) : 'pending');
    open();
    await nextTurn();
    await world.waits.told();
    should(ends(world)).deepEqual([[1, 'cancelled']]);

    await world.clock.move(seconds(4));
    should(ends(world)).deepEqual([
      [1, 'cancelled'],
      [3, 'failed'],
    ]);
    should(world.lookups.times(ann).length).equal(2);
    should(node.count).equal(1);
    // The place of the look is free by now.
    await node.add({ n: 4 }, [forPhone(other)], recommended);
    await world.clock.move(seconds(4));
    world.waits.accepted('default', { phone: other }, known);
    await world.waits.told();
    should(ends(world).slice(2)).deepEqual([[4, 'accepted']]);
  });

  it('leave a node alone that closes while it is told', async () => {
    const world = new World();
    const { opened, open } = gate();
    const { opened: heard, open: hears } = gate();
    const closing = world.waits.attach('closing', async () => {
      hears();
      await opened;
      return true;
    });
    await closing.add({ n: 1 }, [forPhone(ann)], recommended);
    await closing.add({ n: 2 }, [forPhone(bob)], recommended);
    world.waits.accepted('default', { phone: ann }, known);
    await heard;
    const detached = closing.detach();
    const node = world.attach();
    for (const n of [3, 4, 5]) await node.add({ n }, [forPhone(other)], recommended);
    open();
    await detached;
    await world.waits.told();

    for (const n of [6, 7]) await node.add({ n }, [forPhone(bob)], recommended);
    node.reset();
    await world.waits.told();
    should(ends(world)).deepEqual([3, 4, 5, 6, 7].map((n) => [n, 'cancelled']));
    await node.detach();

    const next = world.attach('closing');
    await next.ready;
    should(next.count).equal(1);
    next.reset();
    await world.waits.told();
    should(ends(world).slice(5)).deepEqual([[2, 'cancelled']]);
    await next.detach();
    should(await world.store.table('waits').keyFrom('')).be.undefined();
  });

  it('can do so once those were told', async () => {
    const book = new Book();
    const table = createMemoryStore().table<Stored>('waits');
    const shelf = new Shelf(table, book, 'node', () => undefined);
    const telling = new Telling(
      table,
      book,
      shelf,
      'node',
      () => Promise.resolve(true),
      () => false,
    );
    const wait = book.enter(0, 'first', 0);
    await shelf.add([[wait, ['first', 'default', ann, 0, 1]]], []);
    should(book.enter(0, 'second', 0)).not.equal(wait);
    await telling.settle([[wait, { kind: 'accepted', status: known }]]);
    should(book.enter(0, 'third', 0)).equal(wait);
  });

  it('are not begun by a message that could not be put on disk', async () => {
    const store = createMemoryStore();
    const table = store.table('waits');
    const { write } = table;
    const world = new World(store);
    const node = world.attach();
    await node.ready;
    await node.add({ n: 1 }, [forPhone(ann)], recommended);
    table.write = () => Promise.reject(new Error('no space'));
    await should(node.add({ n: 2 }, [forPhone(ann), forPhone(bob)], recommended)).be.rejectedWith('no space');
    table.write = write;
    should(node.count).equal(1);
    await node.add({ n: 3 }, [forPhone(bob)], recommended);
    node.reset();
    await world.waits.told();
    should(ends(world)).deepEqual([
      [1, 'cancelled'],
      [3, 'cancelled'],
    ]);
  });

  it('go on for whomever is on record, even under an id and for a number that are not made here', async () => {
    const world = new World();
    const message = { message: { n: 1 }, dropped: false, about: undefined, contexts: [] };
    await world.store.table('waits').write([
      { put: 'node/m/short', value: message },
      { put: 'node/w/short', value: ['default', 'tel:ann', world.clock.now(), 1] },
    ]);
    const node = world.attach();
    await node.ready;
    await node.add({ n: 2 }, [{ advisor: 'default', subject: { memberId: -3 } }], recommended);
    await world.clock.move(seconds(4));
    should(world.lookups.polls.map(({ of }) => of).sort()).deepEqual(['#-3', 'tel:ann']);
    node.reset('tel:ann');
    await world.waits.told();
    should(world.told.map(({ settled: { id, subject } }) => [id, subject])).deepEqual([
      ['short', { phone: 'tel:ann' }],
    ]);
  });
});
