import type { Outcome } from '../outbox/outcome';
import { mostLevels, TooDeep, UnreadableProperty } from '../outbox/storable-message';
import { ServiceError, type Problem } from '../service/errors';
import { largestWrite, TooLarge } from '../state/store';
import { nodeError } from './errors';

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
