import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { installedVersions } from '../../../nodes/environment/bundle';
import { bundle } from '../../../command/bundle';
import { settingsTold } from '../../../nodes/environment/bundle';
import { spec } from '../../../nodes/environment/spec';
import { visible } from '../../../lib/visible';
import { Canaries, place } from '../../support/security/canaries';
import { listen } from '../../support/server';
import { listenTo } from '../../support/command/setup';

describe('the command bundle', () => {
  let directory: string;
  let said: { out: string; err: string };

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'advisor-texting-bundle-'));
    said = { out: '', err: '' };
  });
  afterEach(() => {
    rmSync(directory, { recursive: true });
  });

  const run = async (args: readonly string[], variables: Record<string, string> = {}): Promise<number> => {
    const { code, out, err } = await listenTo(() => bundle(args, variables));
    said = { out, err };
    return code;
  };
  const withFlows = (...nodes: object[]): void => {
    writeFileSync(join(directory, 'flows.json'), JSON.stringify(nodes));
  };

  it('contains no secret, number, text or name, whatever the settings are', async () => {
    const canaries = new Canaries();
    const manners = [
      (name: string) => canaries.secret(name),
      (name: string) => canaries.phone(name),
      (name: string) => canaries.text(name),
      (name: string) => `https://${canaries.person(name)}:x@example.test/${canaries.secret(name)}`,
      (name: string) => [canaries.secret(name)],
      (name: string) => ({ [canaries.secret(name)]: canaries.text(name) }),
      (name: string) => `\${${canaries.secret(name)}}`,
    ];
    withFlows(
      ...manners.map((manner, index) => ({
        id: `env${String(index)}`,
        type: spec.type,
        ...Object.fromEntries(spec.fields.map(({ name }) => [name, manner(name)])),
        unknown: canaries.secret('unknown'),
      })),
      { id: 'other', type: 'function', func: canaries.text('function') },
    );
    should(await run(['--user-dir', directory])).equal(0);
    const { environments } = JSON.parse(said.out) as { environments: object[] };
    should(environments).have.length(manners.length);
    should(canaries.all.length).be.above(100);
    should(canaries.found([place('bundle', said.out)], ['secret', 'text', 'phone', 'person'])).eql([]);
  });

  it('contains what helps: versions, choices, numbers, hosts, and what is empty or set by a variable', async () => {
    const written = {
      service: 'sandbox',
      baseUrl: 'https://api.example.test/v1?key=1',
      tokenUrl: '${TOKEN_URL}',
      country: 'US',
      timeZone: 'America/New_York',
      retries: 4,
      journal: true,
      scopes: ['text.messaging.read', 'other'],
    };
    should(settingsTold(written)).containEql({
      service: 'sandbox',
      baseUrl: 'https://api.example.test',
      tokenUrl: 'variable',
      authUrl: 'empty',
      clientSecret: 'empty',
      country: 'US',
      timeZone: 'America/New_York',
      retries: 4,
      journal: true,
      scopes: ['text.messaging.read'],
    });
    withFlows({ id: 'env', type: spec.type, ...written });
    await run(['--user-dir', directory]);
    const { versions } = JSON.parse(said.out) as { versions: { node: string; package: string } };
    should(versions).containEql({ node: process.version });
    should(versions.package).match(/^\d+\.\d+\.\d+/);
  });

  it('asks a running Node-RED, with the token from a variable', async () => {
    const asked: unknown[] = [];
    const server = createServer(({ url, headers }, response) => {
      asked.push([url, headers.authorization]);
      response.setHeader('content-type', 'application/json').end('{"failures":[]}');
    });
    const port = await listen(server);
    withFlows({ id: 'env', type: spec.type });
    const url = `http://127.0.0.1:${String(port)}/red`;
    should(await run(['--user-dir', directory, '--url', url], { ADVISOR_TEXTING_ADMIN_TOKEN: 't' })).equal(0);
    should(asked).eql([['/red/advisor-texting/env/bundle', 'Bearer t']]);
    should(JSON.parse(said.out))
      .have.property('environments')
      .eql([{ failures: [] }]);
    server.closeAllConnections();
    server.close();
  });

  it('says what to do when there is no flow file', async () => {
    should(await run(['--user-dir', directory])).equal(2);
    should(said.err).match(/no flow file in .*--user-dir/);
  });

  it('escapes what is invisible in a terminal', async () => {
    const hostile = 'a\u009b31m\u202e';
    withFlows({ id: hostile, type: spec.type });
    should(await run(['--user-dir', directory])).equal(0);
    should(said.out).containEql(visible(hostile)).and.not.containEql(hostile);
    should(JSON.parse(said.out)).match({ environments: [{ environment: hostile }] });
    should(await run(['--user-dir', join(directory, hostile)])).equal(2);
    should(said.err).containEql(visible(hostile)).and.not.containEql(hostile);
  });
});

it('a support bundle names the version of each dependency, even of those that hide their package.json', () => {
  const { dependencies } = installedVersions(null) as { dependencies: Record<string, unknown> };
  for (const name of ['lmdb', 'undici', 'axios', 'zod', 'libphonenumber-js'])
    should([name, dependencies[name]]).match([name, /^\d+\.\d+\.\d+/]);
});
