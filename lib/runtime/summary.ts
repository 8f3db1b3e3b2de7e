import { duplicatesOf } from '../outbox/item';
import type { Outcome } from '../outbox/outcome';
import type { Outputs } from './delivery';
import { codePrefix, type OutcomeCounts } from './status';

/** The kinds under which `msg.summary` counts an outcome. */
export const kindsIn = (outputs: Outputs, outcome: Outcome): readonly string[] => {
  const name = outputs.nameOf(outcome);
  if (name === 'failed' && outcome.problem) return [name, codePrefix + outcome.problem.code];
  // `alreadySent` comes first, because duplicates are counted under the first kind.
  return outcome.alreadySent ? ['alreadySent', name] : [name];
};

export const alreadySentIn = (counts: OutcomeCounts): number =>
  (counts['alreadySent'] ?? 0) + (counts[duplicatesOf('sent')] ?? 0);

/** `msg.summary` without its id. */
export const summaryOf = (
  { names }: Outputs,
  total: number,
  counts: OutcomeCounts,
): Record<string, unknown> => {
  // The service may send any text as a code, even `__proto__`, which an assignment would lose.
  const byCode = Object.fromEntries(
    Object.entries(counts)
      .filter(([kind, count]) => kind.startsWith(codePrefix) && count > 0)
      .map(([kind, count]) => [kind.slice(codePrefix.length), count]),
  );
  const outputs = Object.fromEntries(names.map((name) => [name, counts[name] ?? 0]));
  return { total, ...outputs, ...('sent' in outputs && { alreadySent: alreadySentIn(counts) }), byCode };
};

/** Counts the outcomes of a list that no queue keeps. */
export class Tally {
  readonly counts: Record<string, number> = {};
  total = 0;

  constructor(private readonly outputs: Outputs) {}

  add(outcome: Outcome): void {
    this.total += 1;
    for (const kind of kindsIn(this.outputs, outcome)) this.counts[kind] = (this.counts[kind] ?? 0) + 1;
  }

  get summary(): Record<string, unknown> {
    return summaryOf(this.outputs, this.total, this.counts);
  }
}
