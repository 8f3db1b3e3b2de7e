import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import helper from 'node-red-node-test-helper';
import type { NodeAPI } from 'node-red';
import should from 'should';
import type { Message } from '../../../lib/runtime/red';
import { Arrivals } from '../../support/arrivals';
import { closeAll } from '../../support/closing';
import { runtimePath } from '../../support/flow';
import { ensureBuilt, root } from '../../support/installation';
import { numbers } from '../../support/numbers';
import { sent } from '../../support/sent';
import { type Received, type Reply, type Scripted, startServer } from '../../support/server';

interface Manifest {
  readonly 'node-red': { readonly nodes: Readonly<Record<string, string>> };
}

/** As listed in package.json for Node-RED. */
const builtNodes = (): ((RED: NodeAPI) => void)[] => {
  ensureBuilt();
  const load = createRequire(__filename);
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
  return Object.values(manifest['node-red'].nodes).map(
    (file) => load(join(root, file)) as (RED: NodeAPI) => void,
  );
};

const phone = numbers.consented;
const credentials = { clientId: 'client 1', clientSecret: 's&cret', apiKey: 'key-1' };
const outputs = ['out-0', 'out-1', 'out-2'];

const formOf = ({ body }: Received): Record<string, string> => Object.fromEntries(new URLSearchParams(body));

