import { randomBytes } from 'node:crypto';
import { problemCodes, type ProblemCode } from './codes';
import type { Headers } from './http';

/** A request that the service rejects, in the words of the contract. */
export class Refusal extends Error {
  readonly status: number;
  readonly headers: Headers;
  readonly details: unknown;
  /** The answer comes from a gateway in front of the service and has no problem body. */
  readonly isBare: boolean;

  constructor(
    readonly code: ProblemCode,
    readonly detail: string,
    more: {
      readonly status?: number;
      readonly headers?: Headers;
      readonly details?: unknown;
      readonly isBare?: boolean;
    } = {},
  ) {
    super(detail);
    this.status = more.status ?? problemCodes[code].status;
    this.headers = more.headers ?? {};
    this.details = more.details;
    this.isBare = more.isBare ?? false;
  }
}

/** The refusal of a gateway or a firewall in front of the service. */
export const turnedAway = (detail: string): Refusal => new Refusal('forbidden', detail, { isBare: true });

/** The problem body, with every field that the contract requires (*Errors*, Problem body). */
export const problemBody = (refusal: Refusal, instance: string): string =>
  JSON.stringify({
    type: `urn:advisor-texting:problem:${refusal.code}`,
    title: problemCodes[refusal.code].title,
    status: refusal.status,
    detail: refusal.detail,
    instance,
    code: refusal.code,
    traceId: randomBytes(16).toString('hex'),
    retryable: problemCodes[refusal.code].retryable,
    ...(refusal.details === undefined ? {} : { details: refusal.details }),
  });

/** Seconds. */
export const defaultRetryAfter = 1;

/** The refusal of a fault or a magic number. */
export const injected = (
  code: ProblemCode,
  scope: string,
  retryAfter: number | string | undefined,
): Refusal => {
  const detail =
    code === 'forbidden'
      ? `The token lacks the scope ${scope}.`
      : `The simulator was told to answer ${code}.`;
  if (code !== 'rate_limited') return new Refusal(code, detail);
  return new Refusal(code, detail, { headers: { 'retry-after': retryAfter ?? defaultRetryAfter } });
};
