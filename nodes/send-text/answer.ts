import { countText } from '../../lib/guards/segments';
import { nodeError } from '../../lib/runtime/errors';
import { failedOutcome, type Outcome } from '../../lib/runtime/outcomes';
import type { ResponseOf } from '../../lib/service/endpoints';

/** The text that was sent. */
interface SentText {
  readonly text: string;
  /** For a scheduled text, its date in milliseconds. */
  readonly deliveryDate: number | undefined;
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

export const needsConsent = (reason: string, attempts: number, more: object = {}): Outcome => ({
  port: 2,
  payload: { reason, ...more },
  problem: nodeError('consent_required', 'consent_required', {}, { detail: reason, attempts }).problem,
});

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
    return failedOutcome(nodeError('invalid_response', 'no_outcome', {}, { attempts }).problem);
  if (isConsentMissing(result)) return needsConsent(reason, attempts);
  return failedOutcome(
    nodeError('rejected', 'rejected', { said: reason }, { detail: reason, attempts }).problem,
  );
};
