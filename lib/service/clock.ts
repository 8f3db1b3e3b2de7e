/** The one source of time. Everything that waits takes a clock, so that tests and the simulator can move it. */
export interface Clock {
  now(): number;
  /** Runs `task` once, `ms` from now (any length, also beyond what a single timer can hold); returns its cancel. */
  after(ms: number, task: () => void): () => void;
}

/** A longer delay makes setTimeout fire at once. */
const longestTimer = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
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
    return () => {
      clearTimeout(timer);
    };
  },
};
