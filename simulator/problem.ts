import { randomBytes } from 'node:crypto';
import { serviceCodes, type ServiceCode } from '../lib/service/problems';
import type { Headers } from './http';

/** A request the service does not carry out, in the words of the contract. */
export class Refusal extends Error {
  readonly status: number;
  readonly headers: Headers;
  readonly details: unknown;

  constructor(
    readonly code: ServiceCode,
    readonly detail: string,
    more: { readonly status?: number; readonly headers?: Headers; readonly details?: unknown } = {},
  ) {
    super(detail);
    this.status = more.status ?? serviceCodes[code].status;
    this.headers = more.headers ?? {};
    this.details = more.details;
  }
}

const titles: Readonly<Record<ServiceCode, string>> = {
  invalid_request: 'Invalid request',
  unauthorized: 'Unauthorized',
  forbidden: 'Forbidden',
  not_found: 'Not found',
  conflict: 'Conflict',
  version_mismatch: 'Version mismatch',
  rate_limited: 'Too many requests',
  payload_too_large: 'Payload too large',
  unsupported_media_type: 'Unsupported media type',
  downstream_timeout: 'Downstream timeout',
  downstream_unavailable: 'Downstream unavailable',
  internal_error: 'Internal error',
};

const run = randomBytes(10).toString('hex');
let count = 0;
const nextTraceId = (): string => run + (count++).toString(16).padStart(12, '0');

/** The problem body, with every field the contract requires. */
export const problemBody = (refusal: Refusal, instance: string): string =>
  JSON.stringify({
    type: `urn:advisor-texting:problem:${refusal.code}`,
    title: titles[refusal.code],
    status: refusal.status,
    detail: refusal.detail,
    instance,
    code: refusal.code,
    traceId: nextTraceId(),
    retryable: serviceCodes[refusal.code].retryable,
    ...(refusal.details === undefined ? {} : { details: refusal.details }),
  });

/** The refusal of a fault or a magic number. */
export const injected = (
  code: ServiceCode,
  scope: string,
  retryAfter: number | string | undefined,
): Refusal => {
  const detail =
    code === 'forbidden'
      ? `The token lacks the scope ${scope}.`
      : `The simulator was told to answer ${code}.`;
  if (code !== 'rate_limited') return new Refusal(code, detail);
  return new Refusal(code, detail, { headers: { 'retry-after': retryAfter ?? 1 } });
};
