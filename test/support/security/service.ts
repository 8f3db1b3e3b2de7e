import type { IncomingHttpHeaders } from 'node:http';
import { sent } from '../sent';
import { type Received, type Reply, type Scripted, startServer } from '../server';
import { unique, type Canaries } from './canaries';

/** How the service treats a request. All but the first two echo what they were sent. */
export type Manner =
  | 'ok'
  | 'pending'
  | 'noConsent'
  | 'rejected'
  | 'refused'
  | 'forbidden'
  | 'missing'
  | 'unauthorized'
  | 'expired once'
  | 'failing'
  | 'gateway'
  | 'shape'
  | 'no JSON'
  | 'redirect'
  | 'cut'
  | 'silent';

export type TokenManner = 'issue' | 'refuse' | 'unavailable' | 'malformed' | 'wrong client';

const header = (headers: IncomingHttpHeaders, name: string): string => String(headers[name] ?? '');

const problem = (status: number, code: string, said: string): Reply => ({
  status,
  headers: { 'content-type': 'application/problem+json' },
  body: {
    type: 'https://service.example/problems/1',
    title: code,
    status,
    detail: `Not like this: ${said}`,
    instance: '/v1/here',
    code,
    traceId: 'trace-1',
    retryable: false,
    details: { received: said, nested: [{ said }] },
  },
});

/** A service and its token endpoint that echo every secret, as a careless one might. */
export class EchoingService {
  /** By a part of the request, such as a phone number or the end of a path. */
  readonly manners = new Map<string, Manner>();
  tokens: TokenManner = 'issue';
  person = 'somebody';
  private server: Scripted | undefined;
  private readonly expired = new Set<string>();

  constructor(private readonly canaries: Canaries) {}

  async start(): Promise<void> {
    this.server = await startServer((request, response) => {
      if (request.url.startsWith('/token')) return this.token(request);
      const manner = this.mannerOf(request);
      if (manner === 'silent') return undefined;
      if (manner === 'cut') {
        response.destroy();
        return undefined;
      }
      return this.answer(request, manner);
    });
  }

  get url(): string {
    return this.server?.url ?? '';
  }

  get received(): readonly Received[] {
    return this.server?.received ?? [];
  }

  private mannerOf({ url, body }: Received): Manner {
    const said = decodeURIComponent(url) + body;
    return [...this.manners].find(([part]) => said.includes(part))?.[1] ?? 'ok';
  }

  private token({ body }: Received): Reply {
    const { code_verifier: verifier } = Object.fromEntries(new URLSearchParams(body));
    if (verifier !== undefined) this.canaries.add('secret', 'code verifier', verifier);
    const echo = { error_description: body, message: body };
    switch (this.tokens) {
      case 'refuse':
        return { status: 400, body: { error: 'invalid_grant', ...echo } };
      case 'unavailable':
        return { status: 503, body };
      case 'malformed':
        return { status: 200, body: `{"access_token": ${body}` };
      case 'wrong client':
        return { status: 401, body: { error: 'invalid_client', ...echo } };
      case 'issue':
        return { body: this.issue() };
    }
  }

  private issue(): object {
    const claims = { sub: this.person, name: this.person };
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const idToken = `${part({ alg: 'none' })}.${part(claims)}.${unique()}`;
    return {
      access_token: this.canaries.add('secret', 'access token', `at/${unique()}+=`),
      refresh_token: this.canaries.add('secret', 'refresh token', `rt/${unique()}+=`),
      id_token: this.canaries.add('secret', 'id token', idToken),
      token_type: 'Bearer',
      expires_in: 3600,
    };
  }

  private answer(request: Received, manner: Manner): Reply {
    const { headers, url, body } = request;
    const key = header(headers, 'x-api-key');
    const said = `${header(headers, 'authorization')} ${key} ${url} ${body}`;
    switch (manner) {
      case 'noConsent':
        return { body: { successes: [], failures: ['The member has not consented.'] } };
      case 'rejected':
        return { body: { successes: [], failures: [`Blocked: ${said}`] } };
      case 'refused':
        return problem(400, 'invalid_request', said);
      case 'forbidden':
        return problem(403, 'forbidden', said);
      case 'missing':
        return problem(404, 'not_found', said);
      case 'unauthorized':
        return problem(401, 'unauthorized', said);
      case 'failing':
        return problem(500, 'internal_error', said);
      case 'gateway':
        return { status: 502, body: `<html>${said}</html>` };
      case 'shape':
        return { body: { [said]: said, successes: said, state: { said }, data: said, id: said } };
      case 'no JSON':
        return { body: `{"${said}` };
      case 'redirect':
        return { status: 307, headers: { location: `/elsewhere?${encodeURIComponent(said)}` }, body: said };
      case 'expired once': {
        if (this.expired.has(body)) return { body: this.success(request, manner) };
        this.expired.add(body);
        return problem(401, 'unauthorized', said);
      }
      default:
        return { body: this.success(request, manner) };
    }
  }

  private success({ method, url }: Received, manner: Manner): object {
    const path = url.replace(/^\/v1|\?.*$/g, '');
    const name = this.person;
    if (path.endsWith('/messages')) return sent;
    if (path.endsWith('/consent-requests'))
      return { successes: [{ memberId: 9, consentState: 'pending' }], failures: [] };
    if (path.endsWith('/consents'))
      return { memberId: 9, state: manner === 'pending' ? 'pending' : 'accepted', lastChanged: 1 };
    if (method !== 'GET') return { id: 1 };
    if (/\/contacts\/\d+$/.test(path))
      return { contactId: 1, firstName: name, lastName: name, groupIds: [4] };
    const item = { contactId: 1, fullName: name, groupId: 4, name, title: name, url: 'https://a.example' };
    return { data: [item], pageInfo: { page: 1, pageSize: 50, totalRecord: 1 } };
  }

  /** Resolves when a request with this part has arrived. */
  async reached(part: string): Promise<void> {
    while (!this.received.some(({ body, url }) => (decodeURIComponent(url) + body).includes(part)))
      await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
