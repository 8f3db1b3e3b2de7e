import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';

const textOf = (name: string): string =>
  readFileSync(join(__dirname, '..', '..', '..', 'docs', 'scaling', name), 'utf8');

interface Service {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, object>>;
  readonly volumes?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly configs?: readonly { readonly source: string }[];
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, null>>;
  readonly configs: Readonly<Record<string, { readonly content: string }>>;
}

describe('the files of docs/scaling', () => {
  it('run three Node-RED instances, each with its own folder, on one database behind a proxy that knows them all', () => {
    const { services, volumes, configs } = parse(textOf('compose.yaml'), { merge: true }) as Compose;
    const instances = Object.entries(services).filter(([, { image }]) => image.startsWith('nodered/'));
    assert.equal(instances.length, 3);
    const folders = instances.map(([, service]) => service.volumes?.find((each) => each.endsWith(':/data')));
    assert.equal(new Set(folders).size, 3);
    for (const [, { environment, volumes: mounts = [] }] of instances) {
      // Node-RED saves flows by renaming a file onto them, which fails if that file is itself mounted.
      const flows = mounts.find((each) => each.endsWith(':/flows'));
      assert.equal(flows, './flows:/flows');
      assert.equal(environment?.['FLOWS'], '/flows/flows.json');
    }
    for (const [name, { environment, depends_on: needs, healthcheck }] of instances) {
      assert.match(environment?.['DATABASE_URL'] ?? '', /@database\//);
      assert.ok(environment?.['CREDENTIAL_SECRET']);
      assert.deepEqual(Object.keys(needs ?? {}), ['database']);
      assert.match(healthcheck?.test.join(' ') ?? '', /advisor-texting\/health/);
      assert.match(configs['proxy']?.content ?? '', new RegExp(`server ${name}:1880;`));
    }
    for (const service of Object.values(services)) {
      for (const { source } of service.configs ?? []) assert.ok(source in configs);
      for (const volume of service.volumes ?? [])
        assert.ok(volume.startsWith('./') || (volume.split(':')[0] ?? '') in volumes);
    }
  });

  it('run the same in a cluster: selectors match the pods, and readiness uses the right route', () => {
    const documents = parseAllDocuments(textOf('kubernetes.yaml'));
    for (const { errors } of documents) assert.deepEqual(errors, []);
    const byKind = new Map(
      documents
        .map((each) => each.toJS() as { kind: string; spec: object })
        .map((each) => [each.kind, each.spec]),
    );
    assert.deepEqual([...byKind.keys()], ['Deployment', 'Service', 'PodDisruptionBudget']);
    const deployment = byKind.get('Deployment') as {
      replicas: number;
      selector: { matchLabels: object };
      template: {
        metadata: { labels: object };
        spec: {
          terminationGracePeriodSeconds: number;
          containers: { readinessProbe: { httpGet: { path: string } }; env: { name: string }[] }[];
        };
      };
    };
    const { labels } = deployment.template.metadata;
    assert.equal(deployment.replicas, 3);
    assert.deepEqual(deployment.selector.matchLabels, labels);
    assert.deepEqual((byKind.get('Service') as { selector: object }).selector, labels);
    const budget = byKind.get('PodDisruptionBudget') as { selector: { matchLabels: object } };
    assert.deepEqual(budget.selector.matchLabels, labels);
    const [container] = deployment.template.spec.containers;
    assert.equal(container?.readinessProbe.httpGet.path, '/advisor-texting/health');
    assert.deepEqual(
      container.env.map(({ name }) => name),
      ['CREDENTIAL_SECRET', 'DATABASE_URL'],
    );
    // Node-RED closes its nodes for up to 15 seconds.
    assert.ok(deployment.template.spec.terminationGracePeriodSeconds > 15);
  });
});
