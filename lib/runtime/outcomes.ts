import { mostLevels, TooDeep, UnreadableProperty } from '../outbox/storable-message';
import { ServiceError, type Problem } from '../service/errors';
import { largestWrite, TooLarge } from '../state/store';
import { nodeError } from './errors';

/** How one recipient (contact, group, item) leaves the node. */
export interface Outcome {
  readonly port: 0 | 1 | 2;
  /** The result, on the first and third outputs; a failure leaves `msg.payload` as it was. */
  readonly payload?: unknown;
  /** Message fields that this outcome writes. */
  readonly set?: Readonly<Record<string, unknown>>;
  /** Message fields for the third output alone. */
  readonly carry?: Readonly<Record<string, unknown>>;
  /** On the second output, the failure. On the third, the failure that the outcome becomes when nothing is wired to it. */
  readonly problem?: Problem;
  /** The outcome may have been emitted before the process was killed. */
  readonly repeated?: boolean;
  /** The text was sent before, and is counted so in `msg.summary`. */
  readonly alreadySent?: true;
  /** The offset from UTC with which the planned time was written, in milliseconds. */
  readonly offset?: number;
}

export const failedOutcome = (why: Problem, set?: Outcome['set']): Outcome => ({
  port: 1,
  problem: why,
  ...(set && { set }),
});

/** Turns anything that was thrown into the problem for `msg.error`. */
export const problemOf = (thrown: unknown): Problem => {
  if (thrown instanceof ServiceError) return thrown.problem;
  if (thrown instanceof TooLarge)
    return nodeError('invalid_input', 'message_large', { megabytes: largestWrite / 2 ** 20 }).problem;
  if (thrown instanceof UnreadableProperty)
    return nodeError('invalid_input', 'message_unreadable', { property: thrown.message }).problem;
  if (thrown instanceof TooDeep)
    return nodeError('invalid_input', 'message_deep', { levels: mostLevels }).problem;
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return nodeError('internal_error', 'unexpected', { reason }).problem;
};
