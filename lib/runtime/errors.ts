import type { Outcome } from '../outbox/outcome';
import { mostLevels, TooDeep, UnreadableProperty } from '../outbox/storable-message';
import {
  sentences,
  ServiceError,
  serviceError,
  type ErrorKey,
  type MessageValue,
  type MessageValues,
  type Problem,
} from '../service/errors';
import { largestWrite, TooLarge } from '../state/store';

export const invalidInput = (key: ErrorKey, values: MessageValues = {}): ServiceError =>
  serviceError('invalid_input', key, values);

export const failedOutcome = (why: Problem, set?: Outcome['set']): Outcome => ({
  port: 1,
  problem: why,
  ...(set && { set }),
});

/** Turns anything that was thrown into the problem for `msg.error`. */
export const problemOf = (thrown: unknown): Problem => {
  if (thrown instanceof ServiceError) return thrown.problem;
  if (thrown instanceof TooLarge)
    return serviceError('invalid_input', 'message_large', { megabytes: largestWrite / 2 ** 20 }).problem;
  if (thrown instanceof UnreadableProperty)
    return serviceError('invalid_input', 'message_unreadable', { property: thrown.message }).problem;
  if (thrown instanceof TooDeep)
    return serviceError('invalid_input', 'message_deep', { levels: mostLevels }).problem;
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return serviceError('internal_error', 'unexpected', { reason }).problem;
};

const withoutText = (value: MessageValue): MessageValue => {
  if (typeof value === 'string') return '…';
  if (typeof value === 'number' || !('map' in value)) return value;
  return value.map((each) => (typeof each === 'string' ? '…' : each));
};

/**
 * The sentence of a failure for people who may only read: texts that were filled into it may quote the service or the
 * message, so they are left out. Undefined when the sentence is not one of ours.
 */
export const ownWords = ({
  code,
  wording,
}: Pick<Problem, 'wording'> & { readonly code: string }): Problem | undefined => {
  if (!wording || !Object.hasOwn(sentences, wording.key)) return undefined;
  const values = Object.fromEntries(
    Object.entries(wording.values).map(([name, value]) => [name, withoutText(value)]),
  );
  return serviceError(code, wording.key as ErrorKey, values).problem;
};

/** A code as the contract writes them. The service may send any other text as one, such as a number or a name. */
export const plainCode = (code: string): string =>
  code.length <= 60 && /^[a-z]+(_[a-z]+)*$/.test(code) ? code : 'other';
