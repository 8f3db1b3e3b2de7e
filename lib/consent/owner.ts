import type { Target, Wait } from './polling';
import type { Shelf } from './shelf';
import type { Telling } from './telling';
import { partsOf } from './wait-records';

export interface Survey {
  /** When the next look is due; undefined when nothing waits. */
  readonly next: number | undefined;
  readonly advisors: readonly string[];
}

/** A node that waits: what it looks at, where that is on record, and how it is told. */
export class Owner {
  private readonly targets = new Map<string, Target>();
  /** How many of its waits each advisor has. */
  private readonly advisors = new Map<string, number>();
  ready: Promise<void> = Promise.resolve();
  isClosed = false;

  constructor(
    readonly node: string,
    readonly shelf: Shelf,
    readonly telling: Telling,
  ) {}

  get count(): number {
    return this.targets.size;
  }

  put({ id }: Wait, target: Target): void {
    this.targets.set(id, target);
    const { advisor } = partsOf(target.key);
    this.advisors.set(advisor, (this.advisors.get(advisor) ?? 0) + 1);
  }

  takeOut({ id }: Wait, target: Target): void {
    this.targets.delete(id);
    const { advisor } = partsOf(target.key);
    const left = (this.advisors.get(advisor) ?? 1) - 1;
    if (left > 0) this.advisors.set(advisor, left);
    else this.advisors.delete(advisor);
  }

  /** All that it looks at, or those of a number. */
  targetsFor(phone?: string): ReadonlySet<Target> {
    const found = new Set<Target>();
    for (const target of this.targets.values())
      if (phone === undefined || target.key.endsWith(`\n${phone}`)) found.add(target);
    return found;
  }

  ownIn(target: Target): Wait[] {
    return target.waits.filter(({ owner }) => owner === this);
  }

  /** Goes through all of them: for a status, not for every message. */
  survey(): Survey {
    let next: number | undefined;
    for (const target of this.targets.values())
      if (next === undefined || target.next < next) next = target.next;
    return { next, advisors: [...this.advisors.keys()] };
  }
}
