import type { Mutable } from '../mutable';
import { isRecord } from '../runtime/kinds';
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
  { phone, given, text, memberId }: Recipient,
  /** The whole object that a list held for this recipient. */
  entry: unknown,
): Mutable<Outcome> => {
  const set: Record<string, unknown> = {};
  if (phone !== undefined) set.phone = phone;
  else if (given !== undefined) set.phone = given;
  if (text !== undefined) set.text = text;
  if (memberId !== undefined) set.memberId = memberId;
  if (advisor !== '') set.advisor = advisor;
  if (isRecord(entry)) set.recipient = entry;
  if (outcome.set) Object.assign(set, outcome.set);
  const whole: Mutable<Outcome> = Object.assign({}, outcome);
  whole.set = set;
  return dryRun ? asDryRun(whole) : whole;
};
