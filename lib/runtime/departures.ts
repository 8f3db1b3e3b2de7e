import type { JournalEntry } from '../state/journal';
import { arrival } from './arrival';
import type { Tools } from './flow-node';
import type { Job } from './job';
import type { Kept } from './kept';
import type { Outcome } from './outcomes';
import { areFlowsStopping, atNextStart } from './started';

/** Lets outcomes on record leave: told is what has reached the next node, which a deploy or a shutdown may close first. */
export class Departures {
  constructor(
    private readonly tools: Tools,
    private readonly isClosing: () => boolean,
    private readonly wentWrong: (fault: unknown) => void,
  ) {}

  leave(job: Job, entry: JournalEntry<Kept>, index: number, outcome: Outcome): void {
    const { RED, node } = this.tools;
    if (areFlowsStopping(RED)) {
      this.hold(job, entry, index, outcome);
      return;
    }
    const arriving = arrival(RED, node, outcome);
    job.leave(index, outcome);
    void arriving.then((arrives) => {
      if (arrives) entry.told(index);
      else this.hold(job.anew(), entry, index, outcome);
    });
  }

  /** On record as not told, for whoever is there when the flows have started: this node, or the next of its id. */
  private hold(job: Job, entry: JournalEntry<Kept>, index: number, outcome: Outcome): void {
    entry.outcome(index, { outcome, untold: true }).catch(this.wentWrong);
    atNextStart(this.tools.RED, () => {
      if (!this.isClosing()) void this.leaveAnew(job, entry, index, outcome);
    });
  }

  /** First on record as perhaps told: whoever comes after a kill says that it is repeated. */
  private async leaveAnew(
    job: Job,
    entry: JournalEntry<Kept>,
    index: number,
    outcome: Outcome,
  ): Promise<void> {
    try {
      await entry.outcome(index, { outcome });
    } catch (fault) {
      this.wentWrong(fault);
    }
    if (!this.isClosing()) this.leave(job, entry, index, outcome);
    else entry.outcome(index, { outcome, untold: true }).catch(this.wentWrong);
  }
}
