import { randomInt } from 'node:crypto';

/**
 * `npm run test:long`: everything is on. What a file otherwise leaves out has different titles, so that `--rest` finds
 * it.
 */
export const isLong = process.env['ADVISOR_TEXTING_TESTS'] === 'long';

/** The versions of Node-RED that most tests run on; what differs between them is always tested on both. */
export const versions: readonly (4 | 5)[] = isLong ? [4, 5] : [5];

/** How many generated cases of a model run, and what its title says about that. */
export const howOften = (all: number): number => (isLong ? all : Math.ceil(all / 6));
export const andOften = isLong ? ', often' : '';

/** A `describe` of the long run only. */
export const describeInLongRun = (title: string, tests: (this: Mocha.Suite) => void): void => {
  if (isLong) describe(title, tests);
};

/** The same seed in each `npm test`, a fresh one in the long run; its variable reproduces a failed run. */
export const seedFrom = (variable: string): number =>
  Number(process.env[variable] ?? (isLong ? randomInt(2 ** 31) : 1));
