import { nothingKnown, type ConsentStatus, type WaitOutcome } from '../../lib/consent/consent-status';
import type { Subject } from '../../lib/outbox/records';
import { nodeError } from '../../lib/runtime/errors';
import type { Outcome } from '../../lib/outbox/outcome';
import { failedOutcome } from '../../lib/runtime/outcomes';
import type { Problem } from '../../lib/service/errors';

/** The failure that an outcome of the third output becomes when nothing is wired there: its code and its sentence. */
const failures = {
  not_accepted: ['consent_required', 'not_accepted'],
  dry_run: ['consent_required', 'not_accepted'],
  expired: ['consent_required', 'consent_expired'],
  cancelled: ['cancelled', 'wait_cancelled'],
  unknown_number: ['not_found', 'unknown_number'],
} as const;

export const accepted = (status: ConsentStatus): Outcome => ({ port: 0, payload: { ...status } });

/** `said` is what else is known for `msg.error`: the service's words, and the number of requests. */
export const notAccepted = (
  reason: keyof typeof failures,
  status: ConsentStatus,
  subject?: Subject,
  said: Partial<Problem> = {},
): Outcome => {
  const [code, key] = failures[reason];
  const isUnknown = reason === 'unknown_number';
  const sentence = isUnknown && subject && 'memberId' in subject ? 'unknown_member' : key;
  const { problem } = nodeError(code, sentence, {}, { ...(isUnknown && { status: 404 }), ...said });
  return { port: 2, payload: { ...status, reason }, problem };
};

/** The outcome of a wait or a check that `msg.reset` cancelled. */
export const cancelledWait = (status: ConsentStatus = nothingKnown): Outcome =>
  notAccepted('cancelled', status);

/** The problem as the service gave it, without its sentence and code: our own say what to do. */
const saidIn = ({ message: _message, code: _code, ...said }: Problem): Partial<Problem> => said;

export const outcomeOfWait = (ended: WaitOutcome, subject: Subject): Outcome => {
  if (ended.kind === 'accepted') return accepted(ended.status);
  if (ended.kind === 'failed') return failedOutcome(ended.problem);
  return notAccepted(ended.reason, ended.status, subject, ended.problem && saidIn(ended.problem));
};
