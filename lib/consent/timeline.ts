import type { Clock } from '../service/clock';

/** A step back smaller than this is the clock being trimmed. */
const slack = 1000;

/**
 * The clock's time, except that it never runs back: where a clock is set back, waits go on at the pace they had instead
 * of standing still until it has caught up.
 */
export class Timeline {
  private shift = 0;
  private last: number;

  constructor(private readonly clock: Clock) {
    this.last = clock.now();
  }

  now(): number {
    const raw = this.clock.now();
    if (raw < this.last - slack) this.shift += this.last - raw;
    this.last = raw;
    return raw + this.shift;
  }

  /** A time read from the clock earlier, on this line; one that is still to come is a clock that was set back since. */
  placed(stored: number): number {
    return Math.min(stored + this.shift, this.now());
  }
}
