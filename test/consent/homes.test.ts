import should from 'should';
import { recommended } from '../../lib/consent/schedule';
import { Waits, type Settled } from '../../lib/consent/waits';
import { ann, bob, forPhone, World } from './fixtures';

describe('waits of a node that is given another environment', () => {
  const toldThere: Settled[] = [];

  const there = (world: World): Waits =>
    new Waits({
      environment: 'another',
      store: world.store,
      client: () => world.lookups.client,
      clock: world.clock,
      concurrency: 16,
      warn: () => undefined,
    });
  const attach = (waits: Waits): ReturnType<Waits['attach']> =>
    waits.attach('node', (settled) => {
      toldThere.push(settled);
      return Promise.resolve(true);
    });

  it('are cancelled there also when it is closed at once, and those begun there go on', async () => {
    const world = new World();
    const before = world.attach();
    await before.ready;
    await before.add({}, [forPhone(ann)], recommended);
    await before.detach();

    const first = attach(there(world));
    const homes = world.store.table('homes');
    while ((await homes.get('node/home')) !== 'another') await Promise.resolve();
    await first.add({}, [forPhone(bob)], recommended);
    await first.detach();
    await first.ready;
    toldThere.length.should.equal(0);

    const waits = there(world);
    const second = attach(waits);
    await second.ready;
    second.count.should.equal(1);
    should(toldThere.map(({ subject, outcome }) => [subject, outcome.kind])).eql([
      [{ phone: ann }, 'not_accepted'],
    ]);
    await second.detach();
    should(await homes.get('node/moved')).be.undefined();
    world.lookups.polls.length.should.equal(0);
  });
});
