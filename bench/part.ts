import type { Version } from '../test/support/installation';
import type { Row } from './figures';
import type { BenchRed, Cost } from './red';
import type { Service } from './service';

/** What a part of the bench gets. */
export interface Surroundings {
  readonly service: Service;
  readonly versions: readonly Version[];
  readonly rounds: number;
  /** A count, scaled as the command line asks. */
  readonly scaled: (count: number) => number;
  /** A Node-RED with the flows to be measured, stopped when the part ends. */
  readonly start: (version: Version, options?: StartOptions) => Promise<BenchRed>;
}

export interface StartOptions {
  /** Where its state is, unless in a file. */
  readonly database?: string;
  /** The folder of the sources whose build it runs, unless these. */
  readonly product?: string;
}

/** What of a part can be compared with another commit. */
export interface Compared {
  readonly each: 'text' | 'poll';
  readonly count: number;
  /** Before the first round, in each Node-RED. */
  readonly prepare?: (node: BenchRed) => Promise<unknown>;
  readonly works: Readonly<Record<string, (node: BenchRed) => Promise<Cost>>>;
}

export interface Part {
  readonly name: string;
  readonly title: string;
  /** Long parts use fewer rounds than requested, and noisy ones need more. */
  readonly roundsFor?: (asked: number) => number;
  readonly compared?: (around: Surroundings) => Compared;
  run(around: Surroundings): Promise<readonly Row[]>;
}
