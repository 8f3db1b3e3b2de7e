import should from 'should';
import { paceOf, recommended } from '../../../lib/consent/rings';
import type { Wait } from '../../../lib/consent/waits';
import { nextIteration } from '../../support/event-loop';
import { gate } from '../../support/gate';
import { ann, bob, expired, hours, refusal, seconds, World } from '../../support/consent/world';

const accepted = { memberId: 7, state: 'accepted', lastChanged: 5 };
const numberOf = (n: number): string => `+1303${String(n).padStart(7, '0')}`;
const range = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
describe('waits on rings', () => {
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
    world.waits.stop();
    await world.add(ann);
    await world.clock.move(hours(1));
    world.polls.length.should.equal(0);
    world.restart();
    await world.clock.move(100);
    world.times(ann).length.should.equal(1);

    const wait = await world.add(bob);
    world.unwanted.add(wait);
    await world.clock.move(seconds(10));
    world.times(bob).length.should.equal(0);
    world.unwanted.delete(wait);
    await world.clock.move(seconds(30));
    world.times(bob).length.should.equal(1);
  });

  it('cost five writes in a silent day: started, seen, moved twice, ended', async () => {
    const world = new World();
    await world.add(ann);
    await world.clock.move(hours(25));
    world.store.writes.should.equal(5);
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
      .should.eql([0, 10, 20, 50, 100, 130]);
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
      for (let n = 0; n < 9; n++) world.unwanted.add(await world.add(ann));
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
      void world.waits.flush(others);
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
      await world.accept(...range(350).map((n) => world.wait(n % 3 === 0 ? '#7' : ann)));
      await world.waits.accepted('default', { phone: ann }, accepted);
      world.ends.should.eql(range(350).map((n) => [n, 'accepted']));
      world.polls.length.should.equal(0);
      (await world.left()).should.equal(0);
    });

    it('by an acceptance seen elsewhere, by number or by member, for their advisor alone', async () => {
      const world = new World();
      await world.add('#7');
      await world.add(ann);
      await world.add(ann, recommended, 'another');
      await world.waits.accepted('default', { phone: ann }, accepted);
      world.ends.should.eql([
        [0, 'accepted'],
        [1, 'accepted'],
      ]);
    });

    it('by an acceptance of the member that their number turned out to be, even if never polled', async () => {
      for (const memberId of [7, 'm-7']) {
        const world = new World();
        world.memberId = memberId;
        await world.accept(world.wait(ann), world.wait(ann), world.wait(bob));
        world.answer = (of) => (of === bob ? refusal('network_error') : 'pending');
        await world.clock.move(seconds(4));
        await world.waits.accepted('default', { memberId }, { ...accepted, memberId });
        world.ends.should.eql([
          [0, 'accepted'],
          [1, 'accepted'],
        ]);
      }
    });

    it('once, when several acceptances are seen at the same moment', async () => {
      const world = new World();
      await world.accept(...range(250).map(() => world.wait(ann)));
      await Promise.all(range(5).map(() => world.waits.accepted('default', { phone: ann }, accepted)));
      world.ends.should.eql(range(250).map((n) => [n, 'accepted']));
    });
  });

  describe('that are removed', () => {
    it('leave nothing behind, wherever they are, and report what was seen last', async () => {
      for (const at of [0, 10, 400, 3600, 86_200]) {
        const world = new World();
        const wait = await world.add(ann);
        await world.clock.move(seconds(at));
        await world.cancel(wait);
        (await world.left()).should.equal(0);
        const status = at === 0 ? null : 'pending';
        world.told.map(({ outcome }) => outcome).should.containDeep([{ status: { state: status } }]);
      }
    });

    it('report what was seen of their number, whichever wait was polled', async () => {
      const world = new World();
      await world.add(ann);
      await world.clock.move(hours(1));
      const younger = await world.add(ann);
      const { seen } = await world.waits.removals(younger);
      should((await seen()).state).equal('pending');
      await world.cancel(younger);
      (await world.waits.removals(younger)).operations.should.eql([]);
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

    it('incompletely are forgotten: an entry without its record is dropped', async () => {
      const world = new World();
      const wait = await world.add(ann);
      const { operations } = await world.waits.removals(wait);
      await world.store.write(operations.slice(0, 1));
      (await world.left()).should.equal(1);
      await world.clock.move(seconds(40));
      (await world.left()).should.equal(0);
      world.polls.length.should.equal(0);
    });
  });

  describe('that are flushed', () => {
    it('are polled immediately, and continue at their pace', async () => {
      const world = new World();
      const wait = await world.add(ann);
      await world.clock.move(seconds(400));
      const before = world.polls.length;
      await world.waits.flush([wait]);
      await nextIteration();
      world.polls.length.should.equal(before + 1);
      await world.clock.move(hours(24));
      world.polls.length.should.equal(298 + 1);
    });

    it('are read as they are polled, never all at once, and those that have ended are left out', async () => {
      const world = new World(4);
      const waits = range(200).map((n) => world.wait(numberOf(n)));
      await world.accept(...waits);
      await world.clock.move(seconds(4));
      const [first] = waits;
      if (first) await world.cancel(first);
      world.polls.length = 0;
      world.most = 0;
      let read = 0;
      const source = function* (): Generator<Wait> {
        for (const wait of waits) {
          read += 1;
          (read - world.polls.length).should.be.below(8);
          yield wait;
        }
      };
      await world.waits.flush(source());
      await world.clock.move(0);
      world.polls.length.should.equal(199);
      world.most.should.be.belowOrEqual(4);
    });
  });

  it('are polled at their times while a flush searches for others', async () => {
    const world = new World();
    await world.add(ann);
    const { opened, open } = gate();
    const late = world.wait(bob);
    const flushed = world.waits.flush(
      (async function* () {
        await opened;
        yield late;
      })(),
    );
    await world.clock.move(seconds(95));
    world.times(ann).length.should.equal(4);
    open();
    await flushed;
  });

  it('that started together are not polled together', async () => {
    const world = new World(1000);
    await world.accept(...range(300).map((n) => world.wait(numberOf(n))));
    await world.clock.move(hours(1));
    const tenths = world.polls.filter(({ at }) => at > seconds(3000)).map(({ at }) => Math.floor(at / 3000));
    const counts = new Map<number, number>();
    for (const tenth of tenths) counts.set(tenth, (counts.get(tenth) ?? 0) + 1);
    Math.max(...counts.values()).should.be.below(80);
  });

  it('never have more polls in flight than allowed, and none that had to queue is forgotten', async () => {
    const world = new World(5);
    const { opened, open } = gate();
    world.gate = opened;
    await world.accept(...range(100).map((n) => world.wait(numberOf(n))));
    await world.clock.move(seconds(20));
    world.polls.length.should.equal(5);
    world.waits.lateBy.should.be.above(seconds(10));
    open();
    world.gate = Promise.resolve();
    await world.clock.move(seconds(5));
    world.most.should.equal(5);
    new Set(world.polls.map(({ of }) => of)).size.should.equal(100);
    world.waits.lateBy.should.equal(0);
  });

  it('are polled no slower on a slow disk, up to a limit', async () => {
    const world = new World(4);
    await world.accept(...range(400).map((n) => world.wait(numberOf(n))));
    const { opened, open } = gate();
    world.store.gate = opened;
    const moving = world.clock.move(seconds(4));
    while (world.polls.length < 300) await nextIteration();
    for (let n = 0; n < 20; n++) await nextIteration();
    world.polls.length.should.be.within(300, 310);
    open();
    await moving;
    world.polls.length.should.equal(400);
  });

  it('of one ring leave others their turns', async () => {
    const world = new World(1);
    const slow = paceOf({ pollEvery: 60, pollFor: 60, thenEvery: 60, giveUpAfter: 86_400 });
    await world.accept(...range(500).map((n) => world.wait(numberOf(n), slow)));
    await world.add(ann, paceOf({ pollEvery: 30, pollFor: 60, thenEvery: 30, giveUpAfter: 86_400 }));
    const { opened, open } = gate();
    world.gate = opened;
    await world.clock.move(seconds(20));
    open();
    world.gate = Promise.resolve();
    await world.clock.move(1);
    world.polls.findIndex(({ of }) => of === ann).should.be.within(0, 60);
  });

  it('say when they are polled next', async () => {
    const world = new World();
    const wait = await world.add(ann);
    for (const at of [1, 40, 290, 310, 5000, 86_200]) {
      await world.clock.move(seconds(at) - world.elapsed);
      const next = world.waits.next(wait);
      const before = world.polls.length;
      await world.clock.move(next - world.now());
      world.polls.length.should.equal(before);
      await world.clock.move(seconds(1));
      world.polls.length.should.equal(before + 1);
    }
  });
});
