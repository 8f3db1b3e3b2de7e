import type { ResponseOf } from '../service/endpoints';
import { type Problem, ServiceError } from '../service/errors';
import { hour, minute } from '../durations';
import type { Seen } from '../outbox/records';

/** The known consent status of a number; null if it is unknown. */
export type ConsentStatus = Seen;

export const nothingKnown: ConsentStatus = { memberId: null, state: null, lastChanged: null };

export type WaitOutcome =
  | { readonly kind: 'accepted'; readonly status: ConsentStatus }
  | {
      readonly kind: 'not_accepted';
      readonly reason: 'unknown_number' | 'expired' | 'cancelled';
      readonly status: ConsentStatus;
      /** The service's problem for a number that it does not know. */
      readonly problem?: Problem;
    }
  | { readonly kind: 'failed'; readonly problem: Problem };

export const cancelled = (status = nothingKnown): WaitOutcome => ({
  kind: 'not_accepted',
  reason: 'cancelled',
  status,
});

export type LookResult =
  | { readonly kind: 'accepted'; readonly status: ConsentStatus }
  /** Any other state, also one that the contract does not name. */
  | { readonly kind: 'pending'; readonly status: ConsentStatus }
  /** The service says that it does not know the number. */
  | { readonly kind: 'unknown_number'; readonly problem: Problem }
  /** The service itself refuses the request. */
  | { readonly kind: 'refused'; readonly problem: Problem }
  /** Nothing was learned about the number. */
  | { readonly kind: 'unanswered'; readonly problem?: Problem };

export const consentStatusOf = ({
  memberId = null,
  state,
  lastChanged = null,
}: ResponseOf<'getConsent'>): ConsentStatus => ({
  memberId,
  // The contract lists the values that were seen, and does not say that case matters.
  state: state.toLowerCase() === 'accepted' ? 'accepted' : state,
  lastChanged,
});

/** Statuses that say nothing about the number: unauthorized, too many requests. */
const temporaryStatuses = new Set([401, 429]);

/**
 * Only an answer with a problem body is the service's own word: any other comes from a gateway or a firewall. Faults of
 * the network, a rate limit or a login will pass, so they end no wait.
 */
export const resultOfFault = (fault: unknown): LookResult => {
  if (!(fault instanceof ServiceError)) return { kind: 'unanswered' };
  const { problem, hasProblemBody } = fault;
  const status = problem.status ?? 0;
  const isRefusal = hasProblemBody && status >= 400 && status <= 499 && !temporaryStatuses.has(status);
  if (!isRefusal || problem.code === 'authorization_required') return { kind: 'unanswered', problem };
  return { kind: status === 404 ? 'unknown_number' : 'refused', problem };
};

/** Codes that are shown elsewhere: as the state of the advisor, as the pause of the environment, or by its close. */
const shownElsewhere = new Set(['authorization_required', 'rate_limited', 'cancelled']);

/** Why a look was not answered, for a status. */
export const outageIn = (result: LookResult): Problem | undefined => {
  if (result.kind !== 'unanswered' || result.problem === undefined) return undefined;
  return shownElsewhere.has(result.problem.code) ? undefined : result.problem;
};

/** Milliseconds after a request for consent in which a 404 means nothing: the service may not know the number yet. */
const unknownAtFirst = 5 * minute;
/** Milliseconds for which the last look is retried while it is not answered. */
const lastLookFor = hour;

export interface WaitAtLook {
  /** How old the wait was when the request began. */
  readonly age: number;
  /** Milliseconds from the end of the wait to the request, without times when nobody could look; negative before. */
  readonly overdue: number;
  readonly seen: ConsentStatus;
}

/** How a look ends a wait; undefined when the wait goes on. */
export const outcomeAfter = (
  result: LookResult,
  { age, overdue, seen }: WaitAtLook,
): WaitOutcome | undefined => {
  const isLast = overdue >= 0;
  const expired: WaitOutcome = { kind: 'not_accepted', reason: 'expired', status: seen };
  switch (result.kind) {
    case 'accepted':
      return result;
    case 'pending':
      return isLast ? { ...expired, status: result.status } : undefined;
    case 'unknown_number':
      if (age < unknownAtFirst && !isLast) return undefined;
      return {
        kind: 'not_accepted',
        reason: 'unknown_number',
        status: nothingKnown,
        problem: result.problem,
      };
    case 'refused':
      return { kind: 'failed', problem: result.problem };
    case 'unanswered':
      return overdue >= lastLookFor ? expired : undefined;
  }
};
