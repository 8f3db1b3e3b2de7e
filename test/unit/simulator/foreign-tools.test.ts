import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { parse, stringify } from 'yaml';
import { endpoints } from '../../../lib/service/endpoints';
import { startSimulator, type Simulator } from '../../../simulator';
import { root } from '../../support/installation';

interface Step {
  readonly stepId: string;
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly value: unknown }[];
  readonly requestBody?: { readonly contentType: string; readonly payload: object };
  readonly outputs?: Readonly<Record<string, string>>;
  readonly 'x-security': readonly object[];
  successCriteria?: readonly { readonly condition: string }[];
}
interface Workflows {
  readonly workflows: { readonly workflowId: string; inputs: object; readonly steps: Step[] }[];
}
interface Check {
  readonly name: string;
  readonly status: string;
  readonly message?: string;
}

const cli = createRequire(__filename).resolve('@redocly/cli/bin/cli.js');
const inputs = { type: 'object', properties: { oauth: { type: 'string' }, apiKey: { type: 'string' } } };

/** One operation after the other with what it takes, and 2xx for each: what a document alone cannot say. */
const canonical = (source: Pick<Step, 'x-security'>): Step[] => {
  const step = (operationId: string, more: Partial<Step> = {}): Step => ({
    stepId: operationId,
    operationId: `$sourceDescriptions.openapi.${operationId}`,
    'x-security': source['x-security'],
    successCriteria: [{ condition: '$statusCode < 300' }],
    ...more,
  });
  const body = (payload: object): Partial<Step> => ({
    requestBody: { contentType: 'application/json', payload },
  });
  const path = (name: string, value: string): Partial<Step> => ({
    parameters: [{ name, in: 'path', value }],
  });
  const contact = path('contactId', '$steps.createContact.outputs.id');
  const id = { outputs: { id: '$response.body#/id' } };
  return [
    step('createContact', { ...body({ firstName: 'Ann', phone: '+12025550190' }), ...id }),
    step('getContact', contact),
    step('updateContact', { ...contact, ...body({ firstName: 'Anne' }) }),
    step('createGroup', { ...body({ name: 'Friends' }), ...id }),
    step('setContactGroups', { ...contact, ...body({ groupIds: ['$steps.createGroup.outputs.id'] }) }),
    step('requestConsent', body({ phoneNumbers: ['+12025550190'] })),
    step('getConsent', { parameters: [{ name: 'phone', in: 'query', value: '+12025550190' }] }),
    step('sendMessage', body({ phone: '+12025550190', text: 'Hello' })),
    step('searchContacts'),
    step('searchGroups'),
    step('searchContent'),
    step('deleteGroup', path('groupId', '$steps.createGroup.outputs.id')),
    step('deleteContact', contact),
  ];
};

/** Redocly reads docs/openapi.json, generates requests from it, and checks each answer against it. */
describe('a public tool that tests a server from its OpenAPI document', () => {
  let simulator: Simulator;
  const folder = mkdtempSync(join(tmpdir(), 'advisor-texting-openapi-'));

  before(async () => {
    simulator = await startSimulator({ settings: { consentRequired: false } });
  });
  after(async () => {
    await simulator.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const redocly = (...args: string[]): Promise<string> =>
    new Promise((resolve) => {
      const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
      execFile(process.execPath, [cli, ...args], { cwd: folder, env }, (_fault, out, said) => {
        resolve(`${out}\n${said}`);
      });
    });

  it('accepts the simulator: each operation, with valid and with generated values', async function () {
    this.timeout(300_000);
    // The tool does not support ranges of statuses.
    const text = readFileSync(join(root, 'docs', 'openapi.json'), 'utf8').replaceAll('"2XX"', '"204"');
    const document = JSON.parse(text) as object;
    const servers = [{ url: simulator.baseUrl }];
    writeFileSync(join(folder, 'openapi.json'), JSON.stringify({ ...document, servers }));

    const said = await redocly('generate-arazzo', 'openapi.json', '-o', 'made-up.yaml');
    const made = parse(readFileSync(join(folder, 'made-up.yaml'), 'utf8')) as Workflows;
    for (const workflow of made.workflows) {
      workflow.inputs = inputs;
      // A rejection is fine if the document lists it.
      for (const step of workflow.steps) delete step.successCriteria;
    }
    const steps = canonical(made.workflows[0]?.steps[0] ?? { 'x-security': [] });
    should(steps.map(({ stepId }) => stepId).sort()).eql(Object.keys(endpoints).sort());
    made.workflows.push({ workflowId: 'canonical', inputs, steps });
    writeFileSync(join(folder, 'workflows.yaml'), stringify(made));

    const told = await redocly(
      'respect',
      'workflows.yaml',
      ...['--input', `oauth=${await simulator.accessToken('default')}`],
      ...['--input', `apiKey=${simulator.credentials.apiKey}`],
      ...['--json-output', 'report.json'],
    );
    const report = JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) as {
      files: Record<
        string,
        { executedWorkflows: { executedSteps: { stepId: string; checks: Check[] }[] }[] }
      >;
    };
    const executed = Object.values(report.files).flatMap(({ executedWorkflows }) =>
      executedWorkflows.flatMap(({ executedSteps }) => executedSteps),
    );
    const failed = executed.flatMap(({ stepId, checks }) =>
      checks.filter(({ status }) => status !== 'success').map((check) => ({ stepId, ...check })),
    );
    should(failed).eql([], `${said}\n${told}`);
    should(executed).have.length(2 * Object.keys(endpoints).length);
    for (const { stepId, checks } of executed) should(checks.length).be.aboveOrEqual(2, stepId);
  });
});
