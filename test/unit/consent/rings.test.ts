import fc from 'fast-check';
import should from 'should';
import { decidePoll } from '../../../lib/consent/poll-decision';
import {
  adjusted,
  endTimeOf,
  lastPollOf,
  nextPoll,
  paceOf,
  placeOn,
  recommended,
  spreadOf,
  tickOf,
  type Pace,
  type Place,
  type Timing,
} from '../../../lib/consent/rings';

const second = 1000;
const hour = 3600 * second;

const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const pace: fc.Arbitrary<Pace> = fc
  .record({
    pollEvery: fc.integer({ min: 1, max: 120 }),
    pollFor: fc.integer({ min: 0, max: 900 }),
    thenEvery: fc.integer({ min: 1, max: 900 }),
    giveUpAfter: fc.integer({ min: 1, max: 4000 }),
  })
  .map(paceOf);
const timing: fc.Arbitrary<Timing> = fc.record({ start: fc.nat({ max: 2 ** 41 }), pace, share });

/** What the docs promise: every so often for so long, then every so often, and at the end; and how late each may be. */
const promised = ({ pollEvery, pollFor, thenEvery, giveUpAfter }: Pace): { at: number; late: number }[] => {
  const polls: { at: number; late: number }[] = [];
  let at = 0;
  for (; at < giveUpAfter; at += pollEvery) {
    polls.push({ at, late: at === 0 ? 0 : pollEvery / 10 });
    if (at >= pollFor) break;
  }
  const quick = Math.min(at, giveUpAfter);
  for (let slow = thenEvery; slow < giveUpAfter; slow += thenEvery) {
    if (slow > quick) polls.push({ at: slow, late: thenEvery / 10 });
  }
  return [...polls, { at: giveUpAfter, late: (giveUpAfter - (polls.at(-1)?.at ?? 0)) / 10 }];
};

/** A poll that may come after the next one is due replaces it. */
const isPlain = (of: Pace): boolean =>
  promised(of).every(({ at, late }, n, all) => at + late < (all[n + 1]?.at ?? Infinity));

interface Rider extends Timing {
  place: Place;
  readonly polls: number[];
  ended: number | undefined;
}

/**
 * Rings as they are read, with arrays for lists: every `step` up to `rate` entries are taken. Returns when each was
 * polled.
 */
class Model {
  private readonly cursors = new Map<number, number>();
  /** By interval, which of those at the exact place of the cursor were already taken. */
  private readonly taken = new Map<number, Set<Rider>>();
  now: number;

  constructor(
    readonly riders: Rider[],
    now: number,
  ) {
    this.now = now;
  }

  private intervalOf({ place, pace: of }: Rider): number {
    return place === 'first' ? of.pollEvery : of.thenEvery;
  }

  /** As after a start. */
  forget(): void {
    this.cursors.clear();
    this.taken.clear();
  }

  begin(interval: number): void {
    if (!this.cursors.has(interval)) this.cursors.set(interval, this.now);
  }

  read(rate: number): void {
    let left = rate;
    for (const rider of this.riders)
      if (rider.place === 'new' && rider.start < this.now && left > 0)
        left -= this.visit(rider, rider.start) ? 1 : 0;
    const intervals = new Set(this.riders.flatMap(({ pace: of }) => [of.pollEvery, of.thenEvery]));
    for (const interval of intervals) {
      this.begin(interval);
      let cursor = adjusted(this.cursors.get(interval) ?? this.now, this.now, interval);
      const from = cursor;
      const upTo = this.now;
      const taken = this.taken.get(interval);
      this.taken.delete(interval);
      const due = this.riders
        .filter((each) => each.place !== 'new' && each.place !== 'end' && each.ended === undefined)
        .filter((each) => this.intervalOf(each) === interval)
        .map((rider) => ({ rider, at: cursor + mod(placeOn(interval, rider) - cursor, interval) }))
        .filter(({ at, rider }) => at < upTo && !(at === from && taken?.has(rider)))
        .sort((one, other) => one.at - other.at);
      let isAll = true;
      for (const { rider, at } of due) {
        if (left === 0) {
          cursor = at;
          isAll = false;
          const before = due.slice(
            0,
            due.findIndex((each) => each.rider === rider),
          );
          const beside = before.filter((each) => each.at === at).map((each) => each.rider);
          this.taken.set(interval, new Set([...(at === from ? (taken ?? []) : []), ...beside]));
          break;
        }
        left -= this.visit(rider, at) ? 1 : 0;
      }
      this.cursors.set(interval, isAll ? upTo : cursor);
    }
    for (const rider of this.riders) {
      const isDue = rider.place === 'end' && rider.ended === undefined && lastPollOf(rider) < this.now;
      if (isDue && left > 0) left -= this.visit(rider, lastPollOf(rider)) ? 1 : 0;
    }
  }

