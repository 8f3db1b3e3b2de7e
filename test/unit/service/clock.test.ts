import should from 'should';
import { day, hour, minute } from '../../../lib/durations';
import { atTime } from '../../../lib/service/clock';
import { MovableClock } from '../../../simulator/movable-clock';
import { SettableClock } from '../../support/settable-clock';
import { frozenClock } from '../../support/service/setup';

describe('a movable clock', () => {
  it('runs timers by time, then in the order they were set, each at its own time', async () => {
    const clock = frozenClock();
    const start = clock.now();
    const ran: [string, number][] = [];
    const set = (name: string, ms: number): (() => void) =>
      clock.after(ms, () => ran.push([name, clock.now() - start]));
    set('third', 3000);
    set('first', 1000);
    set('second', 2000);
    set('also second', 2000);
    set('later', 3001);
    set('cancelled', 1500)();
    await clock.move(3000);
    should(ran).eql([
      ['first', 1000],
      ['second', 2000],
      ['also second', 2000],
      ['third', 3000],
    ]);
    should(clock.now() - start).equal(3000);
  });

  it('runs timers that timers set, a day of them in one move', async () => {
    const clock = frozenClock();
    let polls = 0;
    const poll = (): void => {
      polls++;
      clock.after(300_000, poll);
    };
    clock.after(300_000, poll);
    await clock.move(86_400_000);
    should(polls).equal(288);
  });

  it('stands still while work that it triggered is running', async () => {
    const clock = frozenClock();
    const start = clock.now();
    let finishedAt = -1;
    let nextAt = -1;
    clock.after(1000, () => {
      const release = clock.keepStill();
      setTimeout(() => {
        finishedAt = clock.now() - start;
        release();
      }, 30);
    });
    clock.after(2000, () => (nextAt = clock.now() - start));
    await clock.move(5000);
    should([finishedAt, nextAt]).eql([1000, 2000]);
  });

  it('allows one move after another', async () => {
    const clock = frozenClock();
    const start = clock.now();
    await Promise.all([clock.move(1000), clock.move(2000)]);
    should(clock.now() - start).equal(3000);
  });

  it('fires timers by itself on a running base', async () => {
    const clock = new MovableClock(Date.now);
    await new Promise<void>((resolve) => {
      clock.after(5, resolve);
      setTimeout(() => undefined, 1000).unref();
    });
    const before = clock.now();
    await clock.move(3_600_000);
    should(clock.now() - before).be.aboveOrEqual(3_600_000);
  });

  it('fires timers on a running base even if one is early by less than a millisecond', async () => {
    let base = 1000;
    const clock = new MovableClock(() => base);
    let isReached = false;
    const reached = new Promise<void>((resolve) => {
      clock.after(1, () => {
        isReached = true;
        resolve();
      });
    });
    // The system's timer has fired once two timers of a later tick have.
    for (let timers = 0; timers < 3; timers++) await new Promise((resolve) => setTimeout(resolve, 1));
    should(isReached).be.false();
    base += 1;
    await reached;
  });

  it('fires a thousand random timers in order', async () => {
    const clock = frozenClock();
    const seen: number[] = [];
    let seed = 42;
    for (let i = 0; i < 1000; i++) {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      const due = seed % 50;
      const cancel = clock.after(due, () => seen.push(due));
      if (seed % 7 === 0) cancel();
    }
    await clock.move(60);
    should(seen).eql([...seen].sort((a, b) => a - b));
    should(seen.length).be.within(500, 999);
  });
});

describe('a timer for a time of day', () => {
  const start = Date.UTC(2027, 0, 5, 8);

  it('fires at its time, however far away that is', async () => {
    const clock = new SettableClock(start);
    const came: number[] = [];
    atTime(clock, start + 2 * day, () => came.push(clock.now() - start));
    await clock.monotonic.move(3 * day);
    should(came).eql([2 * day]);
  });

  it('fires within a minute when the clock jumps past its time', async () => {
    const clock = new SettableClock(start);
    let came = 0;
    atTime(clock, start + 2 * hour, () => came++);
    clock.jump(3 * hour);
    await clock.monotonic.move(minute);
    should(came).equal(1);
  });

  it('does not fire early when the clock is set back', async () => {
    const clock = new SettableClock(start);
    let came = 0;
    atTime(clock, start + 2 * hour, () => came++);
    await clock.monotonic.move(hour);
    clock.jump(-hour);
    await clock.monotonic.move(2 * hour - 1);
    should(came).equal(0);
    await clock.monotonic.move(1);
    should(came).equal(1);
  });

  it('does not fire once it is cancelled', async () => {
    const clock = new SettableClock(start);
    let came = 0;
    const cancel = atTime(clock, start + 2 * hour, () => came++);
    await clock.monotonic.move(hour);
    cancel();
    await clock.monotonic.move(2 * hour);
    should(came).equal(0);
  });
});
