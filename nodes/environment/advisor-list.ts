import { defaultAdvisor, type Connection } from '../../lib/auth/connection';
import { missingScopes, type Grant } from '../../lib/auth/grants';
import { fits } from '../../lib/auth/tokens';
import { stateOf, type Entry } from '../../lib/auth/vault';
import type { AdvisorItem } from '../../lib/runtime/environment';
import { systemClock } from '../../lib/service/clock';
import { connectionOf, serviceOf, type Values } from './config';
import type { Services } from './services';

const shown = (
  advisor: string,
  state: AdvisorItem['state'],
  grant: Grant | undefined,
  asked: readonly string[],
): AdvisorItem => ({
  advisor,
  state,
  identity: grant?.identity?.label ?? null,
  scopes: grant?.scopes ?? [],
  missingScopes: grant?.accessToken ? missingScopes(asked, grant.scopes) : [],
  expiresAt: grant?.expiresAt ?? null,
  refreshedAt: grant?.refreshedAt ?? null,
});

/** The advisors of an environment with these values, and how each stands; `awaiting` is who would take over. */
export const listAdvisors = async (
  { vault, tokens }: Pick<Services, 'vault' | 'tokens'>,
  id: string,
  values: Values | undefined,
): Promise<(AdvisorItem & { readonly awaiting?: string | null })[]> => {
  if (values && serviceOf(values) === 'simulator')
    return [shown(defaultAdvisor, 'authorized', undefined, [])];
  let connection: Connection | undefined;
  try {
    connection = values && connectionOf(id, values);
  } catch {
    // What is stored can be listed, and disconnected, whatever the form lacks.
  }
  if (connection?.grant === 'client_credentials') {
    return [shown(defaultAdvisor, 'authorized', tokens.client.grant(connection), connection.scopes)];
  }
  const stateNow = (entry: Entry): AdvisorItem['state'] =>
    connection && !fits(entry.grant, connection) ? 'authorize_again' : stateOf(entry, systemClock.now());
  return vault.useNow(() =>
    vault.list(id, connection).map(([advisor, entry]) => ({
      ...shown(advisor, stateNow(entry), entry.grant, connection?.scopes ?? entry.grant.asked),
      ...(entry.awaiting ? { awaiting: entry.awaiting.identity?.label ?? null } : {}),
    })),
  );
};
