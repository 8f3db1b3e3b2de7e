import type { Connection } from './connection';
import { minute, second } from '../durations';
import { isRecord } from '../is-record';

/** The identity in a token: for display, and to notice that another person has authorized; never for deciding access. */
export interface Identity {
  readonly subject: string;
  readonly label: string;
}

/** One advisor's authorization. */
export interface Grant {
  readonly environment: string;
  readonly advisor: string;
  /** The token endpoint and the application that the grant belongs to: it is never sent elsewhere. */
  readonly tokenUrl: string;
  readonly clientId: string;
  /** Sandbox or production: an authorization for one is never used for the other, even at the same address. */
  readonly service?: string | undefined;
  /** The base address when the grant was issued; older grants have none. */
  readonly baseUrl?: string;
  readonly accessToken: string | null;
  readonly refreshToken: string | null;
  /** Epoch milliseconds; null when the service did not say. */
  readonly expiresAt: number | null;
  readonly lifetime: number | null;
  readonly refreshedAt: number | null;
  readonly asked: readonly string[];
  readonly scopes: readonly string[];
  readonly identity: Identity | null;
  /** The service has refused a refresh: somebody must authorize again. */
  readonly refused: boolean;
}

/** A grant that has no tokens yet. */
export const newGrant = (connection: Connection, advisor: string): Grant => ({
  environment: connection.environment,
  advisor,
  tokenUrl: connection.tokenUrl,
  clientId: connection.clientId,
  service: connection.service,
  baseUrl: connection.baseUrl,
  accessToken: null,
  refreshToken: null,
  expiresAt: null,
  lifetime: null,
  refreshedAt: null,
  asked: connection.scopes,
  scopes: [],
  identity: null,
  refused: false,
});

/** The answer of the token endpoint. */
export interface TokenAnswer {
  readonly accessToken: string;
  readonly refreshToken: string | null;
  readonly expiresIn: number | null;
  readonly scopes: readonly string[] | null;
  readonly identity: Identity | null;
  /** Empty where the answer does not name it. */
  readonly tokenType: string;
}

type Claims = Readonly<Record<string, unknown>>;

const claimsOf = (token: unknown): Claims | undefined => {
  if (typeof token !== 'string') return undefined;
  const parts = token.split('.');
  if (parts.length !== 3 || !parts[1]) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(parts[1], 'base64url').toString());
    return isRecord(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
};

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

const identityOf = (answer: Claims): Identity | null => {
  for (const token of [answer['id_token'], answer['access_token']]) {
    const claims = claimsOf(token);
    const subject = text(claims?.['sub']);
    if (claims && subject !== undefined) {
      const label = [claims['name'], claims['email'], claims['preferred_username']].map(text).find(Boolean);
      return { subject, label: (label ?? subject).slice(0, 200) };
    }
  }
  return null;
};

export const splitScopes = (scope: string): string[] => scope.split(/\s+/).filter(Boolean);

/** The scopes that an access token itself names, in the words of the service (RFC 9068, section 2.2.3). */
export const scopesIn = (token: string): string[] | undefined => {
  const claims = claimsOf(token);
  const said = claims?.['scope'] ?? claims?.['scp'];
  if (typeof said === 'string') return splitScopes(said);
  return Array.isArray(said) ? said.filter((scope) => typeof scope === 'string') : undefined;
};

/** Seconds. A token that ends later never ends: beyond the year 275760 there are no dates (ECMA-262, section 21.4.1.1). */
const longestLifetime = 1e12;

/** Undefined when the text is not a token answer. */
export const readTokenAnswer = (body: string): TokenAnswer | undefined => {
  let answer: unknown;
  try {
    answer = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (typeof answer !== 'object' || answer === null) return undefined;
  const fields = answer as Claims;
  const accessToken = text(fields['access_token']);
  if (accessToken === undefined || /[^\x21-\x7e]/.test(accessToken)) return undefined;
  const seconds = Number(fields['expires_in'] ?? Number.NaN);
  const { scope, token_type: type } = fields;
  return {
    accessToken,
    refreshToken: text(fields['refresh_token']) ?? null,
    expiresIn: seconds > 0 && seconds <= longestLifetime ? seconds * second : null,
    scopes: typeof scope === 'string' ? splitScopes(scope) : null,
    identity: identityOf(fields),
    tokenType: type == null ? '' : typeof type === 'string' ? type : JSON.stringify(type),
  };
};

/** The type of a token is compared without regard to case (RFC 6749, section 5.1). */
export const isBearer = ({ tokenType }: TokenAnswer): boolean =>
  tokenType === '' || tokenType.toLowerCase() === 'bearer';

/**
 * A refresh does not change the person (OpenID Connect Core 1.0, section 12.2). It often returns no identity token, and
 * the subject of an access token may differ from that of the identity token.
 */
const samePerson = (before: Identity | null, now: Identity | null): Identity | null =>
  now && (before === null || before.subject === now.subject) ? now : before;

/** The grant after a token was issued or refreshed. Fields that the answer lacks stay as they were. */
export const renewed = (grant: Grant, answer: TokenAnswer, now: number): Grant => ({
  ...grant,
  accessToken: answer.accessToken,
  refreshToken: answer.refreshToken ?? grant.refreshToken,
  expiresAt: answer.expiresIn === null ? null : now + answer.expiresIn,
  lifetime: answer.expiresIn,
  refreshedAt: now,
  scopes: answer.scopes ?? (grant.scopes.length > 0 ? grant.scopes : grant.asked),
  identity: samePerson(grant.identity, answer.identity),
  refused: false,
});

/** Whether the token is too close to its end to begin a request with. */
const isSpent = (grant: Grant, now: number): boolean =>
  grant.expiresAt !== null && now >= grant.expiresAt - Math.min(10 * second, (grant.lifetime ?? 0) / 20);

/** Whether somebody must authorize again: the grant was refused, or has ended and has no refresh token. */
export const isOver = (grant: Grant, now: number): boolean =>
  grant.refused || (grant.refreshToken === null && (grant.accessToken === null || isSpent(grant, now)));

/** Whether the token is close enough to its end to be refreshed while it still works. */
export const isNearEnd = (grant: Grant, now: number): boolean =>
  grant.expiresAt !== null && now >= grant.expiresAt - Math.min(5 * minute, (grant.lifetime ?? 0) / 5);

/** The access token, if it can be used now; not one that the service has just rejected. */
export const usableToken = (grant: Grant, now: number, rejected?: string): string | undefined =>
  grant.accessToken !== null && grant.accessToken !== rejected && !grant.refused && !isSpent(grant, now)
    ? grant.accessToken
    : undefined;

/**
 * The scopes that were requested and not granted. `openid` and `offline_access` allow no operation, and some services
 * never list them.
 */
export const missingScopes = (asked: readonly string[], granted: readonly string[]): string[] =>
  asked.filter((scope) => scope !== 'openid' && scope !== 'offline_access' && !granted.includes(scope));
