import type { Journal, JournalEntry, JournalJob, Resumed, Todo } from './journal';

interface LiveJob<R, O> {
  readonly job: JournalJob<R>;
  readonly begun: Set<number>;
  readonly outcomes: Map<number, O>;
  readonly told: Set<number>;
  readonly entry: JournalEntry<O>;
}

/** By node: a deploy makes a new node, which takes up what its predecessor left. */
const jobsOf = new Map<string, Set<LiveJob<unknown, unknown>>>();

const onDisk = Promise.resolve();

let turn: Promise<void> | undefined;

/** Requests of a list that leave together, once a turn of the event loop, cost a seventh less than one by one. */
const nextTurn = (): Promise<void> =>
  (turn ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
    turn = undefined;
  }));

/**
 * The journal of an environment that keeps none: it lives as long as the process, so that a deploy loses and repeats
 * nothing, and costs no write.
 */
export const liveJournal = <R, O>(nodeId: string): Pick<Journal<R, O>, 'accept' | 'resume' | 'settle'> => ({
  accept(job) {
    const jobs = jobsOf.get(nodeId) ?? new Set<LiveJob<unknown, unknown>>();
    jobsOf.set(nodeId, jobs);
    const live: LiveJob<R, O> = {
      job,
      begun: new Set(),
      outcomes: new Map(),
      told: new Set(),
      entry: {
        begin(index) {
          live.begun.add(index);
          return job.recipients.length > 1 ? nextTurn() : onDisk;
        },
        undo(index) {
          live.begun.delete(index);
          return onDisk;
        },
        outcome(index, outcome) {
          live.outcomes.set(index, outcome);
          return job.recipients.length > 1 ? nextTurn() : onDisk;
        },
        told(index) {
          live.told.add(index);
          if (live.told.size === job.recipients.length) jobs.delete(live);
        },
      },
    };
    jobs.add(live);
    return live.entry;
  },

  resume() {
    const jobs = (jobsOf.get(nodeId) ?? new Set()) as Set<LiveJob<R, O>>;
    return Promise.resolve(
      [...jobs].map((live): Resumed<R, O> => {
        const open: Todo<R, O>[] = [];
        live.job.recipients.forEach((recipient, index) => {
          const outcome = live.outcomes.get(index);
          if (live.told.has(index)) return;
          if (outcome !== undefined) open.push({ index, recipient, what: 'tell', outcome });
          else open.push({ index, recipient, what: live.begun.has(index) ? 'unknown' : 'send' });
        });
        const { message, context, recipients } = live.job;
        return { entry: live.entry, message, dropped: false, context, count: recipients.length, open };
      }),
    );
  },

  settle: () => onDisk,
});
