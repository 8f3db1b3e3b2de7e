import { randomBytes } from 'node:crypto';
import { generateChallenge } from 'pkce-challenge';
import should from 'should';
import { MovableClock } from '../../../simulator/movable-clock';
import { startSimulator, type Simulator } from '../../../simulator';
import { Caller } from '../../support/simulator/caller';

const redirectUri = 'https://flows.example.com/advisor-texting/callback';
const scope = 'openid offline_access core.contacts.read text.messaging.write';

describe("the simulator's OAuth", () => {
  let simulator: Simulator;
  let verifier: string;
  let asked: Record<string, string>;

  beforeEach(async () => {
    const begin = Date.now();
    simulator = await startSimulator({
      clock: new MovableClock(() => begin),
      settings: { redirectUris: [redirectUri] },
    });
    verifier = randomBytes(32).toString('base64url');
    asked = {
      response_type: 'code',
      client_id: simulator.credentials.clientId,
      redirect_uri: redirectUri,
      code_challenge: await generateChallenge(verifier),
      code_challenge_method: 'S256',
      state: randomBytes(16).toString('base64url'),
      scope,
    };
  });
  afterEach(() => simulator.close());

  const authorizeUrl = (change: Record<string, string | undefined> = {}): string => {
    const all = Object.entries({ ...asked, ...change }).filter(
      (one): one is [string, string] => one[1] !== undefined,
    );
    return `${simulator.authUrl}?${new URLSearchParams(all).toString()}`;
  };
  const look = (change?: Record<string, string | undefined>) =>
    fetch(authorizeUrl(change), { redirect: 'manual' });
  const decide = async (
    decision: string,
    advisor = 'jordan',
    headers: Record<string, string> = {},
    change?: Record<string, string | undefined>,
  ): Promise<Response> =>
    fetch(authorizeUrl(change), {
      method: 'POST',
      redirect: 'manual',
      headers,
      body: new URLSearchParams({ decision, advisor }),
    });
  const returned = (response: Response): URLSearchParams => {
    const location = response.headers.get('location') ?? '';
    should(location.startsWith(`${redirectUri}?`)).be.true();
    return new URL(location).searchParams;
  };
  const codeFor = async (advisor?: string, change?: Record<string, string>): Promise<string> =>
    returned(await decide('approve', advisor, {}, change)).get('code') ?? '';

  const token = async (
    form: Record<string, string>,
  ): Promise<{ status: number; body: Record<string, unknown> }> => {
    const { clientId, clientSecret } = simulator.credentials;
    const response = await fetch(simulator.tokenUrl, {
      method: 'POST',
      body: new URLSearchParams({ client_id: clientId, client_secret: clientSecret, ...form }),
    });
    const text = await response.text();
    return {
      status: response.status,
      body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
    };
  };
  const exchange = (code: string, change: Record<string, string> = {}) =>
    token({
      grant_type: 'authorization_code',
      code,
      code_verifier: verifier,
      redirect_uri: redirectUri,
      ...change,
    });
  const refresh = (refreshToken: unknown) =>
    token({ grant_type: 'refresh_token', refresh_token: String(refreshToken) });
  const groupsWith = async (accessToken: unknown): Promise<number> =>
    (await new Caller(simulator, '', () => String(accessToken)).call('GET', '/core/contact/groups')).status;

  it('shows who requests what, and lets the advisor choose and decide, on a page without scripts', async () => {
    const response = await look();
    const page = await response.text();
    should(response.status).equal(200);
    for (const shown of [
      simulator.credentials.clientId,
      'Jordan Blake',
      'text.messaging.write',
      'Approve',
      'Deny',
    ]) {
      should(page).containEql(shown);
    }
    should(page).not.match(/<script/);
    should(response.headers.get('content-security-policy')).match(/^default-src 'none'/);
  });

  it('shows hostile values as text', async () => {
    const page = await (await look({ redirect_uri: '"><script>alert(1)</script>' })).text();
    should(page).not.containEql('<script>');
  });

  it('returns code and state on approval, and exchanges the code for tokens of that advisor', async () => {
    const answer = returned(await decide('approve'));
    should(answer.get('state')).equal(asked['state']);
    const { status, body } = await exchange(answer.get('code') ?? '');
    should(status).equal(200);
    should(body).containEql({ token_type: 'Bearer', expires_in: 3600, scope });
    should(body['refresh_token']).be.a.String();
    const claims = JSON.parse(
      Buffer.from(String(body['access_token']).split('.')[1] ?? '', 'base64url').toString(),
    ) as Record<string, unknown>;
    should(claims).containEql({ sub: 'advisor|jordan', email: 'jordan.blake@example.com', scope });
    should(await groupsWith(body['access_token'])).equal(200);
  });

  it('returns access_denied and the state on denial', async () => {
    const answer = returned(await decide('deny'));
    should(answer.get('error')).equal('access_denied');
    should(answer.get('state')).equal(asked['state']);
    should(answer.has('code')).be.false();
  });

  it('accepts no decision from a page of another site', async () => {
    const response = await decide('approve', 'jordan', { origin: 'https://elsewhere.example' });
    should(response.status).equal(400);
    should(response.headers.has('location')).be.false();
  });

  for (const uri of [
    `${redirectUri}/`,
    `${redirectUri}?x=1`,
    'http://flows.example.com/advisor-texting/callback',
    '',
  ]) {
    it(`rejects the redirect URI "${uri}", which is not exactly the registered one, without a redirect`, async () => {
      const response = await look({ redirect_uri: uri });
      should(response.status).equal(400);
      should(response.headers.has('location')).be.false();
    });
  }

  it('rejects an unknown client and a repeated parameter without a redirect', async () => {
    should((await look({ client_id: 'other' })).status).equal(400);
    const twice = await fetch(`${authorizeUrl()}&state=other`, { redirect: 'manual' });
    should([twice.status, twice.headers.has('location')]).eql([400, false]);
  });

  const mistakes: readonly [string, Record<string, string | undefined>, string][] = [
    ['a response type other than code', { response_type: 'token' }, 'unsupported_response_type'],
    ['no PKCE challenge', { code_challenge: undefined }, 'invalid_request'],
    ['the plain challenge method', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['no challenge method', { code_challenge_method: undefined }, 'invalid_request'],
    ['no state', { state: undefined }, 'invalid_request'],
    ['a scope nobody knows', { scope: `${scope} core.everything` }, 'invalid_scope'],
    ['scopes without openid', { scope: 'core.contacts.read' }, 'invalid_scope'],
  ];
  for (const [mistake, change, error] of mistakes) {
    it(`returns ${error} for ${mistake}`, async () => {
      should(returned(await look(change)).get('error')).equal(error);
    });
  }

  it('returns invalid_scope for a scope that is not provisioned', async () => {
    simulator.change({ scopes: ['openid', 'offline_access', 'text.messaging.write'] });
    should(returned(await look()).get('error')).equal('invalid_scope');
    const granted = await token({ grant_type: 'client_credentials', scope: 'core.contacts.read' });
    should([granted.status, granted.body['error']]).eql([400, 'invalid_scope']);
  });

  it('accepts any loopback address once "loopback" is registered, and nothing else', async () => {
    simulator.change({ redirectUris: ['loopback'] });
    should((await look({ redirect_uri: 'http://127.0.0.1:4711/x' })).status).equal(200);
    should((await look({ redirect_uri: 'http://localhost.example.com/x' })).status).equal(400);
    should((await look({ redirect_uri: redirectUri })).status).equal(400);
  });

  it('registers no address with a fragment or wildcard, and none without TLS except on localhost', () => {
    for (const uri of ['https://x.example/#a', 'https://*.example/', 'http://x.example/', 'nonsense']) {
      should(() => {
        simulator.change({ redirectUris: [uri] });
      }).throw();
    }
  });

  it('exchanges a code once; a second time revokes the tokens of the first', async () => {
    const code = await codeFor();
    const first = await exchange(code);
    should((await exchange(code)).status).equal(400);
    should(await groupsWith(first.body['access_token'])).equal(401);
    should((await refresh(first.body['refresh_token'])).status).equal(400);
  });

  it('answers 400 for a wrong verifier, a wrong redirect URI, an unknown and an expired code', async () => {
    should(
      (await exchange(await codeFor(), { code_verifier: randomBytes(32).toString('base64url') })).status,
    ).equal(400);
    should((await exchange(await codeFor(), { redirect_uri: 'https://x.example/' })).status).equal(400);
    should((await exchange('nonsense')).status).equal(400);
    const code = await codeFor();
    await simulator.advance(300);
    should((await exchange(code)).status).equal(400);
  });

  it('answers 401 invalid_client for a wrong secret, and 400 for a JSON body or an unknown grant', async () => {
    should((await exchange(await codeFor(), { client_secret: 'wrong' })).status).equal(401);
    should((await token({ grant_type: 'password' })).status).equal(400);
    const json = await fetch(simulator.tokenUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    should(json.status).equal(400);
  });

  it('issues a refresh token only with offline_access', async () => {
    const { body } = await exchange(await codeFor('jordan', { scope: 'openid core.contacts.read' }));
    should(body).not.have.property('refresh_token');
    should(body['scope']).equal('openid core.contacts.read');
  });

  it('refreshes an expired access token, with the same refresh token unless it rotates', async () => {
    const first = await exchange(await codeFor());
    await simulator.advance(3600);
    should(await groupsWith(first.body['access_token'])).equal(401);
    const second = await refresh(first.body['refresh_token']);
    should(second.body['refresh_token']).equal(first.body['refresh_token']);
    should(await groupsWith(second.body['access_token'])).equal(200);
  });

  it('rotates refresh tokens if configured, and revokes the authorization when an old one is reused', async () => {
    simulator.change({ rotateRefreshTokens: true });
    const first = await exchange(await codeFor());
    const second = await refresh(first.body['refresh_token']);
    should(second.body['refresh_token']).not.equal(first.body['refresh_token']);
    should((await refresh(first.body['refresh_token'])).status).equal(400);
    should((await refresh(second.body['refresh_token'])).status).equal(400);
    should(await groupsWith(second.body['access_token'])).equal(401);
  });

  it('answers 400 for an expired or revoked refresh token', async () => {
    const first = await exchange(await codeFor());
    await simulator.advance(30 * 24 * 3600);
    should((await refresh(first.body['refresh_token'])).status).equal(400);
    const second = await exchange(await codeFor());
    should(simulator.revoke('jordan')).equal(2);
    should((await refresh(second.body['refresh_token'])).status).equal(400);
  });

  it('answers 503 while configured to, and keeps the authorization', async () => {
    const first = await exchange(await codeFor());
    simulator.faults.add({ endpoint: 'token', status: 503, next: 2 });
    should((await refresh(first.body['refresh_token'])).status).equal(503);
    should((await refresh(first.body['refresh_token'])).status).equal(503);
    should((await refresh(first.body['refresh_token'])).status).equal(200);
    const outcomes = simulator.ledger.entries().map(({ outcome }) => outcome);
    should(outcomes).eql(['authorization_code', 'status 503', 'status 503', 'refresh_token']);
  });

  it('issues tokens for client credentials, for the default advisor and without a refresh token', async () => {
    const { status, body } = await token({
      grant_type: 'client_credentials',
      scope: 'openid core.contacts.read',
    });
    should(status).equal(200);
    should(body).not.have.property('refresh_token');
    should(await groupsWith(body['access_token'])).equal(200);
  });

  it('does not accept its id token as an access token', async () => {
    const { body } = await exchange(await codeFor());
    should(await groupsWith(body['id_token'])).equal(401);
  });
});
