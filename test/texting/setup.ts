import type { Environment } from '../../lib/runtime/environment';
import type { Message } from '../../lib/runtime/red';
import * as checkRuntime from '../../nodes/check-consent/runtime';
import { spec as checkSpec } from '../../nodes/check-consent/spec';
import * as requestRuntime from '../../nodes/request-consent/runtime';
import { spec as requestSpec } from '../../nodes/request-consent/spec';
import * as sendRuntime from '../../nodes/send-text/runtime';
import { spec as sendSpec } from '../../nodes/send-text/spec';
import { Flow, type Arrived, type FlowOptions } from '../support/flow';

/** The texting nodes, as `Flow.load` takes them. */
export const sendFolder = { spec: sendSpec, runtime: sendRuntime };
export const checkFolder = { spec: checkSpec, runtime: checkRuntime };
export const requestFolder = { spec: requestSpec, runtime: requestRuntime };

export const folders = [sendFolder];

export const sendNode = (
  environment: Environment | undefined,
  config: Readonly<Record<string, unknown>> = {},
  more: Pick<FlowOptions, 'unwired'> = {},
): Promise<Flow> =>
  Flow.load({
    folders,
    ...(environment && { environment }),
    nodes: [{ id: 'send', type: 'advisor-send-text', name: 'my send', ...config }],
    ...more,
  });

/** The service's answer to a text that it has accepted. */
export const sent = { successes: [{ messageId: 9, memberId: 4 }], failures: [] };

/** Numbers that the simulator documents. */
export const numbers = {
  consented: '+12025550113',
  notConsented: '+12025550112',
  optedOut: '+12025550114',
  landline: '+12025550115',
} as const;

export interface MessageError {
  readonly code: string;
  readonly message: string;
  readonly detail?: string;
  readonly retryable: boolean;
  readonly attempts: number;
  readonly source: unknown;
}

export const errorOf = (msg: Message): MessageError => msg.error as MessageError;

/** Outcomes leave as they settle: back in list order, for a test to compare. */
export const inOrder = (arrived: readonly Arrived[]): Arrived[] =>
  arrived.toSorted(
    (a, b) => (a.msg.parts as { index: number }).index - (b.msg.parts as { index: number }).index,
  );

export const only = <T>(things: readonly T[]): T => {
  const [thing, ...others] = things;
  if (thing === undefined || others.length > 0) throw new Error(`${String(things.length)} instead of one`);
  return thing;
};
