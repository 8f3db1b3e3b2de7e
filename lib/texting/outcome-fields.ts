import type { Mutable } from '../mutable';
import { fieldOf, isNothing, isRecord } from '../runtime/kinds';
import type { Outcome } from '../runtime/outcomes';
import type { Recipient, TextingOrder } from './recipients';

/** Marks an outcome as that of a dry run. */
const asDryRun = (outcome: Mutable<Outcome>): Mutable<Outcome> => {
  if (outcome.port !== 1) outcome.payload = { ...(outcome.payload as object), dryRun: true };
  if (outcome.problem) outcome.problem = { ...outcome.problem, dryRun: true };
  return outcome;
};

/** The outcome with the message fields that a texting node writes as used. */
export const withUsedFields = (
  outcome: Outcome,
  { advisor, dryRun }: TextingOrder,
  { phone, given, text, memberId, advisor: own, wrong }: Recipient,
  /** The whole object that a list held for this recipient. */
  entry: unknown,
): Mutable<Outcome> => {
  const set: Record<string, unknown> = {};
  if (phone !== undefined) set.phone = phone;
  else if (given !== undefined) set.phone = given;
  if (text !== undefined) set.text = text;
  if (memberId !== undefined) set.memberId = memberId;
  const used = own ?? advisor;
  if (used !== '') set.advisor = used;
  if (isRecord(entry)) {
    set.recipient = entry;
    const named = wrong && own === undefined ? fieldOf(entry, 'advisor') : undefined;
    // Whoever tries this recipient again must not text it for the advisor of the others.
    if (!isNothing(named)) set.advisor = named;
  }
  if (outcome.set) Object.assign(set, outcome.set);
  const whole: Mutable<Outcome> = Object.assign({}, outcome);
  whole.set = set;
  return dryRun ? asDryRun(whole) : whole;
};
