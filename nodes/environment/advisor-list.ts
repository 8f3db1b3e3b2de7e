import { defaultAdvisor } from '../../lib/default-advisor';
import { isDeepStrictEqual } from 'node:util';
import type { Connection } from '../../lib/auth/connection';
import { isGrantFor, missingScopes, type Grant, stateOf, type VaultEntry } from '../../lib/auth/vault';
import { operationScopesOf } from '../../lib/auth/token-endpoint';
import type { AdvisorItem } from '../../lib/runtime/activity-items';
import { systemClock } from '../../lib/service/clock';
import { connectionIn, serviceOf, type EnvironmentValues } from './config';
import type { Services } from './services';

/** A refresh token is what keeps an advisor signed in: some servers issue it without naming the scope, or the reverse. */
const grantedScopes = ({ scopes, refreshToken }: Grant): readonly string[] =>
  refreshToken !== null && scopes.includes('offline_access')
    ? scopes
    : [
        ...scopes.filter((scope) => scope !== 'offline_access'),
        ...(refreshToken === null ? [] : ['offline_access']),
      ];

const advisorItem = (
  advisor: string,
  state: AdvisorItem['state'],
  grant: Grant | undefined,
  asked: readonly string[],
): AdvisorItem => ({
  advisor,
  state,
  identity: grant?.identity?.label ?? null,
  scopes: grant ? grantedScopes(grant) : [],
  missingScopes: grant?.accessToken ? missingScopes(asked, grant.scopes) : [],
  expiresAt: grant?.expiresAt ?? null,
  refreshedAt: grant?.refreshedAt ?? null,
});

/**
 * With client credentials, the application signs in when it first needs a token. Until then it counts as authorized if
 * it is deployed; about a form that is not deployed, nothing can be said.
 */
const listClient = (
  tokens: Services['tokens'],
  connection: Connection,
  isDeployed: boolean,
): readonly AdvisorItem[] => {
  const grant = tokens.clientGrant(connection);
  const isRefused = tokens.isClientRefused(connection);
  if (!grant && !isRefused && !isDeployed) return [];
  return [
    advisorItem(
      defaultAdvisor,
      isRefused ? 'authorize_again' : 'authorized',
      grant,
      operationScopesOf(connection),
    ),
  ];
};

/** Who waits for confirmation: two people may have the same name, and some services let a person choose it. */
const awaitingName = ({ grant, awaiting }: VaultEntry): string | null => {
  const { label = null, subject = '' } = awaiting?.identity ?? {};
  return label !== null && label === grant.identity?.label ? `${label} (${subject.slice(0, 200)})` : label;
};

/**
 * The advisors of an environment with these values, and the state of each. `awaiting` are the identities that wait for
 * confirmation, `alsoAs` another advisor for whom the same person has authorized; `deployed` are the values that the
 * environment runs with.
 */
export const listAdvisors = async (
  { vault, tokens }: Pick<Services, 'vault' | 'tokens'>,
  id: string,
  values: EnvironmentValues | undefined,
  deployed = values,
): Promise<readonly (AdvisorItem & { readonly awaiting?: string | null; readonly alsoAs?: string })[]> => {
  if (values && serviceOf(values) === 'simulator')
    return [advisorItem(defaultAdvisor, 'authorized', undefined, [])];
  // Stored authorizations can be listed and disconnected even if the form is incomplete.
  const connection = connectionIn(id, values);
  if (connection?.grant === 'client_credentials')
    return listClient(tokens, connection, isDeepStrictEqual(connection, connectionIn(id, deployed)));
  const stateNow = (entry: VaultEntry): AdvisorItem['state'] =>
    connection && !isGrantFor(entry.grant, connection)
      ? 'authorize_again'
      : stateOf(entry, systemClock.now());
  return vault.useNow(() => {
    const entries = vault.list(id, connection);
    const subjectOf = ({ grant }: VaultEntry): string | undefined => grant.identity?.subject;
    // The first and the last advisor of each person, which differ where there are several.
    const last = new Map(entries.map(([advisor, entry]) => [subjectOf(entry), advisor]));
    const first = new Map(entries.toReversed().map(([advisor, entry]) => [subjectOf(entry), advisor]));
    return entries.map(([advisor, entry]) => {
      const subject = subjectOf(entry);
      const alsoAs = [first.get(subject), last.get(subject)].find((other) => other !== advisor);
      return {
        ...advisorItem(advisor, stateNow(entry), entry.grant, connection?.scopes ?? entry.grant.asked),
        ...(entry.awaiting ? { awaiting: awaitingName(entry) } : {}),
        ...(subject === undefined || alsoAs === undefined ? {} : { alsoAs }),
      };
    });
  });
};
