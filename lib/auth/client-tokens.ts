import { createHash } from 'node:crypto';
import type { Clock } from '../service/clock';
import { defaultAdvisor, type Connection } from './connection';
import type { Flights } from '../service/concurrency';
import { isNearEnd, newGrant, renewed, usableToken, type Grant } from './grants';
import { clientScopes, notAuthorized, type TokenEndpoints } from './token-endpoint';

const names = new WeakMap<Connection, string>();

/** Asked for with every request, and worked out once. */
const nameOf = (connection: Connection): string => {
  const name = names.get(connection) ?? createHash('sha256').update(JSON.stringify(connection)).digest('hex');
  names.set(connection, name);
  return name;
};

/** Tokens of the client credentials grant: had anew at any time, so never kept on disk. */
export class ClientTokens {
  private readonly clock: Pick<Clock, 'now'>;
  private readonly endpoints: TokenEndpoints;
  private readonly flights: Flights;
  private readonly grants = new Map<string, Grant>();

  constructor(clock: Pick<Clock, 'now'>, endpoints: TokenEndpoints, flights: Flights) {
    this.clock = clock;
    this.endpoints = endpoints;
    this.flights = flights;
  }

  /** As far as it has been tried. */
  grant(connection: Connection): Grant | undefined {
    return this.grants.get(nameOf(connection));
  }

  token(connection: Connection, advisor: string, rejected?: string): string | Promise<string> {
    if (advisor !== defaultAdvisor) throw notAuthorized(connection, advisor);
    const name = nameOf(connection);
    const grant = this.grants.get(name);
    const usable = grant && usableToken(grant, this.clock, rejected);
    if (grant && usable !== undefined) {
      if (isNearEnd(grant, this.clock.now())) void this.renew(name, connection).catch(() => undefined);
      return usable;
    }
    return this.renew(name, connection);
  }

  private renew(name: string, connection: Connection): Promise<string> {
    return this.flights.join(name, connection, (signal) =>
      this.endpoints.run(connection, () => this.ask(name, connection), { signal }),
    );
  }

  private async ask(name: string, connection: Connection): Promise<string> {
    const answer = await this.endpoints.clientCredentials(connection);
    const fresh = { ...newGrant(connection, defaultAdvisor), asked: clientScopes(connection) };
    this.grants.set(name, renewed(fresh, answer, this.clock.now()));
    return answer.accessToken;
  }
}
