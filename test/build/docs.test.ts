import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { endpoints } from '../../lib/service/endpoints';
import { root } from '../support/installation';

interface Document {
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

  it('show every endpoint on the page that people read', () => {
    const page = readFileSync(join(root, 'docs', 'api.md'), 'utf8');
    for (const { method, path } of Object.values(endpoints)) page.should.containEql(`\`${method} ${path}\``);
  });
});
