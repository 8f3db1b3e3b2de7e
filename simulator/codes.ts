/** The codes of the contract (*Errors*, Codes): the HTTP status, whether a request may be retried, and a title. */
export const problemCodes = {
  invalid_request: { status: 400, retryable: false, title: 'Invalid request' },
  unauthorized: { status: 401, retryable: false, title: 'Unauthorized' },
  forbidden: { status: 403, retryable: false, title: 'Forbidden' },
  not_found: { status: 404, retryable: false, title: 'Not found' },
  conflict: { status: 409, retryable: false, title: 'Conflict' },
  version_mismatch: { status: 400, retryable: false, title: 'Version mismatch' },
  rate_limited: { status: 429, retryable: true, title: 'Too many requests' },
  payload_too_large: { status: 413, retryable: false, title: 'Payload too large' },
  unsupported_media_type: { status: 415, retryable: false, title: 'Unsupported media type' },
  downstream_timeout: { status: 504, retryable: true, title: 'Downstream timeout' },
  downstream_unavailable: { status: 502, retryable: true, title: 'Downstream unavailable' },
  internal_error: { status: 500, retryable: true, title: 'Internal error' },
} as const;

export type ProblemCode = keyof typeof problemCodes;
