import type { Mutable } from '../mutable';
import type { Order } from './node-outbox';
import { isRecord } from './kinds';
import type { Outcome } from './outcomes';

/** What was used for one recipient. */
export interface Used {
  readonly phone?: string;
  /** In a list, what stood where no number could be read. */
  readonly given?: string | number | null;
  readonly text?: string;
  readonly memberId?: number;
}

/** The outcome with the message fields that a texting node writes as used. */
export const dressed = (
  outcome: Outcome,
  { advisor }: Order,
  { phone, given, text, memberId }: Used,
  /** What a list held for this recipient, whole. */
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
  return whole;
};
