import { metrics as api } from '@opentelemetry/api';
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { setImmediate as nextTurn } from 'node:timers/promises';
import should from 'should';
import { metrics } from '../../lib/runtime/metrics';
import { createMemoryStore } from '../../lib/state/memory';
import { gaugesOf } from '../../nodes/environment/activity';
import type { Red } from '../../lib/runtime/red';
import * as checkRuntime from '../../nodes/check-consent/runtime';
import { spec as checkSpec } from '../../nodes/check-consent/spec';
import { RunningEnvironment } from '../../nodes/environment/environment';
import { servicesOf } from '../../nodes/environment/services';
import * as sendRuntime from '../../nodes/send-text/runtime';
import { spec as sendSpec } from '../../nodes/send-text/spec';
import { startSimulator } from '../../simulator';
import { refreshTokenFrom } from '../real/sandbox';
import { Flow } from '../support/flow';
import { startSimulated } from '../support/simulated';
import { inOrder, numbers, sendNode } from '../texting/setup';

type Counts = Record<string, number>;

describe('metrics', () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1_000_000 });
  const provider = new MeterProvider({ readers: [reader] });

  before(() => {
    api.setGlobalMeterProvider(provider);
  });
  after(async () => {
    await Flow.unload();
    await provider.shutdown();
    api.disable();
  });

  /** The sums of an instrument, by its labels. */
  const read = async (name: string): Promise<Counts> => {
    exporter.reset();
    await provider.forceFlush();
    const found: Counts = {};
    for (const { scopeMetrics } of exporter.getMetrics())
      for (const { metrics: all } of scopeMetrics)
        for (const { descriptor, dataPoints, dataPointType } of all)
          if (descriptor.name === name)
            for (const { attributes, value } of dataPoints)
              found[Object.values(attributes).join(' ')] =
                dataPointType === DataPointType.HISTOGRAM
                  ? (value as { count: number }).count
                  : (value as number);
    return found;
  };

  /** All labels of all instruments, as one text. */
  const labels = async (): Promise<string> => {
    exporter.reset();
    await provider.forceFlush();
    const found = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics)
      .flatMap(({ metrics: all }) => all)
      .flatMap(({ dataPoints }) => dataPoints.map(({ attributes }) => attributes));
    should(found.length).be.above(0);
    return JSON.stringify(found);
  };

  it('count what the simulator has received and what left the node, and name nobody', async () => {
    const measured = metrics();
    if (!measured) throw new Error('the API is not found');
    const on = await startSimulated(
      {},
      {
        store: createMemoryStore(),
        client: { onRequest: (about) => measured.request(about) },
      },
    );
    const unobserve = measured.observe(gaugesOf(on.environment as unknown as RunningEnvironment));
    try {
      const flow = await sendNode(on.environment);
      const phone = [numbers.consented, numbers.notConsented, numbers.landline, 'nobody', '+12065550101'];
      inOrder(await flow.ask({ phone, text: 'secret' }, phone.length));
      should(await read('advisor_texting.outcomes')).deepEqual({
        'advisor-send-text sent': 2,
        'advisor-send-text needsConsent': 1,
        'advisor-send-text failed rejected': 1,
        'advisor-send-text failed invalid_input': 1,
      });
      const ledger: Counts = {};
      for (const { endpoint, status } of on.simulator.ledger.entries()) {
        const name = `${String(endpoint)} ${String(status)}`;
        ledger[name] = (ledger[name] ?? 0) + 1;
      }
      should(await read('advisor_texting.requests')).deepEqual(ledger);
      should(await read('advisor_texting.request.duration')).deepEqual(ledger);
      // What has left is told a moment later.
      while ((await read('advisor_texting.queue'))['test-environment'] !== 0) await nextTurn();
      should(await read('advisor_texting.waits')).deepEqual({ 'test-environment': 0 });
      should(await labels()).not.match(/secret|555|nobody|my send/);
    } finally {
      unobserve();
      await Flow.unload();
      await on.close();
    }
  });

  it('count as the service does what an environment polls, renews and waits for', async () => {
    const before = {
      requests: await read('advisor_texting.requests'),
      polls: await read('advisor_texting.polls'),
    };
    const simulator = await startSimulator();
    const { baseUrl, authUrl, tokenUrl, credentials, ledger } = simulator;
    const quiet = (): void => undefined;
    const RED = { settings: { available: () => false }, log: { info: quiet, warn: quiet, error: quiet } };
    const refreshToken = await refreshTokenFrom(simulator);
    const addresses = {
      baseUrl,
      authUrl,
      tokenUrl,
      redirectUri: 'https://x.example/advisor-texting/callback',
    };
    const values = { name: 'Secret name', service: 'sandbox', ...addresses, ...credentials, refreshToken };
    const environment = new RunningEnvironment(
      servicesOf(RED as unknown as Red),
      'env1',
      { ...values, scopes: ['text.messaging.read', 'text.messaging.write', 'offline_access'] },
      () => undefined,
    );
    const unobserve = metrics()?.observe(gaugesOf(environment));
    const authorizing = ledger.entries().length;
    try {
      const flow = await Flow.load({
        folders: [
          { spec: sendSpec, runtime: sendRuntime },
          { spec: checkSpec, runtime: checkRuntime },
        ],
        environment,
        nodes: [
          { id: 'send', type: 'advisor-send-text', name: 'my send' },
          {
            id: 'waiting',
            type: 'advisor-check-consent',
            name: 'my wait',
            mode: 'wait',
            pollEvery: 1,
            pollFor: 60,
          },
        ],
      });
      // Answered 429 once: it pauses the environment.
      flow.send({ phone: '+12025550156', text: 'secret' }, 'send');
      await flow.arrivals.next();
      flow.send({ phone: [numbers.notConsented, '+12025550111'] }, 'waiting');
      const isAsked = ({ endpoint }: { endpoint: string | null }): boolean => endpoint === 'getConsent';
      while (ledger.entries().filter(isAsked).length < 4) await nextTurn();
      should((await read('advisor_texting.waits'))['env1']).equal(2);
      should((await read('advisor_texting.polls.lateness'))['env1']).be.aboveOrEqual(0);
      flow.send({ reset: true }, 'waiting');
      await flow.arrivals.next(2);
      const counted = (entries: readonly { endpoint: string | null; status: number }[]): Counts => {
        const counts: Counts = {};
        for (const { endpoint, status } of entries)
          counts[`${String(endpoint)} ${String(status)}`] =
            (counts[`${String(endpoint)} ${String(status)}`] ?? 0) + 1;
        return counts;
      };
      const more = (now: Counts, earlier: Counts): Counts =>
        Object.fromEntries(
          Object.entries(now)
            .map(([name, count]) => [name, count - (earlier[name] ?? 0)] as const)
            .filter(([, count]) => count > 0),
        );
      const sum = (counts: Counts): number => Object.values(counts).reduce((all, each) => all + each, 0);
      const made = async (): Promise<number> =>
        sum(more(await read('advisor_texting.requests'), before.requests));
      const received = (): number =>
        ledger
          .entries()
          .slice(authorizing)
          .filter(({ endpoint }) => endpoint !== 'token').length;
      // Nothing waits any more; the answer to the last poll may be on its way.
      while ((await made()) !== received()) await nextTurn();
      const entries = ledger.entries().slice(authorizing);
      const renewals = entries.filter(({ endpoint }) => endpoint === 'token');
      const requests = entries.filter(({ endpoint }) => endpoint !== 'token');
      should(more(await read('advisor_texting.requests'), before.requests)).deepEqual(counted(requests));
      const polls = requests.filter(isAsked);
      should(more(await read('advisor_texting.polls'), before.polls)).deepEqual({ 200: polls.length });
      should(await read('advisor_texting.pauses')).deepEqual({ '': 1 });
      should(await read('advisor_texting.refreshes')).deepEqual({ renewed: renewals.length });
      should(renewals.length).be.above(0);
      should(await labels()).not.match(/secret|555|my send|my wait|default/i);
    } finally {
      unobserve?.();
      await Flow.unload();
      await environment.close();
      await simulator.close();
    }
  });
});
