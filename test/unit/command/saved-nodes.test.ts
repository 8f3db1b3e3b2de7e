import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import should from 'should';
import { TokenEndpoints } from '../../../lib/auth/token-endpoint';
import type { NodeSpec } from '../../../lib/runtime/spec';
import { systemClock } from '../../../lib/service/clock';
import { spec as contact } from '../../../nodes/contact/spec';
import { connectionOf } from '../../../nodes/environment/config';
import { needsOf } from '../../../nodes/environment/saved-nodes';
import { spec as sendText } from '../../../nodes/send-text/spec';

const load = createRequire(__filename);
const nodes = join(__dirname, '..', '..', '..', 'nodes');
const specs = readdirSync(nodes).flatMap((name) => {
  const path = join(nodes, name, 'spec.ts');
  return existsSync(path) ? [(load(path) as { spec: NodeSpec }).spec] : [];
});

const asked = (node: object): string[] =>
  needsOf([{ id: 'n', environment: 'env', ...node }], 'env').map(({ endpoint }) => endpoint);

describe("the nodes' use of the service", () => {
  const optionsOf = (spec: NodeSpec): readonly string[] => {
    const field = spec.fields.find(({ name }) => name === 'operation');
    return field && 'options' in field ? field.options : [''];
  };

  for (const spec of specs)
    it(`is known for every operation of ${spec.type} that calls the service, and all that it declares`, () => {
      const all = optionsOf(spec).flatMap((operation) => {
        const found = asked({ type: spec.type, ...(operation !== '' && { operation }) });
        if (spec.uses.length > 0) should(found.length).be.above(0, operation);
        return found;
      });
      should([...new Set(all)].sort()).eql([...new Set(spec.uses.map(({ endpoint }) => endpoint))].sort());
    });

  it('is that of running nodes of the environment alone, by name', () => {
    const nodes = [
      { id: 'a', type: sendText.type, environment: 'env', name: 'greet' },
      { id: 'b', type: sendText.type, environment: 'other' },
      { id: 'c', type: sendText.type, environment: 'env', d: true },
      { id: 'tab', type: 'tab', disabled: true },
      { id: 'e', type: sendText.type, environment: 'env', z: 'tab' },
    ];
    should(needsOf(nodes, 'env')).eql([
      { endpoint: 'sendMessage', node: '"greet"' },
      { endpoint: 'getConsent', node: '"greet"' },
    ]);
    const tabs = [
      { id: 'tab', type: 'tab', label: 'Campaign' },
      { id: 'a', type: sendText.type, environment: 'env', z: 'tab', name: 'greet' },
      { id: 'b', type: sendText.type, environment: 'env', z: 'tab' },
      { id: 'c', type: sendText.type, environment: 'env', z: 'tab' },
    ];
    should([...new Set(needsOf(tabs, 'env').map(({ node }) => node))]).eql([
      '"Campaign › greet"',
      '"Campaign › send text (SMS)" (b)',
      '"Campaign › send text (SMS)" (c)',
    ]);
    should(asked({ type: contact.type, operation: 'update', merge: false })).eql(['updateContact']);
    should(asked({ type: contact.type })).eql(['searchContacts']);
    should(asked({ type: 'advisor-unheard-of' })).eql([]);
  });
});

it("a token endpoint has the environment's request timeout", async () => {
  const timeouts: number[] = [];
  const endpoints = new TokenEndpoints({
    clock: systemClock,
    post: (_address, _fields, { timeout }) => {
      timeouts.push(timeout);
      return Promise.resolve({ status: 200, text: '{"access_token":"t"}' });
    },
  });
  const connection = connectionOf('env', {
    ...{ service: 'sandbox', grant: 'client_credentials', timeout: 20 },
    ...{ baseUrl: 'https://a.example/v1', tokenUrl: 'https://a.example/token' },
    ...{ clientId: 'c', clientSecret: 's' },
  });
  await endpoints.run(connection, () => endpoints.clientCredentials(connection));
  should(timeouts).eql([20_000]);
});
