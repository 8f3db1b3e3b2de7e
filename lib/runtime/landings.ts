import { systemClock } from '../service/clock';

/** Leaves a little of the 15 s that a runtime gives its nodes to close. */
export const closeLimit = 12_000;

/** What is under way in a node, and lands before the node is closed. */
export class Landings {
  private underWay = 0;
  private allLanded: (() => void) | undefined;

  constructor(private readonly wentWrong: (fault: unknown) => void) {}

  add(work: Promise<void>): void {
    this.underWay += 1;
    work.catch(this.wentWrong).finally(() => {
      this.underWay -= 1;
      if (this.underWay === 0) this.allLanded?.();
    });
  }

  /** Resolves when all have landed, or could have. */
  async all(): Promise<void> {
    if (this.underWay === 0) return;
    await new Promise<void>((resolve) => {
      const forget = systemClock.after(closeLimit, resolve);
      this.allLanded = () => {
        forget();
        resolve();
      };
    });
  }
}
