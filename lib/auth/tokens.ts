import { createHash } from 'node:crypto';
import type { Clock } from '../service/clock';
import { ClientTokens } from './client-tokens';
import type { Connection } from './connection';
import { Flights } from './flights';
import type { GrantBook } from './grant-book';
import { isNearEnd, renewed, usableToken, type Grant } from './grants';
import type { Lease } from './lease';
import { authorizeAgain, notAuthorized, tryLater, type TokenEndpoints } from './token-endpoint';

export interface TokensOptions {
  readonly book: GrantBook;
  readonly clock: Clock;
  readonly endpoints: TokenEndpoints;
  readonly lease: Lease;
}

/** After an attempt ahead of time, how long the token at hand serves before the next. */
const pauseAhead = 30_000;

/** Whether a grant was issued to this application, here. If not it goes nowhere, and somebody must authorize again. */
export const fits = ({ tokenUrl, clientId }: Grant, connection: Connection): boolean =>
  clientId === connection.clientId &&
  (tokenUrl === connection.tokenUrl || new URL(tokenUrl).origin === new URL(connection.tokenUrl).origin);

const leaseName = (name: string): string =>
  `token-${createHash('sha256').update(name).digest('hex').slice(0, 32)}`;

/** Access tokens, renewed in time, with one renewal under way per authorization whoever asks. */
export class Tokens {
  readonly client: ClientTokens;
  readonly #options: TokensOptions;
  readonly #flights = new Flights();
  readonly #nextAhead = new Map<string, number>();

  constructor(options: TokensOptions) {
    this.#options = options;
    this.client = new ClientTokens(options.clock, options.endpoints, this.#flights);
  }

  /** As `ClientOptions.token`: a plain string when one is at hand. */
  token(connection: Connection, advisor: string, rejected?: string): string | Promise<string> {
    if (connection.grant === 'client_credentials') return this.client.token(connection, advisor, rejected);
    const { book, clock } = this.#options;
    const grant = book.get(connection, advisor)?.grant;
    if (!grant) throw notAuthorized(connection, advisor);
    if (grant.refused || !fits(grant, connection)) throw authorizeAgain(connection, advisor);
    const usable = usableToken(grant, clock, rejected);
    if (usable === undefined) return this.#renew(connection, advisor, rejected);
    if (grant.refreshToken !== null && isNearEnd(grant, clock.now())) this.#renewAhead(connection, advisor);
    return usable;
  }

  /** For somebody who is looking: rejects after so many milliseconds, while the request goes on. */
  async tokenWithin(ms: number, connection: Connection, advisor: string, rejected?: string): Promise<string> {
    const token = this.token(connection, advisor, rejected);
    if (typeof token === 'string') return token;
    let forget = (): void => undefined;
    const late = new Promise<never>((_resolve, reject) => {
      forget = this.#options.clock.after(ms, () => {
        reject(tryLater('timeout')(connection));
      });
    });
    return Promise.race([token, late]).finally(forget);
  }

  #renewAhead(connection: Connection, advisor: string): void {
    const name = this.#options.book.name(connection, advisor);
    const now = this.#options.clock.now();
    if (this.#flights.has(name) || now < (this.#nextAhead.get(name) ?? 0)) return;
    this.#nextAhead.set(name, now + pauseAhead);
    // Whoever needs the token once it has ended meets the failure; until then it still serves.
    void this.#renew(connection, advisor).catch(() => undefined);
  }

  /** An environment has closed: nothing is asked for on its behalf any more. */
  leave(connection: Connection): void {
    this.#flights.leave(connection);
  }

  #renew(connection: Connection, advisor: string, rejected?: string): Promise<string> {
    const { book, endpoints, lease } = this.#options;
    const name = book.name(connection, advisor);
    // The lease is for one attempt: between attempts may lie an hour.
    const attempt = (): Promise<string> =>
      lease(leaseName(name), () => this.#attempt(name, connection, advisor, rejected));
    return this.#flights.join(name, connection, (signal) => endpoints.run(connection, attempt, signal));
  }

  async #attempt(name: string, connection: Connection, advisor: string, rejected?: string): Promise<string> {
    const { book, clock, endpoints } = this.#options;
    let tried: string | undefined;
    for (;;) {
      // Another process may have renewed it, or somebody disconnected it, in the meantime.
      await book.reread();
      const entry = book.get(connection, advisor);
      if (!entry) throw notAuthorized(connection, advisor);
      const { grant } = entry;
      const usable = usableToken(grant, clock, rejected);
      if (usable !== undefined && !isNearEnd(grant, clock.now())) return usable;
      if (grant.refreshToken === null || grant.refreshToken === tried || grant.refused) {
        // What cannot be renewed goes once more though it was rejected: the API key may be what is wrong.
        const last = grant.refreshToken === null ? usableToken(grant, clock) : usable;
        if (last !== undefined) return last;
        if (grant.refreshToken === tried)
          await book.put(name, { ...entry, grant: { ...grant, refused: true } });
        throw authorizeAgain(connection, advisor);
      }
      const result = await endpoints.refresh(connection, grant.refreshToken);
      tried = grant.refreshToken;
      if (result.outcome === 'refused') continue;
      const latest = book.get(connection, advisor);
      // Somebody authorized anew or disconnected while this was under way: that counts, not what was renewed.
      if (latest?.grant.refreshToken !== tried) continue;
      await book.put(name, { ...latest, grant: renewed(grant, result.answer, clock.now()) });
      return result.answer.accessToken;
    }
  }
}
