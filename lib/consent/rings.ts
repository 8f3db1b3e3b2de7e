import { day, minute, second } from '../durations';

/** How often a wait is polled, and for how long; whole milliseconds. */
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

/** Milliseconds: a shorter interval would be over before its poll is answered. */
const shortest = 50;
/** Milliseconds between two readings of the same keys, at least. */
const shortestTick = 50;
/** The latest time that fits into the six bytes of a key. */
const latestTime = 2 ** 48 - 1;

/**
 * A pace from settings in seconds, which may be fractions. A setting that is not a number becomes the recommended one.
 */
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

/**
 * Where a wait lies: among the new ones, which are polled at once, on the ring of `pollEvery`, on that of `thenEvery`, or
 * in the list by end time.
 */
export type Place = 'new' | 'first' | 'then' | 'end';

/** What decides when a wait is polled; `share` (0 to 1) is its number's part of the allowed lateness. */
export interface Timing {
  readonly start: number;
  readonly pace: Pace;
  readonly share: number;
}

/** A poll but the first may come up to a tenth of its interval late, and never early. */
const allowed = 10;

/** A ring is read at most this often. */
export const tickOf = (interval: number): number => Math.min(Math.max(interval / 20, shortestTick), second);

/** Spreads the polls of waits that begin together. A tick of the allowed lateness is left for reading the ring. */
export const spreadOf = (interval: number, share: number, tick = tickOf(interval)): number =>
  Math.floor(Math.max(interval / allowed - tick, 0) * share);

/** On the ring of `interval`, a wait is due whenever the time modulo the interval is this. */
export const placeOn = (interval: number, { start, share }: Timing): number =>
  (start + spreadOf(interval, share)) % interval;

/** The offset from the start of the poll that moves a wait to the ring of `thenEvery`. */
export const quickEnd = ({ pollEvery, pollFor }: Pace): number => Math.ceil(pollFor / pollEvery) * pollEvery;

/** The interval of the ring on which a wait is when it ends. */
export const lastInterval = (pace: Pace): number =>
  quickEnd(pace) < pace.giveUpAfter ? pace.thenEvery : pace.pollEvery;

/** The time from the last poll but one to the last. */
const lastStep = (pace: Pace): number => {
  const { giveUpAfter } = pace;
  const quick = quickEnd(pace);
  const interval = lastInterval(pace);
  const before = (Math.ceil(giveUpAfter / interval) - 1) * interval;
  return giveUpAfter - (quick < giveUpAfter ? Math.max(before, quick) : before);
};

/** The lists by time, of new waits and of ends, are read more often than any ring: they are short. */
export const listTick = shortestTick;

export const endTimeOf = ({ start, pace }: Pick<Timing, 'start' | 'pace'>): number =>
  start + pace.giveUpAfter;

/** When the last poll is due, which decides the wait. */
export const lastPollOf = (timing: Timing): number =>
  Math.min(endTimeOf(timing) + spreadOf(lastStep(timing.pace), timing.share, listTick), latestTime);

/** The first poll later than `now`, for display: nothing is scheduled by it. */
export const nextPoll = (timing: Timing, now: number): number => {
  const { start, pace, share } = timing;
  if (now < start) return start;
  const after = (interval: number, least: number): number => {
    const spread = spreadOf(interval, share);
    const turn = Math.max(Math.floor((now - start - spread) / interval) + 1, Math.ceil(least / interval));
    return turn * interval;
  };
  const quick = after(pace.pollEvery, 1);
  const isQuick = quick <= quickEnd(pace) || pace.pollEvery === pace.thenEvery;
  const interval = isQuick ? pace.pollEvery : pace.thenEvery;
  const offset = isQuick ? quick : after(interval, quickEnd(pace) + 1);
  if (offset >= pace.giveUpAfter) return Math.max(lastPollOf(timing), now);
  return start + offset + spreadOf(interval, share);
};

/**
 * Everything due before the cursor has been visited. A cursor that is more than a turn behind is moved forward by whole
 * turns: so each wait is visited once a turn, however long a turn takes, and none is passed over. A cursor in the
 * future means the clock was set back.
 */
export const adjusted = (cursor: number, now: number, interval: number): number => {
  if (cursor > now) return now;
  const behind = now - cursor;
  return behind > interval ? cursor + Math.floor(behind / interval) * interval : cursor;
};
