import fc from 'fast-check';
import 'should';
import {
  lastPoll,
  nextPoll,
  nextPollAgain,
  paceOf,
  recommended,
  shareOf,
  type Pace,
} from '../../lib/consent/schedule';

const allPolls = (pace: Pace, share: number): number[] => {
  const polls: number[] = [];
  for (let next = nextPoll(pace, share, -1); next !== undefined; next = nextPoll(pace, share, next))
    polls.push(next);
  return polls;
};

describe('the poll schedule', () => {
  it('looks at 0, 30, … 300, 600, … 86400 seconds: 298 times in a silent day', () => {
    const polls = allPolls(recommended, 0);
    const quick = Array.from({ length: 11 }, (_, n) => n * 30_000);
    const slow = Array.from({ length: 287 }, (_, n) => 600_000 + n * 300_000);
    polls.should.eql([...quick, ...slow]);
    polls.length.should.equal(298);
    polls.at(-1)?.should.equal(86_400_000);
  });

  it('is late by at most a tenth of the interval, and never early', () => {
    const plain = allPolls(recommended, 0);
    const spread = allPolls(recommended, 0.999);
    spread.length.should.equal(298);
    spread.forEach((at, n) => {
      (at - (plain[n] ?? 0)).should.be.within(1, n <= 10 ? 3000 : 30_000);
    });
  });

  it('leaves out the first look for a number that was looked at already', () => {
    (nextPollAgain(recommended, 0.5, 0) ?? 0).should.equal(31_500);
    (nextPollAgain(recommended, 0.5, 40_000) ?? 0).should.equal(61_500);
  });

  it('ends with a look at the very end, whatever the settings', () => {
    const seconds = { pollEvery: 5, pollFor: 60, thenEvery: 30, giveUpAfter: 12 };
    allPolls(paceOf(seconds), 0).should.eql([0, 5000, 10_000, 12_000]);
    allPolls(paceOf({ ...seconds, giveUpAfter: 100 }), 0)
      .slice(-3)
      .should.eql([60_000, 90_000, 100_000]);
    allPolls(paceOf({ pollEvery: 30, pollFor: 0, thenEvery: 300, giveUpAfter: 600 }), 0).should.eql([
      0, 300_000, 600_000,
    ]);
  });

  it('takes settings that are no numbers as recommended, and none so short that looks chase each other', () => {
    paceOf({ pollEvery: NaN, pollFor: NaN, thenEvery: NaN, giveUpAfter: NaN }).should.eql(recommended);
    paceOf({ pollEvery: 0, pollFor: -5, thenEvery: 0, giveUpAfter: 0 }).should.eql({
      pollEvery: 50,
      pollFor: 0,
      thenEvery: 50,
      giveUpAfter: 50,
    });
  });

  it('holds for every setting: rising, from the start to the end, not closer than said', () => {
    const setting = fc.record({
      pollEvery: fc.integer({ min: 1, max: 400 }),
      pollFor: fc.integer({ min: 0, max: 2000 }),
      thenEvery: fc.integer({ min: 1, max: 900 }),
      giveUpAfter: fc.integer({ min: 1, max: 5000 }),
    });
    fc.assert(
      fc.property(setting, fc.double({ min: 0, max: 0.999, noNaN: true }), (seconds, share) => {
        const pace = paceOf(seconds);
        const polls = allPolls(pace, share);
        const end = lastPoll(pace, share);
        (polls[0] ?? -1).should.be.within(0, Math.max(pace.thenEvery, pace.pollEvery) / 10);
        (polls.at(-1) ?? 0).should.equal(end);
        end.should.be.within(pace.giveUpAfter, pace.giveUpAfter * 1.1);
        polls
          .slice(1)
          .every((at, n) => at > (polls[n] ?? 0))
          .should.be.true();
        const least =
          Math.min(pace.pollEvery, pace.thenEvery) - Math.max(pace.pollEvery, pace.thenEvery) / 10;
        polls
          .slice(1, -1)
          .every((at, n) => at - (polls[n] ?? 0) >= least - 1)
          .should.be.true();
      }),
    );
  });

  it('spreads numbers evenly', () => {
    const tenths = new Array<number>(10).fill(0);
    for (let n = 0; n < 10_000; n++) {
      const tenth = Math.floor(shareOf(`default\n+1202555${String(n).padStart(4, '0')}`) * 10);
      tenths[tenth] = (tenths[tenth] ?? 0) + 1;
    }
    for (const count of tenths) count.should.be.within(850, 1150);
  });
});
