import type { Id } from '../service/endpoints';
import { ServiceError, type Problem } from '../service/problems';

/** What is known of a number's consent; null where nothing is. */
export interface ConsentStatus {
  readonly memberId: Id | null;
  readonly state: string | null;
  readonly lastChanged: number | null;
}

export const nothingKnown: ConsentStatus = { memberId: null, state: null, lastChanged: null };

/** How a wait ends. */
export type WaitOutcome =
  | { readonly kind: 'accepted'; readonly status: ConsentStatus }
  | {
      readonly kind: 'not_accepted';
      readonly reason: 'unknown_number' | 'expired' | 'cancelled';
      readonly status: ConsentStatus;
      /** The service's own word on a number it does not know. */
      readonly problem?: Problem;
    }
  | { readonly kind: 'failed'; readonly problem: Problem };

export const cancelled = (status = nothingKnown): WaitOutcome => ({
  kind: 'not_accepted',
  reason: 'cancelled',
  status,
});

/** What a look at the consent status came to: the end of a wait, or `waiting` with what was seen, or why nothing was. */
export type Verdict =
  | Exclude<WaitOutcome, { reason: 'expired' | 'cancelled' }>
  | { readonly kind: 'waiting'; readonly seen?: ConsentStatus; readonly why?: Problem };

export const statusOf = (data: {
  readonly memberId?: Id | null | undefined;
  readonly state: string;
  readonly lastChanged?: number | null | undefined;
}): ConsentStatus => ({
  memberId: data.memberId ?? null,
  state: data.state,
  lastChanged: data.lastChanged ?? null,
});

export const verdictOfStatus = (seen: ConsentStatus): Verdict =>
  seen.state === 'accepted' ? { kind: 'accepted', status: seen } : { kind: 'waiting', seen };

/** 4xx that say nothing about the number: authorization that may come back, a timeout, a limit on the rate. */
const passing = new Set([401, 408, 425, 429]);

/** Only the service's own word on the request ends a wait; what the network, a limit or a login does is waited out. */
export const verdictOfFault = (fault: unknown): Verdict => {
  if (!(fault instanceof ServiceError)) return { kind: 'waiting' };
  const { problem } = fault;
  const status = problem.status ?? 0;
  if (problem.code === 'authorization_required' || status < 400 || status > 499 || passing.has(status)) {
    return { kind: 'waiting', why: problem };
  }
  if (status === 404)
    return { kind: 'not_accepted', reason: 'unknown_number', status: nothingKnown, problem };
  return { kind: 'failed', problem };
};

/** Why the service as a whole did not answer; a lost authorization or a limit on the rate is told elsewhere. */
export const outageIn = (verdict: Verdict): Problem | undefined => {
  const why = verdict.kind === 'waiting' ? verdict.why : undefined;
  const isOutage = why?.code === 'network_error' || (why?.status ?? 0) >= 500;
  return isOutage ? why : undefined;
};
