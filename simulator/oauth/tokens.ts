import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../../lib/service/clock';
import { advisorIdentity } from '../state/identities';
import { scopeOnWire } from '../contract/wire';
import type { Settings } from '../state/settings';
import { sign, verified } from './jwt';
import { second } from '../../lib/durations';

export interface AccessToken {
  readonly advisor: string;
  readonly scopes: ReadonlySet<string>;
  readonly expiresAt: number;
  readonly family: string | undefined;
}

/** One authorization, with the refresh tokens that follow one another. */
const familySchema = z.object({
  id: z.string(),
  advisor: z.string(),
  scopes: z.array(z.string()),
  /** The current refresh token, if there is one. */
  refreshToken: z.string().nullable(),
  expiresAt: z.number(),
  ended: z.boolean(),
});
export type Family = z.output<typeof familySchema>;

export const tokensSchema = z.object({ key: z.string(), families: z.array(familySchema) });
type TokensRecord = z.output<typeof tokensSchema>;

/** The issuer and the audience of an id token, and the nonce of the client's request. */
export interface IdentityOf {
  readonly iss: string;
  readonly aud: string;
  readonly nonce?: string | undefined;
}

const claimsSchema = z.object({
  advisor: z.string(),
  scope: z.string(),
  exp: z.number(),
  family: z.string().optional(),
});

const secret = (bytes: number): string => randomBytes(bytes).toString('base64url');

/** The most checked tokens that are remembered. */
const remembered = 10_000;

/**
 * Access tokens name their advisor and are signed, so that they outlive a restart without being stored. Refresh tokens
 * are stored with their family.
 */
export class TokenIssuer {
  private key = secret(32);
  private readonly families = new Map<string, Family>();
  private readonly checked = new Map<string, AccessToken>();
  private readonly direct = new Map<string, { readonly token: string; readonly renewAt: number }>();

  constructor(
    private readonly clock: Clock,
    private readonly settings: () => Settings,
  ) {}

  /**
   * A token without the OAuth flow; the scopes are in the contract's words. The same token is returned while it has
   * half its life left.
   */
  accessToken(advisor: string, inContract: readonly string[] = this.settings().scopes): string {
    const scopes = inContract.map((scope) => scopeOnWire(scope, this.settings().habits));
    const name = JSON.stringify([advisor, scopes]);
    const known = this.direct.get(name);
    if (known !== undefined && this.clock.now() < known.renewAt) return known.token;
    const token = this.issue(advisor, scopes, undefined);
    this.direct.set(name, { token, renewAt: this.clock.now() + this.settings().accessTokenLifetime * 500 });
    return token;
  }

  /** The access of a token that we signed, that has not expired and was not revoked. */
  check(token: string): AccessToken | undefined {
    const access = this.checked.get(token) ?? this.read(token);
    if (access === undefined || access.expiresAt <= this.clock.now()) return undefined;
    if (access.family !== undefined && this.families.get(access.family)?.ended !== false) return undefined;
    return access;
  }

  begin(advisor: string, scopes: readonly string[]): Family {
    const family: Family = {
      id: secret(9),
      advisor,
      scopes: [...scopes],
      refreshToken: null,
      expiresAt: 0,
      ended: false,
    };
    this.families.set(family.id, family);
    if (scopes.includes('offline_access')) this.renew(family);
    return family;
  }

  /** The id token is signed with the client's secret, as HS256 requires (OpenID Connect Core, section 10.1). */
  answer(family: Family, identity: IdentityOf, clientSecret: string) {
    const { advisor, scopes, refreshToken } = family;
    return {
      access_token: this.issue(advisor, scopes, family.id),
      token_type: 'Bearer',
      expires_in: this.settings().accessTokenLifetime,
      scope: scopes.join(' '),
      ...(refreshToken === null ? {} : { refresh_token: refreshToken }),
      ...(scopes.includes('openid')
        ? { id_token: sign({ ...this.identityClaims(advisor), ...identity }, clientSecret) }
        : {}),
    };
  }

  /** The family of a refresh token, ready for its next answer; or undefined. */
  refresh(refreshToken: string): Family | undefined {
    const family = this.families.get(refreshToken.split('~', 1)[0] ?? '');
    if (family === undefined || family.ended) return undefined;
    if (family.refreshToken !== refreshToken) {
      // A replaced refresh token was used again. One of its two holders may have stolen it, so the whole family ends
      // (RFC 9700, section 4.14.2).
      family.ended = true;
      return undefined;
    }
    if (family.expiresAt <= this.clock.now()) return undefined;
    if (this.settings().rotateRefreshTokens) this.renew(family);
    return family;
  }

  end(family: Family): void {
    family.ended = true;
  }

  /** Revokes the authorizations of an advisor, or of all; returns their number. */
  revoke(advisor?: string): number {
    const hit = [...this.families.values()].filter((one) => advisor === undefined || one.advisor === advisor);
    for (const family of hit) family.ended = true;
    return hit.length;
  }

  record(): TokensRecord {
    return { key: this.key, families: [...this.families.values()].filter(({ ended }) => !ended) };
  }

  restore(record: TokensRecord): void {
    this.key = record.key;
    for (const family of record.families) this.families.set(family.id, family);
  }

  private renew(family: Family): void {
    family.refreshToken = `${family.id}~${secret(32)}`;
    family.expiresAt = this.clock.now() + this.settings().refreshTokenLifetime * second;
  }

  private issue(advisor: string, scopes: readonly string[], family: string | undefined): string {
    const claims = {
      ...this.identityClaims(advisor),
      advisor,
      scope: scopes.join(' '),
      family,
      jti: secret(9),
    };
    return sign(claims, this.key);
  }

  private identityClaims(advisor: string) {
    const { name, email } = advisorIdentity(advisor);
    // The time is not rounded, so that a token expires when the clock is moved by exactly its lifetime.
    const iat = this.clock.now() / second;
    return {
      iss: 'advisor-texting-simulator',
      sub: `advisor|${advisor}`,
      name,
      email,
      iat,
      exp: iat + this.settings().accessTokenLifetime,
    };
  }

  private read(token: string): AccessToken | undefined {
    const claims = claimsSchema.safeParse(verified(token, this.key));
    if (!claims.success) return undefined;
    const { advisor, scope, exp, family } = claims.data;
    const access = {
      advisor,
      scopes: new Set(scope.split(' ')),
      expiresAt: Math.round(exp * second),
      family,
    };
    if (this.checked.size >= remembered) this.checked.clear();
    this.checked.set(token, access);
    return access;
  }
}
