import type { Clock } from '../service/clock';
import type { Client } from '../service/types';
import { Heap, type Queued } from './heap';
import { lastPoll, nextPoll, nextPollAgain, shareOf, type Pace } from './schedule';
import type { Timeline } from './timeline';
import { statusOf, verdictOfFault, verdictOfStatus, type ConsentStatus, type Verdict } from './verdict';
import { partsOf } from './wait-records';

/** One wait, as small as it can be: there may be a hundred thousand. */
export interface Wait {
  readonly id: string;
  readonly owner: object;
  readonly start: number;
  readonly pace: Pace;
}

/** A number (or member) of an advisor that waits look at together. */
export interface Target extends Queued {
  readonly key: string;
  /** In the order of arrival. */
  waits: Wait[];
  isPolling: boolean;
  seen: ConsentStatus | undefined;
}

export interface PollingOptions {
  readonly client: () => Client | Promise<Client>;
  readonly clock: Clock;
  readonly timeline: Timeline;
  readonly concurrency: number;
  /** `began` is when the look began: what expires by then has had its last look. */
  readonly looked: (target: Target, verdict: Verdict, began: number) => void;
}

/** Long enough to cost nothing, short enough that a clock set back is noticed soon. */
const longestSleep = 30_000;
/** Three times that without a look at the time is no delay: the machine slept or its clock was set forward. */
const jump = 90_000;
/** How long the last look may keep trying to reach the service. */
export const lastLookTries = 300_000;

const isEnding = (target: Target, now: number): boolean =>
  target.waits.some(({ start, pace }) => now - start >= pace.giveUpAfter);

/** One timer and one heap for all targets of an environment; looks go out a few at a time. */
export class Polling {
  private readonly heap = new Heap<Target>();
  private inFlight = 0;
  private cancelTimer: (() => void) | undefined;
  private wakeAt = 0;
  private observed: number;
  private isStopped = false;

  constructor(private readonly options: PollingOptions) {
    this.observed = options.timeline.now();
  }

  static target(key: string, first: Wait): Target {
    return { key, waits: [first], isPolling: false, seen: undefined, next: 0, place: -1 };
  }

  /** After `wait` was put into `target`. A new one joins looks that go on; one read back from disk keeps its own. */
  joined(target: Target, wait: Wait, isNew: boolean): void {
    this.observe();
    if (target.isPolling) return;
    const isFirst = target.waits.length === 1;
    const now = this.options.timeline.now();
    const { pace, start } = wait;
    const share = shareOf(target.key);
    const offset =
      isNew && isFirst
        ? nextPoll(pace, share, -1)
        : isNew
          ? nextPollAgain(pace, share, 0)
          : nextPoll(pace, share, now - start);
    const next = offset === undefined ? now : start + offset;
    if (isFirst || next < target.next) this.heap.put(target, next);
    this.arm();
  }

  /** Looks now, and goes on as before. */
  flush(target: Target): void {
    this.observe();
    if (!target.isPolling) this.heap.put(target, this.options.timeline.now());
    this.arm();
  }

  /** After waits were taken out: an empty target is not looked at. */
  left(target: Target): void {
    if (target.waits.length === 0) this.heap.remove(target);
  }

  stop(): void {
    this.isStopped = true;
    this.sleep();
  }

  /** At the pace of the youngest, and at the end of each. */
  private reschedule(target: Target, now: number): void {
    const share = shareOf(target.key);
    let youngest: Wait | undefined;
    let next = Infinity;
    for (const wait of target.waits) {
      if (!youngest || wait.start >= youngest.start) youngest = wait;
      const end = wait.start + lastPoll(wait.pace, share);
      next = Math.min(next, end > now ? end : now + wait.pace.pollEvery);
    }
    if (!youngest) return;
    const offset = nextPollAgain(youngest.pace, share, now - youngest.start);
    if (offset !== undefined) next = Math.min(next, youngest.start + offset);
    this.heap.put(target, next);
  }

  private arm(): void {
    const { clock, timeline, concurrency } = this.options;
    const first = this.heap.first;
    if (!first || this.isStopped || this.inFlight >= concurrency) {
      this.sleep();
      return;
    }
    const now = timeline.now();
    const wakeAt = Math.min(Math.max(first.next, now), now + longestSleep);
    if (this.cancelTimer && this.wakeAt <= wakeAt) return;
    this.sleep();
    this.wakeAt = wakeAt;
    this.cancelTimer = clock.after(wakeAt - now, () => {
      this.cancelTimer = undefined;
      this.observe();
      this.pump();
    });
  }

  private sleep(): void {
    this.cancelTimer?.();
    this.cancelTimer = undefined;
  }

  /**
   * Whoever has not looked at the time for so long was asleep, or its clock was set forward. Looks missed meanwhile are
   * not made up for, or they would all come at once; the last look of a wait is never missed.
   */
  private observe(): void {
    const now = this.options.timeline.now();
    const isJump = now - this.observed > jump;
    this.observed = now;
    if (!isJump) return;
    for (const target of [...this.heap.all()]) {
      if (target.next < now && !isEnding(target, now)) this.reschedule(target, now);
    }
  }

  private pump(): void {
    for (let first = this.heap.first; first; first = this.heap.first) {
      const isDue = first.next <= this.options.timeline.now();
      if (!isDue || this.inFlight >= this.options.concurrency || this.isStopped) break;
      this.heap.remove(first);
      void this.look(first);
    }
    this.arm();
  }

  private async look(target: Target): Promise<void> {
    const began = this.options.timeline.now();
    this.inFlight += 1;
    target.isPolling = true;
    const verdict = await this.ask(target);
    this.inFlight -= 1;
    target.isPolling = false;
    if (this.isStopped) return;
    if (verdict.kind === 'waiting' && verdict.seen) target.seen = verdict.seen;
    this.options.looked(target, verdict, began);
    if (target.waits.length > 0) this.reschedule(target, this.options.timeline.now());
    this.observe();
    this.pump();
  }

  private async ask(target: Target): Promise<Verdict> {
    const { advisor, subject } = partsOf(target.key);
    try {
      const client = await this.options.client();
      const answer = await client.call(
        'getConsent',
        { query: subject },
        { advisor, lane: 'polls', priority: 'poll' },
      );
      return verdictOfStatus(statusOf(answer.data));
    } catch (fault) {
      return verdictOfFault(fault);
    }
  }
}
