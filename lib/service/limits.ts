import { orMake } from '../process-memory';
import { onAbort } from './concurrency';
import { elapsedBy, type Clock } from './clock';
import { second } from '../durations';

/** Milliseconds: timers fire late, and a request that is late by no more does not shift the times of the next. */
const catchUp = 5;

/** Called when the request has its turn, or will have none. */
type Go = (entered: boolean) => void;

/** Requests that wait, in lanes that are served in turn: the lane just served goes to the back. */
class Queue {
  private readonly lanes = new Map<string, { readonly front: Set<Go>; readonly rest: Set<Go> }>();

  get empty(): boolean {
    return this.lanes.size === 0;
  }

  add(name: string, go: Go, isFront: boolean): void {
    const lane = orMake(this.lanes, name, () => ({ front: new Set(), rest: new Set() }));
    (isFront ? lane.front : lane.rest).add(go);
  }

  remove(name: string, go: Go): void {
    const lane = this.lanes.get(name);
    lane?.front.delete(go);
    lane?.rest.delete(go);
    if (lane && lane.front.size + lane.rest.size === 0) this.lanes.delete(name);
  }

  next(): Go | undefined {
    for (const [name, lane] of this.lanes) {
      const [go] = lane.front.size > 0 ? lane.front : lane.rest;
      this.lanes.delete(name);
      if (!go) continue;
      this.lanes.set(name, lane);
      this.remove(name, go);
      return go;
    }
    return undefined;
  }
}

/** The least number of parts into which the rate is divided; each process has one part or more. */
const rateParts = 128;
/** Milliseconds after which a process notices at the latest that its part of the rate has changed. */
const shareSeenAfter = second;

export interface QueuePlace {
  readonly lane: string;
  readonly priority: 'normal' | 'poll';
  /** A retry goes before requests of its lane that have not started. */
  readonly front: boolean;
  readonly signal: AbortSignal | undefined;
}

/** The limits of an environment, for all its requests: how many at once, how many a second, and pauses. */
export class Limits {
  /** Milliseconds between requests of all processes; 0 when there is no limit of our own. */
  private readonly interval: number;
  private readonly normal = new Queue();
  private readonly polls = new Queue();
  private running = 0;
  private waiting = 0;
  private highest = 0;
  /** The monotonic time at which the last turn was due: setting the clock neither ends nor prolongs limits or pauses. */
  private lastAt = -Infinity;
  private pauseEnd = 0;
  private closed = false;
  private wake: (() => void) | undefined;

  /** Where several processes share the limits, `share` says how many requests at once this one may make. */
  constructor(
    private readonly clock: Clock,
    private readonly maxConcurrent: number,
    requestsPerSecond: number,
    private readonly share = (most: number): number => most,
  ) {
    this.interval = requestsPerSecond > 0 ? second / requestsPerSecond : 0;
  }

  private get most(): number {
    return Math.max(1, Math.floor(this.share(this.maxConcurrent)));
  }

  /** When the next turn is due, by the part of the rate that this process has now. */
  private get nextAt(): number {
    const parts = Math.max(this.maxConcurrent, rateParts);
    return this.lastAt + (this.interval * parts) / Math.max(1, this.share(parts));
  }

  /** The most requests at once that were wanted since the last call. */
  takePeak(): number {
    const peak = this.highest;
    this.highest = this.running + this.waiting;
    return peak;
  }

  private notePeak(): void {
    this.highest = Math.max(this.highest, this.running + this.waiting);
  }

  /** The end of a pause after a 429, in epoch milliseconds; 0 when there is none. */
  get pausedUntil(): number {
    const left = this.pauseEnd - elapsedBy(this.clock);
    return left > 0 ? this.clock.now() + Math.ceil(left) : 0;
  }

  /** Whether a turn now waits neither for a pause nor for a rate of our own. */
  get isOpen(): boolean {
    return this.interval === 0 && this.waitNeeded() === 0;
  }

  /** Takes a turn: true at once when one is free, else a promise, which resolves with false when cancelled or closed. */
  enter(place: QueuePlace): boolean | Promise<boolean> {
    if (this.closed || place.signal?.aborted === true) return false;
    const isNext = this.normal.empty && this.polls.empty;
    if (isNext && this.running < this.most && this.waitNeeded() === 0) {
      this.take();
      return true;
    }
    return this.wait(place);
  }

  leave(): void {
    this.running--;
    this.serve();
  }

  /** Also called for a pause that another process was asked for. */
  pause(ms: number): void {
    this.pauseEnd = Math.max(this.pauseEnd, elapsedBy(this.clock) + ms);
  }

  /** Rejects all that wait, and gives no more turns. */
  close(): void {
    this.closed = true;
    this.stopTimer();
    for (const queue of [this.normal, this.polls]) {
      for (let go = queue.next(); go; go = queue.next()) go(false);
    }
  }

  private stopTimer(): void {
    this.wake?.();
    this.wake = undefined;
  }

  private wait({ lane, priority, front, signal }: QueuePlace): Promise<boolean> {
    return new Promise((resolve) => {
      const queue = priority === 'poll' ? this.polls : this.normal;
      const go: Go = (entered) => {
        this.waiting--;
        forget?.();
        resolve(entered);
      };
      const forget =
        signal &&
        onAbort(signal, () => {
          this.waiting--;
          queue.remove(lane, go);
          if (this.normal.empty && this.polls.empty) this.stopTimer();
          resolve(false);
        });
      queue.add(lane, go, front);
      this.waiting++;
      this.notePeak();
      // Whoever waits for the rate wants a larger part of it.
      if (this.interval > 0) this.highest = Math.max(this.highest, 2);
      this.serve();
    });
  }

  private take(): void {
    this.running++;
    this.notePeak();
    if (this.interval > 0) {
      const now = elapsedBy(this.clock);
      const due = this.nextAt;
      this.lastAt = now - due <= catchUp ? due : now;
    }
  }

  private waitNeeded(): number {
    if (this.pauseEnd === 0 && this.interval === 0) return 0;
    const now = elapsedBy(this.clock);
    return Math.max(0, this.pauseEnd - now, this.nextAt - now);
  }

  private serve(): void {
    while (this.running < this.most && !(this.normal.empty && this.polls.empty)) {
      const ms = this.waitNeeded();
      if (ms > 0) {
        // The part of the rate that this process has may have grown by then.
        const longest = Math.max(this.pauseEnd - elapsedBy(this.clock), shareSeenAfter);
        this.wake ??= this.clock.after(Math.ceil(Math.min(ms, longest)), () => {
          this.wake = undefined;
          this.serve();
        });
        return;
      }
      const go = this.normal.next() ?? this.polls.next();
      if (!go) return;
      this.take();
      go(true);
    }
  }
}

/**
 * A token bucket that keeps an outage from multiplying the load: of 500 tokens, a repeat takes 5 and a success gives
 * back half a token. Once it is empty, there is one repeat for ten requests that succeed, and none while none do.
 */
export class RetryBudget {
  static readonly cost = 5;
  private static readonly full = 500;
  private static readonly refundShare = 0.5;
  left = RetryBudget.full;

  spend(): void {
    this.left -= RetryBudget.cost;
  }

  refund(): void {
    this.left = Math.min(RetryBudget.full, this.left + RetryBudget.refundShare);
  }
}
