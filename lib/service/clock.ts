import { minute, nodeCloseTime, second } from '../durations';

/** The one source of time. All code that waits takes a clock, so that tests and the simulator can move it. */
export interface Clock {
  now(): number;
  /** Runs `task` once after `ms`, which may be longer than a single timer can be; the result cancels it. */
  after(ms: number, task: () => void): () => void;
  /** Monotonic milliseconds: setting the clock changes neither durations nor timers. Without it, both follow `now`. */
  elapsed?(): number;
  /** Keeps a movable clock still while work that it triggered, such as a request, is under way; the result releases it. */
  keepStill?(): () => void;
}

/** What a close waits for at most: it must end before the runtime gives up on the node. */
export const closeLimit = nodeCloseTime - 3 * second;

/** `setTimeout` fires at once for a longer delay. */
export const longestTimer = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(ms, task) {
    let timer: NodeJS.Timeout;
    const arm = (left: number): void => {
      const step = Math.min(left, longestTimer);
      timer = setTimeout(() => {
        if (left > step) arm(left - step);
        else task();
      }, step);
    };
    arm(Math.max(0, ms));
    return () => clearTimeout(timer);
  },
};

/** Timers do not count the time for which a machine sleeps, nor do they notice a clock that is set. */
export const longestSleep = minute;

/** Runs `task` once the clock shows `time`, a minute late at most; the result cancels it. */
export const atTime = (clock: Clock, time: number, task: () => void): (() => void) => {
  if (!clock.elapsed) return clock.after(time - clock.now(), task);
  let cancel: () => void;
  const sleep = (): void => {
    const left = Math.max(time - clock.now(), 0);
    cancel = clock.after(Math.min(left, longestSleep), () => {
      if (clock.now() < time) sleep();
      else task();
    });
  };
  sleep();
  return () => cancel();
};

export const elapsedBy = (clock: Pick<Clock, 'now' | 'elapsed'>): number => clock.elapsed?.() ?? clock.now();

/** No work gives this value. */
export const late = Symbol('late');

/** Resolves with `late` when the work takes longer; the work goes on. */
export const within = async <T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | typeof late> => {
  let forget = (): void => undefined;
  const end = new Promise<typeof late>((resolve) => {
    forget = clock.after(ms, () => resolve(late));
  });
  try {
    return await Promise.race([work, end]);
  } finally {
    forget();
  }
};
