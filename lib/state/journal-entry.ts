import type { Draft } from '../draft';
import type { Shared } from './journal-ends';
import * as records from './journal-records';
import type { JobRecord, JournalRecord, LogRecord } from './journal-records';
import type { Write } from './store';

/** The steps of one job's recipients. Each promise resolves when the step is on disk. */
export interface JournalEntry<O> {
  /** Before the request leaves. */
  begin(index: number): Promise<void>;
  /** What has begun was certainly not carried out: it may begin again. */
  undo(index: number): Promise<void>;
  /** Before the outcome is told. */
  outcome(index: number, outcome: O): Promise<void>;
  /** It has left the node. */
  told(index: number): void;
}

/** What an entry asks of its journal. */
interface Keeper<R, O> {
  onDisk(entry: Entry<R, O>): Promise<void>;
  share(entry: Entry<R, O>, outcome: O): Promise<void>;
  told(entry: Entry<R, O>): void;
}

/** What the records of a job come to. */
interface Place {
  readonly key: string;
  readonly count: number;
  /** How many are still to be told. */
  readonly open: number;
  /** How many log records and told records there are. */
  readonly logs: number;
  readonly tolds: number;
  readonly shared: readonly Shared[];
}

/** One job on record, with what is not yet written of it. */
export class Entry<R, O> implements JournalEntry<O> {
  readonly key: string;
  readonly #keeper: Keeper<R, O>;
  readonly #count: number;
  #open: number;
  #logs: number;
  #tolds: number;
  shared: readonly Shared[];
  #job: Draft<JobRecord<R>> | undefined;
  /** It has one recipient, which began as the job was accepted; so its outcome may go to a record of ends. */
  #sharesEnd = false;
  #begun: number[] = [];
  #undone: number[] = [];
  #outcomes: (readonly [number, O])[] = [];
  #told: number[] = [];

  /** `job` is its own record, where that is still to be written. */
  constructor(keeper: Keeper<R, O>, { key, count, open, logs, tolds, shared }: Place, job?: JobRecord<R>) {
    this.#keeper = keeper;
    this.key = key;
    this.#count = count;
    this.#open = open;
    this.#logs = logs;
    this.#tolds = tolds;
    this.shared = shared;
    this.#job = job;
  }

  get isOver(): boolean {
    return this.#open === 0;
  }

  /** Every record of it. */
  get keys(): string[] {
    return records.keysOf(this.key, this.#count, this.#logs, this.#tolds);
  }

  begin(index: number): Promise<void> {
    this.#begun.push(index);
    this.#sharesEnd = this.#job !== undefined && this.#count === 1;
    return this.#keeper.onDisk(this);
  }

  undo(index: number): Promise<void> {
    this.#undone.push(index);
    return this.#keeper.onDisk(this);
  }

  outcome(index: number, outcome: O): Promise<void> {
    if (this.#sharesEnd) return this.#keeper.share(this, outcome);
    this.#outcomes.push([index, outcome]);
    return this.#keeper.onDisk(this);
  }

  told(index: number): void {
    this.#open -= 1;
    this.#told.push(index);
    this.#keeper.told(this);
  }

  /** What happened since the last time. */
  takeSteps(into: Write<JournalRecord<R, O>>[]): void {
    if (this.#job) {
      this.#job.begun = this.#begun;
      into.push({ put: records.jobKey(this.key), value: this.#job });
      this.#job = undefined;
      this.#begun = [];
    }
    const log: Draft<LogRecord<O>> = {};
    if (this.#begun.length > 0) log.begun = this.#begun;
    if (this.#undone.length > 0) log.undone = this.#undone;
    if (this.#outcomes.length > 0) log.outcomes = this.#outcomes;
    if (!(log.begun ?? log.undone ?? log.outcomes)) return;
    into.push({ put: records.logKey(this.key, this.#logs++), value: log });
    this.#begun = [];
    this.#undone = [];
    this.#outcomes = [];
  }

  takeTold(): Write<JournalRecord<R, O>> {
    const told = this.#told;
    this.#told = [];
    return { put: records.toldKey(this.key, this.#tolds++), value: { told } };
  }
}
