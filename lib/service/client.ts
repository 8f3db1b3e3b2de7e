import { Call, headerSafe } from './call';
import type { Shared } from './call';
import { closeLimit, systemClock } from './clock';
import { endpoints } from './endpoints';
import type { EndpointName, RequestOf } from './endpoints';
import { Limits } from './limits';
import { serviceError } from './errors';
import { type Plan, planEndpoint, type EndpointRequest } from './requests';
import { usualPrefixes } from './prefixes';
import { RetryBudget } from './retry';
import { createTransport, trustedUrl } from './transport';
import type { Answer, CallOptions, Client, ClientOptions } from './types';
import { second } from '../durations';

/** The settings of an environment that sets none of its own. */
export const requestDefaults = {
  timeout: 30 * second,
  retries: 4,
  maxConcurrent: 16,
  requestsPerSecond: 0,
} as const;

/** Throws ServiceError `not_configured` when the address or the API key cannot be used. */
export const createClient = (options: ClientOptions): Client => {
  const { timeout, retries, maxConcurrent, requestsPerSecond } = { ...requestDefaults, ...options };
  const base = trustedUrl(options.baseUrl, 'baseUrl');
  if (!headerSafe.test(options.apiKey)) throw serviceError('not_configured', 'key_missing');

  const clock = options.clock ?? systemClock;
  const limits = new Limits(clock, maxConcurrent, requestsPerSecond, options.share);
  const transport = createTransport({
    origin: base.origin,
    timeout,
    connections: maxConcurrent,
    proxy: options.proxy,
  });
  const closing = new AbortController();
  const shared: Shared = {
    transport,
    limits,
    budget: new RetryBudget(),
    clock,
    random: options.random ?? Math.random,
    rules: { retries, repeatSends: options.repeatSends ?? 'contract' },
    apiKey: options.apiKey,
    token: options.token,
    futile: new Map(),
    closing: closing.signal,
    paused: (until) => options.onPause?.(until),
    requested: options.onRequest,
  };

  const dialect = {
    names: new Map(Object.entries(options.names ?? {})),
    prefixes: options.prefixes ?? usualPrefixes,
  };
  const basePath = base.pathname.replace(/\/+$/, '');
  const plans = new Map<EndpointName, Plan>();
  for (const name of Object.keys(endpoints) as EndpointName[]) {
    plans.set(name, planEndpoint(name, basePath, dialect));
  }

  let underWay = 0;
  let allDone: (() => void) | undefined;
  let closed: Promise<void> | undefined;

  const close = async (within: number): Promise<void> => {
    closing.abort();
    limits.close();
    if (underWay > 0) {
      const finished = new Promise<void>((resolve) => (allDone = resolve));
      const cut = setTimeout(() => void transport.destroy(), within);
      await finished;
      clearTimeout(cut);
    }
    await transport.destroy();
  };

  return {
    async call<N extends EndpointName>(
      name: N,
      request: RequestOf<N>,
      callOptions: CallOptions,
    ): Promise<Answer<N>> {
      if (closing.signal.aborted || callOptions.signal?.aborted === true)
        throw serviceError('cancelled', 'abandoned');
      const plan = plans.get(name);
      if (plan === undefined)
        throw serviceError('invalid_input', 'invalid_input', { field: 'name', issue: 'unknown' });
      const wire = plan.wire(request as EndpointRequest);
      underWay++;
      try {
        return (await new Call(shared, plan, wire, callOptions).run()) as Answer<N>;
      } finally {
        if (--underWay === 0) allDone?.();
      }
    },
    get pausedUntil() {
      return limits.pausedUntil;
    },
    pause: (ms) => {
      limits.pause(ms);
    },
    takePeak: () => limits.takePeak(),
    close: (within = closeLimit) => (closed ??= close(within)),
  };
};
