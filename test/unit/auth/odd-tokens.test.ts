import type { OAuth2Server } from 'oauth2-mock-server' with { 'resolution-mode': 'import' };
import should from 'should';
import type { Connection } from '../../../lib/auth/connection';
import { newGrant } from '../../../lib/auth/vault';
import { listAdvisors } from '../../../nodes/environment/advisor-list';
import type { MovableClock } from '../../../simulator/movable-clock';
import { postForm } from '../../../lib/service/transport';
import {
  callbackUri,
  connectionTo,
  failureOf,
  freshFolder,
  frozenClock,
  patiently,
  removeFolders,
  startProcess,
  type Process,
} from '../../support/auth/setup';

interface Odd {
  readonly status?: number;
  readonly body: string | Record<string, unknown>;
}

const good = { access_token: 'renewed', token_type: 'Bearer', expires_in: 3600, refresh_token: 'refresh-1' };

/** What the server answers, and the result: a token or a code. */
const odd: Readonly<Record<string, readonly [answer: Odd, outcome: string]>> = {
  'no refresh token: the old one stays': [{ body: { ...good, refresh_token: undefined } }, 'renewed'],
  'a refresh token that is null': [{ body: { ...good, refresh_token: null } }, 'renewed'],
  'no lifetime': [{ body: { ...good, expires_in: undefined } }, 'renewed'],
  'a lifetime in a string': [{ body: { ...good, expires_in: '3600' } }, 'renewed'],
  'a lifetime of zero': [{ body: { ...good, expires_in: 0 } }, 'renewed'],
  'an enormous lifetime': [{ body: { ...good, expires_in: 1e300 } }, 'renewed'],
  'a type in lower case': [{ body: { ...good, token_type: 'bearer' } }, 'renewed'],
  'no type': [{ body: { ...good, token_type: undefined } }, 'renewed'],
  'scopes in a list': [{ body: { ...good, scope: ['text.messaging.read'] } }, 'renewed'],
  'a malformed identity token': [{ body: { ...good, id_token: 'a.b' } }, 'renewed'],
  'extra fields': [{ body: { ...good, __proto__x: 1, constructor: {} } }, 'renewed'],
  'a status of 201': [{ status: 201, body: good }, 'renewed'],
  'no access token': [{ body: { ...good, access_token: undefined } }, 'network_error'],
  'an access token that is a number': [{ body: { ...good, access_token: 7 } }, 'network_error'],
  'an access token that breaks a header': [
    { body: { ...good, access_token: 'a\r\nx-evil: 1' } },
    'network_error',
  ],
  'an error with a status of 200': [{ body: { error: 'invalid_grant' } }, 'network_error'],
  'a page instead': [{ body: '<html>Sign in</html>' }, 'network_error'],
  'a list instead': [{ body: [good] as unknown as Record<string, unknown> }, 'network_error'],
  'nothing at all': [{ body: '' }, 'network_error'],
  'a type in capitals': [{ body: { ...good, token_type: 'BEARER' } }, 'renewed'],
  'a type that cannot be used': [{ body: { ...good, token_type: 'DPoP' } }, 'authorization_required'],
  'a type that is not a string': [{ body: { ...good, token_type: 7 } }, 'authorization_required'],
  'a 400 without a body': [{ status: 400, body: '' }, 'ended'],
  'an error that is not a string': [{ status: 400, body: { error: { code: 7 } } }, 'ended'],
  'a refused grant': [{ status: 400, body: { error: 'invalid_grant' } }, 'ended'],
  'a refused grant, with a 401': [{ status: 401, body: { error: 'invalid_grant' } }, 'ended'],
  'a refused grant, with a 403': [{ status: 403, body: { error: 'invalid_grant' } }, 'ended'],
  'a refused grant, with a 422': [{ status: 422, body: { error: 'invalid_grant' } }, 'ended'],
  'a refused grant, with a 500': [{ status: 500, body: { error: 'invalid_grant' } }, 'network_error'],
  'a malformed request': [{ status: 400, body: { error: 'invalid_request' } }, 'network_error'],
  'an unsupported grant': [{ status: 400, body: { error: 'unsupported_grant_type' } }, 'network_error'],
  'a refused scope': [{ status: 400, body: { error: 'invalid_scope' } }, 'authorization_required'],
  'a refused client, for this kind of grant': [
    { status: 400, body: { error: 'unauthorized_client' } },
    'authorization_required',
  ],
  'a request to slow down, with a 400': [{ status: 400, body: { error: 'slow_down' } }, 'network_error'],
  'a refused client': [{ status: 401, body: { error: 'invalid_client' } }, 'authorization_required'],
  'a refused client, with a 400': [
    { status: 400, body: { error: 'invalid_client' } },
    'authorization_required',
  ],
};