describe('the built nodes in the test helper, which has no settings', () => {
  const answers: Reply[] = [];
  let service: Scripted;
  let tokens: number;
  /** Replaces the usual answer of the token endpoint. */
  let tokenAnswer: ((form: Readonly<Record<string, string>>) => Reply | undefined) | undefined;
  let arrivals: Arrivals<[port: number, msg: Message]>;

  before((done) => {
    helper.init(runtimePath);
    helper.startServer(done);
  });
  after((done) => {
    helper.stopServer(done);
  });
  beforeEach(async () => {
    answers.length = 0;
    tokens = 0;
    tokenAnswer = undefined;
    service = await startServer((received) => {
      if (received.url !== '/token') return answers.shift() ?? { body: sent };
      const other = tokenAnswer?.(formOf(received));
      if (other) return other;
      tokens += 1;
      const body = {
        access_token: `token-${String(tokens)}`,
        token_type: 'Bearer',
        expires_in: 3600,
        refresh_token: `rotated-${String(tokens)}`,
        scope: 'openid text.messaging.write',
      };
      return { headers: { 'content-type': 'application/json' }, body };
    });
  });
  afterEach(async () => {
    await helper.unload();
    await closeAll();
  });

  const load = async (
    environment: object,
    given: object = {},
    node: object = {},
    more: readonly object[] = [],
  ): Promise<void> => {
    arrivals = new Arrivals();
    await helper.load(
      builtNodes(),
      [
        { id: 'tab', type: 'tab' },
        { id: 'env', type: 'advisor-environment', ...environment },
        {
          id: 'node',
          type: 'advisor-send-text',
          z: 'tab',
          environment: 'env',
          wires: outputs.map((id) => [id]),
          ...node,
        },
        ...outputs.map((id) => ({ id, type: 'helper', z: 'tab', wires: [] })),
        ...more.map((each) => ({ z: 'tab', environment: 'env', ...each })),
      ] as never,
      { env: given },
    );
    for (const [port, id] of outputs.entries()) {
      helper.getNode(id)?.on('input', (msg: Message) => {
        arrivals.add([port, msg]);
      });
    }
  };
  const sandbox = () => ({
    service: 'sandbox',
    baseUrl: `${service.url}/v1`,
    authUrl: `${service.url}/authorize?return=%2Fhome`,
    tokenUrl: `${service.url}/token`,
    redirectUri: 'http://127.0.0.1:1880/advisor-texting/callback',
  });
  const ask = async (msg: object): Promise<[port: number, msg: Message]> => {
    const coming = arrivals.next();
    helper.getNode('node')?.receive(msg as Message);
    const [first] = await coming;
    if (!first) throw new Error('nothing came');
    return first;
  };

  it('send through a real service, seeded with a refresh token', async () => {
    await load(sandbox(), { ...credentials, refreshToken: 'seed' });
    const [port, msg] = await ask({ phone, text: 'Hello' });
    should(port).equal(0);
    should(msg.payload).deepEqual({ messageId: 7, memberId: 9, scheduled: false, attempts: 1, segments: 1 });
    const [refresh, text, ...others] = service.received;
    should(others).be.empty();
    if (!refresh || !text) throw new Error('two requests were expected');
    should(refresh.headers['content-type']).equal('application/x-www-form-urlencoded');
    should(formOf(refresh)).deepEqual({
      grant_type: 'refresh_token',
      refresh_token: 'seed',
      client_id: 'client 1',
      client_secret: 's&cret',
    });
    should(text).containEql({ method: 'POST', url: '/v1/text/messaging/messages' });
    should(text.headers).containEql({ authorization: 'Bearer token-1', 'x-api-key': 'key-1' });
    should(JSON.parse(text.body)).deepEqual({ phone, text: 'Hello' });
  });

  it('send with the prefix of the service', async () => {
    await load({ ...sandbox(), textPrefix: 'acme' }, { ...credentials, refreshToken: 'seed' });
    should((await ask({ phone, text: 'Hello' }))[0]).equal(0);
    should(service.received.at(-1)?.url).equal('/v1/acme/messaging/messages');
  });

  it('take the password of a proxy from a variable, and reject one in plain text', async () => {
    const secret = { ...credentials, refreshToken: 'seed' };
    process.env['TEST_PROXY'] = 'http://ann:swordfish@proxy.example:3128';
    try {
      await load({ ...sandbox(), proxy: '${TEST_PROXY}' }, secret);
      should((await ask({ phone, text: 'Hello' }))[0]).equal(0);
      await helper.unload();
      await load({ ...sandbox(), proxy: process.env['TEST_PROXY'] }, secret);
      const [port, { error }] = await ask({ phone, text: 'Hello' });
      should(port).equal(1);
      should(error).containEql({ code: 'not_configured' });
      should((error as Error).message)
        .match(/environment variables/)
        .and.not.match(/swordfish/);
    } finally {
      delete process.env['TEST_PROXY'];
    }
  });

  it('report failures in plain words, though the helper translates nothing', async () => {
    await load(sandbox(), { ...credentials, refreshToken: 'seed' });
    answers.push({ status: 502, body: '<html>' });
    const [port, { error }] = await ask({ phone, text: 'Hello' });
    should(port).equal(1);
    should(error).containEql({ code: 'outcome_unknown', status: 502, retryable: false, attempts: 1 });
    should((error as Error).message).match(/may or may not have been carried out/);
  });

  describe('with client credentials on a service that requires openid', () => {
    const scopesAsked = (): (string | undefined)[] =>
      service.received.filter(({ url }) => url === '/token').map((each) => formOf(each)['scope']);
    const signIn = { grant: 'client_credentials' };

    beforeEach(() => {
      tokenAnswer = ({ scope = '' }) =>
        scope.split(' ').includes('openid') ? undefined : { status: 400, body: { error: 'invalid_scope' } };
    });

    it('request it if it is selected, and text', async () => {
      const scopes = ['text.messaging.write', 'openid', 'offline_access'];
      await load({ ...sandbox(), ...signIn, scopes }, credentials);
      should((await ask({ phone, text: 'Hello' }))[0]).equal(0);
      should(scopesAsked().map((scope) => scope?.split(' ').sort())).eql([
        ['openid', 'text.messaging.write'],
      ]);
    });

    it('say which permissions were refused if it is not', async () => {
      await load({ ...sandbox(), ...signIn, scopes: ['text.messaging.write'] }, credentials);
      const [port, { error }] = await ask({ phone, text: 'Hello' });
      should(port).equal(1);
      should(error).containEql({ code: 'authorization_required' });
      should(new Set(scopesAsked())).eql(new Set(['text.messaging.write']));
    });

    it('request only the texting permissions if the flow names none', async () => {
      tokenAnswer = undefined;
      await load({ ...sandbox(), ...signIn }, credentials);
      should((await ask({ phone, text: 'Hello' }))[0]).equal(0);
      should(scopesAsked().map((scope) => scope?.split(' ').sort())).eql([
        ['text.messaging.read', 'text.messaging.write'],
      ]);
    });
  });

  it('say that the advisor must authorize again when a refresh fails with 401 and invalid_grant', async () => {
    const watching = [
      { id: 'state', type: 'advisor-activity', operation: 'advisors', emit: 'item', wires: [['seen'], []] },
      { id: 'events', type: 'advisor-events', wires: [['seen']] },
      { id: 'seen', type: 'helper', wires: [] },
    ];
    await load(sandbox(), { ...credentials, refreshToken: 'seed' }, {}, watching);
    const seen = new Arrivals<Message>();
    helper.getNode('seen')?.on('input', (msg: Message) => {
      seen.add(msg);
    });
    should((await ask({ phone, text: 'Hello' }))[0]).equal(0);
    helper.getNode('state')?.receive({});
    should((await seen.next())[0]?.payload).containEql({ advisor: 'default', state: 'authorized' });
    tokenAnswer = () => ({ status: 401, body: { error: 'invalid_grant' } });
    answers.push({ status: 401 });
    const coming = seen.next();
    const [port, { error }] = await ask({ phone, text: 'Hello' });
    should(port).equal(1);
    should(error).containEql({ code: 'authorization_required' });
    should((error as Error).message).match(/authorize/i);
    const [event] = await coming;
    should(event?.topic).equal('authorize_again');
    should(event?.payload).containEql({ advisor: 'default' });
    helper.getNode('state')?.receive({});
    should((await seen.next())[0]?.payload).containEql({ advisor: 'default', state: 'authorize_again' });
  });

  it('reject a token type other than Bearer with an explanation', async () => {
    tokenAnswer = () => ({ body: { access_token: 'bound', token_type: 'DPoP', expires_in: 3600 } });
    for (const [environment, given] of [
      [sandbox(), { ...credentials, refreshToken: 'seed' }],
      [{ ...sandbox(), grant: 'client_credentials' }, credentials],
    ] as const) {
      await load(environment, given);
      const [port, { error }] = await ask({ phone, text: 'Hello' });
      should(port).equal(1);
      should((error as Error).message)
        .match(/DPoP/)
        .and.match(/Bearer/);
      await helper.unload();
    }
    should(service.received.filter(({ url }) => url !== '/token')).be.empty();
  });

  it('reject a redirect address with a wildcard, with an explanation', async () => {
    const redirectUri = 'https://*.example.com/advisor-texting/callback';
    await load({ ...sandbox(), redirectUri }, { ...credentials, refreshToken: 'seed' });
    const [port, { error }] = await ask({ phone, text: 'Hello' });
    should(port).equal(1);
    should(error).containEql({ code: 'not_configured' });
    should((error as Error).message).match(/one exact address without a wildcard/);
    const asked = await helper.request().post('/advisor-texting/env/authorize').send({ advisor: 'ann' });
    should(asked.status).equal(400);
    should(asked.text).match(/wildcard/);
    should(service.received).be.empty();
  });

  it('authorize through the routes and the callback', async () => {
    await load({ ...sandbox(), scopes: ['text.messaging.write'] }, credentials);
    const { body } = await helper.request().post('/advisor-texting/env/authorize').send({ advisor: 'ann' });
    const url = new URL((body as { url: string }).url);
    should(url.searchParams.get('return')).equal('/home');
    should(url.searchParams.get('scope')).equal('openid text.messaging.write');
    const denied = await helper.request().get('/advisor-texting/callback?error=access_denied');
    should(denied.status).equal(400);
    should(denied.text).containEql('Access was denied');
    const state = url.searchParams.get('state') ?? '';
    const back = await helper.request().get(`/advisor-texting/callback?code=c1&state=${state}`);
    should(back.status).equal(200);
    const { body: advisors } = await helper.request().get('/advisor-texting/env/advisors');
    should((advisors as object[])[0]).containEql({ advisor: 'ann', state: 'authorized', missingScopes: [] });
    const [port, msg] = await ask({ phone, text: 'Hello' });
    should(port).equal(0);
    should(msg.advisor).equal('ann');
  });

  it('authorize from the contents of the form and the stored secrets', async () => {
    await load({ service: 'sandbox' }, credentials);
    const hidden = { clientSecret: '__PWRD__', apiKey: '__PWRD__' };
    for (const form of [
      { ...sandbox(), clientId: 'client 2', ...hidden },
      { ...sandbox(), credentials: { clientId: 'client 2', ...hidden } },
    ]) {
      const asked = await helper.request().post('/advisor-texting/env/authorize').send({ form });
      should(asked.status).equal(200);
      const { searchParams } = new URL((asked.body as { url: string }).url);
      should(searchParams.get('client_id')).equal('client 2');
      const state = searchParams.get('state') ?? '';
      const address = `${form.redirectUri}?code=c1&state=${state}`;
      const done = await helper.request().post('/advisor-texting/env/complete').send({ address });
      should(done.body).deepEqual({ advisor: 'default', state: 'authorized' });
      const exchange = service.received.at(-1);
      should(exchange && formOf(exchange)).containEql({ client_id: 'client 2', client_secret: 's&cret' });
    }
  });

  it('request every scope they can use, and a refresh token, if the flow names none', async () => {
    await load(sandbox(), credentials);
    const { body } = await helper.request().post('/advisor-texting/env/authorize').send({});
    const scopes = new URL((body as { url: string }).url).searchParams.get('scope')?.split(' ');
    should(scopes).containDeep(['openid', 'offline_access', 'text.messaging.write', 'core.contacts.read']);
  });

  it('know nothing of an earlier runtime of the same process', async () => {
    const number = '+12025550101';
    for (const round of [1, 2]) {
      await load({}, {}, { type: 'advisor-request-consent' });
      const [port, msg] = await ask({ phone: number });
      should([round, port, (msg.payload as { requested: boolean }).requested]).deepEqual([round, 0, true]);
      if (round === 1) await helper.unload();
    }
  });

  it('run on the simulator with nothing filled in, for any advisor', async () => {
    await load({});
    const [port, msg] = await ask({ phone, text: 'Hello', advisor: 'anybody' });
    should(port).equal(0);
    should(msg.payload).containEql({ scheduled: false, attempts: 1 });
    const { body } = await helper.request().post('/advisor-texting/simulator/open').send({});
    const page = await helper.request().get(`/${(body as { url: string }).url}`);
    should(page.status).equal(200);
    should(page.text).match(/<!doctype html>/);
  });
});
