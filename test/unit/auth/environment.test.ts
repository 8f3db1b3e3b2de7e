import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { consentOf } from '../../../lib/consent/consent';
import { Once } from '../../../lib/guards/once';
import { logOf } from '../../../lib/runtime/log';
import type { Red } from '../../../lib/runtime/red';
import { systemClock } from '../../../lib/service/clock';
import { endpoints } from '../../../lib/service/endpoints';
import { forgetRemovedEnvironments } from '../../../nodes/environment/removed-data';
import { listAdvisors } from '../../../nodes/environment/advisor-list';
import { RunningEnvironment } from '../../../nodes/environment/environment';
import { servicesOf, type Services } from '../../../nodes/environment/services';
import { resolveValues } from '../../../nodes/environment/variables';
import { startSimulator } from '../../../simulator';
import {
  authorize,
  connectionTo,
  freshFolder,
  frozenClock,
  removeFolders,
  startProcess,
} from '../../support/auth/setup';
import { sentenceOf } from '../../support/sentence';
import { until } from '../../support/until';

const day = 24 * 60 * 60 * 1000;

describe('an environment', () => {
  let folder: string;
  let services: Services;
  const open: RunningEnvironment[] = [];

  beforeEach(() => {
    folder = freshFolder();
    const quiet = (): void => undefined;
    services = servicesOf({
      settings: { available: () => false, userDir: folder },
      log: { info: quiet, warn: quiet, error: quiet },
    } as unknown as Red);
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((environment) => environment.close()));
  });
  after(removeFolders);

  const environmentWith = (values: object, id = 'env1'): RunningEnvironment => {
    const environment = new RunningEnvironment(services, id, { ...values }, () => undefined);
    open.push(environment);
    return environment;
  };
  const filled = {
    name: 'Office',
    service: 'sandbox',
    baseUrl: 'https://api.example/v1',
    authUrl: 'https://login.example/authorize',
    tokenUrl: 'https://login.example/token',
    redirectUri: 'https://red.example/advisor-texting/callback',
    clientId: 'id',
    clientSecret: 'secret',
    apiKey: 'key',
  };

  it('is the simulator when nothing is filled in, authorized for every advisor', async () => {
    const environment = environmentWith({});
    should(environment.service).equal('simulator');
    should(environment.advisors()).deepEqual(['default']);
    should(environment.advisorState('anybody')).equal('authorized');
    const client = await environment.client();
    should((await client.call('searchGroups', { query: {} }, { advisor: 'anybody' })).status).equal(200);
    should(await environment.client()).equal(client);
  });

  it('tells the simulator whether flow nodes use it, for the first steps on its page', async () => {
    const environment = environmentWith({});
    const simulator = await services.simulator.start();
    should(simulator.state().hasFlows).be.false();
    const leave = environment.keepStoreOpen();
    should(simulator.state().hasFlows).be.true();
    leave();
    should(simulator.state().hasFlows).be.false();
  });

  it('keeps a pause that the service has asked for over a deploy', async () => {
    const simulator = await startSimulator();
    const { baseUrl, tokenUrl, credentials } = simulator;
    const scopes = ['core.contacts.read'];
    const values = { ...filled, baseUrl, tokenUrl, ...credentials, grant: 'client_credentials', scopes };
    try {
      const before = environmentWith(values);
      simulator.faults.add({ status: 429, retryAfter: 60, endpoint: 'searchGroups' });
      const call = (await before.client()).call('searchGroups', { query: {} }, { advisor: 'default' });
      call.catch(() => undefined);
      await until(() => before.pausedUntil > 0, 'The pause');
      const { pausedUntil } = before;
      (await before.client()).limits.pause(1000);
      await before.close();
      const after = environmentWith(values);
      for (const open of [() => undefined, () => after.client()]) {
        await open();
        should(after.pausedUntil).be.within(pausedUntil - 1000, pausedUntil + 1000);
      }
    } finally {
      await simulator.close();
    }
  });

  it('keeps the ledger of its simulator over a deploy', async () => {
    const before = environmentWith({});
    await (await before.client()).call('searchGroups', { query: {} }, { advisor: 'ann' });
    await before.close();
    await environmentWith({}).client();
    should((await services.simulator.start()).ledger.received).equal(1);
  });

  it('says at once that its store cannot be decrypted, and closes anyway', async () => {
    const first = environmentWith({});
    await first.store();
    await first.close();
    rmSync(join(folder, 'advisor-texting', 'wrapped-key.json'));
    const quiet = (): void => undefined;
    services = servicesOf({
      settings: { available: () => false, userDir: folder },
      log: { info: quiet, warn: quiet, error: quiet },
    } as unknown as Red);
    const environment = environmentWith({});
    const troubles: (string | undefined)[] = [];
    environment.onChange(() => troubles.push(environment.trouble));
    void environment.store();
    void Promise.resolve(environment.client()).catch(() => undefined);
    await until(() => troubles.length > 0, 'A change');
    should(troubles[0]).match(/encrypted with another credentialSecret/);
    await environment.close();
  });

  it('says that something has changed when the clock of its simulator is moved, until it closes', async () => {
    const environment = environmentWith({});
    let changes = 0;
    environment.onChange(() => (changes += 1));
    await services.simulator.clock.move(3_600_000);
    should(changes).equal(1);
    await environment.close();
    await services.simulator.clock.move(1000);
    should(changes).equal(1);
  });

  it('forgets send-once keys and consent requests when its simulator is reset', async () => {
    const environment = environmentWith({});
    const simulator = await services.simulator.start();
    const store = await environment.store();
    const { space } = environment;
    const elsewhere = 'env2/production/https://api.example';
    const claim = (where: string, name: string) =>
      new Once(
        store,
        { space: where, node: 'send', advisor: 'default', phone: '+12025550100', key: '7' },
        day,
        { service: 'production', clock: systemClock },
      ).claim(name, 0);
    const { history } = await consentOf(environment);
    const answer = { requested: true, memberId: 1, consentState: 'pending' };
    const ask = () =>
      history.ask('default', '+12025550100', { every: day, limit: 3 }, async ({ start }) => {
        await start();
        return answer;
      });
    for (const where of [space, elsewhere]) should((await claim(where, 'first')).kind).equal('own');
    should((await ask()).requested).be.true();
    should((await ask()).requested).be.false();
    await simulator.reset();
    should((await claim(space, 'second')).kind).equal('own');
    should((await claim(elsewhere, 'second')).kind).equal('wait');
    should((await ask()).requested).be.true();
  });

  it('shares one simulator, which keeps its state over a deploy and stops with its last user', async () => {
    const [one, two] = [environmentWith({}), environmentWith({}, 'env2')];
    const group = { name: 'Kept' };
    const { data } = await (await one.client()).call('createGroup', { body: group }, { advisor: 'a' });
    await one.close();
    should(services.simulator.isWanted).be.true();
    await two.close();
    should(services.simulator.isWanted).be.false();
    should(existsSync(join(folder, 'advisor-texting', 'store.mdb'))).be.true();
    const again = await environmentWith({}, 'env3').client();
    const found = await again.call('searchGroups', { query: { pageSize: 200 } }, { advisor: 'a' });
    should(found.data.data.map(({ groupId }) => groupId)).containEql(data.id);
  });

  it('never starts the simulator for another service', async () => {
    let started = 0;
    services.simulator.start = () => {
      started += 1;
      return Promise.reject(new Error('The simulator was started.'));
    };
    for (const service of ['sandbox', 'production', '${UNSET}']) {
      const environment = environmentWith({ ...filled, service });
      await Promise.resolve(environment.client()).catch(() => undefined);
      await environment.close();
    }
    should(services.simulator.isWanted).be.false();
    should(started).equal(0);
  });

  it('offers a link to mail only when the redirect address leads to our callback', async () => {
    const link = (await environmentWith(filled).authorizationLink('bob')) ?? '';
    const [, token = ''] = /^https:\/\/red\.example\/advisor-texting\/link\/([\w-]+)$/.exec(link) ?? [];
    should(await services.vault.readLink(token)).containEql({ environment: 'env1', advisor: 'bob' });
    const elsewhere = { ...filled, redirectUri: 'https://red.example/oauth/back' };
    should(await environmentWith(elsewhere, 'env2').authorizationLink('bob')).be.undefined();
    should(await environmentWith({}, 'env3').authorizationLink('bob')).be.undefined();
    const byItself = { ...filled, grant: 'client_credentials' };
    should(await environmentWith(byItself, 'env4').authorizationLink('default')).be.undefined();
  });

  it('says what to fill in', async () => {
    const office = environmentWith({ name: 'Office', service: 'production' });
    const message = await sentenceOf(() => office.advisors());
    should(message).match(
      /"Office" is not ready: .*fill in Service address, Authorization address, Token address/,
    );
    should(message).match(/Redirect address, Client ID, Client secret, and API key/);
  });

  it('sends nothing with an invalid consent pattern', async () => {
    const client = environmentWith({ ...filled, consentPattern: '(' }).client();
    await should(client).be.rejectedWith({ code: 'not_configured' });
    should(await sentenceOf(() => client)).match(/^"Consent pattern" is not a valid regular expression/);
    const unset = environmentWith({ ...filled, consentPattern: '${PATTERN}' }).client();
    should(await sentenceOf(() => unset)).match(/set PATTERN in the environment/);
  });

  for (const [change, code, expected] of [
    [{ repeatSends: 'sometimes' }, 'invalid_input', /^"Retry sends" is set to "sometimes"/],
    [{ deliveryDateUnit: 'min' }, 'invalid_input', /^"Delivery dates in" is set to "min"/],
    [{ grant: 'password' }, 'invalid_input', /^"Sign-in" is set to "password"/],
    [{ journal: 'maybe' }, 'invalid_input', /is set to "maybe"/],
    [{ timeout: 0 }, 'invalid_input', /^"Request timeout" must be 0.1 or more/],
    [{ retries: -1 }, 'invalid_input', /^"Retries" must be 0 or more/],
    [{ retries: 1.5 }, 'invalid_input', /^"Retries" must be a whole number/],
    [{ maxConcurrent: 0 }, 'invalid_input', /^"Requests at once" must be 1 or more/],
    [{ requestsPerSecond: 'many' }, 'invalid_input', /^"Requests per second" must be a number/],
    [{ resumeWithin: -1 }, 'invalid_input', /^"Resume within" must be 0 or more/],
    [{ country: 'Germany' }, 'invalid_input', /^"Germany" is not a country code.*US/],
    [{ country: 'XX' }, 'invalid_input', /^"XX" is not a country code/],
    [{ country: '${REGION}' }, 'not_configured', /set REGION in the environment/],
    [{ timeZone: 'Mars/Olympus' }, 'invalid_input', /^"Mars\/Olympus" is not the name of a time zone/],
    [{ timeout: '${TIMEOUT}' }, 'not_configured', /set TIMEOUT in the environment/],
    [{ timeZone: '${ZONE}' }, 'not_configured', /set ZONE in the environment/],
    [{ names: { page: '${PAGE}' } }, 'not_configured', /set PAGE in the environment/],
  ] as const) {
    it(`does nothing with ${JSON.stringify(change)}`, async () => {
      const environment = environmentWith({ ...filled, ...change });
      await should(environment.client()).be.rejectedWith({ code });
      should(await sentenceOf(() => environment.client())).match(expected);
      should(await sentenceOf(() => environment.advisors())).match(expected);
      should(await sentenceOf(() => environment.advisorState('default'))).match(expected);
      if ('grant' in change) return;
      const simulated = environmentWith(change, 'simulated');
      await should(simulated.client()).be.rejectedWith({ code });
      should(await sentenceOf(() => simulated.client())).match(expected);
      should(await sentenceOf(() => simulated.advisorState('default'))).match(expected);
    });
  }

  it('reads numbers from strings, as a variable provides them', async () => {
    const environment = environmentWith({ ...filled, maxConcurrent: '3', timeout: '0.5', journal: 'false' });
    should(environment.settings).containEql({ maxConcurrent: 3, journal: false });
    await environment.client();
  });

  for (const [what, change, expected] of [
    ['a service that is an unset variable', { service: '${SERVICE}' }, /set SERVICE in the environment/],
    ['an empty service', { service: '' }, /fill in Service/],
    ['a service that does not exist', { service: 'staging' }, /must be simulator, sandbox or production/],
    ['an address that is an unset variable', { baseUrl: 'https://${HOST}/v1' }, /set HOST/],
    [
      'plain http to another machine',
      { tokenUrl: 'http://login.example/t' },
      /"Token address" must begin with https/,
    ],
    ['half an address', { baseUrl: 'api.example/v1' }, /"Service address" is not a full address/],
    [
      'a redirect address with a fragment',
      { redirectUri: 'https://red.example/#x' },
      /"Redirect address".* a #/,
    ],
    [
      'a redirect address with a wildcard',
      { redirectUri: 'https://*.red.example/callback' },
      /"Redirect address" must be one exact address/,
    ],
    [
      'a redirect address without https',
      { redirectUri: 'http://red.example/x' },
      /"Redirect address" must begin/,
    ],
    ['no API key', { apiKey: ' ' }, /fill in API key/],
  ] as const) {
    it(`rejects ${what}, and is then neither simulator nor production`, async () => {
      const environment = environmentWith({ ...filled, ...change });
      should(environment.service).equal('sandbox');
      should(await sentenceOf(() => environment.advisorState('default'))).match(expected);
    });
  }

  it('treats a service that does not exist as a mistake in the flow, and an unset one as incomplete', async () => {
    for (const [service, code] of [
      ['staging', 'invalid_input'],
      ['${SERVICE}', 'not_configured'],
      ['', 'not_configured'],
    ] as const)
      await should(environmentWith({ ...filled, service }).client()).be.rejectedWith({ code });
  });

  const wrongNames: [what: string, names: unknown, expected: RegExp][] = [
    ['that are not an object', ['page'], /must be an object/],
    ['with an unknown one', { pagesize: 'limit' }, /unknown name "pagesize": use .*page, /],
    ['of a search that has no such parameter', { 'groups.sortBy': 'by' }, /"groups.sortBy"/],
    ['with one that is not text', { page: 3 }, /"page" in the environment must be text/],
  ];
  for (const [what, names, expected] of wrongNames)
    it(`rejects query names ${what}`, () => {
      for (const written of [names, JSON.stringify(names)])
        should(() => environmentWith({ ...filled, names: written }).advisors()).throw(expected);
    });

  it('accepts a name for each query parameter of the contract, and an empty one means the default', async () => {
    const searches = { searchContacts: 'contacts', searchGroups: 'groups', searchContent: 'content' };
    const names: Record<string, string> = {};
    for (const [endpoint, search] of Object.entries(searches)) {
      const { query } = endpoints[endpoint as keyof typeof searches];
      for (const name of Object.keys(query?.shape ?? {}))
        Object.assign(names, { [name]: 'a', [`${search}.${name}`]: '' });
    }
    for (const name of Object.keys(endpoints.getConsent.query?.shape ?? {})) names[name] = 'b';
    await environmentWith({ names }).client();
  });

  it('needs no authorization or redirect address for client credentials', () => {
    const environment = environmentWith({
      ...filled,
      grant: 'client_credentials',
      authUrl: '',
      redirectUri: '',
    });
    should(environment.advisors()).deepEqual(['default']);
    should(environment.advisorState('default')).equal('authorized');
    should(environment.advisorState('other')).equal('unknown');
  });

  it('with client credentials shows what is known: refused, signed in, and nothing for a form with another address', async () => {
    const simulator = await startSimulator();
    try {
      const { baseUrl, tokenUrl, credentials } = simulator;
      const scopes = ['core.contacts.read'];
      const values = { ...filled, baseUrl, tokenUrl, ...credentials, grant: 'client_credentials', scopes };
      const list = (shown: object, deployed: object) =>
        listAdvisors(services, 'env1', { ...shown }, { ...deployed });
      should(await list(values, values)).containDeep([{ state: 'authorized', refreshedAt: null }]);
      should(await list({ ...values, service: 'production' }, values)).deepEqual([]);

      const wrong = { ...values, clientSecret: 'wrong' };
      const search = async (environment: RunningEnvironment): Promise<unknown> =>
        (await environment.client()).call('searchGroups', { query: {} }, { advisor: 'default' });
      const refused = environmentWith(wrong);
      await should(search(refused)).rejectedWith({ code: 'authorization_required' });
      should(await refused.advisorList()).containDeep([{ advisor: 'default', state: 'authorize_again' }]);

      const right = environmentWith(values, 'env2');
      await search(right);
      const [signedIn] = await right.advisorList();
      should(signedIn).containEql({ advisor: 'default', state: 'authorized', missingScopes: [] });
      should(signedIn?.refreshedAt).be.a.Number();
      should(await list({ ...values, service: 'production' }, values)).deepEqual([]);
    } finally {
      await simulator.close();
    }
  });

  it('reads numbers, flags and lists from variables that are strings', () => {
    const values = {
      maxConcurrent: '4',
      journal: 'false',
      resumeWithin: '60',
      country: 'us',
      deliveryDateUnit: 's',
    };
    should(environmentWith(values).settings).containEql({
      maxConcurrent: 4,
      journal: false,
      resumeWithin: 60_000,
      country: 'US',
      deliveryDateUnit: 's',
    });
    should(environmentWith({ ...filled, scopes: 'a b' }).connection().scopes).deepEqual(['openid', 'a', 'b']);
    const byClient = { ...filled, grant: 'client_credentials' };
    const scopesWith = (scopes?: unknown): unknown =>
      environmentWith({ ...byClient, scopes }).connection().scopes;
    should(scopesWith('a b')).deepEqual(['a', 'b']);
    should(scopesWith(['openid', 'a'])).deepEqual(['openid', 'a']);
    should(scopesWith()).deepEqual(['text.messaging.write', 'text.messaging.read']);
  });

  it('substitutes variables anywhere in a value, and names those that are not set', () => {
    const lookup = (name: string): unknown => (name === 'HOST' ? 'api.example' : undefined);
    const values = {
      a: '${HOST}',
      b: 'https://${HOST}/v1',
      c: '${NOT}',
      d: ['${HOST}'],
      e: 5,
      f: { g: 'x${HOST}' },
    };
    should(resolveValues(values, lookup)).deepEqual({
      a: 'api.example',
      b: 'https://api.example/v1',
      c: '${NOT}',
      d: ['api.example'],
      e: 5,
      f: { g: 'xapi.example' },
    });
  });

  it('notifies its nodes when an authorization changes', async () => {
    const simulator = await startSimulator();
    try {
      const { baseUrl, authUrl, tokenUrl, credentials } = simulator;
      const environment = environmentWith({ ...filled, baseUrl, authUrl, tokenUrl, ...credentials });
      await environment.opening;
      should(environment.advisorState('alice')).equal('unknown');
      let changes = 0;
      const unlisten = environment.onChange(() => {
        changes += 1;
      });
      await authorize(services, connectionTo(simulator), 'alice');
      should(changes).equal(1);
      should(environment.advisorState('alice')).equal('authorized');
      should(environment.advisors()).deepEqual(['alice']);
      // There may be very many, and each message without an advisor asks.
      should(environment.advisors()).equal(environment.advisors());
      unlisten();
      await services.vault.disconnect('env1', 'alice');
      should(changes).equal(1);
    } finally {
      await simulator.close();
    }
  });

  it('must be authorized again once a token that cannot be refreshed has expired', async () => {
    const simulator = await startSimulator({ settings: { accessTokenLifetime: 1 } });
    try {
      const { baseUrl, authUrl, tokenUrl, credentials } = simulator;
      const environment = environmentWith({ ...filled, baseUrl, authUrl, tokenUrl, ...credentials });
      await environment.opening;
      await authorize(services, connectionTo(simulator, { scopes: ['openid'] }), 'alice');
      should(environment.advisorState('alice')).equal('authorized');
      await until(() => environment.advisorState('alice') !== 'authorized');
      should(environment.advisorState('alice')).equal('authorize_again');
    } finally {
      await simulator.close();
    }
  });

  it('keeps the data of a deleted environment for seven days, and restores all of it if that returns', async () => {
    const clock = frozenClock();
    const simulator = await startSimulator({ clock });
    try {
      const red = await startProcess(folder, { clock });
      await authorize(red, connectionTo(simulator));
      const forget = (ids: string[]): Promise<void> => forgetRemovedEnvironments(red, new Set(ids));
      await forget([]);
      await clock.move(6 * day);
      await forget(['env1']);
      await forget([]);
      await clock.move(7 * day - 1);
      await forget([]);
      should(red.vault.list('env1')).have.length(1);
      await clock.move(1);
      await forget([]);
      should(red.vault.list('env1')).be.empty();
      const range = { from: Buffer.from([0]), to: Buffer.from([0xff]), limit: 100 };
      should(await (await red.openStore()).page('work', range)).be.empty();
    } finally {
      await simulator.close();
    }
  });

  it('closes although its store cannot be opened, and uses it when it can', async () => {
    const obstacle = join(folder, 'advisor-texting', 'store.mdb');
    mkdirSync(obstacle, { recursive: true });
    const environment = new RunningEnvironment(services, 'env1', filled, () => undefined);
    await until(() => environment.trouble !== undefined);
    await environment.close();
    rmSync(obstacle, { recursive: true });
    const next = environmentWith(filled);
    await next.store();
    should(next.trouble).be.undefined();
  });

  it('logs no number, token or key', () => {
    const lines: string[] = [];
    const keep = (sentence: string): unknown => lines.push(sentence);
    const log = logOf({ log: { info: keep, warn: keep, error: keep } } as unknown as Red);
    const sentence =
      'failed for +12025550199 with Bearer abc.def, eyJhbGciOi.eyJzdWIi.sig at /callback?code=c0de&state=5tate client_secret=s3cret';
    for (const level of ['info', 'warn', 'error'] as const) log[level](sentence);
    should(lines).have.length(3);
    const line = lines.join('\n');
    should(line).not.match(/2025550199|abc\.def|eyJ|c0de|5tate|s3cret/);
    should(line).containEql('…0199');
  });
});
