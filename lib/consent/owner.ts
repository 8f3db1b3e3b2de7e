import type { Problem } from '../service/problems';
import type { Book, Target, Wait } from './book';
import type { Shelf } from './shelf';
import type { StoredSubject } from './subjects';
import type { Telling } from './telling';

export interface Survey {
  /** When the next look is due; undefined when nothing waits. */
  readonly next: number | undefined;
  readonly advisors: readonly string[];
  /** Why the last look met no answer of the service. */
  readonly outage: Problem | undefined;
}

/** A node that waits: what it looks at, where that is on record, and how it is told. */
export class Owner {
  private waiting = 0;
  /** How many of its waits each advisor has. */
  private readonly advisors = new Map<string, number>();
  /** For each work under way that brings waits: whose were ended meanwhile; undefined stands for all. */
  private readonly coming = new Set<Set<StoredSubject | undefined>>();
  ready: Promise<void> = Promise.resolve();
  isReading = true;
  isClosed = false;
  /** What is under way for it and knows its waits. */
  busy = 0;

  constructor(
    readonly node: string,
    /** What its waits know it by. */
    readonly number: number,
    private readonly book: Book,
    readonly shelf: Shelf,
    readonly telling: Telling,
    readonly changed: () => void,
  ) {}

  get count(): number {
    return this.waiting;
  }

  /** Does work that brings waits from disk, or puts them there: it can ask which of them were ended meanwhile. */
  async bringing<T>(work: (isEnded: (subject: StoredSubject) => boolean) => Promise<T>): Promise<T> {
    const ended = new Set<StoredSubject | undefined>();
    this.coming.add(ended);
    try {
      return await work((subject) => ended.has(undefined) || ended.has(subject));
    } finally {
      this.coming.delete(ended);
    }
  }

  /** Ends waits that are on their way. */
  endComing(phone?: string): void {
    for (const ended of this.coming) ended.add(phone);
  }

  put(wait: Wait): void {
    this.waiting += 1;
    const advisor = this.advisorOf(wait);
    this.advisors.set(advisor, (this.advisors.get(advisor) ?? 0) + 1);
  }

  /** While it is still in its target. */
  takeOut(wait: Wait): void {
    this.waiting -= 1;
    const advisor = this.advisorOf(wait);
    const left = (this.advisors.get(advisor) ?? 1) - 1;
    if (left > 0) this.advisors.set(advisor, left);
    else this.advisors.delete(advisor);
  }

  /** All that it looks at, or those of a number. */
  targetsFor(phone?: string): ReadonlySet<Target> {
    return this.book.targetsOf(this.number, phone);
  }

  ownIn(target: Target): Wait[] {
    return this.book.waitsIn(target).filter((wait) => this.book.ownerOf(wait) === this.number);
  }

  /** Goes through all of them: for a status, not for every message. */
  survey(nextOf: (target: Target) => number, outage: Problem | undefined): Survey {
    let next: number | undefined;
    for (const wait of this.book.waitsOf(this.number)) {
      const due = nextOf(this.book.targetOf(wait));
      if (next === undefined || due < next) next = due;
    }
    return { next, advisors: [...this.advisors.keys()], outage };
  }

  private advisorOf(wait: Wait): string {
    return this.book.advisorOf(this.book.targetOf(wait));
  }
}
