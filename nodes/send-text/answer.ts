import type { ResponseOf } from '../../lib/service/endpoints';
import { refuse } from '../../lib/runtime/errors';
import { failure, type Outcome } from '../../lib/runtime/outcomes';

export interface Asked {
  /** Milliseconds, of a scheduled text. */
  readonly deliveryDate: number | undefined;
  readonly attempts: number;
  readonly isConsentMissing: (result: ResponseOf<'sendMessage'>) => boolean;
}

/** Any entry in `successes` is a success, only `failures` a failure, and neither is no answer at all. */
export const outcomeOf = (result: ResponseOf<'sendMessage'>, asked: Asked): Outcome => {
  const { attempts, deliveryDate } = asked;
  const success = result.successes?.[0];
  if (success) {
    const { messageId = null, memberId = null } = success;
    const scheduled = deliveryDate !== undefined;
    return {
      port: 0,
      payload: { messageId, memberId, scheduled, attempts, ...(scheduled && { deliveryDate }) },
    };
  }
  const reason = result.failures?.[0];
  if (reason === undefined)
    return failure(refuse('invalid_response', 'no_outcome', {}, { attempts }).problem);
  const code = asked.isConsentMissing(result) ? 'consent_required' : 'rejected';
  const why = refuse(code, code, {}, { detail: reason, attempts }).problem;
  return code === 'rejected' ? failure(why) : { port: 2, payload: { reason }, problem: why };
};
