import { waitOf, type Consent } from '../../lib/consent/consent';
import type { Pace } from '../../lib/consent/pace';
import { second } from '../../lib/durations';
import type { TextShared } from '../../lib/guards/text-hours';
import type { Queue } from '../../lib/outbox/queue';
import type { Environment } from '../../lib/runtime/environment';
import type { Tools } from '../../lib/runtime/flow-node';
import { problemOf } from '../../lib/runtime/outcomes';
import {
  authorizeLook,
  failureLook,
  unauthorizedLook,
  waitingLook,
  type StatusLook,
} from '../../lib/runtime/status';
import type { Recipient } from '../../lib/texting/recipients';

/** What the recipients of a message share. */
export interface CheckShared extends TextShared {
  /** For waits alone: how often they look, and from when. */
  readonly pace?: Pace;
  readonly start?: number;
}

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

/** The status of a node while it waits for consent. */
export class WaitStatus {
  private refresh: (() => void) | undefined;
  /** The waits are being read: there is one such read at a time. */
  private isLooking = false;
  private isStale = false;

  constructor(
    private readonly tools: Tools,
    private readonly environment: Environment,
    private readonly queue: Queue<Recipient, CheckShared>,
    private readonly consent: Consent,
    private readonly fault: (thrown: unknown) => void,
  ) {}

  close(): void {
    this.refresh?.();
  }

  draw(): void {
    const { queue, consent, tools, environment } = this;
    if (queue.waitCount === 0 || tools.closed.aborted) return;
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
    const looked = (): void => {
      const rest = Math.min(restPerLook * (performance.now() - began), longestRest);
      if (rest < shortestRest) rested();
      else setTimeout(rested, rest).unref();
    };
    this.outlook().then(
      ({ next, people }) => {
        looked();
        if (queue.waitCount === 0 || tools.closed.aborted) return;
        this.refresh?.();
        this.refresh = environment.clock.after(Math.max(next - consent.clock.now(), 0) + redrawn, () => {
          this.draw();
        });
        tools.status.show(() => this.look(next, people));
      },
      (fault: unknown) => {
        looked();
        this.fault(fault);
      },
    );
  }

  /**
   * When the next look is, and how many people wait. With more waits than are read, the time is now and nobody is
   * counted.
   */
  private async outlook(): Promise<{ readonly next: number; readonly people: number | undefined }> {
    const { consent } = this;
    const now = consent.clock.now();
    const people = new Set<unknown>();
    let next = Infinity;
    if (this.queue.waitCount <= countedWaits)
      for await (const accepted of this.queue.waits()) {
        people.add(accepted.data.phone ?? accepted.data.memberId);
        next = Math.min(next, consent.next(waitOf(accepted)));
      }
    return { next: next === Infinity ? now : next, people: people.size > 0 ? people.size : undefined };
  }

  private look(next: number, people: number | undefined): StatusLook {
    const { words, clock } = this.tools;
    try {
      const advisors = this.environment.advisors();
      if (advisors.length === 0) return unauthorizedLook(words, false);
      if (!advisors.every((each) => this.environment.advisorState(each) === 'authorized'))
        return authorizeLook(words);
    } catch (thrown) {
      // The status is drawn by a timer, where nobody would catch a fault of the environment.
      return failureLook(words, problemOf(thrown), clock.now(), clock.now());
    }
    const { outage } = this.consent;
    return waitingLook(words, { count: this.queue.waitCount, next, people, outage }, clock.now());
  }
}
