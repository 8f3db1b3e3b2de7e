import { randomBytes } from 'node:crypto';

const run = randomBytes(3).toString('hex');
let last = 0;
let count = 0;

/** Unique, and in the order of arrival: by time, then by count within this run. */
export const arrivalId = (now: number): string => {
  // A clock that was set back must not let a later arrival overtake.
  last = Math.max(last, now);
  count += 1;
  return `${last.toString(36).padStart(9, '0')}${count.toString(36).padStart(7, '0')}${run}`;
};
