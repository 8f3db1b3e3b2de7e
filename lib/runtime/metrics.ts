import { orMake, processMemory } from '../process-memory';
import type { Attributes, Meter, MeterProvider } from '@opentelemetry/api';
import { ownCodes, serviceCodes } from '../service/errors';
import type { ClientOptions } from '../service/client';
import { lazy } from './lazy';
import { second } from '../durations';

type Requested = Parameters<NonNullable<ClientOptions['onRequest']>>[0];

export interface Gauges {
  /** The id of the environment: its name is for people, and does not belong in a label. */
  readonly environment: string;
  waits(): Promise<number>;
  queue(): Promise<number>;
  /** Milliseconds by which polls are late. */
  lateBy(): Promise<number>;
}

const knownCodes: ReadonlySet<string> = new Set([...Object.keys(serviceCodes), ...ownCodes]);

/** No label holds numbers, texts, names or ids of people. docs/operations.md says what each instrument measures. */
const metricsOn = (meter: Meter) => {
  const outcomes = meter.createCounter('advisor_texting.outcomes');
  const requests = meter.createCounter('advisor_texting.requests');
  const durations = meter.createHistogram('advisor_texting.request.duration', { unit: 's' });
  const polls = meter.createCounter('advisor_texting.polls');
  const refreshes = meter.createCounter('advisor_texting.refreshes');
  const pauses = meter.createCounter('advisor_texting.pauses');
  const observed = new Set<Gauges>();
  const gauge = (name: string, read: (gauges: Gauges) => Promise<number>, unit = ''): void => {
    meter.createObservableGauge(name, { unit }).addCallback(async (result) => {
      for (const each of observed) {
        const value = await read(each).catch(() => undefined);
        if (value !== undefined) result.observe(value, { environment: each.environment });
      }
    });
  };
  gauge('advisor_texting.waits', (gauges) => gauges.waits());
  gauge('advisor_texting.queue', (gauges) => gauges.queue());
  gauge('advisor_texting.polls.lateness', async (gauges) => (await gauges.lateBy()) / second, 's');
  return {
    /** Called when a recipient, contact, group or item has left a node. */
    outcome(node: string, outcome: string, code: string | undefined): void {
      // A service may send any other text as a code: all of those share one label.
      const known = code === undefined || knownCodes.has(code) ? code : 'other';
      outcomes.add(1, { node, outcome, ...(known !== undefined && { code: known }) });
    },
    request: ({ endpoint, status, duration, isPoll }: Requested): void => {
      const about: Attributes = { endpoint, status };
      requests.add(1, about);
      durations.record(duration / second, about);
      if (isPoll) polls.add(1, { status });
    },
    refresh(isRenewed: boolean): void {
      refreshes.add(1, { outcome: isRenewed ? 'renewed' : 'failed' });
    },
    pause(): void {
      pauses.add(1);
    },
    observe(gauges: Gauges): () => void {
      observed.add(gauges);
      return () => {
        observed.delete(gauges);
      };
    },
  };
};

type Metrics = ReturnType<typeof metricsOn>;
type Api = ReturnType<typeof lazy.openTelemetry>;

let api: Api | null | undefined;
const metricsByProvider = processMemory('metrics', new WeakMap<MeterProvider, Metrics>());

/** The metrics, where `@opentelemetry/api` is installed; elsewhere nothing is measured. */
export const metrics = (): Metrics | undefined => {
  try {
    if (api === undefined) api = lazy.openTelemetry();
  } catch {
    // An optional peer, which most installations lack.
    api = null;
  }
  const provider = api?.metrics.getMeterProvider();
  if (!provider) return undefined;
  return orMake(metricsByProvider, provider, () => metricsOn(provider.getMeter('@advisor-texting/node-red')));
};
