import type { Clock } from '../../lib/service/clock';

/** Calls `due` at each of the given moments, with a single timer for all of them. */
export class Dues {
  /** In ascending order. */
  private moments: number[] = [];
  private cancel: (() => void) | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly due: () => void,
  ) {}

  add(moment: number): void {
    if (moment <= this.clock.now()) return;
    let low = 0;
    let high = this.moments.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.moments[middle] ?? moment) <= moment) low = middle + 1;
      else high = middle;
    }
    this.moments.splice(low, 0, moment);
    if (low === 0) this.arm();
  }

  clear(): void {
    this.moments = [];
    this.cancel?.();
    this.cancel = undefined;
  }

  private arm(): void {
    this.cancel?.();
    const [next] = this.moments;
    this.cancel =
      next === undefined
        ? undefined
        : this.clock.after(next - this.clock.now(), () => {
            const now = this.clock.now();
            const left = this.moments.findIndex((moment) => moment > now);
            this.moments = left === -1 ? [] : this.moments.slice(left);
            this.due();
            this.arm();
          });
  }
}
