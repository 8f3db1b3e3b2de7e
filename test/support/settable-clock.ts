import type { Clock } from '../../lib/service/clock';
import { MovableClock } from '../../simulator/movable-clock';

/** A wall clock that can be set without any time passing, as when a machine wakes. Its timers run by `monotonic`. */
export class SettableClock implements Clock {
  readonly monotonic: MovableClock;
  private ahead = 0;

  constructor(start: number) {
    this.monotonic = new MovableClock(() => start);
  }

  now(): number {
    return this.monotonic.now() + this.ahead;
  }

  elapsed(): number {
    return this.monotonic.now();
  }

  after(ms: number, task: () => void): () => void {
    return this.monotonic.after(ms, task);
  }

  /** Sets the wall clock by so much. */
  jump(ms: number): void {
    this.ahead += ms;
  }
}
