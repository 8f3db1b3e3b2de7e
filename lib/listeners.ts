/** Functions that are called when something happens. */
export class Listeners<A extends readonly unknown[] = []> {
  private readonly all = new Set<(...about: A) => void>();

  /** The result removes the listener. */
  readonly add = (listener: (...about: A) => void): (() => void) => {
    this.all.add(listener);
    return () => this.all.delete(listener);
  };

  /** A listener may add and remove others. */
  readonly call = (...about: A): void => {
    for (const listener of [...this.all]) listener(...about);
  };
}
