import should from 'should';
import { TokenEndpoints } from '../../lib/auth/token-endpoint';
import type { NodeSpec } from '../../lib/runtime/spec';
import { systemClock } from '../../lib/service/clock';
import { spec as checkConsent } from '../../nodes/check-consent/spec';
import { spec as contact } from '../../nodes/contact/spec';
import { spec as content } from '../../nodes/content/spec';
import { connectionOf } from '../../nodes/environment/config';
import { needsOf } from '../../nodes/environment/needs';
import { spec as group } from '../../nodes/group/spec';
import { spec as requestConsent } from '../../nodes/request-consent/spec';
import { spec as sendText } from '../../nodes/send-text/spec';

const asked = (node: object): string[] =>
  needsOf([{ id: 'n', environment: 'env', ...node }], 'env').map(({ endpoint }) => endpoint);

describe('what nodes need of the service', () => {
  const optionsOf = (spec: NodeSpec): readonly string[] => {
    const field = spec.fields.find(({ name }) => name === 'operation');
    return field && 'options' in field ? field.options : [''];
  };

  for (const spec of [checkConsent, contact, content, group, requestConsent, sendText])
    it(`is something for every operation of ${spec.type}, and never more than it declares`, () => {
      for (const operation of optionsOf(spec)) {
        const found = asked({ type: spec.type, ...(operation !== '' && { operation }) });
        should(found.length).be.above(0, operation);
        for (const endpoint of found) should(spec.uses).containEql(endpoint);
      }
    });

  it('is that of running nodes of the environment alone, by name', () => {
    const nodes = [
      { id: 'a', type: sendText.type, environment: 'env', name: 'greet' },
      { id: 'b', type: sendText.type, environment: 'other' },
      { id: 'c', type: sendText.type, environment: 'env', d: true },
      { id: 'tab', type: 'tab', disabled: true },
      { id: 'e', type: sendText.type, environment: 'env', z: 'tab' },
    ];
    should(needsOf(nodes, 'env')).eql([{ endpoint: 'sendMessage', node: '"greet"' }]);
    should(asked({ type: contact.type, operation: 'update', merge: false })).eql(['updateContact']);
    should(asked({ type: contact.type })).eql(['createContact']);
  });
});

it('a token endpoint has as long for its answer as the environment gives any request', async () => {
  const timeouts: number[] = [];
  const endpoints = new TokenEndpoints({
    clock: systemClock,
    post: (_address, _fields, { timeout }) => {
      timeouts.push(timeout);
      return Promise.resolve({ status: 200, text: '{"access_token":"t"}' });
    },
  });
  const connection = connectionOf('env', {
    ...{ service: 'sandbox', grant: 'client_credentials', timeout: 60 },
    ...{ baseUrl: 'https://a.example/v1', tokenUrl: 'https://a.example/token' },
    ...{ clientId: 'c', clientSecret: 's' },
  });
  await endpoints.run(connection, () => endpoints.clientCredentials(connection));
  should(timeouts).eql([60_000]);
});
