import { hour, second } from '../durations';
import { elapsedBy, type Clock } from './clock';
import type { RepeatKind } from './endpoints';
import { RetryBudget } from './limits';

export type RepeatSends = 'never' | 'contract' | 'always';

/** The result of an attempt, as far as a retry is concerned. */
export type Happened =
  | { readonly what: 'done' }
  /** There was no connection, so the request cannot have been carried out. */
  | { readonly what: 'unreached' }
  /** There was a connection, but no complete answer. */
  | { readonly what: 'broken' }
  /** A 5xx without a problem body: a gateway answered for the service. */
  | { readonly what: 'gateway' }
  | { readonly what: 'unauthorized' }
  /** A 429 (RFC 6585, section 4); `retryAfter` in milliseconds from now, an hour at most, if it was sent. */
  | { readonly what: 'limited'; readonly retryAfter: number | undefined }
  | { readonly what: 'problem'; readonly status: number; readonly retryable: boolean }
  /** Any other final answer: a 3xx, a 4xx without a problem body, a 200 that does not fit. */
  | { readonly what: 'refused'; readonly status: number };

/** What has happened to this call so far. */
export interface Course {
  /** The number of retries that count against `retries`. */
  readonly retried: number;
  /** The token was refreshed after a 401. */
  readonly refreshed: boolean;
  /** The number of 429s, and the milliseconds since the first. */
  readonly limited: number;
  readonly limitedFor: number;
  /** Whether an earlier attempt may have been carried out: `unknown` had no answer, `problem` failed at the service. */
  readonly doubt: 'none' | 'problem' | 'unknown';
}

export interface Rules {
  readonly repeatSends: RepeatSends;
  readonly retries: number;
}

export type Decision =
  | { readonly do: 'succeed' }
  | { readonly do: 'refresh' }
  /** All requests wait, then this one is repeated. */
  | { readonly do: 'pause'; readonly ms: number }
  | { readonly do: 'repeat'; readonly ms: number }
  | { readonly do: 'fail'; readonly as: 'answered' | 'network_error' | 'outcome_unknown' };

const firstBackoff = 500;
const longestBackoff = 20 * second;

/** Backoff with full jitter, so that requests that failed together do not return together. */
export const backoff = (round: number, random: number): number =>
  random * Math.min(firstBackoff * 2 ** round, longestBackoff);

/** Milliseconds for which all requests pause after a 429, even if the call that got it fails. */
export const pauseAfter = (retryAfter: number | undefined, limited: number, random: number): number =>
  retryAfter !== undefined && retryAfter > 0 ? retryAfter : backoff(limited, random);

/** Whether the attempt may have been carried out without an answer. */
const inDoubt = (happened: Happened): boolean => happened.what === 'broken' || happened.what === 'gateway';

const mayRepeat = (kind: RepeatKind, happened: Happened, repeatSends: RepeatSends): boolean => {
  switch (happened.what) {
    case 'unreached':
      return true;
    case 'broken':
    case 'gateway':
      return kind !== 'once' || repeatSends === 'always';
    case 'problem':
      return happened.retryable && (kind !== 'once' || repeatSends !== 'never');
    default:
      return false;
  }
};

const fail = (kind: RepeatKind, happened: Happened, course: Course): Decision => {
  const refused = happened.what === 'refused' && happened.status >= 300;
  const settled = happened.what === 'problem' ? !happened.retryable : happened.what === 'refused' && !refused;
  if (settled) return { do: 'fail', as: 'answered' };
  const unanswered = happened.what === 'unreached' || inDoubt(happened);
  // After a problem such as a 504, the attempt may have been carried out. A later answer of the service settles that;
  // silence, or a gateway that refuses, does not.
  const mayBeDone =
    inDoubt(happened) || course.doubt === 'unknown' || ((unanswered || refused) && course.doubt !== 'none');
  if (kind !== 'read' && mayBeDone) return { do: 'fail', as: 'outcome_unknown' };
  return { do: 'fail', as: unanswered ? 'network_error' : 'answered' };
};

/** Decides what to do next, as a pure function. `budget` is what is left of the retry budget, `random` is from 0 to 1. */
export const decide = (
  kind: RepeatKind,
  happened: Happened,
  rules: Rules,
  course: Course,
  budget: number,
  random: number,
): Decision => {
  if (happened.what === 'done') return { do: 'succeed' };
  if (kind === 'delete' && course.doubt !== 'none' && 'status' in happened && happened.status === 404) {
    return { do: 'succeed' };
  }
  if (happened.what === 'unauthorized' && !course.refreshed) return { do: 'refresh' };
  if (happened.what === 'limited') {
    const ms = pauseAfter(happened.retryAfter, course.limited, random);
    if (course.limitedFor + ms <= hour) return { do: 'pause', ms };
  }
  if (
    mayRepeat(kind, happened, rules.repeatSends) &&
    course.retried < rules.retries &&
    budget >= RetryBudget.cost
  ) {
    return { do: 'repeat', ms: backoff(course.retried, random) };
  }
  return fail(kind, happened, course);
};

/** The doubt after an attempt that will be retried. */
export const doubtAfter = (doubt: Course['doubt'], happened: Happened): Course['doubt'] => {
  if (inDoubt(happened)) return 'unknown';
  return doubt === 'none' && happened.what === 'problem' ? 'problem' : doubt;
};

/** What has happened to a request so far, and what follows from its last attempt: for calls, tokens and checks. */
export class Retries implements Omit<Course, 'limitedFor'> {
  retried = 0;
  refreshed = false;
  limited = 0;
  doubt: Course['doubt'] = 'none';
  private limitedSince = 0;

  constructor(
    private readonly clock: Clock,
    private readonly random: () => number,
    readonly budget = new RetryBudget(),
  ) {}

  after(kind: RepeatKind, happened: Happened, rules: Rules): Decision {
    const now = elapsedBy(this.clock);
    if (this.limited === 0) this.limitedSince = now;
    const { retried, refreshed, limited, doubt, budget } = this;
    const course = { retried, refreshed, limited, limitedFor: now - this.limitedSince, doubt };
    const decision = decide(kind, happened, rules, course, budget.left, this.random());
    this.doubt = doubtAfter(doubt, happened);
    if (decision.do === 'refresh') this.refreshed = true;
    if (decision.do === 'pause') this.limited++;
    if (decision.do === 'repeat') {
      this.retried++;
      budget.spend();
    }
    return decision;
  }
}

const dateForm = /^([A-Za-z]{3,9},? |\d{4}-\d\d-\d\dT)/;
const zone = /(GMT|Z|[+-]\d\d:?\d\d)$/;

/**
 * *Retry-After* (RFC 9110, section 10.2.3) in milliseconds, at most an hour; undefined if unreadable. A date is compared
 * with that of the answer, because the service's clock may differ from ours; `now` is for answers without one.
 */
export const readRetryAfter = (value: string | undefined, now: number, answered = ''): number | undefined => {
  const said = value?.trim() ?? '';
  const sentAt = Date.parse(answered);
  const asked = (): number => {
    if (/^\d+(\.\d+)?$/.test(said)) return Number(said) * second;
    if (!dateForm.test(said)) return NaN;
    // The obsolete asctime format names no zone, and means GMT (RFC 9110, section 5.6.7).
    return Math.max(0, Date.parse(zone.test(said) ? said : `${said} GMT`) - (sentAt || now));
  };
  const ms = asked();
  return Number.isNaN(ms) ? undefined : Math.min(ms, hour);
};
