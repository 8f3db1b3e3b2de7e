import english from '../../locales/en-US/runtime.json';
import { fill } from '../languages';
import { visible } from '../visible';

/** The codes of the contract (*Errors*, Codes), each with its HTTP status and whether it is retryable. */
export const serviceCodes = {
  invalid_request: { status: 400, retryable: false },
  unauthorized: { status: 401, retryable: false },
  forbidden: { status: 403, retryable: false },
  not_found: { status: 404, retryable: false },
  conflict: { status: 409, retryable: false },
  version_mismatch: { status: 400, retryable: false },
  rate_limited: { status: 429, retryable: true },
  payload_too_large: { status: 413, retryable: false },
  unsupported_media_type: { status: 415, retryable: false },
  downstream_timeout: { status: 504, retryable: true },
  downstream_unavailable: { status: 502, retryable: true },
  internal_error: { status: 500, retryable: true },
} as const;

export type ServiceCode = keyof typeof serviceCodes;

/** Our own codes, for failures that the service does not report. */
export const ownCodes = [
  'consent_required',
  'rejected',
  'invalid_input',
  'authorization_required',
  'network_error',
  'outcome_unknown',
  'invalid_response',
  'consent_limit',
  'cancelled',
  'stale',
  'not_configured',
  'queue_full',
  'blocked',
  'quiet_hours',
] as const;

/** Whether a request that failed with this code may have been carried out. An unreadable 2xx probably was. */
export const mayBeCarriedOut = (code: string | undefined): boolean =>
  code === 'outcome_unknown' || code === 'invalid_response';

/** A later version of the service may send unknown codes: they are passed on. */
export type Code = ServiceCode | (typeof ownCodes)[number] | (string & {});

/** `msg.error` without its `source`, which only a node can add. */
export interface Problem {
  message: string;
  code: Code;
  retryable: boolean;
  status?: number;
  title?: string;
  detail?: string;
  details?: unknown;
  traceId?: string;
  instance?: string;
  type?: string;
  attempts: number;
  /** Epoch milliseconds before which nothing may be sent. */
  notBefore?: number;
  /** A dry run: the problem is what would have happened. */
  dryRun?: true;
  /**
   * The sentence as a key and values. Stored with the problem, so that it can be given in any language after a restart; not
   * part of `msg.error`.
   */
  wording?: { readonly key: string; readonly values: MessageValues };
}

export interface ErrorOrigin {
  readonly cause?: unknown;
  readonly hasProblemBody?: boolean;
}

/** The one error class of this package: a stable code, a sentence that says what to do, and the service's words. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: Code;

  /** True when the service itself reported this in a problem body; else it comes from a gateway, a firewall, or us. */
  readonly hasProblemBody: boolean;

  constructor(
    readonly problem: Problem,
    { hasProblemBody = false, ...options }: ErrorOrigin = {},
  ) {
    super(problem.message, options);
    this.code = problem.code;
    this.hasProblemBody = hasProblemBody;
  }

  /** The same error, after so many requests. */
  after(attempts: number): ServiceError {
    const { cause, hasProblemBody } = this;
    return new ServiceError({ ...this.problem, attempts }, { cause, hasProblemBody });
  }
}

/** Whether the service itself says that the record does not exist: a 404 of a gateway says nothing about it. */
export const isGone = (fault: unknown): boolean =>
  fault instanceof ServiceError && fault.hasProblemBody && fault.problem.status === 404;

/** Whether a request that failed without a problem body may be retried. */
const isRetryable = (code: Code): boolean => code === 'network_error' || code === 'authorization_required';

/** The English sentences. An error has its key and values too, so that the runtime can say it in another language. */
export const sentences = english.errors;
export type ErrorKey = keyof typeof sentences;

export const reasons = english.reason;
export type ReasonKey = keyof typeof reasons;

/** A reason of ours, or the platform's own word, such as `ECONNREFUSED` or `HTTP 503`. */
export type ReasonWord = string | { readonly reason: ReasonKey };

/** A value that has its own word in each language. */
export type Term =
  | { readonly reason: ReasonKey }
  /** A setting of the environment, by its property. */
  | { readonly setting: string }
  | { readonly country: string }
  /** A field of a node's form, such as `advisor-send-text.phone`. */
  | { readonly field: string; readonly isQuoted?: boolean };
export type MessageValue = string | number | Term | readonly (string | Term)[];
export type MessageValues = Readonly<Record<string, MessageValue>>;

/** Fields and settings are called what the code calls them: the runtime says them again, as the forms do. */
const uncatalogued = (value: MessageValue): string | number => {
  if (typeof value !== 'object') return value;
  if ('map' in value) return value.map(uncatalogued).join(', ');
  return 'reason' in value ? reasons[value.reason] : String(Object.values(value)[0]);
};

/** The values of a sentence as it says them: many come from a message or from the service. */
export const inWords = (
  values: MessageValues,
  word: (value: MessageValue) => string | number,
): Record<string, string | number> => {
  const shown = (value: MessageValue): string | number => {
    const said = word(value);
    return typeof said === 'string' ? visible(said) : said;
  };
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, shown(value)]));
};

export const serviceError = (
  code: Code,
  key: ErrorKey,
  values: MessageValues = {},
  more: Partial<Problem> = {},
  origin?: ErrorOrigin,
): ServiceError =>
  new ServiceError(
    {
      message: fill(sentences[key], inWords(values, uncatalogued)),
      code,
      retryable: isRetryable(code),
      attempts: 0,
      ...more,
      wording: { key, values },
    },
    origin,
  );