  /** From one poll to the next, until all have ended. */
  run(): void {
    for (let left = this.riders; left.length > 0; left = left.filter(({ ended }) => ended === undefined)) {
      this.now = Math.min(...left.map((each) => nextPoll(each, this.now - 1))) + 1;
      this.read(Infinity);
    }
  }

  private visit(rider: Rider, due: number): boolean {
    const { place: at, start, pace: of, share: part } = rider;
    const alone = { olderStart: undefined, isYoungest: true };
    const { isPolled, isLast, to } = decidePoll({
      place: at,
      due,
      now: this.now,
      start,
      pace: of,
      share: part,
      ...alone,
    });
    rider.place = to;
    if (!isPolled) return false;
    rider.polls.push(this.now);
    if (isLast) rider.ended = this.now;
    return true;
  }
}

const mod = (value: number, by: number): number => ((value % by) + by) % by;
const riderOf = (of: Timing): Rider => ({ ...of, place: 'new', polls: [], ended: undefined });

describe('rings', () => {
  it('give a silent day the polls of the contract', () => {
    const polls = promised(recommended);
    should(polls.length).equal(298);
    for (const part of [0, 0.5, 0.999]) {
      const of = { start: 1_750_000_000_123, pace: recommended, share: part };
      let now = of.start - 1;
      for (const { at, late } of polls) {
        now = nextPoll(of, now);
        should(now - of.start - at).be.within(0, late);
      }
    }
  });

  it('have a tick of a twentieth of the interval, from 50 ms to a second', () => {
    should([50, 1000, 5000, 30_000, 300_000].map(tickOf)).eql([50, 50, 250, 1000, 1000]);
  });

  it('use one tick of the tenth that a poll may be late', () => {
    fc.assert(
      fc.property(fc.integer({ min: 50, max: 10 * hour }), share, (interval, part) => {
        const spread = spreadOf(interval, part);
        should(spread).be.within(0, Math.max(interval / 10 - tickOf(interval), 0));
      }),
    );
  });

  it('keep a wait at the same phase of every interval', () => {
    fc.assert(
      fc.property(timing, fc.integer({ min: 50, max: hour }), fc.nat({ max: 100 }), (of, interval, turns) => {
        const due = of.start + spreadOf(interval, of.share) + turns * interval;
        should(due % interval).equal(placeOn(interval, of));
      }),
    );
  });

  it('show the next poll correctly, for every pace', () => {
    fc.assert(
      fc.property(timing, (of) => {
        fc.pre(isPlain(of.pace));
        let now = of.start - 1;
        for (const { at, late } of promised(of.pace)) {
          now = nextPoll(of, now);
          should(now - of.start - at).be.within(0, late);
        }
        should(now).equal(lastPollOf(of));
      }),
    );
  });

  it('poll every wait at its own pace, none early and none late, while the service keeps up', () => {
    fc.assert(
      fc.property(fc.array(timing, { minLength: 1, maxLength: 8 }), (all) => {
        const begin = 2 ** 41;
        fc.pre(all.every(({ pace: of }) => isPlain(of)));
        const riders = all.map((of) => riderOf({ ...of, start: begin + (of.start % 1000) }));
        const model = new Model(riders, begin - 1);
        model.read(Infinity);
        model.run();
        for (const { polls, start, pace: of } of riders) {
          should(polls.length).equal(promised(of).length);
          promised(of).forEach(({ at, late }, n) => {
            should((polls[n] ?? 0) - start - at).be.within(0, late + 1);
          });
        }
      }),
      { numRuns: 100 },
    );
  });

  it('starve nobody if the service handles half of what is due, and poll all in turn', () => {
    fc.assert(
      fc.property(fc.array(share, { minLength: 8, maxLength: 40 }), (shares) => {
        const of: Pace = { pollEvery: 10_000, pollFor: 0, thenEvery: 10_000, giveUpAfter: 24 * hour };
        const riders = shares.map((part, n) => riderOf({ start: 1e9 + n * 37, pace: of, share: part }));
        const model = new Model(riders, 1e9);
        const reads = 1000;
        let credit = 0;
        for (let n = 0; n < reads; n++) {
          credit += riders.length / 2 / 20;
          model.read(Math.floor(credit));
          credit -= Math.floor(credit);
          model.now += 500;
        }
        const turns = (reads * 500) / 20_000;
        for (const { polls } of riders) should(polls.length).be.within(turns - 3, turns + 3);
      }),
      { numRuns: 50, examples: [[[0.222, 0, 0, 0, 0, 0, 0, 0, 0]]] },
    );
  });

  it('continue after pauses and clock jumps: each wait once within an interval, and no more often than before', () => {
    const jumps = fc.array(
      fc.record({
        kind: fc.constantFrom('pause' as const, 'jump' as const, 'restart' as const),
        ms: fc.oneof(
          fc.integer({ min: -20 * hour, max: 20 * hour }),
          fc.integer({ min: -5 * 365 * 24 * hour, max: 5 * 365 * 24 * hour }),
        ),
      }),
      { minLength: 1, maxLength: 5 },
    );
    fc.assert(
      fc.property(jumps, fc.array(share, { minLength: 1, maxLength: 10 }), (all, shares) => {
        const of: Pace = { pollEvery: 10_000, pollFor: 60_000, thenEvery: 30_000, giveUpAfter: 1e14 };
        const riders = shares.map((part, n) => riderOf({ start: 2 ** 42 + n * 777, pace: of, share: part }));
        const model = new Model(riders, 2 ** 42);
        const pass = (ms: number): void => {
          for (const until = model.now + ms; model.now < until; model.now += 500) model.read(Infinity);
        };
        pass(100_000);
        for (const { kind, ms } of all) {
          if (kind === 'restart') model.forget();
          model.now += kind === 'jump' ? ms : Math.abs(ms);
          for (const { polls } of riders) polls.length = 0;
          pass(61_000);
          for (const { polls } of riders) should(polls.length).be.within(1, 4);
        }
      }),
      { numRuns: 100 },
    );
  });

  describe('and waits for one number', () => {
    const at = { start: 1_000_000, share: 0, pace: recommended };
    const visit = (offset: number, more: { olderStart?: number; isYoungest?: boolean } = {}): boolean =>
      decidePoll({
        ...at,
        place: offset > 300_000 ? 'then' : offset === 0 ? 'new' : 'first',
        due: at.start + offset,
        now: at.start + offset + 1,
        olderStart: undefined,
        isYoungest: true,
        ...more,
      }).isPolled;

    it('leave the poll at the start to an older one, and all others to the youngest', () => {
      should(visit(0)).be.true();
      should(visit(0, { isYoungest: false })).be.true();
      should(visit(0, { olderStart: 1000 })).be.false();
      should(visit(30_000, { olderStart: 990_000 })).be.true();
      should(visit(60_000, { isYoungest: false })).be.false();
      should(visit(600_000, { isYoungest: false })).be.false();
    });

    it('let one in each interval keep its second poll, while others keep joining', () => {
      should(visit(30_000, { isYoungest: false, olderStart: 985_000 })).be.true();
      should(visit(30_000, { isYoungest: false, olderStart: 995_000 })).be.false();
    });

    it('are each polled past their end', () => {
      should(visit(recommended.giveUpAfter, { isYoungest: false, olderStart: 1 })).be.true();
    });
  });

  it('end no wait early, wherever it is', () => {
    const places = fc.constantFrom<Place>('new', 'first', 'then', 'end');
    fc.assert(
      fc.property(timing, places, fc.integer({ min: -hour, max: 5 * hour }), (of, place, age) => {
        const now = of.start + age;
        const { isLast } = decidePoll({ ...of, place, due: now, now, olderStart: 1, isYoungest: false });
        should(isLast).equal(now >= endTimeOf(of));
        should(lastPollOf(of)).be.aboveOrEqual(endTimeOf(of));
      }),
    );
  });

  it('replace invalid settings by the recommended ones, and allow none so short that polls overlap', () => {
    should(paceOf({ pollEvery: NaN, pollFor: NaN, thenEvery: NaN, giveUpAfter: NaN })).eql(recommended);
    should(paceOf({ pollEvery: 0, pollFor: -1, thenEvery: 0.0001, giveUpAfter: 0 })).eql({
      pollEvery: 50,
      pollFor: 0,
      thenEvery: 50,
      giveUpAfter: 50,
    });
    should(paceOf({ pollEvery: 0.12345, pollFor: 1, thenEvery: 1e300, giveUpAfter: 1 }).pollEvery).equal(123);
  });
});
