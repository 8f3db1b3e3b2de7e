import should from 'should';
import type { Clock } from '../../../lib/service/clock';
import { Limits } from '../../../lib/service/limits';
import { shareOf } from '../../../lib/state/postgres-leases';
import type { QueuePlace } from '../../../lib/service/limits';
import { nextIteration } from '../../support/event-loop';
import { frozenClock } from '../../support/service/setup';

const place = (lane = 'a', more: Partial<QueuePlace> = {}): QueuePlace => ({
  lane,
  priority: 'normal',
  front: false,
  signal: undefined,
  ...more,
});

/** Enters in the background and records when it is served. */
const queue = (limits: Limits, served: string[], name: string, at: QueuePlace): Promise<void> =>
  Promise.resolve(limits.enter(at)).then((entered) => {
    served.push(entered ? name : `${name} sent away`);
  });

const drain = async (limits: Limits, served: string[], count: number): Promise<void> => {
  for (let i = 0; i < count; i++) {
    limits.leave();
    await nextIteration();
  }
  should(served.length).aboveOrEqual(count);
};

describe('the limits of an environment', () => {
  it('admit as many requests at once as allowed, without a delay or a promise', () => {
    const limits = new Limits(frozenClock(), 2, 0);
    should(limits.enter(place())).equal(true);
    should(limits.enter(place())).equal(true);
    should(limits.enter(place())).be.a.Promise();
  });

  it('serve lanes in turn, so that a long list starves nobody', async () => {
    const limits = new Limits(frozenClock(), 1, 0);
    const served: string[] = [];
    void limits.enter(place());
    for (let i = 0; i < 5; i++) void queue(limits, served, `list ${String(i)}`, place('list'));
    void queue(limits, served, 'single', place('single'));
    void queue(limits, served, 'other', place('other'));
    await drain(limits, served, 7);
    should(served).eql(['list 0', 'single', 'other', 'list 1', 'list 2', 'list 3', 'list 4']);
  });

  it('admit polls only when no normal request is waiting', async () => {
    const limits = new Limits(frozenClock(), 1, 0);
    const served: string[] = [];
    void limits.enter(place());
    void queue(limits, served, 'poll 1', place('polls', { priority: 'poll' }));
    void queue(limits, served, 'poll 2', place('polls', { priority: 'poll' }));
    void queue(limits, served, 'send 1', place('a'));
    void queue(limits, served, 'send 2', place('a'));
    await drain(limits, served, 4);
    should(served).eql(['send 1', 'send 2', 'poll 1', 'poll 2']);
  });

  it('admit polls in their order when this process may make more requests at once than before', async () => {
    let most = 1;
    const limits = new Limits(frozenClock(), 2, 0, () => most);
    const served: string[] = [];
    void limits.enter(place());
    void queue(limits, served, 'poll 1', place('polls', { priority: 'poll' }));
    most = 2;
    void queue(limits, served, 'poll 2', place('polls', { priority: 'poll' }));
    await nextIteration();
    should(served).eql(['poll 1']);
  });

  it('put a retry before requests of its lane that have not started', async () => {
    const limits = new Limits(frozenClock(), 1, 0);
    const served: string[] = [];
    void limits.enter(place());
    void queue(limits, served, 'new 1', place());
    void queue(limits, served, 'new 2', place());
    void queue(limits, served, 'repeat', place('a', { front: true }));
    await drain(limits, served, 3);
    should(served).eql(['repeat', 'new 1', 'new 2']);
  });

  it('respect the requests per second, however many are waiting', async () => {
    const clock = frozenClock();
    const limits = new Limits(clock, 100, 4);
    const start = clock.now();
    const at: number[] = [];
    for (let i = 0; i < 10; i++) {
      void Promise.resolve(limits.enter(place())).then(() => {
        at.push(clock.now() - start);
        limits.leave();
      });
    }
    await clock.move(5000);
    should(at).have.length(10);
    for (const from of at) should(at.filter((t) => t >= from && t < from + 1000).length).belowOrEqual(4);
    should(at.at(-1)).belowOrEqual(2300);
  });

  it('give a process its share, at least one request, and report the demand', async () => {
    const clock = frozenClock();
    let share = 0.25;
    const limits = new Limits(clock, 8, 0, (most) => share * most);
    const served: string[] = [];
    for (let n = 0; n < 8; n++) void queue(limits, served, String(n), place());
    await clock.move(0);
    should(served).have.length(2);
    should(limits.takePeak()).equal(8);
    share = 1;
    limits.leave();
    await clock.move(0);
    should(served).have.length(8);
    for (let n = 0; n < 6; n++) limits.leave();
    should(limits.takePeak()).equal(8);
    should(limits.takePeak()).equal(1);
    const few = new Limits(clock, 2, 0, () => 0);
    should(few.enter(place())).be.true();
  });

  it('give each of several processes its part of the requests per second', async () => {
    const clock = frozenClock();
    const limits = new Limits(clock, 100, 10, (most) => most / 2);
    const served: string[] = [];
    for (let n = 0; n < 20; n++) void queue(limits, served, String(n), place());
    await clock.move(1999);
    should(served).have.length(10);
  });

  it('keep the total rate even if there are more processes than concurrent requests', async () => {
    const clock = frozenClock();
    const three = { processes: 3, busy: 3, isKnown: true };
    const all = Array.from({ length: 3 }, () => new Limits(clock, 1, 10, (most) => shareOf(most, three)));
    const served: string[] = [];
    for (const limits of all)
      for (let n = 0; n < 40; n++)
        void queue(limits, served, String(n), place()).then(() => {
          limits.leave();
        });
    await clock.move(3000);
    should(served.length).be.within(28, 33);
  });

  it('give a process its larger part of the rate as soon as it has one', async () => {
    const clock = frozenClock();
    const few = { processes: 3, busy: 0, isKnown: false };
    const alone = { processes: 3, busy: 1, isKnown: true };
    let known = few;
    const limits = new Limits(clock, 16, 1, (most) => shareOf(most, known));
    const served: string[] = [];
    for (let n = 0; n < 4; n++)
      void queue(limits, served, String(n), place()).then(() => {
        limits.leave();
      });
    await clock.move(1000);
    should(served).have.length(1);
    should(limits.takePeak()).be.above(1);
    known = alone;
    await clock.move(4000);
    should(served).have.length(4);
  });

  it('admit nobody during a pause, and everybody after it', async () => {
    const clock = frozenClock();
    const limits = new Limits(clock, 2, 0);
    const served: string[] = [];
    limits.pause(60_000);
    limits.pause(10_000);
    void queue(limits, served, 'one', place());
    void queue(limits, served, 'two', place('b', { priority: 'poll' }));
    await clock.move(59_999);
    should(served).eql([]);
    should(limits.pausedUntil).equal(clock.now() + 1);
    await clock.move(1);
    should(served).eql(['one', 'two']);
    should(limits.pausedUntil).equal(0);
  });

  for (const set of [-86_400_000, 86_400_000]) {
    it(`last as long as they should when the clock is set ${set < 0 ? 'back' : 'forward'} by a day`, async () => {
      const moved = frozenClock();
      const wall = { set: 0 };
      const clock: Clock = {
        now: () => moved.now() + wall.set,
        elapsed: () => moved.now(),
        after: (ms, task) => moved.after(ms, task),
      };
      const limits = new Limits(clock, 2, 1);
      const served: string[] = [];
      limits.pause(60_000);
      void queue(limits, served, 'one', place());
      void queue(limits, served, 'two', place());
      wall.set = set;
      should(limits.pausedUntil).equal(clock.now() + 60_000);
      await moved.move(59_999);
      should(served).eql([]);
      await moved.move(1);
      should(served).eql(['one']);
      wall.set = 0;
      await moved.move(999);
      should(served).eql(['one']);
      await moved.move(1);
      should(served).eql(['one', 'two']);
    });
  }

  it('let a waiting request be cancelled without losing a turn', async () => {
    const limits = new Limits(frozenClock(), 1, 0);
    const served: string[] = [];
    const cancel = new AbortController();
    void limits.enter(place());
    void queue(limits, served, 'first', place('a', { signal: cancel.signal }));
    void queue(limits, served, 'second', place());
    void queue(limits, served, 'third', place('a', { signal: cancel.signal }));
    cancel.abort();
    await nextIteration();
    await drain(limits, served, 1);
    should(served).eql(['first sent away', 'third sent away', 'second']);
    should(limits.enter(place('a', { signal: cancel.signal }))).equal(false);
  });

  it('leave no timer when everybody who waited for the end of a pause has cancelled', () => {
    const timers = new Set<object>();
    const after = (): (() => void) => {
      const timer = {};
      timers.add(timer);
      return () => timers.delete(timer);
    };
    const limits = new Limits({ now: () => 0, after }, 1, 0);
    const cancels = [new AbortController(), new AbortController()] as const;
    limits.pause(60_000);
    for (const { signal } of cancels) void limits.enter(place('a', { signal }));
    cancels[0].abort();
    should(timers.size).equal(1);
    cancels[1].abort();
    should(timers.size).equal(0);
  });

  it('ignore a signal whose request already had its turn', async () => {
    const limits = new Limits(frozenClock(), 1, 0);
    const served: string[] = [];
    const cancel = new AbortController();
    void limits.enter(place());
    void queue(limits, served, 'first', place('a', { signal: cancel.signal }));
    for (const name of ['second', 'third']) void queue(limits, served, name, place());
    await drain(limits, served, 1);
    cancel.abort();
    await drain(limits, served, 2);
    should(served).eql(['first', 'second', 'third']);
  });

  it('reject everybody who is waiting when closed', async () => {
    const limits = new Limits(frozenClock(), 1, 0);
    const served: string[] = [];
    void limits.enter(place());
    void queue(limits, served, 'send', place());
    void queue(limits, served, 'poll', place('b', { priority: 'poll' }));
    limits.close();
    await nextIteration();
    should(served).eql(['send sent away', 'poll sent away']);
    should(limits.enter(place())).equal(false);
  });

  it('cancel twenty thousand requests that share one signal in linear time', async () => {
    const limits = new Limits(frozenClock(), 1, 0);
    const cancel = new AbortController();
    void limits.enter(place());
    let away = 0;
    const waiting = Array.from({ length: 20_000 }, () =>
      Promise.resolve(limits.enter(place('a', { signal: cancel.signal }))).then((entered) => {
        if (!entered) away++;
      }),
    );
    cancel.abort();
    await Promise.all(waiting);
    should(away).equal(20_000);
  });
});
