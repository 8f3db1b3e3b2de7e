import { randomInt } from 'node:crypto';

/** `npm run test:long`: everything is on. What a file leaves out otherwise has other titles, so that `--rest` finds it. */
export const isLong = process.env['ADVISOR_TEXTING_TESTS'] === 'long';

/** The versions of Node-RED that most tests run on: what differs between them is tried on both everywhere. */
export const versions: readonly (4 | 5)[] = isLong ? [4, 5] : [5];

/** A `describe` of the long run alone. */
export const describeInLongRun = (title: string, tests: (this: Mocha.Suite) => void): void => {
  if (isLong) describe(title, tests);
};

/** The same seed in each `npm test`, a fresh one in the long run; a run that failed is repeated by its variable. */
export const seedFrom = (variable: string): number =>
  Number(process.env[variable] ?? (isLong ? randomInt(2 ** 31) : 1));
