import { endTimeOf, quickEnd, spreadOf, type Place, type Timing } from './rings';

/** A wait that the cursor of a ring has come to. */
export interface DueWait extends Timing {
  readonly place: Place;
  /** The time on the ring at which the cursor met the wait. */
  readonly due: number;
  readonly now: number;
  readonly isYoungest: boolean;
  /** When the next older wait for the same number began; undefined when there is none, or `needsOlder` is false. */
  readonly olderStart?: number | undefined;
}

/** What becomes of it. */
export interface PollDecision {
  readonly isPolled: boolean;
  /** The end of the wait has passed: this poll decides. */
  readonly isLast: boolean;
  /** The place of the wait from now on. */
  readonly to: Place;
}

const destination = ({ place, pace }: DueWait, offset: number): Place => {
  const { pollEvery, pollFor, thenEvery, giveUpAfter } = pace;
  const isSlow = place === 'then' || (offset >= pollFor && thenEvery !== pollEvery);
  const interval = isSlow ? thenEvery : pollEvery;
  const next = (Math.floor(offset / interval) + 1) * interval;
  if (next >= giveUpAfter) return 'end';
  return isSlow ? 'then' : 'first';
};

/**
 * Waits for one number share polls, at the pace of the youngest. A wait that joins an older one is not polled at its
 * own start. If waits keep joining, each would leave its poll to the next; so the first wait that began in an interval
 * keeps its second poll.
 */
const isItsTurn = ({ place, start, pace, olderStart, isYoungest }: DueWait, offset: number): boolean => {
  const { pollEvery, thenEvery } = pace;
  if (place === 'then') {
    // This poll has been made: it moved the wait to this ring.
    const quick = quickEnd(pace);
    if (offset <= quick && offset > quick - thenEvery) return false;
  } else {
    // The poll at the start was made when the wait was new.
    if (offset === 0) return false;
    if (offset === pollEvery && olderStart !== undefined) {
      const isFirstInInterval = Math.floor(olderStart / pollEvery) < Math.floor(start / pollEvery);
      if (isFirstInInterval) return true;
    }
  }
  return isYoungest;
};

const offsetOf = ({ place, due, start, pace, share }: DueWait): number =>
  due - start - spreadOf(place === 'first' ? pace.pollEvery : pace.thenEvery, share);

/** Whether `decidePoll` needs to know of an older wait. */
export const needsOlder = (visit: DueWait): boolean =>
  visit.place === 'new' || (visit.place === 'first' && offsetOf(visit) === visit.pace.pollEvery);

/** What to do with a wait that the cursor has come to. */
export const decidePoll = (visit: DueWait): PollDecision => {
  const { place, now, start, olderStart } = visit;
  const isLast = now >= endTimeOf(visit);
  if (place === 'end') return { isPolled: isLast, isLast, to: 'end' };
  if (place === 'new') {
    const to = destination(visit, Math.max(now - start, 0));
    return { isPolled: isLast || olderStart === undefined, isLast, to };
  }
  // The offset is below zero only after the clock was set back: polls go on as for a young wait.
  const offset = offsetOf(visit);
  return {
    isPolled: isLast || isItsTurn(visit, offset),
    isLast,
    to: offset < 0 ? place : destination(visit, offset),
  };
};
