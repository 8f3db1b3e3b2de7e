import { countText } from '../../lib/guards/segments';
import { failedOutcome } from '../../lib/runtime/errors';
import { isNothing } from '../../lib/kinds';
import type { Outcome } from '../../lib/outbox/outcome';
import type { ResponseOf } from '../../lib/service/endpoints';
import { serviceError, type Problem } from '../../lib/service/errors';

interface SentText {
  readonly text: string;
  /** For a scheduled text, its date in milliseconds. */
  readonly deliveryDate?: number;
  /** The delivery date as it was given, where that was outside the recipient's text hours. */
  readonly movedFrom?: number | undefined;
  readonly attempts: number;
  readonly offset?: number | undefined;
}

type SendAnswer = ResponseOf<'sendMessage'>;
type Success = NonNullable<SendAnswer['successes']>[number];

export const sent = (
  { messageId = null, memberId = null }: Pick<Success, 'memberId' | 'messageId'>,
  { text, attempts, deliveryDate, movedFrom, offset }: SentText,
  more: object = {},
): Outcome => {
  const scheduled = deliveryDate !== undefined;
  const { segments } = countText(text);
  return {
    port: 0,
    ...(offset !== undefined && { offset }),
    payload: {
      messageId,
      memberId,
      scheduled,
      attempts,
      segments,
      ...(scheduled && { deliveryDate }),
      ...(movedFrom !== undefined && { movedFrom }),
      ...more,
    },
  };
};

export const needsConsent = (
  reason: string,
  attempts: number,
  more: { readonly details?: unknown; readonly segments?: number; readonly notBefore?: number } = {},
): Outcome => ({
  port: 2,
  payload: { reason, ...more },
  problem: serviceError(
    'consent_required',
    'consent_required',
    {},
    { detail: reason, attempts, ...detailsIn(more.details) },
  ).problem,
});

/** As a field, where the service gave any. */
const detailsIn = (details: unknown): { readonly details?: unknown } =>
  isNothing(details) ? {} : { details };

/** The failure of a text that the service still refuses for lack of consent after every delay, though it has the consent. */
export const notBelieved = ({ detail = '', details, attempts }: Problem): Outcome =>
  failedOutcome(
    serviceError('rejected', 'consent_not_believed', {}, { detail, attempts, ...detailsIn(details) }).problem,
  );

interface RefusedText {
  readonly failures?: readonly string[] | null | undefined;
  /** Planned; its shape is not shown (contract, *Message result*). */
  readonly failureDetails?: unknown;
}

/** A text that may be a code: one word, such as `consent_required`. */
const isWord = (value: unknown): value is string => typeof value === 'string' && /^[\w.-]+$/.test(value);

/** The codes in `failureDetails`, at any depth: values under a name such as `code`, or words in a list. */
const codesIn = (details: unknown, isCode = true, depth = 8): string[] => {
  if (isWord(details)) return isCode ? [details] : [];
  if (typeof details !== 'object' || details === null || depth === 0) return [];
  if (Array.isArray(details)) return details.flatMap((each) => codesIn(each, isCode, depth - 1));
  return Object.entries(details).flatMap(([name, value]) => {
    const isNamed = /codes?$/i.test(name);
    return isNamed && typeof value === 'string' ? [value] : codesIn(value, isNamed, depth - 1);
  });
};

/** Words that mean that somebody has opted out: they must not be asked again, even if the reason mentions consent. */
const optedOut = /(?<!\p{L})stop|opt(?:ed|ing)?[\s_-]?out|unsubscri|revok|withdr[ae]w/iu;
/** Also finds the word inside another, as in `UserStopped`, but not in "Christopher". */
const hasOptedOut = (words: string): boolean => optedOut.test(words) || words.includes('Stop');
const byDefault = /consent/i;

/** A pattern such as `.*consent` takes time in the square of a text's length, and an answer may have megabytes. */
const beginnings = (said: readonly string[]): string[] =>
  said.slice(0, 100).map((words) => words.slice(0, 1000));

/**
 * Tests whether asking for consent can fix a refusal. A pattern of the user decides alone. Without one, the codes do, and
 * where none is about consent, the text.
 */
export const consentTest = (pattern: string): ((refusal: RefusedText) => boolean) => {
  const own = pattern === '' ? undefined : new RegExp(pattern, 'i');
  return ({ failures, failureDetails }) => {
    const codes = codesIn(failureDetails);
    const texts = failures ?? [];
    if (own) return [...beginnings(texts), ...beginnings(codes)].some((words) => own.test(words));
    if (codes.some(hasOptedOut)) return false;
    if (codes.some((code) => byDefault.test(code))) return true;
    return !texts.some(hasOptedOut) && texts.some((words) => byDefault.test(words));
  };
};

/** Any entry in `successes` is a success, only `failures` is a failure, and an answer with neither is invalid. */
export const sendOutcome = (
  result: SendAnswer,
  request: SentText,
  isConsentMissing: (result: SendAnswer) => boolean,
): Outcome => {
  const { attempts } = request;
  const success = result.successes?.[0];
  if (success) return sent(success, request);
  const reason = result.failures?.[0];
  if (reason === undefined)
    return failedOutcome(serviceError('invalid_response', 'no_outcome', {}, { attempts }).problem);
  const details = detailsIn(result.failureDetails);
  if (isConsentMissing(result)) return needsConsent(reason, attempts, details);
  return failedOutcome(
    serviceError('rejected', 'rejected', { said: reason }, { detail: reason, attempts, ...details }).problem,
  );
};
