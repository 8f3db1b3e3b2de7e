import { waitOf, type Consent, type WaitShared } from '../../lib/consent/consent';
import { second } from '../../lib/durations';
import type { TextShared } from '../../lib/guards/text-hours';
import type { Queue } from '../../lib/outbox/queue';
import type { Tools } from '../../lib/runtime/flow-node';
import { problemOf } from '../../lib/runtime/errors';
import { failureLook, look, unauthorizedLook, waitingLook, type StatusLook } from '../../lib/runtime/status';
import type { Recipient } from '../../lib/texting/recipients';

export type CheckShared = TextShared & WaitShared;
export type CheckQueue = Queue<Recipient, CheckShared>;

/** Reading a thousand waits takes long: the status takes at most a tenth of the time. */
const restPerLook = 9;
/** Milliseconds: a shorter rest is left out. */
const shortestRest = 200;
/** An upper limit: a read may have waited for the store, which takes no CPU time. */
const longestRest = 10 * second;
/** Milliseconds after a look is due until the status shows the time of the next one. */
const redrawn = 2000;
/** The most waits that are read to count people for a status. */
const countedWaits = 1000;

export class WaitStatus {
  private refresh: (() => void) | undefined;
  /** The waits are being read: there is one such read at a time. */
  private isLooking = false;
  private isStale = false;

  constructor(
    private readonly tools: Tools,
    /** The queues of the node, and the consent in the store of each. */
    private readonly consents: ReadonlyMap<CheckQueue, Consent>,
  ) {}

  close(): void {
    this.refresh?.();
  }

  readonly draw = (): void => {
    const { tools } = this;
    if (this.waitCount === 0 || tools.closed.aborted) return;
    if (this.isLooking) {
      this.isStale = true;
      return;
    }
    this.isLooking = true;
    this.isStale = false;
    const began = performance.now();
    const rested = (): void => {
      this.isLooking = false;
      if (this.isStale) this.draw();
    };
    this.outlook()
      .then(({ next, left, people }) => {
        if (this.waitCount === 0 || tools.closed.aborted) return;
        this.refresh?.();
        this.refresh = tools.clock.after(left + redrawn, this.draw);
        tools.status.show(() => this.look(next, people));
      })
      .catch(tools.fault)
      .finally(() => {
        const rest = Math.min(restPerLook * (performance.now() - began), longestRest);
        if (rest < shortestRest) rested();
        else setTimeout(rested, rest).unref();
      });
  };

  private get waitCount(): number {
    return Array.from(this.consents.keys()).reduce((sum, { waitCount }) => sum + waitCount, 0);
  }

  /**
   * When the next look is, in how many milliseconds, and how many people wait. With more waits than are read, the time is
   * now and nobody is counted.
   */
  private async outlook(): Promise<{ next: number; left: number; people: number | undefined }> {
    const people = new Set<unknown>();
    let [next, left] = [Infinity, Infinity];
    const areCounted = this.waitCount <= countedWaits;
    for (const [queue, consent] of this.consents) {
      for await (const { item, ...wait } of areCounted ? queue.reader.items(0, 'waits') : []) {
        people.add(item.phone ?? item.memberId);
        const due = consent.next(waitOf({ data: item, ...wait }));
        next = Math.min(next, consent.wallTime(due));
        left = Math.min(left, due - consent.clock.now());
      }
    }
    if (next === Infinity) [next, left] = [this.tools.clock.now(), 0];
    return { next, left: Math.max(left, 0), people: people.size > 0 ? people.size : undefined };
  }

  private look(next: number, people: number | undefined): StatusLook {
    const { words, clock } = this.tools;
    try {
      const environment = this.tools.environment();
      const advisors = environment.advisors();
      if (advisors.length === 0) return unauthorizedLook(words, false);
      if (!advisors.every((each) => environment.advisorState(each) === 'authorized'))
        return look('red', 'ring', words.say('status.authorizeAgain'));
    } catch (thrown) {
      // The status is drawn by a timer, where nobody would catch a fault of the environment.
      return failureLook(words, problemOf(thrown), clock.now(), clock.now());
    }
    const outage = Array.from(this.consents.values()).find((each) => each.outage)?.outage;
    return waitingLook(words, { count: this.waitCount, next, people, outage }, clock.now());
  }
}
