import assert from 'node:assert/strict';
import { LeaseWatch, ServerTime, shareOf, type LeaseRow } from '../../../lib/state/postgres-leases';

const leaseFor = 15_000;
const row = (until: string, isOver: boolean, holder = 'another'): LeaseRow => ({
  starts: 0,
  doubt: '0',
  slot: 1,
  holder,
  token: '1',
  seq: '0',
  until,
  isOver,
  isBusy: false,
});

describe("a process's share of the concurrent requests", () => {
  const sharesOf = (most: number, wants: readonly ('much' | 'little' | 'suddenly much')[]): number[] => {
    const processes = wants.length;
    const busy = wants.filter((each) => each === 'much').length;
    return wants.map((each) => shareOf(most, { processes, busy, isKnown: each === 'much' }));
  };

  it('is all of them if there is one process', () => {
    assert.deepEqual(sharesOf(16, ['little']), [16]);
  });

  it('is what the others leave if it alone needs many', () => {
    assert.deepEqual(sharesOf(16, ['much', 'little', 'little']), [14, 1, 1]);
    assert.deepEqual(sharesOf(16, ['much', 'much', 'little']), [7, 7, 1]);
    assert.deepEqual(sharesOf(16, ['much', 'suddenly much', 'little']), [14, 1, 1]);
  });

  it('never exceeds the limit together with the others, and is at least one', () => {
    const wants = ['much', 'little', 'suddenly much'] as const;
    for (let most = 1; most <= 20; most++)
      for (let kinds = 0; kinds < 3 ** 4; kinds++) {
        const shares = sharesOf(
          most,
          [0, 1, 2, 3].map((place) => wants[Math.floor(kinds / 3 ** place) % 3] ?? 'little'),
        );
        const sum = shares.reduce((total, share) => total + share, 0);
        assert.ok(sum <= Math.max(most, shares.length), `${String(most)}: ${String(shares)}`);
        assert.equal(shares.filter((share) => share >= 1).length, 4);
      }
  });
});

describe('a lease', () => {
  let watch: LeaseWatch;
  let now: number;
  beforeEach(() => {
    watch = new LeaseWatch(leaseFor);
    now = 1000;
  });
  /** Checks every second; returns the number of seconds after which a lease counts as expired. */
  const endsAfter = (rowAt: (second: number) => LeaseRow, seconds: number): number | undefined => {
    for (let second = 0; second <= seconds; second++) {
      const { length } = watch.ended([rowAt(second)], now);
      if (length > 0) return second;
      now += 1000;
    }
    return undefined;
  };

  it('expires as soon as it was not renewed in time', () => {
    assert.equal(
      endsAfter((second) => row('a', second > 15), 60),
      16,
    );
  });

  it('does not expire while it is renewed', () => {
    assert.equal(
      endsAfter((second) => row(String(second), false), 100),
      undefined,
    );
  });

  it('expires immediately when it is given up', () => {
    assert.equal(
      endsAfter(() => row('a', true, ''), 5),
      0,
    );
  });

  it('is not declared expired by a process that was out of touch itself: the others have time to renew theirs', () => {
    endsAfter((second) => row(String(second), false), 5);
    now += 60_000;
    assert.equal(
      endsAfter((second) => row(second < 3 ? 'before' : String(second), second < 3), 30),
      undefined,
    );
  });

  it('is declared expired after a while by a process that was out of touch', () => {
    endsAfter((second) => row(String(second), false), 5);
    now += 60_000;
    assert.equal(
      endsAfter(() => row('before', true), 30),
      10,
    );
  });

  it("does not expire when the database's clock was set forward, as long as it is renewed", () => {
    endsAfter((second) => row(String(second), false), 5);
    assert.equal(
      endsAfter((second) => row(second < 2 ? '5' : String(second), second < 2), 30),
      undefined,
    );
  });

  it("expires within 30 seconds even if the database's clock was set back", () => {
    assert.equal(
      endsAfter(() => row('in an hour', false), 60),
      25,
    );
  });
});

describe('the time of the server', () => {
  let monotonic: number;
  let changes: number[];
  let time: ServerTime;
  beforeEach(() => {
    monotonic = 500;
    changes = [];
    time = new ServerTime(() => monotonic);
    time.set(1_000_000);
  });
  /** One pulse per second from a server whose clock differs; a change of its clock is made up for in the group's time. */
  const pulse = (seconds: number, serverAhead: number): void => {
    let added = 0;
    for (let second = 0; second < seconds; second++) {
      monotonic += 1000;
      const by = time.observe(1_000_000 + (monotonic - 500) + serverAhead + added);
      if (by !== 0) changes.push(by);
      added -= by;
    }
  };

  it('reports no change by a server without leases, as after a wrong restore, and the next one that there is', () => {
    time.observe(NaN);
    assert.deepEqual(changes, []);
    pulse(1, 3_600_000);
    assert.deepEqual(changes, [3_600_000]);
  });

  it('advances between pulses', () => {
    assert.equal(time.now(), 1_000_000);
    monotonic += 250;
    assert.equal(time.now(), 1_000_250);
  });

  it('follows a drifting clock, and never runs backwards', () => {
    pulse(1, 40);
    assert.equal(time.now(), 1_001_040);
    const before = time.now();
    pulse(1, 0);
    assert.ok(time.now() > before);
    pulse(10, 0);
    assert.equal(time.now(), 1_012_000);
  });

  for (const hours of [-24 * 365, -1, 1, 24 * 365])
    it(`continues unchanged when the clock is changed by ${hours} hours, and says so once`, () => {
      pulse(5, hours * 3_600_000);
      assert.equal(time.now(), 1_005_000);
      assert.deepEqual(changes, [hours * 3_600_000]);
    });

  it('takes a clock of its own that runs fast for no change of the other', () => {
    for (let second = 0; second < 1000; second++) {
      monotonic += 1000;
      assert.equal(time.observe(1_000_000 + second * 900), 0);
    }
  });

  it('does not stop after a reconnection to a server that is behind', () => {
    pulse(10, 0);
    const before = time.now();
    time.set(500_000);
    monotonic += 1000;
    assert.equal(time.now(), before + 1000);
  });
});
