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

export type OwnCode = (typeof ownCodes)[number];

/** Whether a request that failed with this code may have been carried out. An unreadable 2xx probably was. */
export const mayBeCarriedOut = (code: string | undefined): boolean =>
  code === 'outcome_unknown' || code === 'invalid_response';

/** A later version of the service may send unknown codes: they are passed on. */
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

/** The sentence of an error as a key and values, so that it can be given in another language. */
interface Wording {
  readonly key: string;
  readonly values: MessageValues;
}

/** `msg.error` without its `source`, which only a node can add. */
export interface Problem extends ProblemFields {
  message: string;
  code: Code;
  retryable: boolean;
  attempts: number;
  /** Epoch milliseconds before which nothing may be sent. */
  notBefore?: number;
  /** A dry run: the problem is what would have happened. */
  dryRun?: true;
  /** Stored with the problem, so that it can be given in any language after a restart; not part of `msg.error`. */
  wording?: Wording;
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
}

/** Whether a request that failed without a problem body may be retried. */
const isRetryable = (code: Code): boolean => code === 'network_error' || code === 'authorization_required';

/**
 * Every sentence of lib/service, by key. A ServiceError carries its key and values beside the English sentence, so that
 * the runtime can say it in another language.
 */
export const sentences = {
  invalid_request: 'The service refused the request: __detail__',
  invalid_request_plain: 'The service refused the request: check the values that were sent.',
  unauthorized:
    'The service refused the access token, even after a refresh: check the API key in the environment, then authorize again.',
  unauthorized_bare:
    'A gateway or firewall, not the service, refused the access token, even after a refresh (HTTP 401): check the API key and the service address in the environment, then authorize again.',
  forbidden: 'The authorization does not include this permission: authorize again with __scope__ selected.',
  forbidden_bare:
    'A gateway or firewall, not the service, refused the request (HTTP 403): check the API key and the service address in the environment. If both are right, authorize again with __scope__ selected.',
  not_found: "The service found nothing with this id: check that it exists in this advisor's account.",
  not_found_phone:
    'No contact of this advisor has this phone number: check the number, or send it a consent request first.',
  not_found_bare:
    'A gateway or firewall, not the service, answered "not found" (HTTP 404): check the service address and the prefixes in the environment.',
  conflict: "The advisor's account is not set up to collect consent: contact the operator of the service.",
  conflict_other:
    "The service reports a conflict with the current state of the advisor's account: contact the operator of the service.",
  version_mismatch:
    'The service reports a version mismatch without saying which version: read the detail, and contact the operator of the service with the trace id.',
  rate_limited:
    'The service kept asking to slow down: send fewer texts at a time, or set Requests per second in the environment.',
  rate_limited_bare:
    'A gateway or firewall, not the service, kept asking to slow down (HTTP 429): send fewer texts at a time, or set Requests per second in the environment.',
  payload_too_large_bare:
    'A gateway or firewall, not the service, refused the request as too large (HTTP 413): send less in one request.',
  refused_bare:
    'A gateway or firewall, not the service, refused the request (HTTP __status__): check the service address and the API key in the environment. If both are right, contact the operator of the service.',
  payload_too_large: 'The service refused the request as too large: send less in one request.',
  unsupported_media_type:
    'The service refused the format of the request: check the service address, and update this package.',
  downstream_timeout: 'The service did not get an answer from its own platform in time: try again later.',
  downstream_unavailable: 'Part of the service is unavailable right now: try again later.',
  internal_error:
    'The service had an internal error: try again later. If it keeps happening, contact the operator with the trace id.',
  other_code:
    'The service answered "__code__": look the code up in its documentation, or contact its operator.',
  unreached:
    'The service could not be reached (__reason__): check the network and the service address, then try again.',
  read_failed: 'The service gave no usable answer (__reason__): try again later.',
  read_failed_bare:
    'A gateway or firewall answered instead of the service (__reason__): try again later. If it keeps happening, check the service address.',
  token_unreached:
    'The authorization service gave no usable answer (__reason__): check the network and the token address, then try again.',
  outcome_unknown:
    'The service gave no complete answer (__reason__), so this may or may not have been carried out: check before you try again.',
  outcome_unknown_bare:
    'A gateway or firewall answered instead of the service (__reason__), so this may or may not have been carried out: check before you try again.',
  invalid_response:
    'The service gave an answer that does not match its contract (__reason__): check the service address. If it is right, contact the operator.',
  unreadable_success:
    'The service reported success, but its answer cannot be read (__reason__). This was probably carried out: check before you try again.',
  redirect:
    'A gateway or firewall, not the service, answered with a redirect, which is never followed: correct the service address.',
  answer_too_large: "The service's answer was larger than 5 MB and was refused: request a smaller page.",
  invalid_input: 'Nothing was sent because a value is invalid: correct __field__ (__issue__).',
  abandoned: 'This was cancelled before it was carried out: send it again if you still need it.',
  client_refused:
    'The authorization service did not accept the client ID or client secret of "__name__": correct them in the environment.',
  scopes_refused:
    'The authorization service refused the permissions that "__name__" asks for: clear those that were not provisioned for your application, and check both prefixes.',
  token_type:
    'The authorization service issued a "__type__" token for "__name__", but only Bearer tokens can be used: ask the operator to issue Bearer tokens for your application.',
  token_later:
    'The token for "__name__" could not be refreshed because the authorization service failed (__reason__). The authorization is kept: try again later.',
  token_unstored:
    'The token for "__name__" was not refreshed because the new one could not be saved: free some disk space, or make the user directory writable. Refreshing then resumes on its own.',
  authorization_ended:
    'The authorization of "__advisor__" for "__name__" has ended: open the environment and authorize again.',
  not_authorized:
    'The advisor "__advisor__" has not authorized "__name__": open the environment and authorize.',
  token_unusable: 'The access token of this advisor cannot be used: authorize again.',
  key_missing:
    'The API key is missing or contains characters that cannot be sent: correct it in the environment.',
  address_invalid: 'The address in __setting__ is invalid: enter a full address that begins with https://.',
  address_insecure:
    'The address in __setting__ must begin with https://, unless it is on this machine: correct it.',
} as const;

