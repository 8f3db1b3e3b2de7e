import type { JournalEntry } from '../state/journal';
import type { Job } from './job';
import { duplicatesIn, type Item, type Kept } from './kept';

/** The items of one message, on their way. */
export interface Work<T, O> {
  readonly job: Job;
  readonly order: O;
  readonly entry: JournalEntry<Kept>;
  /** Still to be done, in list order; `next` is the first that nobody has taken. */
  readonly items: readonly T[];
  next: number;
  /** By the index of the original. */
  readonly duplicates: ReadonlyMap<number, readonly T[]>;
  readonly total: number;
  left: number;
  failed: number;
}

export const workOf = <T extends Item, O>({
  job,
  order,
  entry,
  items,
  total,
}: Pick<Work<T, O>, 'job' | 'order' | 'entry' | 'items' | 'total'>): Work<T, O> => ({
  job,
  order,
  entry,
  items: items.filter(({ duplicateOf }) => duplicateOf === undefined),
  next: 0,
  duplicates: duplicatesIn(items),
  total,
  left: total,
  failed: 0,
});

export interface Progress {
  readonly done: number;
  readonly total: number;
}

/** How far the lists among them have come. */
export const progressOf = (works: Iterable<Work<unknown, unknown>>): Progress => {
  let done = 0;
  let total = 0;
  for (const work of works) {
    if (work.total < 2) continue;
    done += work.total - work.left;
    total += work.total;
  }
  return { done, total };
};
