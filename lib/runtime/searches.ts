import { setImmediate as nextTick } from 'node:timers/promises';
import type { Outcome } from '../outbox/outcome';
import { closeLimit, systemClock } from '../service/clock';
import { wokenBy } from '../service/concurrency';
import { serviceError, type Problem } from '../service/errors';
import { Tally, type Job } from './delivery';
import type { Tools } from './flow-node';
import type { Message } from './red';
import { progressLook, searchLook } from './status';

export interface Portion {
  readonly outcomes: readonly Outcome[];
  /** The number of all outcomes, if the first portion tells it. */
  readonly count?: number | undefined;
  readonly read: number;
  readonly total: number | undefined;
  /** The number of results among the records read. */
  readonly found: number;
  /** What `msg.summary` says beside the outcomes, so far. */
  readonly more?: Readonly<Record<string, number>>;
}

/** Reads what a message asks for; the result searches for it. A throw of either fails the message. */
export type PrepareSearch = (msg: Message) => Promise<(stream: Stream) => Promise<void>>;

export class Stream {
  constructor(
    private readonly tools: Tools,
    readonly job: Job,
    /** Aborted when nothing new may start. */
    readonly stopped: AbortSignal,
    /** Aborted when requests in flight must be given up too. */
    readonly givenUp: AbortSignal,
  ) {}

  show(result: Parameters<typeof searchLook>[1], count = 0): void {
    const { status, words, clock } = this.tools;
    const at = clock.now();
    status.show(() => searchLook(words, result, count, at, clock.now()));
  }

  /**
   * Emits what is found as one sequence. The last outcome carries the summary, so one is held back: of those that are
   * counted the last, else always.
   */
  async emitAll(portions: AsyncIterable<Portion> | Iterable<Portion>): Promise<void> {
    const { job, stopped, tools } = this;
    job.asList(undefined, { shared: 'payload' });
    const tally = new Tally(tools.outputs);
    // Properties, because Node 24.21 loses assignments to a variable that a closure also assigns, once both are optimized.
    const sequence: { held?: Outcome | undefined; count?: number; last?: Portion } = {};
    const release = (isLast = false): void => {
      const { held } = sequence;
      sequence.held = undefined;
      if (held) tally.add(held);
      const summary = isLast ? { ...tally.summary, ...sequence.last?.more } : undefined;
      if (held) job.emit(tally.total - 1, held, { summary });
      else if (summary) job.conclude(summary);
    };
    try {
      for await (const portion of portions) {
        if (stopped.aborted) break;
        const { outcomes, count, read, total } = (sequence.last = portion);
        if (count !== undefined && sequence.count === undefined) {
          sequence.count = count;
          job.setCount(count);
        }
        for (const outcome of outcomes) {
          release();
          sequence.held = outcome;
          if (sequence.count !== undefined && tally.total + 1 < sequence.count) release();
        }
        tools.status.show(() => progressLook(tools.words, read, total));
        await nextTick();
      }
    } catch (thrown) {
      release();
      if (!stopped.aborted) {
        job.tally = tally;
        throw thrown;
      }
    }
    // A search that a close interrupts settles nothing.
    if (tools.closed.aborted) return;
    if (stopped.aborted) {
      release(true);
      this.show('stopped');
    } else {
      if (sequence.count === undefined) job.setCount(tally.total + (sequence.held ? 1 : 0));
      release(true);
      this.show('found', sequence.last?.found);
    }
    job.settle();
  }
}

/** The searches of a node, whose results are not items. */
export class Searches {
  private halt = new AbortController();
  private readonly cut = new AbortController();

  constructor(
    private readonly tools: Tools,
    private readonly prepare: PrepareSearch,
    /** Saves that a deploy or a stop ended a search: its failure is emitted when the flows have started. */
    private readonly breakOff: (job: Job, why: Problem) => void,
  ) {}

  async run(job: Job): Promise<void> {
    const { closed } = this.tools;
    const { signal: givenUp } = this.cut;
    const stopped = closed.aborted ? closed : this.halt.signal;
    const search = async (): Promise<void> => {
      const run = await this.prepare(job.msg);
      if (stopped.aborted && !closed.aborted) throw serviceError('cancelled', 'cancelled');
      await run(new Stream(this.tools, job, stopped, givenUp));
    };
    const searching = search();
    // A search may wait for as long as the store is unavailable.
    await wokenBy(searching, givenUp);
    if (!givenUp.aborted) await searching;
    if (closed.aborted && !job.isSettled)
      this.breakOff(job, serviceError('cancelled', 'cancelled_by_close').problem);
  }

  stop(): void {
    this.halt.abort();
    this.halt = new AbortController();
  }

  /** Stops the searches, and gives them up after the limit of a close; call the result when they have ended. */
  close(): () => void {
    this.stop();
    return systemClock.after(closeLimit, () => this.cut.abort());
  }
}
