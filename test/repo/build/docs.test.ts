import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { endpoints } from '../../../lib/service/endpoints';
import { root } from '../../support/installation';

interface Shape {
  required?: string[];
  properties?: Record<string, unknown>;
}

interface Document {
  components: {
    schemas: Record<string, Shape>;
    securitySchemes: {
      oauth: { flows: Record<'clientCredentials' | 'authorizationCode', { scopes: Record<string, string> }> };
    };
  };
  openapi: string;
  paths: Record<string, Record<string, { operationId: string; security: { oauth: string[] }[] }>>;
}

const text = readFileSync(join(root, 'docs', 'openapi.json'), 'utf8');
const document = JSON.parse(text) as Document;

describe('the API docs', () => {
  it('pass a public OpenAPI validator as version 3.1', async () => {
    const { Validator } = await import('@seriousme/openapi-schema-validator');
    const validator = new Validator();
    const { valid, errors } = await validator.validate(JSON.parse(text) as Record<string, unknown>);
    should(errors).be.undefined();
    valid.should.be.true();
    validator.version.should.equal('3.1');
  });

  it('have every endpoint with its method, path and scope', () => {
    for (const [name, { method, path, scope }] of Object.entries(endpoints)) {
      const operation = document.paths[path]?.[method.toLowerCase()];
      should.exist(operation, name);
      should(operation?.operationId).equal(name);
      should(operation?.security).containDeep([{ oauth: [scope] }]);
    }
  });

  it('show the shape of the contract, and not everything that we tolerate', () => {
    const { schemas } = document.components;
    const shapeOf = (name: string): Shape => schemas[name] ?? {};
    const fieldOf = (name: string, field: string): unknown => shapeOf(name).properties?.[field];
    const phone = { type: 'string', pattern: '^\\+[1-9]\\d{7,14}$' };
    should(fieldOf('ContactInput', 'phone')).eql(phone);
    should(fieldOf('MessageRequest', 'phone')).eql(phone);
    should(shapeOf('ConsentRequestResult').required).eql(['successes', 'failures']);
    should(fieldOf('IdResult', 'id')).eql({ type: 'integer', minimum: 0 });
    should(fieldOf('ContactDetail', 'nickname')).eql({ type: 'string' });
    should(fieldOf('ContactDetail', 'gender')).eql({ type: 'number' });
    should(fieldOf('ContactDetail', 'groupIds')).eql({ type: 'array', items: { type: 'integer' } });
    should(fieldOf('ConsentStatus', 'memberId')).eql({ type: 'integer' });
    should(fieldOf('ConsentStatus', 'lastChanged')).eql({ type: 'number' });
    // In the contract, a scheduled text's messageId and a consent request's memberId and consentState are null.
    should(JSON.stringify(schemas).match(/"null"/g)).have.length(3);
  });

  it('declare client credentials for texting alone', () => {
    const { flows } = document.components.securitySchemes.oauth;
    should(Object.keys(flows.clientCredentials.scopes).sort()).eql([
      'openid',
      'text.messaging.read',
      'text.messaging.write',
    ]);
    should(Object.keys(flows.authorizationCode.scopes)).have.length(7);
  });

  it('show every endpoint on the readable page', () => {
    const page = readFileSync(join(root, 'docs', 'api.md'), 'utf8');
    for (const { method, path } of Object.values(endpoints)) page.should.containEql(`\`${method} ${path}\``);
  });
});
