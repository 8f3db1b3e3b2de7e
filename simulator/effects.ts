import { z } from 'zod';
import type { EndpointName } from '../lib/service/endpoints';
import { problemCodes, type ProblemCode } from './codes';

/** Faults other than a problem body. Each is something that a network, a gateway or a bug really does. */
const effectKinds = [
  'cut-before',
  'cut-after',
  'cut-inside',
  'slow',
  'gateway',
  'empty',
  'truncated',
  'malformed',
] as const;
export type EffectKind = (typeof effectKinds)[number];

const codes = Object.keys(problemCodes) as [ProblemCode, ...ProblemCode[]];

export const effectFields = {
  /** A problem body with this code and its status. */
  code: z.enum(codes).optional(),
  /** This status, without a problem body. */
  status: z.int().min(400).max(599).optional(),
  kind: z.enum(effectKinds).optional(),
  /** The *Retry-After* header of a 429 or 503: seconds, or any text, sent unchanged. */
  retryAfter: z.union([z.number(), z.string()]).optional(),
  /** Seconds until a slow answer, by the simulator's clock. */
  delay: z.number().min(0).optional(),
  /** Whether the request is carried out before the error is sent; by default only if the kind implies it. */
  processed: z.boolean().optional(),
};

export type Effect = z.output<z.ZodObject<typeof effectFields>>;

export type FaultTarget = EndpointName | 'token';

/** A fault to inject: what happens, to which requests, and how often. */
export interface Fault extends Effect {
  /** Without an endpoint, the fault applies to every request of the contract, but not to the token endpoint. */
  readonly endpoint?: FaultTarget | undefined;
  /** The fault applies only to requests that name this number. */
  readonly phone?: string | undefined;
  /** The share of requests that meet the fault, 0 to 1, drawn from the seeded random source. */
  readonly rate?: number | undefined;
  /** The number of requests that meet the fault before it ends. Without `rate` and `next`, one. */
  readonly next?: number | undefined;
}

export const defaultDelay = 5;

const processedKinds: ReadonlySet<string> = new Set([
  'cut-after',
  'cut-inside',
  'slow',
  'truncated',
  'malformed',
]);

export const isProcessed = ({ kind, processed }: Effect): boolean =>
  processed ?? (kind !== undefined && processedKinds.has(kind));

/** The name of the effect in the ledger. */
export const effectName = ({ code, kind, status }: Effect): string =>
  code ?? kind ?? `status ${String(status)}`;
