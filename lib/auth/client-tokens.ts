import { defaultAdvisor } from '../default-advisor';
import { createHash } from 'node:crypto';
import type { Clock } from '../service/clock';
import { ServiceError } from '../service/errors';
import type { Connection } from './connection';
import type { Flights } from '../service/concurrency';
import { isNearEnd, newGrant, renewed, usableToken, type Grant } from './grants';
import { operationScopesOf, notAuthorized, type TokenEndpoints } from './token-endpoint';

const names = new WeakMap<Connection, string>();

/** The name of a connection, computed once, because every request needs it. */
const connectionName = (connection: Connection): string => {
  const name = names.get(connection) ?? createHash('sha256').update(JSON.stringify(connection)).digest('hex');
  names.set(connection, name);
  return name;
};

/** Tokens of the client credentials grant. They can be requested again at any time, so they are never stored. */
export class ClientTokens {
  private readonly clock: Pick<Clock, 'now'>;
  private readonly endpoints: TokenEndpoints;
  private readonly flights: Flights;
  private readonly grants = new Map<string, Grant>();
  /** Connections whose last request was refused: the credentials or the scopes are wrong. */
  private readonly refused = new Set<string>();

  constructor(clock: Pick<Clock, 'now'>, endpoints: TokenEndpoints, flights: Flights) {
    this.clock = clock;
    this.endpoints = endpoints;
    this.flights = flights;
  }

  /** The last grant; undefined before the first request. */
  grant(connection: Connection): Grant | undefined {
    return this.grants.get(connectionName(connection));
  }

  isRefused(connection: Connection): boolean {
    return this.refused.has(connectionName(connection));
  }

  token(connection: Connection, advisor: string, rejected?: string): string | Promise<string> {
    if (advisor !== defaultAdvisor) throw notAuthorized(connection, advisor);
    const name = connectionName(connection);
    const grant = this.grants.get(name);
    const usable = grant && usableToken(grant, this.clock, rejected);
    if (grant && usable !== undefined) {
      if (isNearEnd(grant, this.clock.now())) void this.renew(name, connection).catch(() => undefined);
      return usable;
    }
    return this.renew(name, connection);
  }

  private async renew(name: string, connection: Connection): Promise<string> {
    try {
      return await this.flights.join(name, connection, (signal) =>
        this.endpoints.run(connection, () => this.ask(name, connection), { signal }),
      );
    } catch (fault) {
      if (fault instanceof ServiceError && fault.code === 'authorization_required') this.refused.add(name);
      throw fault;
    }
  }

  private async ask(name: string, connection: Connection): Promise<string> {
    const answer = await this.endpoints.clientCredentials(connection);
    this.refused.delete(name);
    const fresh = { ...newGrant(connection, defaultAdvisor), asked: operationScopesOf(connection) };
    this.grants.set(name, renewed(fresh, answer, this.clock.now()));
    return answer.accessToken;
  }
}
