import 'should';
import { paceOf, recommended } from '../../../lib/consent/pace';
import { gate } from '../../support/gate';
import { ann, bob, expired, hours, recordsIn, refusal, seconds, World } from '../../support/consent/world';

const accepted = { memberId: 7, state: 'accepted', lastChanged: 5 };
const numberOf = (n: number): string => `+1303${String(n).padStart(7, '0')}`;
const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
describe('waits', () => {
  it('are polled 298 times in a silent day, never early and at most a tenth late, then expire', async () => {
    const world = new World();
    await world.add(ann);
    await world.clock.move(hours(25));
    const due = [
      ...range(11).map((n) => [seconds(30 * n), seconds(3)] as const),
      ...range(287).map((n) => [seconds(600 + 300 * n), seconds(30)] as const),
    ];
    const polls = world.times(ann);
    polls.length.should.equal(298);
    due.forEach(([at, late], n) => polls[n]?.should.be.within(at, at + late));
    world.told.map(({ outcome }) => outcome).should.eql([expired]);
    (await world.left()).should.equal(0);
  });

  it('are first polled immediately, whatever the interval and the number, and once', async () => {
    const world = new World();
    const slow = paceOf({ pollEvery: 600, pollFor: 3600, thenEvery: 600, giveUpAfter: 7200 });
    await world.accept(...range(40).map((n) => world.wait(numberOf(n), slow)));
    await world.clock.move(100);
    new Set(world.polls.map(({ of }) => of)).size.should.equal(40);
    await world.clock.move(seconds(599));
    world.polls.length.should.equal(40);
    await world.clock.move(seconds(61));
    world.polls.length.should.equal(80);
  });

  it('are first polled at the start after a stop, and by a node that returns', async () => {
    const world = new World();
    const goOn = await world.acceptElsewhere(world.wait(ann));
    await world.clock.move(hours(1));
    world.polls.length.should.equal(0);
    await goOn();
    await world.clock.move(100);
    world.times(ann).length.should.equal(1);
  });

  it('cost a commit for many looks: their moves in the timetable are written together', async () => {
    const world = new World(100);
    await world.accept(...range(100).map((n) => world.wait(numberOf(n))));
    await world.clock.move(hours(1));
    const [looks, writes] = [world.polls.length, world.store.writes];
    await world.clock.move(hours(1));
    (world.polls.length - looks).should.equal(100 * 12);
    (world.store.writes - writes).should.be.below(12 * 12);
  });

  it('lose no look in a crash: those whose moves were not written come early', async () => {
    const world = new World();
    await world.accept(...range(20).map((n) => world.wait(numberOf(n))));
    await world.clock.move(seconds(3605));
    world.polls.length = 0;
    await world.restart();
    await world.clock.move(seconds(330));
    for (const n of range(20)) world.times(numberOf(n)).length.should.be.within(1, 2);
  });

  it('keep their places over a close, which writes all moves', async () => {
    const world = new World();
    await world.accept(...range(20).map((n) => world.wait(numberOf(n))));
    await world.clock.move(seconds(3630));
    world.polls.length = 0;
    await world.close();
    await world.restart();
    await world.clock.move(seconds(200));
    world.polls.length.should.equal(0);
  });

  it('end at the poll that sees the acceptance, and are polled no more', async () => {
    const world = new World();
    await world.add(ann);
    await world.clock.move(seconds(45));
    world.answer = () => 'accepted';
    await world.clock.move(hours(30));
    world.ends.should.eql([[0, 'accepted']]);
    world.told[0]?.at.should.be.within(seconds(60), seconds(63));
    world.polls.length.should.equal(3);
    (await world.left()).should.equal(0);
  });

  it('share one ring if both intervals are the same', async () => {
    const world = new World();
    await world.add(ann, paceOf({ pollEvery: 10, pollFor: 30, thenEvery: 10, giveUpAfter: 60 }));
    await world.clock.move(hours(1));
    world.polls.length.should.equal(7);
    world.ends.should.eql([[0, 'expired']]);
  });

  it('are polled at their end even if that is not a whole interval, or is the first', async () => {
    const world = new World();
    await world.add(ann, paceOf({ pollEvery: 10, pollFor: 20, thenEvery: 50, giveUpAfter: 130 }));
    await world.add(bob, paceOf({ pollEvery: 30, pollFor: 300, thenEvery: 300, giveUpAfter: 10 }));
    await world.clock.move(hours(1));
    world
      .times(ann)
      .map((at) => Math.floor(at / seconds(10)) * 10)
      .should.eql([0, 10, 20, 70, 120, 130]);
    world.times(bob).length.should.equal(2);
    world.told.map(({ end }) => end).should.eql(['expired', 'expired']);
  });

  describe('for one number', () => {
    it('share polls at the pace of the youngest: joining triggers none, each expires by its own start', async () => {
      const world = new World();
      await world.add(ann);
      await world.clock.move(hours(2) + seconds(60));
      const before = world.polls.length;
      await world.add(ann);
      await world.clock.move(seconds(20));
      world.polls.length.should.equal(before);
      await world.clock.move(seconds(100));
      const since = world.times(ann).slice(before);
      since.length.should.equal(3);
      since
        .map((at) => (at - hours(2) - seconds(60)) % seconds(30))
        .should.matchEach((at: number) => at < seconds(3));
      await world.clock.move(hours(30));
      world.told
        .map(({ n, end, at }) => [n, end, Math.floor(at / hours(1))])
        .should.eql([
          [0, 'expired', 24],
          [1, 'expired', 26],
        ]);
      // As one alone would have been, from the youngest on, and the last poll of the oldest.
      world.polls.length.should.equal(before + 297 + 1);
      (await world.left()).should.equal(0);
    });

    it('that started at the same moment are polled once at the start', async () => {
      const world = new World();
      await world.accept(world.wait(ann), world.wait(ann), world.wait(ann));
      await world.clock.move(seconds(29));
      world.polls.length.should.equal(1);
      await world.clock.move(hours(25));
      world.polls.length.should.equal(298);
      world.ends.should.eql([
        [0, 'expired'],
        [1, 'expired'],
        [2, 'expired'],
      ]);
    });

    it('are not starved of polls by others that keep joining', async () => {
      const world = new World();
      for (let n = 0; n < 30; n++) {
        await world.add(ann);
        await world.clock.move(seconds(20));
      }
      world.polls.length.should.be.within(10, 30);
      const gaps = world.times(ann).map((at, n, all) => at - (all[n - 1] ?? 0));
      Math.max(...gaps).should.be.below(seconds(80));
    });

    it('share polls even if hundreds join within seconds', async () => {
      const world = new World();
      for (let n = 0; n < 300; n++) {
        await world.add(ann);
        await world.clock.move(30);
      }
      await world.clock.move(seconds(91));
      world.polls.length.should.be.within(3, 6);
    });

    it('continue at their own pace when the youngest has ended', async () => {
      const world = new World();
      await world.add(ann);
      await world.clock.move(seconds(10));
      const youngest = await world.add(ann);
      await world.clock.move(seconds(35));
      await world.cancel(youngest);
      world.polls.length = 0;
      await world.clock.move(seconds(40));
      world.polls.length.should.equal(1);
      world.times(ann)[0]?.should.be.within(seconds(60), seconds(63));
    });

    it('are polled although the youngest is not, because its node was deleted', async () => {
      const world = new World();
      await world.add(ann);
      await world.clock.move(seconds(10));
      for (let n = 0; n < 9; n++) await world.acceptElsewhere(world.wait(ann));
      await world.clock.move(seconds(55));
      world.times(ann).length.should.equal(3);
      await world.clock.move(hours(25));
      world.times(ann).length.should.equal(298);
      world.ends.should.eql([[0, 'expired']]);
    });

    it('end although the poll of another, which continues, is in flight at their end', async () => {
      const world = new World(64);
      const short = paceOf({ pollEvery: 30, pollFor: 300, thenEvery: 300, giveUpAfter: 30 });
      const numbers = range(20).map(numberOf);
      await world.accept(...numbers.map((number) => world.wait(number, short)));
      const others = numbers.map((number) => world.wait(number));
      await world.accept(...others);
      await world.clock.move(seconds(30));
      world.slowness = () => seconds(4);
      void world.flush();
      await world.clock.move(seconds(12));
      world.told.map(({ end }) => end).should.eql(numbers.map(() => 'expired'));
    });

    it('are separate if their advisors are', async () => {
      const world = new World();
      await world.accept(world.wait(ann, recommended, 'one'), world.wait(ann, recommended, 'two'));
      await world.clock.move(seconds(4));
      world.polls
        .map(({ advisor }) => advisor)
        .sort()
        .should.eql(['one', 'two']);
    });
  });

  describe('are released', () => {
    it('in order of arrival, however many they are', async () => {
      const world = new World();
      const { opened } = gate();
      world.gate = opened;
      await world.accept(...range(350).map(() => world.wait(ann)));
      await (await world.consent).accepted('default', { phone: ann }, accepted);
      world.ends.should.eql(range(350).map((n) => [n, 'accepted']));
      world.polls.length.should.be.belowOrEqual(1);
      await world.clock.move(0);
      (await world.left()).should.equal(0);
    });

    it('by an acceptance seen elsewhere, by number or by member, for their advisor alone', async () => {
      const world = new World();
      await world.add('#7');
      await world.add(ann);
      await world.add(ann, recommended, 'another');
      await (await world.consent).accepted('default', { phone: ann }, accepted);
      world.ends.sort().should.eql([
        [0, 'accepted'],
        [1, 'accepted'],
      ]);
    });

    it('by an acceptance of the member that their number turned out to be, even if never polled', async () => {
      for (const memberId of [7, 'm-7']) {
        const world = new World();
        world.memberId = memberId;
        world.answer = (of) => (of === bob ? refusal('network_error') : 'pending');
        await world.accept(world.wait(ann), world.wait(ann), world.wait(bob));
        await world.clock.move(seconds(4));
        await (await world.consent).accepted('default', { memberId }, { ...accepted, memberId });
        world.ends.should.eql([
          [0, 'accepted'],
          [1, 'accepted'],
        ]);
      }
    });

    it('once, when several acceptances are seen at the same moment', async () => {
      const world = new World();
      await world.accept(...range(250).map(() => world.wait(ann)));
      await Promise.all(
        range(5).map(async () => (await world.consent).accepted('default', { phone: ann }, accepted)),
      );
      world.ends.should.eql(range(250).map((n) => [n, 'accepted']));
    });
  });

  describe('that are removed', () => {
    it('leave nothing behind, wherever they lie, and say what was seen last', async () => {
      for (const at of [10, 400, 3600, 86_200]) {
        const world = new World();
        const wait = await world.add(ann);
        await world.clock.move(seconds(at));
        await world.cancel(wait);
        (await world.left()).should.equal(0);
        world.told.map(({ outcome }) => outcome).should.containDeep([{ status: { state: 'pending' } }]);
      }
    });

    it('say what was seen of their number, whichever wait looked', async () => {
      const world = new World();
      await world.add(ann);
      await world.clock.move(hours(1));
      await world.add(ann);
      await world.clock.move(1);
      (await world.node).reset([ann]);
      await world.clock.move(1);
      world.told
        .map(({ outcome }) => outcome.kind === 'not_accepted' && outcome.status.state)
        .should.eql(['pending', 'pending']);
    });

    it('while they are polled do not return', async () => {
      const world = new World();
      const wait = await world.add(ann);
      const { opened, open } = gate();
      world.gate = opened;
      await world.clock.move(seconds(4));
      await world.cancel(wait);
      open();
      await world.clock.move(hours(25));
      world.ends.should.eql([[0, 'cancelled']]);
      world.polls.length.should.equal(1);
      (await world.left()).should.equal(0);
    });

    it('leave an entry in the timetable, which is dropped when it is met', async () => {
      const world = new World();
      await world.add(ann);
      await world.clock.move(seconds(4));
      (await world.node).reset([ann]);
      await world.clock.move(seconds(1));
      (await recordsIn(world.store)).should.equal(1);
      await world.clock.move(seconds(40));
      (await recordsIn(world.store)).should.equal(0);
      world.polls.length.should.equal(1);
    });
  });

  describe('that are flushed', () => {
    it('look at once, and go on at their pace', async () => {
      const world = new World();
      await world.add(ann);
      await world.clock.move(seconds(400));
      const before = world.polls.length;
      await world.flush();
      world.polls.length.should.equal(before + 1);
      await world.clock.move(hours(24));
      world.polls.length.should.equal(298 + 1);
    });

    it('are read as they look, never all at once, and those that have ended are left out', async () => {
      const world = new World(4);
      const waits = range(200).map((n) => world.wait(numberOf(n)));
      await world.accept(...waits);
      await world.clock.move(seconds(4));
      const [first] = waits;
      if (first) await world.cancel(first);
      world.polls.length = 0;
      world.most = 0;
      let read = 0;
      const get = world.store.get.bind(world.store) as typeof world.store.get;
      world.store.get = (table, key) => {
        if (key.toString('latin1').startsWith('wait\0')) read += 1;
        (read - world.polls.length).should.be.below(16);
        return get(table, key);
      };
      await world.flush();
      world.polls.length.should.equal(199);
      world.most.should.be.belowOrEqual(8);
    });

    it('look once where their turn comes meanwhile, and none is lost', async () => {
      const world = new World();
      await world.add(ann);
      await world.clock.move(seconds(31));
      const [, second = 0] = world.times(ann);
      await world.clock.move(second + seconds(30) - 1 - world.elapsed);
      const { opened, open } = gate();
      world.gate = opened;
      // The clock goes on while the answer is on its way.
      world.slowness = () => 0;
      void (await world.node).queue.flush();
      await world.clock.move(10);
      open();
      await world.clock.move(seconds(1));
      world.times(ann).length.should.be.within(3, 4);
      world.slowness = undefined;
      const before = world.polls.length;
      await world.clock.move(seconds(95));
      world.polls.length.should.be.within(before + 3, before + 4);
    });
  });

  it('that started together are not polled together', async () => {
    const world = new World(1000);
    await world.accept(...range(100).map((n) => world.wait(numberOf(n))));
    await world.clock.move(hours(1));
    const tenths = world.polls.filter(({ at }) => at > seconds(3000)).map(({ at }) => Math.floor(at / 3000));
    const counts = new Map<number, number>();
    for (const tenth of tenths) counts.set(tenth, (counts.get(tenth) ?? 0) + 1);
    Math.max(...counts.values()).should.be.below(40);
  });

  it('never have more polls in flight than allowed, and none that had to queue is forgotten', async () => {
    const world = new World(5);
    const { opened, open } = gate();
    world.gate = opened;
    await world.accept(...range(100).map((n) => world.wait(numberOf(n))));
    await world.clock.move(seconds(20));
    world.polls.length.should.equal(10);
    (await world.consent).lateBy.should.be.above(seconds(10));
    open();
    world.gate = Promise.resolve();
    await world.clock.move(seconds(5));
    world.most.should.equal(10);
    new Set(world.polls.map(({ of }) => of)).size.should.equal(100);
    (await world.consent).lateBy.should.equal(0);
  });

  it('belong to the latest start of their node, even if the one before closes late', async () => {
    const world = new World();
    const [consent, { queue }] = await Promise.all([world.consent, world.node]);
    const attach = () =>
      consent.attach('node', {
        queue,
        outcomeOf: (outcome) => ({ port: 0, payload: outcome }),
        changed: () => undefined,
      });
    const detachEarlier = attach();
    const detach = attach();
    detachEarlier();
    consent.isRunning('node').should.be.true();
    detach();
    consent.isRunning('node').should.be.false();
  });

  it('say when they are polled next', async () => {
    const world = new World();
    const wait = await world.add(ann);
    for (const at of [1, 40, 290, 310, 5000, 86_200]) {
      await world.clock.move(seconds(at) - world.elapsed);
      const next = (await world.consent).next({
        ...wait,
        subject: { phone: ann },
        seen: undefined,
        name: undefined,
      });
      const before = world.polls.length;
      await world.clock.move(next - 1 - world.now());
      world.polls.length.should.equal(before);
      await world.clock.move(1);
      world.polls.length.should.equal(before + 1);
    }
  });
});
