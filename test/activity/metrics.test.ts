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
import type { RunningEnvironment } from '../../nodes/environment/environment';
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
      measured.pause();
      measured.refresh(true);
      measured.refresh(false);
      should(await read('advisor_texting.pauses')).deepEqual({ '': 1 });
      should(await read('advisor_texting.refreshes')).deepEqual({ renewed: 1, failed: 1 });
      should(JSON.stringify(exporter.getMetrics())).not.match(/secret|555|nobody|my send/);
    } finally {
      unobserve();
      await on.close();
    }
  });
});
