import { hash } from 'node:crypto';
import { defaultAdvisor } from '../default-advisor';
import { elapsedBy, late, within, type Clock } from '../service/clock';
import type { Connection } from './connection';
import { Flights, wokenBy } from '../service/concurrency';
import { serviceError, ServiceError } from '../service/errors';
import {
  isForAnother,
  isGrantFor,
  isNearEnd,
  newGrant,
  renewed,
  usableToken,
  type Grant,
  storingLimit,
  type Vault,
  type VaultEntry,
} from './vault';
import {
  authorizeAgain,
  notAuthorized,
  notStored,
  operationScopesOf,
  tryLater,
  type TokenEndpoints,
} from './token-endpoint';
import { second } from '../durations';
import { orMake } from '../process-memory';

export interface TokensOptions {
  readonly vault: Vault;
  readonly clock: Clock;
  readonly endpoints: TokenEndpoints;
}

/** Milliseconds between two checks whether another process has refreshed a token. */
const lookAgain = 250;

/** Milliseconds between two attempts to refresh a token ahead of its end: meanwhile the old one still works. */
const pauseAhead = 30 * second;

const names = new WeakMap<Connection, string>();

/** The name of a connection, computed once, because every request needs it. */
const connectionName = (connection: Connection): string =>
  orMake(names, connection, () => hash('sha256', JSON.stringify(connection)));

const isOfClient = ({ grant }: Connection): boolean => grant === 'client_credentials';

/** Access tokens, refreshed in time. Each authorization has at most one refresh under way, however many ask. */
export class Tokens {
  private readonly flights = new Flights();
  private readonly nextAhead = new Map<string, number>();
  /** Grants of client credentials. They can be requested again at any time, so they are never stored. */
  private readonly clientGrants = new Map<string, Grant>();
  /** The names of grants whose last request was refused: the credentials or the scopes are wrong. */
  private readonly refused = new Set<string>();

  constructor(private readonly options: TokensOptions) {}

  /** The last grant of client credentials; undefined before the first request. */
  clientGrant(connection: Connection): Grant | undefined {
    return this.clientGrants.get(connectionName(connection));
  }

  isClientRefused(connection: Connection): boolean {
    return this.refused.has(connectionName(connection));
  }

  /** As `ClientOptions.token`: returns a plain string when a token is at hand. */
  token(connection: Connection, advisor: string, rejected?: string): string | Promise<string> {
    const { clock, vault } = this.options;
    const isClient = isOfClient(connection);
    if (!isClient && vault.opening)
      return vault.opening.then(() => this.token(connection, advisor, rejected));
    const grant = isClient ? this.clientGrant(connection) : vault.get(connection, advisor)?.grant;
    if (isClient ? advisor !== defaultAdvisor : !grant) throw notAuthorized(connection, advisor);
    if (grant && (grant.refused || !isGrantFor(grant, connection))) throw authorizeAgain(connection, advisor);
    const now = clock.now();
    const usable = grant && usableToken(grant, now, rejected);
    if (!grant || usable === undefined) return this.renew(connection, advisor, rejected);
    const canRenew = isClient || grant.refreshToken !== null;
    if (canRenew && isNearEnd(grant, now)) this.renewAhead(connection, advisor);
    return usable;
  }

  /** For somebody who waits in front of a page: rejects after `ms` milliseconds, while the request goes on. */
  async tokenWithin(ms: number, connection: Connection, advisor: string, rejected?: string): Promise<string> {
    const token = this.token(connection, advisor, rejected);
    if (typeof token === 'string') return token;
    const given = await within(this.options.clock, ms, token);
    if (given === late) throw tryLater({ reason: 'timeout' })(connection);
    return given;
  }

  private renewAhead(connection: Connection, advisor: string): void {
    const name = this.nameOf(connection, advisor);
    const now = elapsedBy(this.options.clock);
    if (this.flights.has(name) || now < (this.nextAhead.get(name) ?? -Infinity)) return;
    this.nextAhead.set(name, now + pauseAhead);
    // A failure is reported when the token has ended; until then the token still works.
    void this.renew(connection, advisor).catch(() => undefined);
  }

