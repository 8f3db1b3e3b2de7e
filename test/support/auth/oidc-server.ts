import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { callbackUri } from './setup';

export interface OidcServer {
  readonly authUrl: string;
  readonly tokenUrl: string;
  readonly credentials: { readonly clientId: string; readonly clientSecret: string; readonly apiKey: string };
  /** Token requests that were answered, by grant type. */
  readonly granted: string[];
  /** Signs a person in and consents, as a browser would; returns the redirect address. */
  signIn(url: string, login: string): Promise<URL>;
  close(): Promise<void>;
}

const scopes = ['openid', 'offline_access', 'text.messaging.read', 'core.contacts.read'];
const client = { clientId: 'office', clientSecret: 'a secret of the office', apiKey: 'key' };

/** A certified authorization server that requires PKCE and rotates refresh tokens. */
export const startOidcServer = async (accessTokenLifetime = 3600): Promise<OidcServer> => {
  const { default: Provider } = await import('oidc-provider');
  const granted: string[] = [];
  const server = createServer((request, response) => {
    handle(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  const provider = new Provider(url, {
    clients: [
      {
        client_id: client.clientId,
        client_secret: client.clientSecret,
        redirect_uris: [callbackUri],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    scopes,
    pkce: { required: () => true },
    rotateRefreshToken: true,
    ttl: {
      AccessToken: accessTokenLifetime,
      RefreshToken: 86_400,
      Session: 3600,
      Interaction: 3600,
      Grant: 86_400,
    },
    cookies: { keys: ['for tests'] },
  });
  provider.on('grant.success', ({ oidc }: { oidc: { params: { grant_type: string } } }) => {
    granted.push(oidc.params.grant_type);
  });
  const handle = provider.callback();

  /** One browser: follows redirects, keeps cookies, submits the server's own forms. */
  const signIn = async (start: string, login: string): Promise<URL> => {
    const cookies = new Map<string, string>();
    const visit = async (address: string, form?: Readonly<Record<string, string>>): Promise<Response> => {
      const answer = await fetch(address, {
        method: form ? 'POST' : 'GET',
        redirect: 'manual',
        headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
        ...(form ? { body: new URLSearchParams(form) } : {}),
      });
      for (const line of answer.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
        if (value === '') cookies.delete(name);
        else cookies.set(name, value);
      }
      return answer;
    };
    let address = start;
    for (;;) {
      if (address.startsWith(callbackUri)) return new URL(address);
      const answer = await visit(address);
      let next = answer.headers.get('location');
      if (next === null) {
        const page = await answer.text();
        const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1] ?? '';
        const target = /action="([^"]+)"/.exec(page)?.[1];
        if (target === undefined) throw new Error(`No form at ${address}: ${page.slice(0, 300)}`);
        const form = prompt === 'login' ? { prompt, login, password: 'any' } : { prompt };
        next = (await visit(new URL(target, address).href, form)).headers.get('location');
      }
      address = new URL(next ?? '', address).href;
    }
  };

  return {
    // This server issues a refresh token only if it asks for consent: a fixed parameter of its address.
    authUrl: `${url}/auth?prompt=consent`,
    tokenUrl: `${url}/token`,
    credentials: client,
    granted,
    signIn,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
};
