import { Listeners } from '../lib/listeners';
import { longestSleep, type Clock } from '../lib/service/clock';

interface Timer {
  readonly due: number;
  readonly task: () => void;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Ticks of the event loop after which work without I/O has settled. */
const settlingTurns = 8;
/**
 * Ticks of real time to wait for work under way. Work that itself waits for this clock would keep it still forever,
 * so after `idle` ticks in which no other work ends the clock goes on. Ticks are counted rather than time: a machine
 * that stops for a while loses only one.
 */
const stillTicks = { ms: 50, idle: 20, most: 600 };

/** Milliseconds: a base that has not moved within them stands still. */
const standingStill = 50;

/**
 * A clock that can be moved forward. On a running base (`Date.now`), its timers also fire by themselves; on a base that
 * stands still, only `move` makes them due.
 */
export class MovableClock implements Clock {
  /** In the order in which they are due, and were set. */
  private readonly timers: Timer[] = [];
  private offset = 0;
  private keptStill = 0;
  /** The number of releases so far. */
  private releases = 0;
  private released: (() => void) | undefined;
  private alarm: NodeJS.Timeout | undefined;
  private moving: Promise<void> = Promise.resolve();
  private readonly moved = new Listeners();
  /** Calls the listener after each `move`. */
  readonly onMove = this.moved.add;

  constructor(private readonly base: () => number) {}

  now(): number {
    return this.base() + this.offset;
  }

  after(ms: number, task: () => void): () => void {
    const { timers } = this;
    const timer: Timer = { due: this.now() + Math.max(0, ms), task };
    timers.splice(timers.findLastIndex(({ due }) => due <= timer.due) + 1, 0, timer);
    if (timers[0] === timer) this.arm();
    return () => {
      const at = timers.indexOf(timer);
      if (at >= 0) timers.splice(at, 1);
    };
  }

  keepStill(): () => void {
    this.keptStill++;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.releases++;
      if (--this.keptStill === 0) this.released?.();
    };
  }

  /** Moves time forward, timer by timer in order; the work of each settles before the next fires. */
  move(ms: number): Promise<void> {
    const run = (): Promise<void> => this.moveBy(ms);
    this.moving = this.moving.then(run, run);
    return this.moving;
  }

  private async moveBy(ms: number): Promise<void> {
    const target = this.now() + ms;
    await this.settle();
    for (let [next] = this.timers; next && next.due <= target; [next] = this.timers) {
      this.reach(next.due);
      this.runDue();
      await this.settle();
    }
    this.reach(target);
    this.arm();
    this.moved.call();
  }

  private reach(time: number): void {
    this.offset += Math.max(0, time - this.now());
  }

  private runDue(): void {
    const now = this.now();
    for (let [next] = this.timers; next && next.due <= now; [next] = this.timers) {
      this.timers.shift();
      next.task();
    }
  }

  private async settle(): Promise<void> {
    for (let left = settlingTurns; left > 0; left--) {
      await turn();
      if (this.isIdle()) return;
      if (this.keptStill > 0) {
        if (!(await this.allReleased())) return;
        left = settlingTurns;
      }
    }
  }

  /** Whether it is known that nothing is under way: that saves ticks of the event loop. */
  protected isIdle(): boolean {
    return false;
  }

  private allReleased(): Promise<boolean> {
    return new Promise((resolve) => {
      let { releases } = this;
      let idle = 0;
      let ticks = 0;
      const settle = (released: boolean): void => {
        clearTimeout(limit);
        this.released = undefined;
        resolve(released);
      };
      const tick = (): void => {
        idle = releases === this.releases ? idle + 1 : 0;
        ({ releases } = this);
        if (idle >= stillTicks.idle || ++ticks >= stillTicks.most) settle(false);
        else limit = setTimeout(tick, stillTicks.ms);
      };
      let limit = setTimeout(tick, stillTicks.ms);
      this.released = () => {
        settle(true);
      };
    });
  }

  private arm(least = 0): void {
    clearTimeout(this.alarm);
    const [next] = this.timers;
    if (!next) return;
    const armedAt = this.base();
    const delay = Math.min(Math.max(least, next.due - this.now()), longestSleep);
    this.alarm = setTimeout(() => {
      this.runDue();
      if (this.base() !== armedAt) this.arm();
      // A timer may fire a millisecond before the base has moved on.
      else if (delay < standingStill) this.arm(standingStill);
    }, delay);
    this.alarm.unref();
  }
}
