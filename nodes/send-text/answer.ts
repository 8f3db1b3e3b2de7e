import { problem } from '../../lib/service/problems';
import type { ResponseOf } from '../../lib/service/endpoints';
import { failure, type Outcome } from '../../lib/runtime/outcomes';

export interface Asked {
  readonly scheduled: boolean;
  readonly attempts: number;
  readonly isConsentMissing: (result: ResponseOf<'sendMessage'>) => boolean;
}

/** Any entry in `successes` is a success, only `failures` a failure, and neither is no answer at all. */
export const outcomeOf = (result: ResponseOf<'sendMessage'>, asked: Asked): Outcome => {
  const { attempts } = asked;
  const [success] = result.successes;
  if (success) {
    const { messageId = null, memberId = null } = success;
    return { port: 0, payload: { messageId, memberId, scheduled: asked.scheduled, attempts } };
  }
  const [reason] = result.failures;
  if (reason === undefined) {
    return failure(
      problem(
        'invalid_response',
        'The service named neither a success nor a failure: look in the texting app whether the text was sent.',
        { attempts },
      ).problem,
    );
  }
  if (asked.isConsentMissing(result)) {
    return {
      port: 2,
      payload: { reason },
      problem: problem(
        'consent_required',
        'This person has not consented to texts: request consent, then send again.',
        { detail: reason, attempts },
      ).problem,
    };
  }
  return failure(
    problem('rejected', 'The service refused this recipient: see "detail" for its reason.', {
      detail: reason,
      attempts,
    }).problem,
  );
};
