import { randomBytes } from 'node:crypto';
import type { Clock } from '../../lib/service/clock';
import type { Family } from './tokens';
import { second } from '../../lib/durations';

export interface AuthorizationCode {
  readonly redirectUri: string;
  readonly challenge: string;
  readonly advisor: string;
  readonly scopes: readonly string[];
  readonly nonce: string | undefined;
  readonly expiresAt: number;
  /** Set when the code was exchanged. A second exchange revokes the tokens of the first (RFC 6749, section 4.1.2). */
  spent: boolean;
  family?: Family;
}

/** Seconds; at most ten minutes are recommended (RFC 6749, section 4.1.2). */
const codeLifetime = 300;

/** Authorization codes, each for one exchange. */
export class Codes {
  private readonly codes = new Map<string, AuthorizationCode>();

  constructor(private readonly clock: Clock) {}

  issue(
    granted: Pick<AuthorizationCode, 'redirectUri' | 'challenge' | 'advisor' | 'scopes' | 'nonce'>,
  ): string {
    const now = this.clock.now();
    for (const [code, { expiresAt }] of this.codes) if (expiresAt <= now) this.codes.delete(code);
    const code = randomBytes(24).toString('base64url');
    this.codes.set(code, { ...granted, expiresAt: now + codeLifetime * second, spent: false });
    return code;
  }

  find(code: string): AuthorizationCode | undefined {
    const found = this.codes.get(code);
    return found === undefined || found.expiresAt <= this.clock.now() ? undefined : found;
  }
}
