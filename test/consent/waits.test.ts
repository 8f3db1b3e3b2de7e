import 'should';
import { recommended, shareOf } from '../../lib/consent/schedule';
import { createMemoryStore } from '../../lib/state/memory';
import { ann, bob, forPhone, hours, refusal, seconds, World } from './fixtures';
import { gate } from '../support/gate';

const late = (phone: string, interval: number): number =>
  Math.floor((seconds(interval) / 10) * shareOf(`default\n${phone}`));

const numbers = (count: number): ReturnType<typeof forPhone>[] =>
  Array.from({ length: count }, (_, n) => forPhone(`+1202555${String(n).padStart(4, '0')}`));

describe('waits for consent', () => {
  it('look 298 times in a silent day, then expire with what was last seen', async () => {
    const world = new World();
    await world.attach().add({ payload: 'x' }, [forPhone(ann)], recommended);
    await world.clock.move(hours(25));
    world.lookups.polls.length.should.equal(298);
    world.told.length.should.equal(1);
    const [{ end, at, settled }] = world.told as [(typeof world.told)[0]];
    end.should.equal('expired');
    at.should.equal(hours(24) + late(ann, 300));
    settled.message.should.eql({ payload: 'x' });
    settled.repeated.should.be.false();
    settled.outcome.should.eql({
      kind: 'not_accepted',
      reason: 'expired',
      status: { memberId: 7, state: 'pending', lastChanged: 1 },
    });
  });

  it('end at the look that sees the acceptance, and look no more', async () => {
    const world = new World();
    await world.attach().add({}, [forPhone(ann)], recommended);
    await world.clock.move(seconds(45));
    world.lookups.answer = () => 'accepted';
    await world.clock.move(hours(30));
    world.told.map(({ end, at }) => [end, at]).should.eql([['accepted', seconds(60) + late(ann, 30)]]);
    world.lookups.polls.length.should.equal(3);
  });

  it('for one number look together: joining looks not once more, each expires by its own start', async () => {
    const world = new World();
    const node = world.attach();
    const other = world.attach('other');
    await node.add({ n: 1 }, [forPhone(ann)], recommended);
    await world.clock.move(hours(2) + seconds(60));
    const before = world.lookups.polls.length;
    await other.add({ n: 2 }, [forPhone(ann)], recommended);
    await world.clock.move(seconds(20));
    world.lookups.polls.length.should.equal(before);
    await world.clock.move(seconds(100));
    const since = world.lookups.times(ann).slice(before);
    since
      .map((at) => Math.floor((at - hours(2) - seconds(60)) / 1000))
      .should.matchEach((at: number) => at % 30 < 4);
    await world.clock.move(hours(30));
    world.told
      .map(({ node: of, end, at }) => [of, end, Math.floor(at / hours(1))])
      .should.eql([
        ['node', 'expired', 24],
        ['other', 'expired', 26],
      ]);
    const gaps = world.lookups.times(ann).map((at, n, all) => at - (all[n - 1] ?? -Infinity));
    Math.min(...gaps.slice(1)).should.be.aboveOrEqual(seconds(1));
  });

  it('are not starved of looks by others that keep joining', async () => {
    const world = new World();
    const node = world.attach();
    for (let n = 0; n < 30; n++) {
      await node.add({ n }, [forPhone(ann)], recommended);
      await world.clock.move(seconds(20));
    }
    world.lookups.polls.length.should.be.within(10, 30);
  });

  it('for different advisors are apart', async () => {
    const world = new World();
    await world.attach().add({}, [forPhone(ann, 'one'), forPhone(ann, 'two')], recommended);
    await world.clock.move(seconds(4));
    world.lookups.polls
      .map(({ advisor }) => advisor)
      .sort()
      .should.eql(['one', 'two']);
  });

  it('leave in the order of arrival on acceptance, whichever node they belong to', async () => {
    const world = new World();
    const nodes = [world.attach('z'), world.attach('a'), world.attach('m')];
    for (let n = 0; n < 9; n++) await nodes[n % 3]?.add({ n }, [forPhone(ann)], recommended);
    world.waits.accepted('default', { phone: ann }, { memberId: 7, state: 'accepted', lastChanged: 5 });
    await world.waits.told();
    world.told.map(({ settled }) => settled.message.n).should.eql([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    world.lookups.polls.length.should.equal(0);
  });

  it('are released by an acceptance seen elsewhere, by number or by member', async () => {
    const world = new World();
    const node = world.attach();
    await node.add({ n: 1 }, [{ advisor: 'default', subject: { memberId: 7 } }], recommended);
    await node.add({ n: 2 }, [forPhone(ann)], recommended);
    await node.add({ n: 3 }, [forPhone(ann, 'another advisor')], recommended);
    world.waits.accepted('default', { phone: ann }, { memberId: 7, state: 'accepted', lastChanged: null });
    await world.waits.told();
    world.told
      .map(({ settled }) => settled.message.n)
      .sort()
      .should.eql([1, 2]);
    node.count.should.equal(1);
  });

  const enduring: readonly [string, () => never][] = [
    ['a dead network', () => refusal('network_error')],
    ['a limit on the rate', () => refusal('rate_limited', 429)],
    ['a fault of the service', () => refusal('internal_error', 500)],
    ['a lost authorization', () => refusal('authorization_required')],
    ['a token refused twice', () => refusal('unauthorized', 401)],
    ['an answer that fits no schema', () => refusal('invalid_response', 200)],
    [
      'an unexpected fault',
      () => {
        throw new Error('?');
      },
    ],
  ];
  for (const [what, fault] of enduring) {
    it(`outlast ${what}`, async () => {
      const world = new World();
      world.lookups.answer = fault;
      await world.attach().add({}, [forPhone(ann)], recommended);
      await world.clock.move(hours(23));
      world.told.should.eql([]);
      world.lookups.answer = () => 'accepted';
      await world.clock.move(hours(0.2));
      world.told.map(({ end }) => end).should.eql(['accepted']);
    });
  }

  it('keep waiting in a state nobody has heard of', async () => {
    const world = new World();
    world.lookups.answer = () => 'considering';
    await world.attach().add({}, [forPhone(ann)], recommended);
    await world.clock.move(hours(1));
    world.told.should.eql([]);
  });

  it('end as unknown number on 404, and as failure on any other refusal', async () => {
    const world = new World();
    world.lookups.answer = (of) => (of === ann ? refusal('not_found', 404) : refusal('forbidden', 403));
    await world.attach().add({}, [forPhone(ann), forPhone(bob)], recommended);
    await world.clock.move(seconds(4));
    world.told
      .map(({ end }) => end)
      .sort()
      .should.eql(['failed', 'unknown_number']);
  });

  it('try their last look for five minutes more when the service cannot be reached', async () => {
    const world = new World();
    await world.attach().add({}, [forPhone(ann), forPhone(bob)], recommended);
    await world.clock.move(hours(23.9));
    world.lookups.answer = () => refusal('network_error');
    await world.clock.move(hours(0.11) + seconds(60));
    world.told.should.eql([]);
    world.lookups.answer = (of) => (of === ann ? 'accepted' : refusal('network_error'));
    await world.clock.move(seconds(400));
    world.told.map(({ end }) => end).should.eql(['accepted', 'expired']);
  });

  it('are cancelled and looked at on demand, all or those for a number', async () => {
    const world = new World();
    const node = world.attach();
    const other = world.attach('other');
    await node.add({}, [forPhone(ann), forPhone(bob)], recommended);
    await other.add({}, [forPhone(bob)], recommended);
    await world.clock.move(seconds(10));
    const polls = world.lookups.polls.length;
    node.flush(ann);
    await world.clock.move(1);
    world.lookups.polls
      .slice(polls)
      .map(({ of }) => of)
      .should.eql([ann]);
    node.reset(bob);
    await world.waits.told();
    world.told.map(({ node: of, end }) => [of, end]).should.eql([['node', 'cancelled']]);
    [node.count, other.count].should.eql([1, 1]);
    node.reset();
    other.flush();
    await world.clock.move(1);
    world.told.length.should.equal(2);
    world.lookups.polls
      .slice(polls + 1)
      .map(({ of }) => of)
      .should.eql([bob]);
  });

  it('of very many numbers, ended at once, are noted many at a time and leave Node-RED its turns', async () => {
    const store = createMemoryStore();
    const world = new World(store);
    const node = world.attach();
    await node.add({}, numbers(2000), recommended);
    const table = store.table('waits');
    let commits = 0;
    const write = table.write.bind(table);
    table.write = (writes) => {
      commits += 1;
      return write(writes);
    };
    let turns = 0;
    const told = { all: false };
    const turn = (): void => {
      turns += 1;
      if (!told.all) setImmediate(turn);
    };
    node.reset();
    setImmediate(turn);
    await world.waits.told();
    told.all = true;
    world.told.length.should.equal(2000);
    commits.should.be.belowOrEqual(40);
    turns.should.be.aboveOrEqual(10);
  });

  it('are told at once but for those whose end could not be written, and those a little later', async () => {
    const store = createMemoryStore();
    const world = new World(store);
    const node = world.attach();
    await node.ready;
    await node.add({}, numbers(1000), recommended);
    const table = store.table('waits');
    const write = table.write.bind(table);
    table.write = () => {
      table.write = write;
      return Promise.reject(new Error('no space'));
    };
    for (const { subject } of numbers(1000))
      world.waits.accepted('default', subject, { memberId: null, state: 'accepted', lastChanged: 1 });
    await world.waits.told();
    world.warnings.should.eql(['unsettled']);
    world.told.length.should.equal(900);
    await world.clock.move(seconds(30));
    await world.waits.told();
    world.told.length.should.equal(1000);
    new Set(world.told.map(({ settled }) => settled.id)).size.should.equal(1000);
  });

  it('begun together do not poll together', async () => {
    const world = new World(createMemoryStore(), 100_000);
    const node = world.attach();
    const people = numbers(10_000);
    await node.add({}, people, recommended);
    await world.clock.move(seconds(29));
    const perTenth = new Map<number, number>();
    for (const { at } of world.lookups.polls)
      perTenth.set(Math.floor(at / 100), (perTenth.get(Math.floor(at / 100)) ?? 0) + 1);
    world.lookups.polls.length.should.equal(10_000);
    Math.max(...perTenth.values()).should.be.below(450);
    Math.max(...perTenth.keys()).should.be.below(30);
  }).timeout(60_000);

  it('never have more looks under way than allowed, and forget none that had to queue', async () => {
    const world = new World(createMemoryStore(), 5);
    const { opened, open } = gate();
    world.lookups.gate = opened;
    const people = Array.from({ length: 40 }, (_, n) => forPhone(`+12025550${String(100 + n)}`));
    await world.attach().add({}, people, recommended);
    await world.clock.move(seconds(5));
    world.lookups.polls.length.should.equal(5);
    open();
    await world.clock.move(1);
    world.lookups.most.should.equal(5);
    new Set(world.lookups.polls.map(({ of }) => of)).size.should.equal(40);
  });

  describe('go on', () => {
    it('after a restart, by their original start, without a look too many', async () => {
      const world = new World();
      await world.attach().add({ payload: 1 }, [forPhone(ann)], recommended);
      for (let n = 0; n < 24; n++) {
        await world.clock.move(hours(1) - seconds(100));
        world.restart();
        await world.attach().ready;
        await world.clock.move(seconds(100));
      }
      await world.clock.move(hours(1));
      world.lookups.polls.length.should.equal(298);
      world.told.map(({ end, at }) => [end, at]).should.eql([['expired', hours(24) + late(ann, 300)]]);
    });

    it('when their node comes back, and are not looked at while it is away', async () => {
      const world = new World();
      const node = world.attach();
      await node.add({}, [forPhone(ann)], recommended);
      await world.clock.move(seconds(100));
      await node.detach();
      const polls = world.lookups.polls.length;
      world.lookups.answer = () => 'accepted';
      await world.clock.move(hours(5));
      world.lookups.polls.length.should.equal(polls);
      world.told.should.eql([]);
      await world.attach().ready;
      await world.clock.move(hours(0.1));
      world.told.map(({ end }) => end).should.eql(['accepted']);
    });

    it('after three days off: what expired settles at once, with one last look each', async () => {
      const world = new World();
      await world.attach().add({}, [forPhone(ann), forPhone(bob)], recommended);
      await world.clock.move(seconds(10));
      world.restart();
      world.lookups.polls.length = 0;
      await world.clock.move(hours(72));
      world.lookups.answer = (of) => (of === ann ? 'accepted' : 'pending');
      await world.attach().ready;
      await world.clock.move(1);
      world.told
        .map(({ end }) => end)
        .sort()
        .should.eql(['accepted', 'expired']);
      world.lookups.polls.length.should.equal(2);
    });

    it('when told and killed before that was noted: told again, and marked as repeated', async () => {
      const world = new World();
      const soon: (() => void)[] = [];
      const table = world.store.table('waits');
      const writeSoon = table.writeSoon.bind(table);
      table.writeSoon = (writes) => {
        soon.push(() => void writeSoon(writes));
        return Promise.resolve();
      };
      await world.attach().add({ n: 1 }, [forPhone(ann), forPhone(bob)], recommended);
      world.waits.accepted('default', { phone: ann }, { memberId: 7, state: 'accepted', lastChanged: 1 });
      await world.waits.told();
      world.restart();
      await world.attach().ready;
      world.told
        .map(({ settled }) => [settled.id, settled.repeated])
        .should.eql([
          [world.told[0]?.settled.id, false],
          [world.told[0]?.settled.id, true],
        ]);
      for (const write of soon) write();
      table.writeSoon = writeSoon;
      world.restart();
      const node = world.attach();
      await node.ready;
      node.count.should.equal(1);
      node.reset();
      await world.waits.told();
      world.told.length.should.equal(3);
      ((await table.keyFrom('')) === undefined).should.be.true();
    });

    it('and are ended or looked at by orders that come while they are still read', async () => {
      const world = new World();
      await world.attach().add({ n: 'old' }, [forPhone(ann), forPhone(bob)], recommended);
      world.restart();
      const node = world.attach();
      node.reset(ann);
      await node.add({ n: 'new' }, [forPhone(ann)], recommended);
      await node.ready;
      await world.waits.told();
      world.told.map(({ end, settled }) => [end, settled.message.n]).should.eql([['cancelled', 'old']]);
      node.count.should.equal(2);

      await world.clock.move(seconds(40));
      world.restart();
      const again = world.attach();
      const looked = world.lookups.times(bob).length;
      again.flush(bob);
      await again.ready;
      await world.clock.move(1);
      world.lookups.times(bob).length.should.equal(looked + 1);

      world.restart();
      const last = world.attach();
      last.reset();
      await last.ready;
      await world.waits.told();
      world.told.map(({ end }) => end).should.eql(['cancelled', 'cancelled', 'cancelled']);
      last.count.should.equal(0);
    });

    it('and stay ended when their node closes at once', async () => {
      const world = new World();
      const node = world.attach();
      await node.ready;
      await node.add({ n: 1 }, [forPhone(ann), forPhone(bob)], recommended);
      node.reset(ann);
      await node.detach();
      world.told.should.eql([]);
      const next = world.attach();
      await next.ready;
      await world.waits.told();
      world.told.map(({ end, settled }) => [end, settled.repeated]).should.eql([['cancelled', false]]);
      next.count.should.equal(1);
    });

    it('and stay ended, however many they were, but for those begun since', async () => {
      const world = new World();
      const node = world.attach();
      await node.ready;
      await node.add({ n: 1 }, numbers(2000), recommended);
      node.reset();
      await node.add({ n: 2 }, [forPhone(ann)], recommended);
      await node.detach();
      const before = world.told.length;
      before.should.be.below(2000);
      const next = world.attach();
      await next.ready;
      world.told.map(({ end, settled }) => [end, settled.message.n]).should.matchEach(['cancelled', 1]);
      world.told.length.should.equal(2000);
      next.count.should.equal(1);
      await next.detach();
      const last = world.attach();
      await last.ready;
      [last.count, world.told.length].should.eql([1, 2000]);
    });

    it('and leave in the order of arrival, each as it ended, when their node closes before they are told', async () => {
      const carl = '+13035550101';
      const world = new World();
      const node = world.attach();
      await node.ready;
      await node.add({ n: 1 }, numbers(1500), recommended);
      await node.add({ n: 2 }, [forPhone(carl)], recommended);
      world.waits.accepted('default', { phone: carl }, { memberId: 7, state: 'accepted', lastChanged: 1 });
      node.reset();
      await node.detach();
      await world.attach().ready;
      const people = world.told.map(({ end, settled }) => [end, settled.subject]);
      people.should.eql([
        ...numbers(1500).map(({ subject }) => ['cancelled', subject]),
        ['accepted', { phone: carl }],
      ]);
    });

    it('with a message that still has its functions while the process lives', async () => {
      const world = new World();
      const message = { payload: 1, res: { end: () => undefined } };
      const node = world.attach();
      await node.add(message, [forPhone(ann)], recommended);
      await node.detach();
      const again = world.attach();
      await again.ready;
      again.reset();
      await world.waits.told();
      (world.told[0]?.settled.message === message).should.be.true();
      world.told[0]?.settled.dropped.should.be.false();
    });
  });

  describe('and clocks that jump', () => {
    const jumping = (): { world: World; jump: (ms: number) => void } => {
      let shift = 0;
      const world = new World(createMemoryStore(), 1000, () => shift);
      return { world, jump: (ms) => (shift += ms) };
    };
    const many = Array.from({ length: 200 }, (_, n) => forPhone(`+12025550${String(100 + n)}`));

    it('forward, as after sleep: no flood, and everything goes on within its interval', async () => {
      const { world, jump } = jumping();
      await world.attach().add({}, many, recommended);
      await world.clock.move(hours(1));
      world.lookups.polls.length = 0;
      jump(hours(3) + seconds(137));
      await world.clock.move(seconds(1));
      world.lookups.polls.length.should.be.below(20);
      await world.clock.move(seconds(331));
      new Set(world.lookups.polls.map(({ of }) => of)).size.should.equal(200);
      world.lookups.polls.length.should.be.below(250);
    });

    it('back: the looks go on at their pace, and nothing expires early', async () => {
      const { world, jump } = jumping();
      await world.attach().add({}, many, recommended);
      await world.clock.move(hours(1));
      world.lookups.polls.length = 0;
      jump(-hours(2));
      await world.clock.move(seconds(900));
      world.lookups.polls.length.should.be.within(600, 800);
      await world.clock.move(hours(22.5));
      world.told.should.eql([]);
      await world.clock.move(hours(1));
      world.told.length.should.equal(200);
    });
  });
});
