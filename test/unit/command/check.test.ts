import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { operationScopes } from '../../../lib/contract-values';
import { environmentFor, startSimulator, type Simulator, type SimulatorOptions } from '../../../simulator';
import { refreshTokenFrom } from '../../support/auth/setup';
import { runCheck as run, serviceChecks } from '../../support/command/setup';
import { asCompiled } from '../../support/compiled';

interface Line {
  readonly check: string;
  readonly ok: boolean | null;
  readonly mark: string;
  readonly message: string;
}

describe('the command check', function () {
  this.timeout(120_000);
  let simulator: Simulator;
  let directory: string;
  const redirectUri = 'http://localhost/back';

  const start = async (options: SimulatorOptions = {}): Promise<void> => {
    simulator = await startSimulator(options);
  };
  const runProcess = async (args: string[], variables: Record<string, string>) => {
    const command = join(__dirname, '..', '..', '..', 'command', 'advisor-texting.ts');
    const { PATH = '', HOME = '', ADVISOR_TEXTING_COMPILED = '' } = process.env;
    const child = spawn(process.execPath, [...asCompiled, command, 'check', ...args], {
      env: { PATH, HOME, LANG: 'en', ADVISOR_TEXTING_COMPILED, ...variables },
    });
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    return { code, out, err };
  };
  const variables = (): Record<string, string> => ({
    ADVISOR_TEXTING_BASE_URL: simulator.baseUrl,
    ADVISOR_TEXTING_TOKEN_URL: simulator.tokenUrl,
    ADVISOR_TEXTING_GRANT: 'client_credentials',
    ADVISOR_TEXTING_SCOPES: operationScopes.join(' '),
    ADVISOR_TEXTING_CLIENT_ID: simulator.credentials.clientId,
    ADVISOR_TEXTING_CLIENT_SECRET: simulator.credentials.clientSecret,
    ADVISOR_TEXTING_API_KEY: simulator.credentials.apiKey,
  });
  const reads = (): void => {
    simulator.ledger
      .entries()
      .filter(({ method, endpoint }) => method !== 'GET' && endpoint !== 'token')
      .should.eql([]);
  };

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'check-'));
  });
  afterEach(async () => {
    rmSync(directory, { recursive: true, force: true });
    await simulator.close();
  });

  it('takes its settings from variables, prints a line for each check, and exits with 0', async () => {
    await start();
    const { code, out, err } = await runProcess([], variables());
    should({ code, err }).eql({ code: 0, err: '' });
    for (const check of serviceChecks) out.should.match(new RegExp(`^ok +${check} `, 'm'));
    out.should.not.containEql(simulator.credentials.apiKey);
    out.should.not.containEql(simulator.credentials.clientSecret);
    reads();
  });

  it('takes them from a file with variables, whose values it does not print; foreign service', async () => {
    await start({ profile: 'foreign' });
    const file = join(directory, 'settings.json');
    const { credentials, tokenUrl } = simulator;
    const grant = { grant: 'client_credentials', scopes: operationScopes };
    const properties = { tokenUrl, ...grant, baseUrl: '${THE_ADDRESS}', credentials };
    writeFileSync(file, JSON.stringify({ ...properties, ...environmentFor(simulator.settings.habits) }));
    const told = await run(['--settings', file, '--json'], { THE_ADDRESS: simulator.baseUrl });
    should(told.code).equal(0);
    const lines = JSON.parse(told.out) as Line[];
    lines
      .map(({ ok }) => ok)
      .should.eql([true, true, true, true, true, true, null, null, true, true, null, true, true]);
    lines.map(({ mark }) => mark).should.not.containEql('untried');
    lines[0]?.message.should.match(/at \$\{THE_ADDRESS\}\.$/);

    writeFileSync(file, JSON.stringify({ ...properties, corePrefix: 'crm', textPrefix: 'sms' }));
    const unclear = await run(['--settings', file, '--json'], { THE_ADDRESS: simulator.baseUrl });
    should(unclear.code).equal(1);
    const names = (JSON.parse(unclear.out) as Line[]).find(({ check }) => check === 'names');
    should(names).match({ ok: false, message: /"page":"pageNumber"/ });
    reads();
  });

  it('blames refused scopes on the scopes, not on the client secret', async () => {
    await start({ profile: 'foreign' });
    const { code, out } = await run([], variables());
    should(code).equal(1);
    out.should.match(/^WRONG token .*refused the permissions/m);
  });

  it('uses no refresh token unless asked to, and then loses no new one', async () => {
    await start({ settings: { rotateRefreshTokens: true, redirectUris: ['http://localhost/back'] } });
    const { ADVISOR_TEXTING_GRANT: _, ...rest } = variables();
    const withToken = { ...rest, ADVISOR_TEXTING_REFRESH_TOKEN: 'never-issued' };
    const unused = await run([], withToken);
    // Nothing is wrong, but next to nothing was tested.
    should(unused.code).equal(2);
    unused.out.should.match(/^\? +token .*--url URL.*ACCESS_TOKEN.*--use-refresh-token FILE/m);
    unused.out.should.match(/^\? +apiKey .*Not tested/m);
    // A token that was never issued.
    simulator.ledger
      .entries()
      .flatMap(({ endpoint, outcome }) => (endpoint === 'token' ? [outcome] : []))
      .should.eql(['invalid_grant']);

    const file = join(directory, 'token');
    const refused = await run(['--use-refresh-token', file], withToken);
    should(refused.code).equal(1);
    refused.out.should.match(/^WRONG token .*authorize again/m);
    should(existsSync(file)).be.false();
    writeFileSync(file, 'something of value');
    should((await run(['--use-refresh-token', file], withToken)).code).equal(2);
    should(readFileSync(file, 'utf8')).equal('something of value');
  });

  it('saves the rotated refresh token to the file, and it works', async () => {
    await start({ settings: { rotateRefreshTokens: true, redirectUris: [redirectUri] } });
    const refreshToken = await refreshTokenFrom(simulator, {
      redirectUri,
      scopes: ['openid', 'offline_access', ...operationScopes],
    });
    const { ADVISOR_TEXTING_GRANT: _, ...rest } = variables();
    const unused = await run([], { ...rest, ADVISOR_TEXTING_REFRESH_TOKEN: refreshToken });
    unused.out.should.match(/^ok +client /m);
    const file = join(directory, 'token');
    const whole = {
      ...rest,
      ADVISOR_TEXTING_AUTH_URL: simulator.authUrl,
      ADVISOR_TEXTING_REDIRECT_URI: redirectUri,
    };
    const used = await run(['--use-refresh-token', file], {
      ...whole,
      ADVISOR_TEXTING_REFRESH_TOKEN: refreshToken,
    });
    should(used.code).equal(0);
    used.out.should.match(/^ok +token /m);
    used.err.should.match(/new refresh token.*Replace the old one/);
    const rotated = readFileSync(file, 'utf8');
    rotated.should.not.equal(refreshToken);
    used.out.should.not.containEql(rotated);
    used.err.should.not.containEql(rotated);
    should(statSync(file).mode & 0o777).equal(0o600);

    const again = await run(['--use-refresh-token', join(directory, 'next')], {
      ...whole,
      ADVISOR_TEXTING_REFRESH_TOKEN: rotated,
    });
    should(again.code).equal(0);
    reads();
  });

  it('uses a given access token, and exits with 2 because getting the next one was not tested', async () => {
    await start();
    const { code, out } = await run([], {
      ADVISOR_TEXTING_BASE_URL: simulator.baseUrl,
      ADVISOR_TEXTING_API_KEY: simulator.credentials.apiKey,
      ADVISOR_TEXTING_ACCESS_TOKEN: simulator.accessToken('default'),
    });
    should(code).equal(2);
    out.should.match(/^ok +token /m);
    out.should.match(/^\? +client .*give tokenUrl \(ADVISOR_TEXTING_TOKEN_URL\)/m);
    // The token itself lists its scopes.
    out.should.match(/^ok +scopes /m);
  });

  /** With an access token, as right after a sign-in elsewhere. */
  const withToken = (): Record<string, string> => {
    const { ADVISOR_TEXTING_GRANT: _, ...rest } = variables();
    return {
      ...rest,
      ADVISOR_TEXTING_AUTH_URL: simulator.authUrl,
      ADVISOR_TEXTING_REDIRECT_URI: redirectUri,
      ADVISOR_TEXTING_ACCESS_TOKEN: simulator.accessToken('default'),
    };
  };

  for (const profile of ['usual', 'foreign'] as const)
    it(`tests token address, client, authorization address, redirect address and permissions, and issues nothing (${profile})`, async () => {
      await start({ profile, settings: { redirectUris: [redirectUri] } });
      const { corePrefix, textPrefix, names } = environmentFor(simulator.settings.habits);
      const settings = {
        ...withToken(),
        ADVISOR_TEXTING_CORE_PREFIX: corePrefix,
        ADVISOR_TEXTING_TEXT_PREFIX: textPrefix,
        ADVISOR_TEXTING_NAMES: JSON.stringify(names),
      };
      const right = await run([], settings);
      should([right.code, right.err]).eql([0, '']);
      right.out.should.match(/^ok +client .*\/oauth\/token accepts the client/m);
      right.out.should.match(/^ok +authorization .*\/oauth\/authorize accepts/m);
      reads();
      const issued = simulator.ledger
        .entries()
        .filter(({ endpoint, status }) => endpoint === 'token' && status < 300);
      should(issued).eql([]);
    });

  const wrong: [what: string, change: () => Record<string, string>, client: RegExp, page: RegExp][] = [
    [
      'client secret and redirect address are wrong',
      () => ({ CLIENT_SECRET: 'wrong', REDIRECT_URI: `${redirectUri}/other` }),
      /^WRONG client .*refuses the client.*correct Client ID/m,
      /^WRONG authorization .*register Redirect address/m,
    ],
    [
      'the addresses are wrong',
      () => ({ TOKEN_URL: `${simulator.url}/nothing`, AUTH_URL: `${simulator.url}/nothing` }),
      /^WRONG client .*correct Token address/m,
      /^WRONG authorization .*correct Authorization address/m,
    ],
    [
      'nothing answers, and a permission is not provisioned',
      () => ({ TOKEN_URL: 'http://127.0.0.1:9/token', SCOPES: 'text.messaging.read text.everything' }),
      /^WRONG client .*Nothing answers/m,
      /^WRONG authorization .*refuses the permissions/m,
    ],
    [
      'there is no client',
      () => ({ CLIENT_ID: '', CLIENT_SECRET: '' }),
      /^\? +client .*give clientId \(ADVISOR_TEXTING_CLIENT_ID\), clientSecret .*\.$/m,
      /^\? +authorization .*give clientId \(.*\)\.$/m,
    ],
  ];
  for (const [what, change, client, page] of wrong)
    it(`says what to set if ${what}, even with an access token`, async () => {
      await start({ settings: { redirectUris: [redirectUri] } });
      const settings = withToken();
      for (const [name, value] of Object.entries(change())) settings[`ADVISOR_TEXTING_${name}`] = value;
      const { out } = await run([], settings);
      out.should.match(client);
      out.should.match(page);
    });

  it('does not blame the addresses if the authorization service is temporarily unavailable', async () => {
    await start();
    const down = createServer((_, response) => response.writeHead(503).end()).listen(0, '127.0.0.1');
    await once(down, 'listening');
    const url = `http://127.0.0.1:${String((down.address() as AddressInfo).port)}`;
    const { out } = await run([], { ...variables(), ADVISOR_TEXTING_TOKEN_URL: `${url}/token` });
    const settings = { ...withToken(), ADVISOR_TEXTING_AUTH_URL: `${url}/authorize` };
    const { out: page } = await run([], settings);
    down.close();
    out.should.match(/^WRONG token .*\(HTTP 503\): try again later/m);
    out.should.match(/^WRONG client .*\/token cannot answer right now \(HTTP 503\): try again later/m);
    page.should.match(
      /^WRONG authorization .*\/authorize cannot answer right now \(HTTP 503\): try again later/m,
    );
  });

  it('retries a token endpoint that is briefly unavailable', async () => {
    await start();
    let count = 0;
    const endpoint = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        count += 1;
        if (count % 2 === 1) response.writeHead(503).end('one moment');
        else if (body.includes('grant_type=client_credentials'))
          response.end(
            JSON.stringify({ access_token: simulator.accessToken('default'), token_type: 'Bearer' }),
          );
        else response.writeHead(400).end(JSON.stringify({ error: 'invalid_grant' }));
      });
    }).listen(0, '127.0.0.1');
    await once(endpoint, 'listening');
    const url = `http://127.0.0.1:${String((endpoint.address() as AddressInfo).port)}/token`;
    const byClient = await run([], { ...variables(), ADVISOR_TEXTING_TOKEN_URL: url });
    should([byClient.code, count]).eql([0, 2]);
    const byToken = await run([], { ...withToken(), ADVISOR_TEXTING_TOKEN_URL: url });
    byToken.out.should.match(/^ok +client /m);
    endpoint.close();
  });

  it('prints JSON whatever happens', async () => {
    await start();
    const { ADVISOR_TEXTING_API_KEY: _, ...keyless } = variables();
    for (const [args, given] of [
      [['--nonsense'], {}],
      [[], {}],
      [['--settings', join(directory, 'nothing.json')], {}],
      [[], keyless],
      [['--url', 'http://127.0.0.1:1/'], keyless],
    ] as const) {
      const { code, out } = await run([...args, '--json'], given);
      should(code).equal(2);
      const [line] = JSON.parse(out) as Line[];
      should(line).match({ check: 'settings', ok: null, mark: 'untried', message: /./ });
    }
  });

  it('names an unknown setting and suggests the one that was probably meant', async () => {
    await start();
    const file = join(directory, 'settings.json');
    writeFileSync(file, JSON.stringify({ baseURL: simulator.baseUrl }));
    const near = await run(['--settings', file]);
    should(near.code).equal(2);
    near.err.should.match(/has "baseURL", which is not a setting.*write baseUrl\./);
    writeFileSync(file, JSON.stringify({ id: '1', type: 'advisor-environment', credentials: { key: 'x' } }));
    (await run(['--settings', file])).err.should.match(/has "key".*the settings are service, .*apiKey/);
  });

  it('exits with 2, and says what to do, when there is nothing to check', async () => {
    await start();
    const nothing = await run([]);
    should(nothing.code).equal(2);
    nothing.err.should.match(/--settings FILE.*\n.*--help/);
    should((await runProcess([], {})).code).equal(2);
    const { ADVISOR_TEXTING_API_KEY: _, ...keyless } = variables();
    const missing = await run([], keyless);
    should(missing.code).equal(2);
    missing.err.should.match(/API key/);
    should((await run(['--nonsense'])).code).equal(2);
    const helped = await run(['--help']);
    should(helped.code).equal(0);
    helped.out.should.match(/ADVISOR_TEXTING_BASE_URL/);
  });
});
