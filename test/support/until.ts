import { setTimeout as pause } from 'node:timers/promises';
import { nextIteration } from './event-loop';

/** Milliseconds, below mocha's own limit, so that a failure names what was waited for. */
const patience = 110_000;
/** Most things happen within a few iterations of the event loop; for others it yields the processor. */
const busyTurns = 200;

/** Resolves with the result of `look`, once that is neither undefined nor false. */
export const until = async <T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
  what = 'What was waited for',
): Promise<T> => {
  const end = performance.now() + patience;
  for (let turn = 0; ; turn++) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`${what} did not come.`);
    await (turn < busyTurns ? nextIteration() : pause(10));
  }
};
