import type * as OAuth from 'oauth4webapi' with { 'resolution-mode': 'import' };
import type * as OpenId from 'openid-client' with { 'resolution-mode': 'import' };
import should from 'should';
import { startSimulator, type Simulator } from '../../../simulator';

const redirectUri = 'https://flows.example.com/advisor-texting/callback';
const scope = 'openid offline_access core.contacts.read text.messaging.write';

/** What the advisor decides on the page; returns the address to which the browser is redirected. */
const decide = async (url: URL, decision = 'approve'): Promise<URL> => {
  should((await fetch(url)).status).equal(200);
  const body = new URLSearchParams({ decision, advisor: 'jordan' });
  const answer = await fetch(url, { method: 'POST', redirect: 'manual', body });
  return new URL(answer.headers.get('location') ?? '');
};

describe("third-party clients on the simulator's OAuth endpoints", () => {
  let simulator: Simulator;

  beforeEach(async () => {
    simulator = await startSimulator({
      settings: { redirectUris: [redirectUri], rotateRefreshTokens: true },
    });
  });
  afterEach(() => simulator.close());

  const contacts = async (token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}`, 'x-api-key': simulator.credentials.apiKey };
    return (await fetch(`${simulator.baseUrl}/core/contact/contacts`, { headers })).status;
  };
  /** There is no discovery: the contract names both addresses. */
  const server = () => ({
    issuer: simulator.url,
    authorization_endpoint: simulator.authUrl,
    token_endpoint: simulator.tokenUrl,
    id_token_signing_alg_values_supported: ['HS256'],
  });
  const failureOf = async (work: Promise<unknown>): Promise<Record<string, unknown>> => {
    try {
      await work;
    } catch (fault) {
      return fault as Record<string, unknown>;
    }
    throw new Error('It did not fail.');
  };

  describe('openid-client', () => {
    let client: typeof OpenId;
    let config: OpenId.Configuration;
    let verifier: string;

    beforeEach(async () => {
      client = await import('openid-client');
      const { clientId, clientSecret } = simulator.credentials;
      const metadata = { client_secret: clientSecret, id_token_signed_response_alg: 'HS256' };
      config = new client.Configuration(server(), clientId, metadata, client.ClientSecretPost(clientSecret));
      // On localhost, without TLS.
      client.allowInsecureRequests(config);
      verifier = client.randomPKCECodeVerifier();
    });

    const checks = () => ({
      pkceCodeVerifier: verifier,
      expectedState: 'the state',
      expectedNonce: 'the nonce',
    });
    const address = async (change: Record<string, string> = {}): Promise<URL> =>
      client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state: 'the state',
        nonce: 'the nonce',
        ...change,
      });
    const authorize = async (): Promise<OpenId.TokenEndpointResponse & OpenId.TokenEndpointResponseHelpers> =>
      client.authorizationCodeGrant(config, await decide(await address()), checks());

    it('authorizes with PKCE, and knows who signed in', async () => {
      const tokens = await authorize();
      should(tokens.claims()).containEql({ sub: 'advisor|jordan', iss: simulator.url, nonce: 'the nonce' });
      should(tokens.expiresIn()).be.above(3500);
      should(tokens.scope?.split(' ')).deepEqual(scope.split(' '));
      should(await contacts(tokens.access_token)).equal(200);
    });

    it('refreshes with rotation, and notices that a replaced token is invalid', async () => {
      const first = (await authorize()).refresh_token ?? '';
      const next = await client.refreshTokenGrant(config, first);
      should(next.refresh_token).be.a.String().and.not.equal(first);
      should(await contacts(next.access_token)).equal(200);
      should(await failureOf(client.refreshTokenGrant(config, first))).containEql({
        error: 'invalid_grant',
        status: 400,
      });
    });

    it('notices a denial', async () => {
      const back = await decide(await address(), 'deny');
      should(await failureOf(client.authorizationCodeGrant(config, back, checks()))).containEql({
        error: 'access_denied',
      });
    });

    it('notices a wrong verifier, and a scope that is not provisioned', async () => {
      const back = await decide(await address());
      verifier = client.randomPKCECodeVerifier();
      should(await failureOf(client.authorizationCodeGrant(config, back, checks()))).containEql({
        error: 'invalid_grant',
      });
      const answer = await fetch(await address({ scope: 'openid admin' }), { redirect: 'manual' });
      const refused = new URL(answer.headers.get('location') ?? '');
      should(await failureOf(client.authorizationCodeGrant(config, refused, checks()))).containEql({
        error: 'invalid_scope',
      });
    });

    it('gets a token for client credentials', async () => {
      const tokens = await client.clientCredentialsGrant(config, { scope: 'core.contacts.read' });
      should(tokens.scope).equal('core.contacts.read');
      should(tokens.refresh_token).be.undefined();
      should(await contacts(tokens.access_token)).equal(200);
    });
  });

  describe('oauth4webapi', () => {
    let oauth: typeof OAuth;
    let client: OAuth.Client;
    let secret: OAuth.ClientAuth;

    beforeEach(async () => {
      oauth = await import('oauth4webapi');
      const { clientId, clientSecret } = simulator.credentials;
      client = { client_id: clientId, id_token_signed_response_alg: 'HS256' };
      secret = oauth.ClientSecretPost(clientSecret);
    });

    // On localhost, without TLS.
    const insecure = () => ({ [oauth.allowInsecureRequests]: true });
    const asked = async (verifier: string): Promise<URL> => {
      const url = new URL(simulator.authUrl);
      url.search = new URLSearchParams({
        client_id: client.client_id,
        redirect_uri: redirectUri,
        response_type: 'code',
        scope,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state: 'the state',
      }).toString();
      return url;
    };

    it('authorizes with PKCE and refreshes', async () => {
      const verifier = oauth.generateRandomCodeVerifier();
      const back = await decide(await asked(verifier));
      const parameters = oauth.validateAuthResponse(server(), client, back, 'the state');
      const exchanged = await oauth.authorizationCodeGrantRequest(
        server(),
        client,
        secret,
        parameters,
        redirectUri,
        verifier,
        insecure(),
      );
      const tokens = await oauth.processAuthorizationCodeResponse(server(), client, exchanged, {
        requireIdToken: true,
      });
      should(oauth.getValidatedIdTokenClaims(tokens)).containEql({ sub: 'advisor|jordan' });
      const answer = await oauth.refreshTokenGrantRequest(
        server(),
        client,
        secret,
        tokens.refresh_token ?? '',
        insecure(),
      );
      const next = await oauth.processRefreshTokenResponse(server(), client, answer);
      should(await contacts(next.access_token)).equal(200);
    });

    it('notices a denial', async () => {
      const back = await decide(await asked(oauth.generateRandomCodeVerifier()), 'deny');
      should(() => oauth.validateAuthResponse(server(), client, back, 'the state')).throw(
        oauth.AuthorizationResponseError,
      );
    });

    it('gets a token for client credentials, and notices a wrong secret', async () => {
      const ask = async (auth: OAuth.ClientAuth): Promise<OAuth.TokenEndpointResponse> => {
        const answer = await oauth.clientCredentialsGrantRequest(
          server(),
          client,
          auth,
          { scope: 'core.contacts.read' },
          insecure(),
        );
        return oauth.processClientCredentialsResponse(server(), client, answer);
      };
      should(await contacts((await ask(secret)).access_token)).equal(200);
      should(await failureOf(ask(oauth.ClientSecretPost('wrong')))).containEql({
        error: 'invalid_client',
        status: 401,
      });
    });
  });
});
