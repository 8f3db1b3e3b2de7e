import type { ConsentStatus, WaitOutcome } from '../../lib/consent/verdict';
import type { Subject } from '../../lib/consent/waits';
import { refuse } from '../../lib/runtime/messages';
import { failure, type Outcome } from '../../lib/runtime/outcomes';
import type { ServiceError } from '../../lib/service/problems';

type Reason = 'not_accepted' | 'unknown_number' | 'expired' | 'cancelled';

/** What the third output becomes when nobody is wired there. */
const asProblem = (reason: Reason, subject: Subject): ServiceError => {
  switch (reason) {
    case 'not_accepted':
      return refuse('consent_required', 'not_accepted');
    case 'expired':
      return refuse('consent_required', 'consent_expired');
    case 'cancelled':
      return refuse('cancelled', 'wait_cancelled');
    case 'unknown_number':
      return refuse(
        'not_found',
        'phone' in subject ? 'unknown_number' : 'unknown_member',
        {},
        { status: 404 },
      );
  }
};

export const accepted = (status: ConsentStatus): Outcome => ({ port: 0, payload: status });

export const notAccepted = (reason: Reason, status: ConsentStatus, subject: Subject): Outcome => ({
  port: 2,
  payload: { ...status, reason },
  problem: asProblem(reason, subject).problem,
});

export const outcomeOf = (ended: WaitOutcome, subject: Subject): Outcome => {
  if (ended.kind === 'accepted') return accepted(ended.status);
  return ended.kind === 'failed' ? failure(ended.problem) : notAccepted(ended.reason, ended.status, subject);
};