export type ServiceErrorKey = keyof typeof sentences;

/**
 * Why there is no usable answer, in English; the other languages have these words under `reason` in their runtime.json.
 */
export const reasons = {
  timeout: 'timeout',
  aborted: 'aborted',
  too_large: 'too large',
  cancelled: 'cancelled',
  empty: 'empty',
  not_json: 'not JSON',
  another_shape: 'unexpected format',
  no_token: 'no token in its answer',
  unreachable: 'it could not be reached',
  limit: 'too many requests',
} as const;

export type ReasonKey = keyof typeof reasons;

/** A reason of ours, or the platform's own word, such as `ECONNREFUSED` or `HTTP 503`. */
export type ReasonWord = string | { readonly reason: ReasonKey };

/** A value that has its own word in each language. */
export type Term =
  | { readonly reason: ReasonKey }
  /** A setting of the environment, by its property. */
  | { readonly setting: string }
  /** A field of a node's form, such as `advisor-send-text.phone`. */
  | { readonly field: string; readonly isQuoted?: boolean };
/** A value that is filled into a sentence. */
export type MessageValue = string | number | Term | readonly (string | Term)[];
export type MessageValues = Readonly<Record<string, MessageValue>>;

/** Without a catalogue, fields and settings are called what the code calls them. */
const uncatalogued = (value: MessageValue): string | number => {
  if (typeof value !== 'object') return value;
  if ('reason' in value) return reasons[value.reason];
  if ('setting' in value) return value.setting;
  if ('field' in value) return value.field;
  return value.map(uncatalogued).join(', ');
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

/** Makes errors with the sentences of a table; `inEnglish` puts a value into words. */
export const errorMaker =
  <T extends Readonly<Record<string, string>>>(table: T, inEnglish = uncatalogued) =>
  (
    code: Code,
    key: keyof T & string,
    values: MessageValues = {},
    more: Partial<Problem> = {},
    origin?: ErrorOrigin,
  ): ServiceError =>
    new ServiceError(
      {
        message: fill(table[key] ?? key, inWords(values, inEnglish)),
        code,
        retryable: isRetryable(code),
        attempts: 0,
        ...more,
        wording: { key, values },
      },
      origin,
    );

export const serviceError = errorMaker(sentences);
