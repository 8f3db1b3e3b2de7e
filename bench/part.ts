import type { Version } from '../test/support/installation';
import type { Row } from './figures';
import type { BenchRed } from './red';
import type { Service } from './service';

/** What a part of the bench is given. */
export interface Surroundings {
  readonly service: Service;
  readonly versions: readonly Version[];
  readonly rounds: number;
  /** A count, made smaller or larger as the command line asks. */
  readonly scaled: (count: number) => number;
  /** A Node-RED with the flows to be measured, ended when the part ends; with `database`, its state is there. */
  readonly start: (version: Version, database?: string) => Promise<BenchRed>;
}

export interface Part {
  readonly name: string;
  readonly title: string;
  /** Long parts make do with fewer rounds than were asked for, and unsteady ones need more. */
  readonly roundsFor?: (asked: number) => number;
  run(around: Surroundings): Promise<readonly Row[]>;
}
