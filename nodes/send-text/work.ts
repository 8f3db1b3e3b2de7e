import type { JournalEntry } from '../../lib/state/journal';
import type { Job } from '../../lib/runtime/job';
import type { Kept, Order } from './ledger';
import type { Text } from './prepare';

/** The texts of one message, on their way. */
export interface Work {
  readonly job: Job;
  readonly order: Order;
  readonly entry: JournalEntry<Kept>;
  /** Still to be sent, in list order; `next` is the first that nobody has taken. */
  readonly texts: readonly Text[];
  next: number;
  /** By the index of the original. */
  readonly duplicates: ReadonlyMap<number, readonly Text[]>;
  readonly total: number;
  left: number;
  isCancelled: boolean;
}

const duplicatesIn = (texts: readonly Text[]): ReadonlyMap<number, readonly Text[]> => {
  const duplicates = new Map<number, Text[]>();
  for (const text of texts) {
    if (text.duplicateOf === undefined) continue;
    const found = duplicates.get(text.duplicateOf);
    if (found) found.push(text);
    else duplicates.set(text.duplicateOf, [text]);
  }
  return duplicates;
};

export const workOf = (
  job: Job,
  order: Order,
  entry: Work['entry'],
  texts: readonly Text[],
  total = texts.length,
): Work => ({
  job,
  order,
  entry,
  texts: texts.filter(({ duplicateOf }) => duplicateOf === undefined),
  next: 0,
  duplicates: duplicatesIn(texts),
  total,
  left: texts.length,
  isCancelled: false,
});
