import fc from 'fast-check';
import should from 'should';
import { endTimeOf, nextLook, paceOf, recommended, type Pace, type Timing } from '../../../lib/consent/pace';

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
const timing: fc.Arbitrary<Timing> = fc.record({ start: fc.nat({ max: 2 ** 41 }), pace, jitter: share });

/** What a user relies on: every so often for so long, then every so often, and at the end; and how late each may be. */
const promised = ({ pollEvery, pollFor, thenEvery, giveUpAfter }: Pace): { at: number; late: number }[] => {
  const polls: { at: number; late: number }[] = [];
  let at = 0;
  for (; at < giveUpAfter; at += pollEvery) {
    polls.push({ at, late: at === 0 ? 0 : pollEvery / 10 });
    if (at >= pollFor) break;
  }
  const quick = Math.min(at, giveUpAfter);
  for (let slow = quick + thenEvery; slow < giveUpAfter; slow += thenEvery)
    polls.push({ at: slow, late: thenEvery / 10 });
  return [...polls, { at: giveUpAfter, late: (giveUpAfter - (polls.at(-1)?.at ?? 0)) / 10 }];
};

/** A poll that may come after the next one is due takes its place. */
const isPlain = (of: Pace): boolean =>
  promised(of).every(({ at, late }, n, all) => at + late < (all[n + 1]?.at ?? Infinity));

/** The looks of a wait from its start on, each as soon as it is due. */
const looksOf = (of: Timing): number[] => {
  const looks = [of.start];
  for (let now = of.start; now < endTimeOf(of);) looks.push((now = nextLook(of, now)));
  return looks;
};

describe('the pace of a wait', () => {
  it('gives a silent day the looks of the contract', () => {
    for (const jitter of [0, 0.5, 0.999])
      should(looksOf({ start: 1_750_000_000_123, pace: recommended, jitter }).length).equal(298);
  });

  it('has every look in time, none early and none later than a tenth of its interval, for every pace', () => {
    fc.assert(
      fc.property(timing, (of) => {
        fc.pre(isPlain(of.pace));
        const looks = looksOf(of);
        const due = promised(of.pace);
        should(looks.length).equal(due.length);
        due.forEach(({ at, late }, n) => should((looks[n] ?? 0) - of.start - at).be.within(0, late));
      }),
    );
  });

  it('goes on from any time, also before the start: the next look is later, and late by a tenth of an interval at most', () => {
    fc.assert(
      fc.property(timing, fc.integer({ min: -hour, max: 5 * hour }), (of, age) => {
        const now = of.start + hour + age;
        const next = nextLook({ ...of, start: of.start + hour }, now);
        should(next).be.above(now);
        should(next - now).be.belowOrEqual(Math.ceil(1.1 * Math.max(of.pace.pollEvery, of.pace.thenEvery)));
      }),
    );
  });

  it('retries a last look that was not answered after an interval', () => {
    const end = 1e9 + recommended.giveUpAfter;
    const late = end + hour;
    should(nextLook({ start: 1e9, pace: recommended, jitter: 0.5 }, late)).equal(
      late + recommended.thenEvery,
    );
  });

  it('takes settings that are no numbers as recommended, and none so short that polls chase each other', () => {
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
