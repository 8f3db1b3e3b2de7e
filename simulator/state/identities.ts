import { defaultAdvisor } from '../../lib/default-advisor';
/** An advisor as the identity provider knows them. */
export interface AdvisorIdentity {
  readonly advisor: string;
  readonly name: string;
  readonly email: string;
}

/** Advisors that can always be chosen on the authorization page. */
export const knownIdentities: readonly AdvisorIdentity[] = [
  { advisor: defaultAdvisor, name: 'Alex Morgan', email: 'alex.morgan@example.com' },
  { advisor: 'jordan', name: 'Jordan Blake', email: 'jordan.blake@example.com' },
  { advisor: 'riley', name: 'Riley Chen', email: 'riley.chen@example.com' },
];

/** Any other key is an advisor too, from its first use. */
export const advisorIdentity = (advisor: string): AdvisorIdentity =>
  knownIdentities.find((known) => known.advisor === advisor) ?? {
    advisor,
    name: advisor,
    // A key may have half a character in it, which cannot be encoded.
    email: `${encodeURIComponent(Buffer.from(advisor).toString()).toLowerCase()}@example.com`,
  };
