/** The codes of the contract, each with the HTTP status it comes with and whether the service calls it retryable. */
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

/** Our own codes, for what the service cannot tell us. */
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
] as const;

export type OwnCode = (typeof ownCodes)[number];

/** A service that grows may send codes this version has not heard of: they pass through. */
export type Code = ServiceCode | OwnCode | (string & {});

export interface ProblemFields {
  status?: number;
  title?: string;
  detail?: string;
  details?: unknown;
  traceId?: string;
  instance?: string;
  type?: string;
}

/** The sentence of an error as a key and its values, for whoever says it in another language. */
interface Wording {
  readonly key: string;
  readonly values: Readonly<Record<string, string | number>>;
}

/** What becomes `msg.error`, less the `source` that only a node can add. */
export interface Problem extends ProblemFields {
  message: string;
  code: Code;
  retryable: boolean;
  attempts: number;
  /** Goes on record with the rest, so that a restart can say it in any language; it is not for `msg.error`. */
  wording?: Wording;
}

export interface ErrorOrigin {
  readonly cause?: unknown;
  readonly hasProblemBody?: boolean;
}

/** The one error of this package: a stable code, a sentence that says what to do, and what the service said. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly code: Code;

  /** Whether the service itself said this, in a problem body; without one it was a gateway, a firewall, or us. */
  readonly hasProblemBody: boolean;

  constructor(
    readonly problem: Problem,
    { hasProblemBody = false, ...options }: ErrorOrigin = {},
  ) {
    super(problem.message, options);
    this.code = problem.code;
    this.hasProblemBody = hasProblemBody;
  }
}

/** Where no problem body gave the service's word. */
export const isRetryable = (code: Code): boolean =>
  code === 'network_error' || code === 'authorization_required';

/** An error of ours, without a problem body behind it. */
export const problem = (
  code: Code,
  message: string,
  more: Partial<Problem> = {},
  cause?: unknown,
): ServiceError =>
  new ServiceError(
    { message, code, retryable: isRetryable(code), attempts: 0, ...more },
    cause === undefined ? undefined : { cause },
  );
