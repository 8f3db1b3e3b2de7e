import { failure } from '../service/messages';
import { ServiceError } from '../service/problems';
import type { Connection } from './connection';
import { readTokenAnswer, type TokenAnswer } from './grants';

export type PostForm = (
  address: string,
  fields: Readonly<Record<string, string>>,
  options: { readonly timeout: number },
) => Promise<{ readonly status: number; readonly text: string }>;

/** Milliseconds. */
const timeLimit = 30_000;

/**
 * What the token endpoint made of a request. `refused`: the code or refresh token is no good. `client`: the application
 * itself was not accepted, which says nothing about the authorization. `later`: it could not tell, or we could not ask.
 */
export type TokenResult =
  | { readonly outcome: 'issued'; readonly answer: TokenAnswer }
  | { readonly outcome: 'refused' }
  | { readonly outcome: 'client' }
  | { readonly outcome: 'later'; readonly why: string };

const clientErrors = new Set(['invalid_client', 'unauthorized_client']);

const errorOf = (text: string): unknown => {
  try {
    return (JSON.parse(text) as { error?: unknown } | null)?.error;
  } catch {
    return undefined;
  }
};

const read = ({ status, text }: { status: number; text: string }): TokenResult => {
  if (status >= 200 && status < 300) {
    const answer = readTokenAnswer(text);
    return answer ? { outcome: 'issued', answer } : { outcome: 'later', why: 'no token' };
  }
  if (status === 400) {
    return clientErrors.has(String(errorOf(text))) ? { outcome: 'client' } : { outcome: 'refused' };
  }
  if (status === 401 || status === 403) return { outcome: 'client' };
  return { outcome: 'later', why: `HTTP ${String(status)}` };
};

const ask = async (
  post: PostForm,
  { tokenUrl, clientId, clientSecret }: Connection,
  fields: Readonly<Record<string, string>>,
): Promise<TokenResult> => {
  try {
    const all = { ...fields, client_id: clientId, client_secret: clientSecret };
    return read(await post(tokenUrl, all, { timeout: timeLimit }));
  } catch (fault) {
    if (fault instanceof ServiceError && fault.code === 'not_configured') throw fault;
    return { outcome: 'later', why: 'unreachable' };
  }
};

export const exchangeCode = (
  post: PostForm,
  connection: Connection,
  code: string,
  verifier: string,
): Promise<TokenResult> =>
  ask(post, connection, {
    grant_type: 'authorization_code',
    code,
    code_verifier: verifier,
    redirect_uri: connection.redirectUri,
  });

export const refresh = (post: PostForm, connection: Connection, refreshToken: string): Promise<TokenResult> =>
  ask(post, connection, { grant_type: 'refresh_token', refresh_token: refreshToken });

export const clientCredentials = (post: PostForm, connection: Connection): Promise<TokenResult> =>
  ask(post, connection, {
    grant_type: 'client_credentials',
    scope: connection.scopes.filter((scope) => scope !== 'offline_access').join(' '),
  });

export const clientRefused = ({ name }: Connection): ServiceError =>
  failure('authorization_required', 'client_refused', { name });

export const tryLater = ({ name }: Connection, reason: string): ServiceError =>
  failure('network_error', 'token_later', { name, reason });

export const authorizeAgain = ({ name }: Connection, advisor: string): ServiceError =>
  failure('authorization_required', 'authorization_ended', { advisor, name });

export const notAuthorized = ({ name }: Connection, advisor: string): ServiceError =>
  failure('authorization_required', 'not_authorized', { advisor, name });
