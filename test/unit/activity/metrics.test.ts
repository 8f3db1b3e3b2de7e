import { metrics as api } from '@opentelemetry/api';
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import helper from 'node-red-node-test-helper';
import should from 'should';
import { activityOf } from '../../../lib/runtime/activity';
import { metrics } from '../../../lib/runtime/metrics';
import { createMemoryStore } from '../../../lib/state/memory';
import { gaugesOf } from '../../../nodes/environment/sidebar-data';
import type { Red } from '../../../lib/runtime/red';
import { RunningEnvironment } from '../../../nodes/environment/environment';
import { servicesOf } from '../../../nodes/environment/services';
import { startSimulator } from '../../../simulator';
import { refreshTokenFrom } from '../../support/auth/setup';
import { nextIteration } from '../../support/event-loop';
import { Flow, type Arrived } from '../../support/flow';
import { root } from '../../support/installation';
import { numbers } from '../../support/numbers';
import { errorOf, inOrder } from '../../support/outcomes';
import { startSimulated } from '../../support/simulated';
import { checkFolder, sendFolder, sendNode } from '../../support/texting/setup';

type Counts = Record<string, number>;

/** The ledger's requests by label: 0 is a connection that was cut. */
const counted = (entries: readonly { endpoint: string | null; status: number }[]): Counts => {
  const counts: Counts = {};
  for (const { endpoint, status } of entries) {
    const name = `${String(endpoint)} ${status === 0 ? 'broken' : String(status)}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
};
const more = (now: Counts, earlier: Counts): Counts =>
  Object.fromEntries(
    Object.entries(now)
      .map(([name, count]) => [name, count - (earlier[name] ?? 0)] as const)
      .filter(([, count]) => count > 0),
  );
const sum = (counts: Counts): number => Object.values(counts).reduce((all, each) => all + each, 0);

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
      const phone = [numbers.consented, numbers.unasked, numbers.landline, 'nobody', '+12065550101'];
      inOrder(await flow.ask({ phone, text: 'secret' }, phone.length));
      should(await read('advisor_texting.outcomes')).deepEqual({
        'advisor-send-text sent': 2,
        'advisor-send-text needsConsent': 1,
        'advisor-send-text failed rejected': 1,
        'advisor-send-text failed invalid_input': 1,
      });
      const ledger = counted(on.simulator.ledger.entries());
      should(await read('advisor_texting.requests')).deepEqual(ledger);
      should(await read('advisor_texting.request.duration')).deepEqual(ledger);
      // What has left is reported a moment later.
      while ((await read('advisor_texting.queue'))['test-environment'] !== 0) await nextIteration();
      should(await read('advisor_texting.waits')).deepEqual({ 'test-environment': 0 });
      should(await labels()).not.match(/secret|555|nobody|my send/);
    } finally {
      unobserve();
      await Flow.unload();
      await on.close();
    }
  });

  it('count an outcome once if it left while the next node was already closed, as the list of failures does', async () => {
    const before = await read('advisor_texting.outcomes');
    const on = await startSimulated({}, { store: createMemoryStore(), settings: { journal: true } });
    try {
      await sendNode(on.environment);
      const leaving = new Promise<void>((resolve) => {
        helper.getNode('send')?.once('call:send', () => {
          // As the runtime does with a node that it closes.
          Object.assign(helper.getNode('send-out-1') ?? {}, { _inputCallback: null, _inputCallbacks: null });
          resolve();
        });
      });
      helper.getNode('send')?.receive({ phone: numbers.landline, text: 'Hi' });
      await leaving;
      await Flow.unload();
      const after = await sendNode(on.environment);
      const [told] = await after.arrivals.next();
      should(errorOf(told?.msg ?? {}).code).equal('rejected');
      should(told?.msg).not.have.property('repeated');
      should(more(await read('advisor_texting.outcomes'), before)).deepEqual({
        'advisor-send-text failed rejected': 1,
      });
      const activity = activityOf(on.environment);
      await activity.flush();
      should((await activity.failures({ page: 1, pageSize: 50 })).data).have.length(1);
    } finally {
      await Flow.unload();
      await on.close();
    }
  });

  it('count each attempt as the service does, over retries, cut connections, polls and restarts', async () => {
    const measured = metrics();
    const before = {
      requests: await read('advisor_texting.requests'),
      outcomes: await read('advisor_texting.outcomes'),
      polls: await read('advisor_texting.polls'),
    };
    const store = createMemoryStore();
    const on = await startSimulated(
      { settings: { consentRequired: false } },
      {
        store,
        settings: { journal: true },
        client: { onRequest: (about) => measured?.request(about), maxConcurrent: 4 },
      },
    );
    const { faults, ledger } = on.simulator;
    faults.add({ code: 'downstream_unavailable', next: 10, endpoint: 'sendMessage' });
    faults.add({ kind: 'cut-before', next: 3, endpoint: 'sendMessage' });
    faults.add({ kind: 'cut-after', next: 3, endpoint: 'sendMessage' });
    faults.add({ status: 429, retryAfter: 0, endpoint: 'sendMessage' });
    faults.add({ kind: 'cut-after', next: 2, endpoint: 'getConsent' });
    const load = (): Promise<Flow> =>
      Flow.load({
        folders: [sendFolder, checkFolder],
        environment: on.environment,
        nodes: [
          { id: 'send', type: 'advisor-send-text' },
          { id: 'waiting', type: 'advisor-check-consent', mode: 'wait', pollEvery: 1, pollFor: 60 },
        ],
      });
    const told: Counts = {};
    const count = (arrived: readonly Arrived[]): void => {
      for (const { msg, from } of arrived) {
        const code = msg.outcome === 'failed' ? [errorOf(msg).code] : [];
        const type = from === 'send' ? 'advisor-send-text' : 'advisor-check-consent';
        const name = [type, msg.outcome, ...code].join(' ');
        told[name] = (told[name] ?? 0) + 1;
      }
    };
    const total = 60;
    const phones = Array.from({ length: total }, (_, n) => `+1206555${String(1000 + n)}`);
    try {
      const first = await load();
      first.send({ phone: [numbers.silent, numbers.unasked] }, 'waiting');
      first.send({ phone: phones.slice(0, total / 2), text: 'secret' }, 'send');
      await first.arrivals.next(total / 2);
      await Flow.unload();
      const second = await load();
      second.send({ phone: phones.slice(total / 2), text: 'secret' }, 'send');
      await second.arrivals.next(total / 2);
      while (on.received('getConsent') < 4) await nextIteration();
      second.send({ reset: true }, 'waiting');
      while (second.arrivals.all.filter(({ from }) => from === 'waiting').length < 2) await nextIteration();
      count([...first.arrivals.all, ...second.arrivals.all]);
      const made = async (): Promise<number> =>
        sum(more(await read('advisor_texting.requests'), before.requests));
      // Nothing is waiting any more; the answer to the last poll may be on its way.
      while ((await made()) !== ledger.entries().length) await nextIteration();
      should(more(await read('advisor_texting.requests'), before.requests)).deepEqual(
        counted(ledger.entries()),
      );
      should(more(await read('advisor_texting.outcomes'), before.outcomes)).deepEqual(told);
      const polls = more(await read('advisor_texting.polls'), before.polls);
      should(sum(polls)).equal(on.received('getConsent'));
      should(polls['broken']).equal(2);
      // A text whose request was cut may have been sent: it is not retried.
      const sends = ledger.entries().filter(({ endpoint }) => endpoint === 'sendMessage');
      should(told['advisor-send-text failed outcome_unknown']).equal(6);
      should(sends.filter(({ status }) => status === 0)).have.length(6);
      should(sends.length).be.above(total);
    } finally {
      await Flow.unload();
      await on.close();
    }
  });

  it('count as the service does what an environment polls, refreshes and waits for', async () => {
    const before = {
      requests: await read('advisor_texting.requests'),
      polls: await read('advisor_texting.polls'),
    };
    const simulator = await startSimulator();
    const { baseUrl, authUrl, tokenUrl, credentials, ledger } = simulator;
    const quiet = (): void => undefined;
    const RED = { settings: { available: () => false }, log: { info: quiet, warn: quiet, error: quiet } };
    const scopes = ['text.messaging.read', 'text.messaging.write', 'offline_access'];
    const refreshToken = await refreshTokenFrom(simulator, { scopes: ['openid', ...scopes] }, 'default');
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
      { ...values, scopes },
      () => undefined,
    );
    const unobserve = metrics()?.observe(gaugesOf(environment));
    const authorizing = ledger.entries().length;
    try {
      const flow = await Flow.load({
        folders: [sendFolder, checkFolder],
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
      flow.send({ phone: [numbers.unasked, numbers.silent] }, 'waiting');
      const isAsked = ({ endpoint }: { endpoint: string | null }): boolean => endpoint === 'getConsent';
      while (ledger.entries().filter(isAsked).length < 4) await nextIteration();
      should((await read('advisor_texting.waits'))['env1']).equal(2);
      should((await read('advisor_texting.polls.lateness'))['env1']).be.aboveOrEqual(0);
      flow.send({ reset: true }, 'waiting');
      await flow.arrivals.next(2);
      const made = async (): Promise<number> =>
        sum(more(await read('advisor_texting.requests'), before.requests));
      const received = (): number =>
        ledger
          .entries()
          .slice(authorizing)
          .filter(({ endpoint }) => endpoint !== 'token').length;
      // Nothing is waiting any more; the answer to the last poll may be on its way.
      while ((await made()) !== received()) await nextIteration();
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

  /** The table of docs/operations.md. */
  const documented = (): Map<string, { readonly kind: string; readonly labels: string[] }> => {
    const page = readFileSync(join(root, 'docs', 'operations.md'), 'utf8');
    const rows = page.matchAll(/^\| `(advisor_texting\.[\w.]+)` +\| ([^|]+?) +\| ([^|]*?) *\|/gm);
    return new Map(
      Array.from(rows, ([, name = '', kind = '', labels = '']) => [
        name,
        { kind, labels: labels.match(/\w+/g) ?? [] },
      ]),
    );
  };
  const kinds: Readonly<Partial<Record<DataPointType, string>>> = {
    [DataPointType.SUM]: 'counter',
    [DataPointType.HISTOGRAM]: 'histogram',
    [DataPointType.GAUGE]: 'gauge',
  };

  it('are those in the documentation, with those labels, and no label contains what a person wrote', async () => {
    const measured = metrics();
    const hostile = [
      '+12025550111',
      'Ada Lovelace',
      'a secret text',
      'rate limit of +12025550111',
      '12025550111',
    ];
    for (const code of ['rejected', ...hostile]) measured?.outcome('advisor-send-text', 'failed', code);
    measured?.request({ endpoint: 'getConsent', status: 200, duration: 1, isPoll: true });
    measured?.refresh(true);
    measured?.pause();
    const one = (): Promise<number> => Promise.resolve(1);
    const unobserve = measured?.observe({ environment: 'env', waits: one, queue: one, lateBy: one });
    exporter.reset();
    await provider.forceFlush();
    unobserve?.();
    const found = exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics)
      .flatMap(({ metrics: all }) => all);
    const seen = new Map(
      found.map(({ descriptor: { name, unit }, dataPointType, dataPoints }) => [
        name,
        {
          kind: `${kinds[dataPointType] ?? ''}${unit === '' ? '' : ` (${unit})`}`,
          labels: [...new Set(dataPoints.flatMap(({ attributes }) => Object.keys(attributes)))].toSorted(),
        },
      ]),
    );
    const expected = [...documented()].map(
      ([name, { kind, labels }]) => [name, { kind, labels: labels.toSorted() }] as const,
    );
    should(Object.fromEntries(seen)).deepEqual(Object.fromEntries(expected));
    const allowed: Readonly<Record<string, RegExp>> = {
      node: /^advisor-[a-z-]+$/,
      outcome: /^[a-zA-Z]+$/,
      code: /^[a-z_]+$/,
      endpoint: /^[a-zA-Z]+$/,
      status: /^([1-5]\d\d|unreached|broken)$/,
      environment: /^(env1?|test-environment)$/,
    };
    for (const { dataPoints } of found)
      for (const { attributes } of dataPoints)
        for (const [label, value] of Object.entries(attributes))
          should(String(value)).match(allowed[label] ?? /^$/);
  });
});
