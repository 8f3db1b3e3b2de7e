import 'should';
import { ann, begin, bob, hours, seconds, World } from './world';

describe('waits on rings', () => {
  it('are polled 298 times in a silent day, never early and at most a tenth late, then expire', async () => {
    const world = new World();
    await world.add(ann);
    await world.clock.move(hours(25));
    const due = [
      ...Array.from({ length: 11 }, (_, n) => [seconds(30 * n), seconds(3)] as const),
      ...Array.from({ length: 287 }, (_, n) => [seconds(600 + 300 * n), seconds(30)] as const),
    ];
    const polls = world.times(ann);
    polls.length.should.equal(298);
    due.forEach(([at, late], n) => polls[n]?.should.be.within(at, at + late));
    world.told
      .map(({ outcome }) => outcome)
      .should.eql([
        {
          kind: 'not_accepted',
          reason: 'expired',
          status: { memberId: 7, state: 'pending', lastChanged: 1 },
        },
      ]);
    world.left.should.equal(0);
  });

  it('cost five writes in a silent day: begun, seen, moved twice, ended', async () => {
    const world = new World();
    await world.add(ann);
    await world.clock.move(hours(25));
    world.store.writes.should.equal(5);
  });
});
void begin;
void bob;
