import { minute } from '../durations';
import { countReturn } from '../outbox/visits';
import type { Clock } from '../service/clock';
import type { Message } from './red';

/** A message may come back to a node this often within a minute. */
export const mostReturns = 20;

/** Delays messages that run in a circle: a flow that is wired so would send thousands of requests a minute. */
export class Brake {
  private readonly delayed = new Set<() => void>();

  /** `onDelay` is called with the number of delayed messages, and the time until which the latest is. */
  constructor(
    private readonly node: string,
    private readonly clock: Clock,
    private readonly onDelay: (count: number, until: number) => void,
  ) {}

  /** Calls `enter` at once; for a message that has come back too often, when its minute is over. */
  admit(msg: Message, enter: () => void): void {
    const now = this.clock.now();
    const returns = countReturn(msg, this.node, now, minute);
    if (!returns || returns.count <= mostReturns) {
      enter();
      return;
    }
    const until = returns.since + minute;
    const release = (): void => {
      forget();
      this.delayed.delete(release);
      enter();
    };
    const forget = this.clock.after(until - now, release);
    this.delayed.add(release);
    this.onDelay(this.delayed.size, until);
  }

  /** Lets all delayed messages enter now: before a close, so that none is lost, and before a reset, which is for them too. */
  release(): void {
    for (const each of [...this.delayed]) each();
  }
}
