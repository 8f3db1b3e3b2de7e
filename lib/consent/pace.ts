import { day, minute, second } from '../durations';

/** How often a wait looks, and for how long; whole milliseconds. */
export interface Pace {
  readonly pollEvery: number;
  readonly pollFor: number;
  readonly thenEvery: number;
  readonly giveUpAfter: number;
}

/** The pace that the contract recommends (*Limits*): every 30 seconds for 5 minutes, then every 5 minutes, for a day. */
export const recommended: Pace = {
  pollEvery: 30 * second,
  pollFor: 5 * minute,
  thenEvery: 5 * minute,
  giveUpAfter: day,
};

/** Milliseconds: a shorter interval would be over before its look is answered. */
const shortest = 50;
/** The latest time that fits into the six bytes of a key. */
const latestTime = 2 ** 48 - 1;

/** From seconds, which may be fractions. What is not a number falls back to the recommended value. */
export const paceOf = (seconds: Readonly<Record<keyof Pace, number>>): Pace => {
  const ms = (name: keyof Pace, least: number): number =>
    Number.isFinite(seconds[name])
      ? Math.min(Math.max(Math.round(seconds[name] * second), least), latestTime)
      : recommended[name];
  return {
    pollEvery: ms('pollEvery', shortest),
    pollFor: ms('pollFor', 0),
    thenEvery: ms('thenEvery', shortest),
    giveUpAfter: ms('giveUpAfter', shortest),
  };
};

/** What decides when a wait looks; `jitter` (0 to 1) is its number's part of the allowed lateness. */
export interface Timing {
  readonly start: number;
  readonly pace: Pace;
  readonly jitter: number;
}

/** Every look except the first may be up to a tenth of its interval late; none is early. */
const allowed = 10;

/** Spreads the looks of waits that start together. A part of the allowed lateness, a second at most, is left for reading. */
const spreadOf = (interval: number, jitter: number): number =>
  Math.floor((interval / allowed - Math.min(interval / (2 * allowed), second)) * jitter);

/** The offset from the start of the last look of `pollEvery`. */
const quickEnd = ({ pollEvery, pollFor }: Pace): number => Math.ceil(pollFor / pollEvery) * pollEvery;

const isSlowAt = (pace: Pace, offset: number): boolean => offset > quickEnd(pace);

/** The interval of the looks at this age. */
export const intervalAt = (pace: Pace, age: number): number =>
  isSlowAt(pace, age) ? pace.thenEvery : pace.pollEvery;

/** The time from the last look but one to the last. */
const lastStep = (pace: Pace): number => {
  const { giveUpAfter } = pace;
  const interval = intervalAt(pace, giveUpAfter);
  const left = giveUpAfter - (isSlowAt(pace, giveUpAfter) ? quickEnd(pace) : 0);
  return left - (Math.ceil(left / interval) - 1) * interval;
};

export const endTimeOf = ({ start, pace }: Pick<Timing, 'start' | 'pace'>): number =>
  start + pace.giveUpAfter;

/** When the last look is due, which decides the wait. */
const lastLookOf = (timing: Timing): number =>
  endTimeOf(timing) + spreadOf(lastStep(timing.pace), timing.jitter);

/** The first look later than `now`. A last look that was not answered is retried. */
export const nextLook = (timing: Timing, now: number): number => {
  const { start, pace, jitter } = timing;
  const after = (interval: number, from: number): number => {
    const passed = now - start - spreadOf(interval, jitter) - from;
    return from + Math.max(Math.floor(passed / interval) + 1, 1) * interval;
  };
  const due = (): number => {
    // The clock was set back: looks go on.
    if (now < start) return now + Math.max(pace.pollEvery, pace.thenEvery);
    const last = lastLookOf(timing);
    if (now >= last) return now + intervalAt(pace, pace.giveUpAfter);
    const quick = after(pace.pollEvery, 0);
    const isSlow = isSlowAt(pace, quick);
    const interval = isSlow ? pace.thenEvery : pace.pollEvery;
    const offset = isSlow ? after(interval, quickEnd(pace)) : quick;
    return offset >= pace.giveUpAfter ? last : start + offset + spreadOf(interval, jitter);
  };
  // The time in a key is whole: a fraction would come early.
  return Math.min(Math.ceil(due()), latestTime);
};