  /**
   * Called when an environment has closed: nothing is requested for it any more. Resolves when requests under way have
   * ended.
   */
  leave(connection: Connection): Promise<void> {
    return this.flights.leave(connection);
  }

  private nameOf(connection: Connection, advisor: string): string {
    return isOfClient(connection) ? connectionName(connection) : this.options.vault.name(connection, advisor);
  }

  private renew(connection: Connection, advisor: string, rejected?: string): Promise<string> {
    const name = this.nameOf(connection, advisor);
    return this.flights.join(name, connection, async (signal) => {
      const attempt = (): Promise<string> =>
        isOfClient(connection)
          ? this.ask(name, connection)
          : this.attempt(name, connection, advisor, signal, rejected);
      try {
        return await this.options.endpoints.run(connection, attempt, { signal });
      } catch (fault) {
        if (fault instanceof ServiceError && fault.code === 'authorization_required') this.refused.add(name);
        throw fault;
      }
    });
  }

  private async ask(name: string, connection: Connection): Promise<string> {
    const { clock, endpoints } = this.options;
    const answer = await endpoints.clientCredentials(connection);
    this.refused.delete(name);
    const fresh = { ...newGrant(connection, defaultAdvisor), asked: operationScopesOf(connection) };
    this.clientGrants.set(name, renewed(fresh, answer, clock.now()));
    return answer.accessToken;
  }

  private async attempt(
    name: string,
    connection: Connection,
    advisor: string,
    signal: AbortSignal,
    rejected?: string,
  ): Promise<string> {
    const { vault, clock, endpoints } = this.options;
    let tried: string | undefined;
    for (;;) {
      // Meanwhile another process may have refreshed it, or somebody disconnected it.
      const release = clock.keepStill?.();
      await vault.reread(name).finally(release);
      const entry = vault.get(connection, advisor);
      if (!entry) throw notAuthorized(connection, advisor);
      const { grant } = entry;
      const now = clock.now();
      const usable = usableToken(grant, now, rejected);
      if (usable !== undefined && !isNearEnd(grant, now)) return usable;
      // A process that was killed before it could store the answer may have used the refresh token. While the access
      // token works, the refresh token is not tried.
      if (usable !== undefined && tried === undefined && vault.isInDoubt(name)) return usable;
      if (grant.refreshToken === null || grant.refreshToken === tried || grant.refused) {
        // A token that cannot be refreshed is used again although it was rejected: the API key may be wrong.
        const last = grant.refreshToken === null ? usableToken(grant, now) : usable;
        if (last !== undefined) return last;
        if (grant.refreshToken === tried) {
          await vault.refreshed(name, { ...entry, grant: { ...grant, refused: true } }, tried);
        }
        throw authorizeAgain(connection, advisor);
      }
      if (!(await this.intend(name, entry, connection))) {
        // Another process is refreshing it: its result is used here too.
        await wokenBy((wake) => clock.after(lookAgain, wake), signal);
        if (signal.aborted) throw serviceError('cancelled', 'abandoned');
        continue;
      }
      const result = await endpoints.refresh(connection, grant.refreshToken);
      tried = grant.refreshToken;
      if (result.outcome === 'refused') continue;
      const latest = vault.get(connection, advisor);
      // Somebody has authorized again or disconnected meanwhile: that counts, and not this refresh.
      if (latest?.grant.refreshToken !== tried) continue;
      if (isForAnother(grant, result.answer)) {
        const other = { ...newGrant(connection, advisor), refreshToken: tried };
        await vault.authorized(connection, renewed(other, result.answer, clock.now()));
        continue;
      }
      const fresh = { ...latest, grant: renewed(grant, result.answer, clock.now()) };
      await vault.refreshed(name, fresh, tried);
      return result.answer.accessToken;
    }
  }

  /**
   * Saves the intent to refresh. A refresh token may work only once: while the store takes no writes it is not
   * used, or a crash would lose its successor.
   */
  private async intend(name: string, entry: VaultEntry, connection: Connection): Promise<boolean> {
    const { vault, clock } = this.options;
    const release = clock.keepStill?.();
    const intending = vault.intend(name, entry).finally(release);
    intending.catch(() => undefined);
    const isOurs = await within(clock, storingLimit, intending);
    if (isOurs === late) throw notStored(connection);
    return isOurs;
  }
}
