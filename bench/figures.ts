import type { Version } from '../test/support/installation';
import type { Cost } from './red';

export const megabyte = 1_000_000;

export const nameOf = (version: Version): string => `Node-RED ${version === 4 ? '4.1' : '5'}`;

/** Per second of wall time, for runs of so many. */
export const ratesOf = (costs: readonly Cost[], count: number): number[] =>
  costs.map(({ wall }) => (count / wall) * 1000);

/** Microseconds of CPU for each one. */
export const microsOf = (costs: readonly Cost[], count: number): number[] =>
  costs.map(({ cpu }) => (cpu / count) * 1000);

/** A figure of several rounds. */
export interface Figure {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

export const quantile = (values: readonly number[], share: number): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)];
  const above = sorted[Math.ceil(at)];
  if (below === undefined || above === undefined || sorted.some((value) => !Number.isFinite(value))) {
    throw new Error('A round gave no figure, so there is nothing to report.');
  }
  return below + (above - below) * (at - Math.floor(at));
};

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** The median, and how far the rounds deviate to either side. */
export const figureOf = (values: readonly number[]): Figure => ({
  median: median(values),
  low: Math.min(...values),
  high: Math.max(...values),
});

/** The ratio of each round to its neighbour, which ran under the same conditions. */
export const ratioOf = (over: readonly number[], under: readonly number[]): Figure => {
  if (over.length !== under.length) throw new Error('The rounds do not pair up.');
  return figureOf(over.map((value, index) => value / (under[index] ?? Number.NaN)));
};

export interface Goal {
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly below?: number;
  /** What must never happen must not happen in a single round either. */
  readonly everyRound?: true;
}

/** One line of the table. */
export interface Row {
  readonly measurement: string;
  readonly unit: string;
  readonly ours: Figure;
  readonly against?: { readonly what: string; readonly figure: Figure };
  /** A multiple; the goal says in which direction. */
  readonly ratio?: Figure;
  readonly goal?: Goal & { readonly of: 'ours' | 'ratio' };
}

/** Undefined when there is no goal. */
export const isReached = ({ goal, ours, ratio }: Row): boolean | undefined => {
  if (!goal) return undefined;
  const figure = goal.of === 'ours' ? ours : ratio;
  if (!figure) throw new Error('A goal for a ratio needs a ratio.');
  const { low, high } = goal.everyRound ? figure : { low: figure.median, high: figure.median };
  return (
    low >= (goal.atLeast ?? -Infinity) && high <= (goal.atMost ?? Infinity) && high < (goal.below ?? Infinity)
  );
};

/** Runs all sides once per round, in a changing order, so that none always goes first. */
export const interleaved = async <T>(
  rounds: number,
  sides: Readonly<Record<string, (round: number) => Promise<T>>>,
): Promise<Readonly<Record<string, readonly T[]>>> => {
  const names = Object.keys(sides);
  const found: Record<string, T[]> = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = names[(turn + round) % names.length] ?? '';
      const side = sides[name];
      if (side) found[name]?.push(await side(round));
    }
  }
  return found;
};
