import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { operationScopes } from '../../../lib/contract-values';
import { startSimulator, type Simulator } from '../../../simulator';
import { visible } from '../../../lib/visible';
import { listen } from '../../support/server';
import { runCheck } from '../../support/command/setup';

interface Line {
  readonly check: string;
  readonly ok: boolean | null;
  readonly mark?: string;
  readonly message: string;
}
type Node = Record<string, unknown>;

describe('the command check on a user directory', function () {
  this.timeout(180_000);
  let simulator: Simulator;
  let directory: string;
  let settings: string;
  let nodes: Node[];
  let secret: string | undefined;

  before(async () => {
    simulator = await startSimulator({ settings: { redirectUris: ['http://localhost/back'] } });
  });
  after(() => simulator.close());

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'check-'));
    secret = 'a secret of this Node-RED';
    settings = `flowFile: 'texting.json', credentialSecret: ${JSON.stringify(secret)}, adminAuth: { type: 'credentials', users: [] }`;
    const ours = (id: string, type: string, more: Node = {}): Node => ({
      id,
      type,
      z: 'tab',
      environment: 'env',
      wires: [[], ['seen'], []],
      ...more,
    });
    nodes = [
      { id: 'tab', type: 'tab' },
      {
        id: 'env',
        type: 'advisor-environment',
        name: 'Office',
        service: 'production',
        grant: 'client_credentials',
        scopes: operationScopes,
        baseUrl: simulator.baseUrl,
        tokenUrl: '${TOKEN_ADDRESS}',
        timeZone: 'America/Chicago',
        textFrom: '08:00',
        textUntil: '21:00',
        requestsPerSecond: 500,
      },
      { id: 'example', type: 'advisor-environment', name: 'Simulator (example)' },
      ours('send', 'advisor-send-text', { name: 'greet' }),
      ours('ask', 'advisor-request-consent', { name: 'ask' }),
      ours('wait', 'advisor-check-consent', { name: 'wait', mode: 'wait' }),
      ours('told', 'advisor-events', { wires: [['seen']] }),
      { id: 'seen', type: 'debug', z: 'tab', wires: [] },
    ];
  });
  afterEach(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  const node = (id: string): Node => nodes.find((each) => each['id'] === id) ?? {};
  const install = (): void => {
    writeFileSync(join(directory, 'settings.js'), `module.exports = { ${settings} };`);
    writeFileSync(join(directory, 'texting.json'), JSON.stringify(nodes));
    const credentials = JSON.stringify({ env: simulator.credentials });
    const iv = randomBytes(16);
    const key = createHash('sha256').update(String(secret)).digest();
    const cipher = createCipheriv('aes-256-ctr', key, iv);
    const sealed = cipher.update(credentials, 'utf8', 'base64') + cipher.final('base64');
    const stored = secret === undefined ? credentials : JSON.stringify({ $: iv.toString('hex') + sealed });
    writeFileSync(join(directory, 'texting_cred.json'), stored);
  };
  const run = async (args: readonly string[] = [], variables: Record<string, string> = {}) => {
    install();
    const given = { TOKEN_ADDRESS: simulator.tokenUrl, ...variables };
    const said = await runCheck(['--user-dir', directory, '--json', ...args], given);
    return { ...said, lines: said.out === '' ? [] : (JSON.parse(said.out) as Line[]) };
  };
  const lineOf = (lines: readonly Line[], name: string): Line | undefined =>
    lines.find((line) => line.check === name);

  it('passes the connection, the machine and the flows of one that is ready, and exits with 0', async () => {
    const { code, err, out, lines } = await run();
    should({ code, err }).eql({ code: 0, err: '' });
    lines
      .filter(({ ok }) => ok !== true)
      .map((line) => line.check)
      .should.eql(['authorization', 'consentPattern']);
    lines
      .map((line) => line.check)
      .should.eql([
        ...['reachability', 'token', 'apiKey', 'scopes', 'prefixes', 'names', 'dates', 'groupIds', 'phones'],
        ...[
          'client',
          'authorization',
          'settings',
          'store',
          'credentialSecret',
          'adminAuth',
          'userDir',
          'textHours',
          'timeZone',
        ],
        ...['deliveryDateUnit', 'consentPattern', 'requestsPerSecond', 'journal', 'repeatSends'],
        ...['environment', 'nodeSettings', 'polls', 'consentRequests', 'failedOutputs'],
      ]);
    for (const kept of [secret ?? '', simulator.credentials.clientSecret, simulator.credentials.apiKey])
      out.should.not.containEql(kept);
  });

  it('says that texts may leave at night where there are no text hours, which is no fault', async () => {
    Object.assign(node('env'), { textFrom: '', textUntil: '' });
    const { code, lines } = await run();
    should(code).equal(0);
    const { ok, message } = lineOf(lines, 'textHours') ?? {};
    should(ok).be.null();
    should(message).match(/may leave at night\. To prevent that, set "?Text hours/);
  });

  it('has a step in docs/production.md for each of its lines, and no others', async () => {
    const page = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'production.md'), 'utf8');
    const steps = page.split('\n').flatMap((row) => /^\| \d+ .*\|([^|]*)\|$/.exec(row)?.[1] ?? []);
    should(steps.length).be.above(20);
    const named = new Set(steps.flatMap((step) => [...step.matchAll(/`(\w+)`/g)].map(([, name]) => name)));
    const { lines } = await run();
    [...named].sort().should.eql(lines.map((line) => line.check).sort());
    const byHand = steps.filter((step) => step.startsWith(' you'));
    should(byHand).have.length(4);
    for (const step of byHand) step.should.match(/: /);
  });

  const wrong: [what: string, change: () => void, name: string, says: RegExp][] = [
    [
      'has no credentialSecret',
      () => (settings = settings.replace(/credentialSecret: "[^"]*",/, '')),
      'credentialSecret',
      /set credentialSecret/,
    ],
    [
      'has turned encryption off',
      () => (settings = settings.replace(/"a secret[^"]*"/, 'false')),
      'credentialSecret',
      /set it to a long/,
    ],
    ['has no login', () => (settings = settings.replace(/adminAuth.*$/, '')), 'adminAuth', /set it/],
    ...Object.entries({ deploy: "'*'", text: "['read', 'advisor-texting.write']" }).map(
      ([what, permissions]): [string, () => void, string, RegExp] => [
        `lets everybody ${what}`,
        () =>
          (settings = settings.replace('users: []', `users: [], default: { permissions: ${permissions} }`)),
        'adminAuth',
        /"default"/,
      ],
    ),
    [
      'schedules without a time zone',
      () => [Object.assign(node('send'), { schedule: 'at' }), Object.assign(node('env'), { timeZone: '' })],
      'timeZone',
      /Time zone is empty.*Set it/,
    ],
    [
      'has text hours without a time zone',
      () => Object.assign(node('env'), { timeZone: '', textFrom: '09:00', textUntil: '17:00' }),
      'timeZone',
      /Set it/,
    ],
    ['keeps no journal', () => Object.assign(node('env'), { journal: false }), 'journal', /turn on/],
    [
      'always retries sends',
      () => Object.assign(node('env'), { repeatSends: 'always' }),
      'repeatSends',
      /twice/,
    ],
    ['polls every five seconds', () => Object.assign(node('wait'), { pollEvery: 5 }), 'polls', /"wait"/],
    ['polls fast for longer', () => Object.assign(node('wait'), { pollFor: 3600 }), 'polls', /"wait"/],
    ['waits for a week', () => Object.assign(node('wait'), { giveUpAfter: 604_800 }), 'polls', /"wait"/],
    ['asks every hour', () => Object.assign(node('ask'), { every: 1 }), 'consentRequests', /"ask"/],
    ['asks without a limit', () => Object.assign(node('ask'), { limit: 0 }), 'consentRequests', /"ask"/],
    [
      'ignores failures',
      () => Object.assign(node('send'), { wires: [['seen'], [], []] }),
      'failedOutputs',
      /"greet"/,
    ],
    [
      'leads failures to a disabled node',
      () => Object.assign(node('seen'), { d: true }),
      'failedOutputs',
      /"greet"/,
    ],
    [
      'has an invalid choice',
      () => Object.assign(node('send'), { schedule: 'later' }),
      'nodeSettings',
      /"greet" \(schedule\)/,
    ],
    [
      'has a node without an environment',
      () => Object.assign(node('send'), { environment: 'gone' }),
      'environment',
      /"greet"/,
    ],
    [
      'has a node that is still on the simulator',
      () => Object.assign(node('send'), { environment: 'example' }),
      'environment',
      /still use a simulator.*"greet".*--also "Simulator \(example\)"/,
    ],
    [
      'has a node that is still on a simulator without a name',
      () => {
        Object.assign(node('send'), { environment: 'example' });
        Object.assign(node('example'), { name: '' });
      },
      'environment',
      /still use a simulator.*"greet".*--also "example"/,
    ],
    [
      'has an environment that nobody uses',
      () => (nodes = nodes.filter(({ environment }) => environment !== 'env')),
      'environment',
      /No node uses/,
    ],
    [
      'has an unknown time zone',
      () => Object.assign(node('env'), { timeZone: 'America/Chicagoo' }),
      'timeZone',
      /America\/Chicagoo/,
    ],
    [
      'has a negative limit',
      () => Object.assign(node('env'), { requestsPerSecond: -3 }),
      'requestsPerSecond',
      /Requests per second/,
    ],
    ['has an unknown country', () => Object.assign(node('env'), { country: 'XX' }), 'settings', /XX/],
    [
      'keeps its state in an unreachable database',
      () => Object.assign(node('env'), { store: 'postgres', storeUrl: 'postgres://me:pass@127.0.0.1:1/x' }),
      'store',
      /^(?!.*pass).*ECONNREFUSED.*correct Database/,
    ],
    [
      'keeps its state in a database that is not named',
      () => Object.assign(node('env'), { store: 'postgres' }),
      'store',
      /fill in Database/,
    ],
    [
      'has a node whose permission is not selected',
      () => Object.assign(node('env'), { scopes: ['text.messaging.read'] }),
      'scopes',
      /not selected.*text\.messaging\.write \("greet", "ask"\)\. Select them/,
    ],
    [
      'lacks a setting of the connection',
      () => Object.assign(node('env'), { baseUrl: '' }),
      'reachability',
      /fill in Service address/,
    ],
  ];
  for (const [what, change, name, says] of wrong)
    it(`says what to set if it ${what}, and exits with 1`, async () => {
      change();
      if (!settings.includes('a secret')) secret = undefined;
      const { code, lines } = await run();
      should(lineOf(lines, name)).match({ ok: false, message: says });
      lines
        .filter(({ ok }) => ok === false)
        .map((line) => line.check)
        .should.eql([name]);
      should(code).equal(1);
    });

  const fine: [what: string, change: () => void, name: string, ok: true | null][] = [
    [
      'a Catch node hears of failures',
      () => [
        Object.assign(node('send'), { wires: [] }),
        nodes.push({ id: 'c', type: 'catch', z: 'tab', scope: null }),
      ],
      'failedOutputs',
      true,
    ],
    [
      'a node is disabled',
      () => Object.assign(node('send'), { wires: [], d: true, schedule: 'later' }),
      'failedOutputs',
      true,
    ],
    [
      'there is no editor',
      () => (settings = settings.replace(/adminAuth.*$/, 'httpAdminRoot: false')),
      'adminAuth',
      true,
    ],
    [
      'the editor is for this machine',
      () => (settings = settings.replace(/adminAuth.*$/, "uiHost: '127.0.0.1'")),
      'adminAuth',
      null,
    ],
    ['texts are scheduled', () => Object.assign(node('send'), { schedule: 'at' }), 'deliveryDateUnit', null],
    ['no rate is set', () => Object.assign(node('env'), { requestsPerSecond: 0 }), 'requestsPerSecond', null],
  ];
  for (const [what, change, name, ok] of fine)
    it(`finds nothing wrong if ${what}`, async () => {
      change();
      const { code, lines } = await run();
      should(lineOf(lines, name)?.ok).equal(ok);
      should(code).equal(0);
    });

  it('accepts a Catch node beside a subflow for the nodes in it', async () => {
    Object.assign(node('send'), { z: 'sub', wires: [] });
    nodes.push({ id: 'sub', type: 'subflow' }, { id: 'use', type: 'subflow:sub', z: 'tab' });
    should(lineOf((await run()).lines, 'failedOutputs')?.ok).be.false();
    nodes.push({ id: 'c', type: 'catch', z: 'tab', scope: ['use'] });
    should(lineOf((await run()).lines, 'failedOutputs')?.ok).be.true();
  });

  it('reads credentials with the secret that Node-RED has generated', async () => {
    settings = settings.replace(/credentialSecret: "[^"]*",/, '');
    writeFileSync(
      join(directory, '.config.runtime.json'),
      JSON.stringify({ _credentialSecret: (secret = randomBytes(32).toString('hex')) }),
    );
    should(lineOf((await run()).lines, 'apiKey')?.ok).be.true();
    secret = 'another';
    const unread = await run();
    should(unread.lines[0]).match({
      check: 'reachability',
      mark: 'untried',
      message:
        /texting_cred\.json cannot be read.*variables \(ADVISOR_TEXTING_API_KEY, .*CLIENT_ID, .*CLIENT_SECRET\).*--url/,
    });
    should(lineOf(unread.lines, 'journal')?.ok).be.true();
    // Its advice works.
    const { apiKey, clientId, clientSecret } = simulator.credentials;
    const given = await run([], {
      ADVISOR_TEXTING_API_KEY: apiKey,
      ADVISOR_TEXTING_CLIENT_ID: clientId,
      ADVISOR_TEXTING_CLIENT_SECRET: clientSecret,
    });
    given.lines
      .filter(({ ok }) => ok !== true)
      .map((line) => line.check)
      .should.eql(['authorization', 'credentialSecret', 'consentPattern']);
  });

  it('tolerates a settings.js that prints, waits or exits the process', async () => {
    settings += ", get title() { return ''; } }; console.log('{}'); setInterval(() => {}, 1000); void {";
    should((await run()).code).equal(0);
    settings = 'x: process.exit(0)';
    const { code, lines } = await run(['--flows', join(directory, 'texting.json')], {
      ADVISOR_TEXTING_API_KEY: simulator.credentials.apiKey,
    }).catch(() => ({ code: -1, lines: [] as Line[] }));
    should(code).equal(2);
    should(lineOf(lines, 'token')?.mark).equal('untried');
    should(lineOf(lines, 'failedOutputs')?.ok).be.true();
    secret = undefined;
    const unread = await run(['--flows', join(directory, 'texting.json')]);
    should(unread.code).equal(2);
    should(lineOf(unread.lines, 'adminAuth')).match({
      ok: null,
      message: /settings\.js in .* cannot be run/,
    });
  });

  it('lets a running Node-RED test the connection, with the authorization that it keeps', async () => {
    Object.assign(node('env'), {
      grant: 'authorization_code',
      authUrl: simulator.authUrl,
      redirectUri: 'http://localhost/back',
    });
    let answered = ['reachability', 'token', 'apiKey', 'prefixes'].map((name): Line => ({
      check: name,
      ok: true,
      message: name,
    }));
    const asked: unknown[] = [];
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        const { method, url, headers } = request;
        asked.push([method, url, headers.authorization, JSON.parse(body)]);
        response.setHeader('content-type', 'application/json').end(JSON.stringify(answered));
      });
    });
    const url = `http://127.0.0.1:${String(await listen(server))}/red`;
    const args = ['--url', url, '--advisor', 'ann'];
    const { code, lines } = await run(args, { ADVISOR_TEXTING_ADMIN_TOKEN: 't' });
    const body = { advisor: 'ann', whole: true };
    should(asked).eql([['POST', '/red/advisor-texting/env/test', 'Bearer t', body]]);
    lines.slice(0, 4).should.eql(answered.map((line) => ({ ...line, mark: 'ok' })));
    should(lineOf(lines, 'client')?.ok).be.true();
    should(lineOf(lines, 'adminAuth')?.ok).be.true();
    should(code).equal(0);
    answered = answered.map((line) => ({ ...line, ok: line.check === 'token' ? null : true }));
    should((await run(args)).code).equal(2);
    server.closeAllConnections();
    server.close();

    const gone = await run(args);
    should(gone.code).equal(2);
    should(gone.lines[0]).match({ mark: 'untried', message: /did not test the connection/ });
    should(lineOf(gone.lines, 'adminAuth')?.ok).be.true();
    const open = await run(['--url', 'http://flows.example.com/'], { ADVISOR_TEXTING_ADMIN_TOKEN: 't' });
    open.err.should.match(/--url.*https/);
  });

  it("exits with 2 if a node's environment was not checked, unless that one is meant to stay", async () => {
    nodes.push({ ...node('env'), id: 'second', name: 'Second office' });
    Object.assign(node('send'), { environment: 'second', schedule: 'at' });
    const { code, lines } = await run(['--environment', 'Office']);
    should(code).equal(2);
    should(lineOf(lines, 'deliveryDateUnit')?.ok).be.true();
    should(lineOf(lines, 'environment')).match({
      ok: null,
      mark: 'untried',
      message: /"greet".*--also "Second office"/,
    });
    should((await run(['--environment', 'Office', '--also', 'Second office'])).code).equal(0);
  });

  it('reads the flows and credentials of the project that Node-RED has open', async () => {
    const project = join(directory, 'projects', 'texting');
    mkdirSync(project, { recursive: true });
    settings = settings.replace("flowFile: 'texting.json'", 'editorTheme: { projects: { enabled: true } }');
    secret = 'of the project';
    install();
    for (const [from, to] of [
      ['texting.json', 'flow.json'],
      ['texting_cred.json', 'keys.json'],
    ] as const)
      renameSync(join(directory, from), join(project, to));
    const files = { flowFile: 'flow.json', credentialsFile: 'keys.json' };
    writeFileSync(join(project, 'package.json'), JSON.stringify({ 'node-red': { settings: files } }));
    const open = { activeProject: 'texting', projects: { texting: { credentialSecret: secret } } };
    writeFileSync(join(directory, '.config.projects.json'), JSON.stringify(open));
    const { code, out } = await runCheck(['--user-dir', directory], { TOKEN_ADDRESS: simulator.tokenUrl });
    out.should.match(/^ok +apiKey /m);
    should(code).equal(0);
  });

  it('says what to pass if a running Node-RED asks for a login, and what it would not use', async () => {
    const server = createServer((_, response) => response.writeHead(401).end('Unauthorized'));
    const url = `http://127.0.0.1:${String(await listen(server))}/`;
    const { code, lines } = await run(['--url', url]);
    should(code).equal(2);
    should(lines[0]).match({ mark: 'untried', message: /requires a login.*ADVISOR_TEXTING_ADMIN_TOKEN/ });
    should(lineOf(lines, 'polls')?.ok).be.true();
    const both = await run(['--url', url], { ADVISOR_TEXTING_BASE_URL: 'http://127.0.0.1:1/v1' });
    should(both.code).equal(2);
    both.err.should.match(/ignores ADVISOR_TEXTING_BASE_URL/);
    server.closeAllConnections();
    server.close();
  });

  it('escapes what is invisible in a terminal, whether it prints lines, JSON or a mistake', async () => {
    const hostile = 'a\u009b31m\u202e';
    const answer = JSON.stringify([{ check: 'token', ok: true, message: hostile }]);
    const server = createServer((_, response) => {
      response.setHeader('content-type', 'application/json').end(answer);
    });
    const url = `http://127.0.0.1:${String(await listen(server))}/`;
    const { out: json } = await run(['--url', url]);
    const { out } = await runCheck(['--user-dir', directory, '--url', url], {
      TOKEN_ADDRESS: simulator.tokenUrl,
    });
    const { err } = await runCheck(['--user-dir', directory, '--environment', hostile], {});
    server.closeAllConnections();
    server.close();
    for (const printed of [json, out, err])
      should(printed).containEql(visible(hostile)).and.not.containEql(hostile);
  });

  it('says what to name if the environment is ambiguous', async () => {
    nodes.push({ ...node('env'), id: 'second', name: 'Sandbox' });
    const several = await run();
    should(several.code).equal(2);
    several.err.should.match(/--environment\. env \(Office\), second \(Sandbox\)/);
    should((await run(['--environment', 'Office'])).code).equal(0);
    Object.assign(node('second'), { name: '' });
    (await run()).err.should.match(/env \(Office\), second \(no name, production\)/);
    should((await run(['--environment', 'env'])).code).equal(0);
    (await run(['--environment', 'nobody'])).err.should.match(
      /no active environment "nobody".*environments: env \(Office\), example/,
    );
    (await run(['--environment', 'Office', '--also', 'nobody'])).err.should.match(
      /"nobody". Active environments: env \(Office\)/,
    );
    (await run(['--settings', 'x'])).err.should.match(/either --settings or --user-dir/);
    mkdirSync(join(directory, 'empty'));
    nodes = [];
    (await run()).err.should.match(/has no active environment/);
  });
});
