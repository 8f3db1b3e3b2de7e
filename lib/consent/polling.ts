import type { Clock } from '../service/clock';
import type { Problem } from '../service/problems';
import type { Client } from '../service/types';
import type { Book, Target, Wait } from './book';
import { Heap } from './heap';
import { lastPoll, nextPoll, nextPollAgain } from './schedule';
import { subjectIn, type Subject } from './subjects';
import type { Timeline } from './timeline';
import { outageIn, statusOf, verdictOfFault, verdictOfStatus, type Verdict } from './verdict';

export interface PollingOptions {
  readonly book: Book;
  readonly client: () => Client | Promise<Client>;
  readonly clock: Clock;
  readonly timeline: Timeline;
  readonly concurrency: number;
  /** `began` is when the look began: what expires by then has had its last look. */
  readonly looked: (target: Target, verdict: Verdict, began: number) => void;
  readonly outageChanged: () => void;
}

/** Long enough to cost nothing, short enough that a clock set back is noticed soon. */
const longestSleep = 30_000;
/** Three times that without a look at the time is no delay: the machine slept or its clock was set forward. */
const jump = 90_000;
/** How long the last look may keep trying to reach the service. */
export const lastLookTries = 300_000;

/** One timer and one heap for all targets of an environment; looks go out a few at a time. */
export class Polling {
  private readonly heap = new Heap<Target>();
  private inFlight = 0;
  private cancelTimer: (() => void) | undefined;
  private wakeAt = 0;
  private observed: number;
  private isStopped = false;
  /** Why the last look, whoever it was for, met no answer of the service. */
  outage: Problem | undefined;

  constructor(private readonly options: PollingOptions) {
    this.observed = options.timeline.now();
  }

  /** After `wait` was put into `target`. A new one joins looks that go on; one read back from disk keeps its own. */
  joined(target: Target, wait: Wait, isNew: boolean): void {
    const { book, timeline } = this.options;
    this.observe();
    if (book.isLookedAt(target)) return;
    const isFirst = book.isAlone(wait);
    const now = timeline.now();
    const pace = book.paceOf(wait);
    const start = book.startOf(wait);
    const share = book.shareOf(target);
    const offset =
      isNew && isFirst
        ? nextPoll(pace, share, -1)
        : isNew
          ? nextPollAgain(pace, share, 0)
          : nextPoll(pace, share, now - start);
    const next = offset === undefined ? now : start + offset;
    if (isFirst || next < this.heap.nextOf(target)) this.heap.put(target, next);
    this.arm();
  }

  /** Looks now, and goes on as before. */
  flush(target: Target): void {
    this.observe();
    if (!this.options.book.isLookedAt(target)) this.heap.put(target, this.options.timeline.now());
    this.arm();
  }

  /** A target that nobody looks at any more. */
  left(target: Target): void {
    this.heap.remove(target);
  }

  /** When it is looked at next. */
  nextOf(target: Target): number {
    return this.heap.nextOf(target);
  }

  stop(): void {
    this.isStopped = true;
    this.sleep();
  }

  /** At the pace of the youngest, and at the end of each. */
  private reschedule(target: Target, now: number): void {
    const { book } = this.options;
    const share = book.shareOf(target);
    let youngest: Wait | undefined;
    let next = Infinity;
    for (const wait of book.waitsIn(target)) {
      const start = book.startOf(wait);
      const pace = book.paceOf(wait);
      if (youngest === undefined || start >= book.startOf(youngest)) youngest = wait;
      const end = start + lastPoll(pace, share);
      next = Math.min(next, end > now ? end : now + pace.pollEvery);
    }
    if (youngest === undefined) return;
    const start = book.startOf(youngest);
    const offset = nextPollAgain(book.paceOf(youngest), share, now - start);
    if (offset !== undefined) next = Math.min(next, start + offset);
    this.heap.put(target, next);
  }

  private arm(): void {
    const { clock, timeline, concurrency } = this.options;
    const first = this.heap.first;
    if (first === undefined || this.isStopped || this.inFlight >= concurrency) {
      this.sleep();
      return;
    }
    const now = timeline.now();
    const wakeAt = Math.min(Math.max(this.heap.nextOf(first), now), now + longestSleep);
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
    for (const target of this.heap.all()) {
      if (this.heap.nextOf(target) < now && !this.isEnding(target, now)) this.reschedule(target, now);
    }
  }

  private isEnding(target: Target, now: number): boolean {
    const { book } = this.options;
    return book.waitsIn(target).some((wait) => now - book.startOf(wait) >= book.paceOf(wait).giveUpAfter);
  }

  private pump(): void {
    for (let first = this.heap.first; first !== undefined; first = this.heap.first) {
      const isDue = this.heap.nextOf(first) <= this.options.timeline.now();
      if (!isDue || this.inFlight >= this.options.concurrency || this.isStopped) break;
      this.heap.remove(first);
      void this.look(first);
    }
    this.arm();
  }

  private async look(target: Target): Promise<void> {
    const { book, timeline } = this.options;
    const began = timeline.now();
    this.inFlight += 1;
    book.beginLook(target);
    const verdict = await this.ask(book.advisorOf(target), subjectIn(book.subjectOf(target)));
    this.inFlight -= 1;
    if (this.isStopped) return;
    if (verdict.kind === 'waiting' && verdict.seen) book.see(target, verdict.seen);
    this.options.looked(target, verdict, began);
    this.reschedule(target, timeline.now());
    book.endLook(target);
    this.hear(outageIn(verdict));
    this.observe();
    this.pump();
  }

  private hear(outage: Problem | undefined): void {
    const isNews = outage?.code !== this.outage?.code;
    this.outage = outage;
    if (isNews) this.options.outageChanged();
  }

  private async ask(advisor: string, subject: Subject): Promise<Verdict> {
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
