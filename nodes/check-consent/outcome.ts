import { nothingKnown, type ConsentStatus, type WaitOutcome } from '../../lib/consent/consent-status';
import type { Subject } from '../../lib/outbox/records';
import { nodeError } from '../../lib/runtime/errors';
import type { Outcome } from '../../lib/outbox/outcome';
import { failedOutcome } from '../../lib/runtime/outcomes';
import type { Problem, ServiceError } from '../../lib/service/errors';

type ReasonNotAccepted = 'not_accepted' | 'dry_run' | 'unknown_number' | 'expired' | 'cancelled';

/** The failure that an outcome of the third output becomes when nothing is wired there. */
const errorFor = (reason: ReasonNotAccepted, subject: Subject, said: Partial<Problem>): ServiceError => {
  switch (reason) {
    case 'not_accepted':
    case 'dry_run':
      return nodeError('consent_required', 'not_accepted', {}, said);
    case 'expired':
      return nodeError('consent_required', 'consent_expired', {}, said);
    case 'cancelled':
      return nodeError('cancelled', 'wait_cancelled', {}, said);
    case 'unknown_number':
      return nodeError(
        'not_found',
        'phone' in subject ? 'unknown_number' : 'unknown_member',
        {},
        { status: 404, ...said },
      );
  }
};

export const accepted = (status: ConsentStatus): Outcome => ({ port: 0, payload: { ...status } });

/** `said` is what else is known for `msg.error`: the service's words, and the number of requests. */
export const notAccepted = (
  reason: ReasonNotAccepted,
  status: ConsentStatus,
  subject: Subject,
  said: Partial<Problem> = {},
): Outcome => ({
  port: 2,
  payload: { ...status, reason },
  problem: errorFor(reason, subject, said).problem,
});

/** The outcome of a wait or a check that `msg.reset` cancelled. */
export const cancelledWait = (status: ConsentStatus = nothingKnown): Outcome => ({
  port: 2,
  payload: { ...status, reason: 'cancelled' satisfies ReasonNotAccepted },
  problem: nodeError('cancelled', 'wait_cancelled').problem,
});

/** The problem as the service gave it, without its sentence and code: our own say what to do. */
const saidIn = ({ message: _message, code: _code, ...said }: Problem): Partial<Problem> => said;

export const outcomeOfWait = (ended: WaitOutcome, subject: Subject): Outcome => {
  if (ended.kind === 'accepted') return accepted(ended.status);
  if (ended.kind === 'failed') return failedOutcome(ended.problem);
  return notAccepted(ended.reason, ended.status, subject, ended.problem && saidIn(ended.problem));
};
