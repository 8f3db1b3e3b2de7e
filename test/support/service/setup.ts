import { createClient } from '../../../lib/service/client';
import { MovableClock } from '../../../simulator/movable-clock';
import {
  type Code,
  type Problem,
  type ServiceCode,
  serviceCodes,
  ServiceError,
} from '../../../lib/service/errors';
import type { Client, ClientOptions } from '../../../lib/service/client';
import { alsoClose } from '../closing';
import type { Reply } from '../server';

export const text = { body: { phone: '+14155550123', text: 'Hello' } };

export const problemReply = (code: ServiceCode, more: Record<string, unknown> = {}): Reply => ({
  status: serviceCodes[code].status,
  headers: { 'content-type': 'application/problem+json' },
  body: {
    type: `https://example.test/${code}`,
    title: code,
    status: serviceCodes[code].status,
    detail: `About ${code}`,
    instance: '/here',
    code,
    traceId: 'trace-1',
    retryable: serviceCodes[code].retryable,
    ...more,
  },
});

/** A clock that stands still until it is moved. */
export const frozenClock = (): MovableClock => {
  const start = Date.UTC(2025, 0, 15, 12);
  return new MovableClock(() => start);
};

export const clientOf = (url: string, options: Partial<ClientOptions> = {}): Client => {
  const client = createClient({
    baseUrl: `${url}/v1`,
    apiKey: 'key-1',
    token: () => 'token-1',
    clock: frozenClock(),
    random: () => 0.5,
    ...options,
  });
  alsoClose({ close: () => client.close(0) });
  return client;
};

/** The problem that a call fails with. */
export const problemOf = async (call: Promise<unknown>): Promise<Problem> => {
  try {
    await call;
  } catch (error) {
    if (error instanceof ServiceError) return error.problem;
    throw error;
  }
  throw new Error('the call succeeded');
};

export const codeOf = async (call: Promise<unknown>): Promise<Code> => (await problemOf(call)).code;

/** Moves the clock until the call has settled, and returns its result. */
export const settle = async <T>(clock: MovableClock, call: Promise<T>, step = 20_000): Promise<T> => {
  const progress = { settled: false };
  const done = call.finally(() => (progress.settled = true));
  done.catch(() => undefined);
  while (!progress.settled) await clock.move(step);
  return done;
};
