import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { rmSync } from 'node:fs';
import { place, type Kind, type Place } from '../support/security/canaries';
import { addressBook, authorizations, consents, renewals, sends } from '../support/security/paths';
import { CanaryRun } from '../support/security/run';
import { closeAll } from '../support/closing';
import { npm } from '../support/installation';

/** npm's successor of node-red-contrib-opentelemetry; it needs Node.js 22, as Node-RED 5 does. */
const tracer = process.argv[2] ?? '@frankvdb/node-red-contrib-opentelemetry@1.9.0';
const kinds: readonly Kind[] = ['secret', 'text', 'phone', 'person'];

/**
 * A real Node-RED with the tracer beside us. Canaries go through every path, and what the tracer exports
 * (OTLP over HTTP, as JSON) is searched for them.
 */
const main = async (): Promise<void> => {
  const exported: Place[] = [];
  const collector = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    request.on('end', () => {
      exported.push(place(request.url ?? '', text));
      response.setHeader('content-type', 'application/json').end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const url = `http://127.0.0.1:${String((collector.address() as AddressInfo).port)}/v1`;

  const run = await CanaryRun.start(5, {
    prepare: (userDir) => {
      npm(['install', '--ignore-scripts', '--no-audit', '--no-fund', '--legacy-peer-deps', tracer], userDir);
    },
    settings: {
      opentelemetry: {
        url: `${url}/traces`,
        logsUrl: `${url}/logs`,
        protocol: 'http',
        serviceName: 'Node-RED',
        tracesEnabled: true,
        logsEnabled: true,
        excludedNodeTypes: '',
        timeout: 5,
      },
    },
  });
  run.service.person = run.canaries.person('identity');
  for (const path of [authorizations, sends, consents, addressBook, renewals]) await path(run);
  const traces = (): Place[] => exported.filter(({ name }) => name.endsWith('/traces'));
  const spansOf = (of: readonly Place[]): { name: string; attributes: string }[] =>
    of.flatMap(({ bytes }) => {
      const { resourceSpans } = JSON.parse(bytes.toString('utf8')) as {
        resourceSpans: { scopeSpans: { spans: { name: string }[] }[] }[];
      };
      return resourceSpans.flatMap(({ scopeSpans }) =>
        scopeSpans.flatMap(({ spans }) =>
          spans.map((span) => ({ name: span.name, attributes: JSON.stringify(span) })),
        ),
      );
    });
  const isOurs = ({ attributes }: { attributes: string }): boolean => attributes.includes('"advisor-');
  const limit = Date.now() + 120_000;
  // It exports finished spans a few seconds later.
  for (
    let last = -1;
    Date.now() < limit && (last !== exported.length || spansOf(traces()).filter(isOurs).length < 100);
  ) {
    last = exported.length;
    await new Promise((resolve) => setTimeout(resolve, 8000));
  }
  await run.stop();
  collector.close();
  collector.closeAllConnections();
  await closeAll();
  rmSync(run.red.userDir, { recursive: true, force: true });

  const spans = spansOf(traces());
  const ours = spans.filter(isOurs);
  console.log(
    `${tracer}: ${String(spans.length)} spans, ${String(ours.length)} of our nodes, ${String(exported.length - traces().length)} exports of logs`,
  );
  const found = [
    ...run.canaries.found(
      spans.map(({ name, attributes }) => place(`span ${name}`, attributes)),
      kinds,
    ),
    ...run.canaries.found(
      exported.filter(({ name }) => !name.endsWith('/traces')),
      kinds,
    ),
  ];
  console.log(found.length === 0 ? 'No secret, text, number or name is in them.' : found.join('\n'));
  process.exit(found.length === 0 && ours.length > 0 ? 0 : 1);
};

void main();
