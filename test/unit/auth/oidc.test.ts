import should from 'should';
import type { MovableClock } from '../../../simulator/movable-clock';
import { postForm } from '../../../lib/service/transport';
import { runCheck } from '../../support/command/setup';
import { until } from '../../support/until';
import { startOidcServer, type OidcServer } from '../../support/auth/oidc-server';
import {
  callbackUri,
  connectionTo,
  freshFolder,
  frozenClock,
  removeFolders,
  startProcess,
  type Process,
} from '../../support/auth/setup';

describe('with a certified authorization server', () => {
  let server: OidcServer;
  let clock: MovableClock;
  let folder: string;
  let red: Process;

  before(async () => {
    server = await startOidcServer();
  });
  beforeEach(async () => {
    clock = frozenClock();
    folder = freshFolder();
    red = await start();
    const back = await server.signIn(await red.authorizations.begin(connection(), 'default'), 'alice');
    should(await red.authorizations.finish(back.searchParams, { browser: '' })).containEql({
      ok: true,
      state: 'authorized',
    });
    server.granted.length = 0;
  });
  after(async () => {
    await server.close();
    removeFolders();
  });

  const start = (): Promise<Process> => startProcess(folder, { clock });
  const connection = (): ReturnType<typeof connectionTo> => connectionTo(server);
  const spend = (): Promise<void> => clock.move(3600_000);

  it('passes the command check, which issues nothing there, and reports what it rejects', async () => {
    const { clientId, clientSecret, apiKey } = server.credentials;
    const check = async (changes: Record<string, string> = {}): Promise<string> => {
      const settings = {
        BASE_URL: 'http://127.0.0.1:9/v1',
        AUTH_URL: server.authUrl,
        TOKEN_URL: server.tokenUrl,
        REDIRECT_URI: callbackUri,
        CLIENT_ID: clientId,
        CLIENT_SECRET: clientSecret,
        API_KEY: apiKey,
        ACCESS_TOKEN: 'given',
        SCOPES: 'offline_access text.messaging.read core.contacts.read',
        ...changes,
      };
      const variables = Object.entries(settings).map(([name, value]) => [`ADVISOR_TEXTING_${name}`, value]);
      return (await runCheck([], Object.fromEntries(variables) as Record<string, string>)).out;
    };
    const right = await check();
    right.should.match(/^ok +client /m);
    right.should.match(/^ok +authorization /m);
    (await check({ CLIENT_SECRET: 'another' })).should.match(/^WRONG client .*refuses the client/m);
    (await check({ CLIENT_ID: 'another' })).should.match(/^WRONG authorization /m);
    (await check({ REDIRECT_URI: 'http://127.0.0.1/other' })).should.match(
      /^WRONG authorization .*Redirect/m,
    );
    (await check({ TOKEN_URL: server.authUrl })).should.match(/^WRONG client .*Token address/m);
    should(server.granted).be.empty();
  });

  it('knows who authorized, what was granted and until when', () => {
    const [entry] = red.vault.list('env1');
    const grant = entry?.[1].grant;
    should(grant?.identity?.subject).equal('alice');
    should([...(grant?.scopes ?? [])].sort()).deepEqual([...connection().scopes].sort());
    should(grant?.expiresAt).equal(clock.now() + 3600_000);
  });

  it('rotates ten times, with a restart in between', async () => {
    for (let round = 1; round <= 10; round += 1) {
      await spend();
      if (round % 3 === 0) red = await start();
      await red.tokens.token(connection(), 'default');
      should(server.granted).have.length(round);
    }
  });

  it('requests one token for 1,000 callers when a token expires', async () => {
    await spend();
    const tokens = await Promise.all(
      Array.from({ length: 1000 }, () => red.tokens.token(connection(), 'default')),
    );
    should(new Set(tokens).size).equal(1);
    should(server.granted).deepEqual(['refresh_token']);
  });

  it('asks to authorize again when somebody else has used the refresh token', async () => {
    const refreshToken = red.vault.get(connection(), 'default')?.grant.refreshToken ?? '';
    const { clientId, clientSecret } = server.credentials;
    const stolen = await fetch(server.tokenUrl, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: refreshToken,
        client_id: clientId,
        client_secret: clientSecret,
      }),
    });
    should(stolen.status).equal(200);
    await spend();
    await should((async () => red.tokens.token(connection(), 'default'))()).be.rejectedWith({
      code: 'authorization_required',
    });
    should(red.vault.get(connection(), 'default')?.grant.refused).be.true();
  });

  it('killed between the rotation and our write, uses the access token until it expires, then asks to authorize again', async () => {
    const before = red.vault.get(connection(), 'default')?.grant.accessToken;
    await clock.move(3_400_000);
    // The server has rotated, and its answer is lost.
    const killed = await startProcess(folder, {
      clock,
      post: async (...request) => {
        await postForm(...request);
        return new Promise(() => undefined);
      },
    });
    should(killed.tokens.token(connection(), 'default')).equal(before);
    await until(() => server.granted.length === 1);
    red = await start();
    should(await red.tokens.token(connection(), 'default')).equal(before);
    should(server.granted).have.length(1);
    await spend();
    for (let caller = 0; caller < 3; caller++)
      await should((async () => red.tokens.token(connection(), 'default'))()).be.rejectedWith({
        code: 'authorization_required',
      });
    // The old refresh token was tried once: this server treats it as stolen.
    should(red.posted).have.length(1);
    const back = await server.signIn(await red.authorizations.begin(connection(), 'default'), 'alice');
    await red.authorizations.finish(back.searchParams, { browser: '' });
    should(await red.tokens.token(connection(), 'default')).be.a.String();
  });
});