const claims = (body: object): string => `x.${Buffer.from(JSON.stringify(body)).toString('base64url')}.x`;

describe('odd answers of a third-party token endpoint', () => {
  let server: OAuth2Server;
  let clock: MovableClock;
  let red: Process;
  let connection: Connection;

  before(async () => {
    const { OAuth2Server: Server } = await import('oauth2-mock-server');
    server = new Server();
    await server.issuer.keys.generate('ES256');
    await server.start(0, '127.0.0.1');
  });
  after(async () => {
    await server.stop();
    removeFolders();
  });

  const service = (): Parameters<typeof connectionTo>[0] => {
    const url = `http://127.0.0.1:${String(server.address().port)}`;
    const credentials = { clientId: 'office', clientSecret: 'secret', apiKey: 'key' };
    return { authUrl: `${url}/authorize`, tokenUrl: `${url}/token`, credentials };
  };
  beforeEach(async () => {
    clock = frozenClock();
    // A request in real time on a clock that is moved by hand: it waits for the answer.
    const post: typeof postForm = async (...given) => {
      const release = clock.keepStill();
      try {
        return await postForm(...given);
      } finally {
        release();
      }
    };
    red = await startProcess(freshFolder(), { clock, post });
    connection = connectionTo(service(), { retries: 0 });
    await red.vault.authorized(connection, {
      ...newGrant(connection, 'default'),
      refreshToken: 'refresh-0',
    });
  });
  afterEach(async () => {
    server.service.removeAllListeners();
    await red.close();
  });

  const answering = ({ status = 200, body }: Odd): void => {
    server.service.on('beforeResponse', (answer: { statusCode: number; body: unknown }) => {
      answer.statusCode = status;
      answer.body = body;
    });
  };
  const token = (): Promise<string> => patiently(clock, () => red.tokens.token(connection, 'default'));

  it('authorizes, and refreshes with the token it received', async () => {
    const started = new URL(await red.authorizations.begin(connection, 'ann'));
    const page = await fetch(started, { redirect: 'manual' });
    const back = new URL(page.headers.get('location') ?? '');
    should(back.href.startsWith(callbackUri)).be.true();
    const finished = await red.authorizations.finish(back.searchParams, { browser: '' });
    should(finished.ok).be.true();
    await clock.move(3_700_000);
    const renewed = await patiently(clock, () => red.tokens.token(connection, 'ann'));
    should(renewed.split('.')).have.length(3);
  });

  it('says which type of token it cannot use', async () => {
    answering({ body: { ...good, token_type: 'DPoP' } });
    should((await failureOf(token)).message).match(/"DPoP" token.*only Bearer tokens/);
  });

  it('does not text for another person whom a refresh names, until somebody confirms', async () => {
    const grant = { ...newGrant(connection, 'default'), refreshToken: 'refresh-0' };
    const ann = { subject: 'ann', label: 'Ann' };
    const ending = { accessToken: 'of ann', expiresAt: clock.now() + 60_000, lifetime: 3_600_000 };
    await red.vault.authorized(connection, { ...grant, ...ending, identity: ann });
    answering({ body: { ...good, id_token: claims({ sub: 'bob', name: 'Bob' }) } });
    should(await token()).equal('of ann');
    await clock.move(60_000);
    should((await failureOf(token)).code).equal('authorization_required');
    const [shown] = await listAdvisors(red, connection.environment, undefined);
    should(shown).containEql({ state: 'confirm', identity: 'Ann', awaiting: 'Bob' });
    should(await red.vault.confirm(connection.environment, 'default', connection)).be.true();
    should(await token()).equal('renewed');
    should(red.vault.get(connection, 'default')?.grant).containEql({
      refreshToken: 'refresh-1',
      identity: { subject: 'bob', label: 'Bob' },
    });
  });

  it('knows the person by the access token where only a later answer has an identity token', async () => {
    const grant = { ...newGrant(connection, 'default'), refreshToken: 'refresh-0' };
    await red.vault.authorized(connection, { ...grant, identity: { subject: 'a-17', label: 'a-17' } });
    const accessToken = claims({ sub: 'a-17' });
    answering({ body: { ...good, access_token: accessToken, id_token: claims({ sub: 'ann' }) } });
    should(await token()).equal(accessToken);
  });

  it('leaves the person as authorized where a refreshed access token calls them otherwise', async () => {
    const grant = { ...newGrant(connection, 'default'), refreshToken: 'refresh-0' };
    const ann = { subject: 'ann', label: 'Ann' };
    await red.vault.authorized(connection, { ...grant, identity: ann });
    answering({ body: { ...good, access_token: claims({ sub: 'pairwise' }) } });
    await token();
    should(red.vault.get(connection, 'default')?.grant.identity).eql(ann);
    const again = await red.vault.authorized(connection, { ...grant, identity: ann });
    should(again.awaiting).be.null();
    server.service.removeAllListeners();
    answering({ body: { ...good, id_token: claims({ sub: 'ann', name: 'Ann Lee' }) } });
    await token();
    should(red.vault.get(connection, 'default')?.grant.identity?.label).equal('Ann Lee');
  });

  it('tells a person who has the name of the one who has authorized from that one', async () => {
    const grant = { ...newGrant(connection, 'default'), refreshToken: 'refresh-0' };
    for (const subject of ['a-17', 'a-18'])
      await red.vault.authorized(connection, { ...grant, identity: { subject, label: 'Ann Lee' } });
    const [shown] = await listAdvisors(red, connection.environment, undefined);
    should(shown).containEql({ state: 'confirm', identity: 'Ann Lee', awaiting: 'Ann Lee (a-18)' });
  });

  it('shows that an advisor stays signed in if there is a refresh token, whether or not its scope is named', async () => {
    const shown = async (scope: string, refreshToken?: string): Promise<unknown> => {
      const grant = { ...newGrant(connection, 'default'), scopes: scope.split(' '), accessToken: 'a' };
      await red.vault.authorized(connection, { ...grant, refreshToken: refreshToken ?? null });
      return (await listAdvisors(red, connection.environment, undefined))[0]?.scopes;
    };
    should(await shown('openid text.messaging.read', 'refresh-9')).eql([
      'openid',
      'text.messaging.read',
      'offline_access',
    ]);
    should(await shown('offline_access openid', 'refresh-9')).eql(['offline_access', 'openid']);
    should(await shown('openid offline_access')).eql(['openid']);
  });

  it('knows no end of a token whose end would be no date', async () => {
    answering({ body: { ...good, expires_in: 1e300 } });
    await token();
    should(red.vault.get(connection, 'default')?.grant.expiresAt).be.null();
  });

  for (const [what, [answer, outcome]] of Object.entries(odd)) {
    it(`${what}: ${outcome}`, async () => {
      answering(answer);
      if (outcome === 'renewed') {
        should(await token()).equal('renewed');
        const kept = red.vault.get(connection, 'default')?.grant.refreshToken;
        const given = (answer.body as typeof good).refresh_token as string | null | undefined;
        should(kept).equal(given ?? 'refresh-0');
        return;
      }
      const isEnded = outcome === 'ended';
      should((await failureOf(token)).code).equal(isEnded ? 'authorization_required' : outcome);
      // An answer that says nothing about the grant does not end it.
      should(red.vault.get(connection, 'default')?.grant.refused ?? false).equal(isEnded);
    });
  }
});
