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

/** A test of the long run only. */
export const itInLongRun = (title: string, test: Mocha.Func | Mocha.AsyncFunc): void => {
  if (isLong) it(title, test);
};

/** The same in each `npm test`, another for each commit in the long run; `TEST_SEED` reproduces a failed run. */
export const seed = Number(process.env['TEST_SEED'] ?? 1);
