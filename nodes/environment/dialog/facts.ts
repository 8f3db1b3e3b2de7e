import { localMoment } from '../../../lib/editor/locale';
import type { Say } from '../../../lib/editor/values';

/** An advisor as the route lists it. */
export interface ListedAdvisor {
  readonly advisor: string;
  readonly state: 'authorized' | 'authorize_again' | 'confirm' | 'none';
  readonly identity: string | null;
  /** The identity that waits for confirmation; only in the state `confirm`. */
  readonly awaiting?: string | null;
  readonly scopes: readonly string[];
  readonly missingScopes: readonly string[];
  readonly expiresAt: number | null;
  readonly refreshedAt: number | null;
}

export const notYet = (advisor: string): ListedAdvisor => ({
  advisor,
  state: 'none',
  identity: null,
  scopes: [],
  missingScopes: [],
  expiresAt: null,
  refreshedAt: null,
});

export interface Fact {
  readonly text: string;
  readonly isWarning?: boolean;
}

export interface AdvisorLook {
  readonly icon: string;
  readonly kind: 'good' | 'bad' | 'open';
  readonly text: string;
}

/** The look of an application that signs in with its own credentials. */
const clientLook = ({ state, refreshedAt }: ListedAdvisor, say: Say): AdvisorLook => {
  if (state === 'authorize_again') return { icon: 'times-circle', kind: 'bad', text: say('state.refused') };
  return refreshedAt === null
    ? { icon: 'cog', kind: 'open', text: say('state.byItself') }
    : { icon: 'check-circle', kind: 'good', text: say('state.signedIn') };
};

export const lookOf = (advisor: ListedAdvisor, isByCode: boolean, say: Say): AdvisorLook => {
  if (!isByCode) return clientLook(advisor, say);
  const { state } = advisor;
  switch (state) {
    case 'authorized':
      return { icon: 'check-circle', kind: 'good', text: say('state.authorized') };
    case 'authorize_again':
      return { icon: 'times-circle', kind: 'bad', text: say('state.authorizeAgain') };
    case 'confirm':
      return { icon: 'question-circle', kind: 'bad', text: say('state.confirm') };
    case 'none':
      return { icon: 'circle-o', kind: 'open', text: say('state.none') };
  }
};

const accessFact = ({ expiresAt, scopes }: ListedAdvisor, isByCode: boolean, say: Say, now: Date): Fact[] => {
  if (expiresAt === null) return [];
  const time = localMoment(new Date(expiresAt), now);
  if (!isByCode || scopes.includes('offline_access')) return [{ text: say('fact.renewed', { time }) }];
  return expiresAt > now.getTime()
    ? [{ text: say('fact.until', { time }) }]
    : [{ text: say('fact.ended', { time }), isWarning: true }];
};

/** Facts about an advisor, line by line. `name` puts a scope into words. */
export const factsOf = (
  record: ListedAdvisor,
  isByCode: boolean,
  say: Say,
  name: (scope: string) => string,
  now: Date,
): Fact[] => {
  const { state, identity, awaiting, scopes, missingScopes, refreshedAt } = record;
  const somebody = say('fact.somebody');
  const granted = scopes.filter((scope) => scope !== 'openid').map(name);
  const missing = missingScopes.map(name).join('; ');
  const refreshed = refreshedAt === null ? '' : localMoment(new Date(refreshedAt), now);
  return [
    ...(state === 'confirm'
      ? [
          {
            text: say('fact.confirm', { before: identity ?? somebody, after: awaiting ?? somebody }),
            isWarning: true,
          },
        ]
      : []),
    ...(state === 'authorize_again'
      ? [{ text: isByCode ? say('fact.authorizeAgain') : say('fact.refused'), isWarning: true }]
      : []),
    ...(identity !== null && state !== 'confirm' ? [{ text: say('fact.identity', { identity }) }] : []),
    ...(missing === ''
      ? []
      : [
          {
            text: isByCode ? say('fact.missing', { missing }) : say('fact.missingByItself', { missing }),
            isWarning: true,
          },
        ]),
    ...(granted.length > 0 ? [{ text: say('fact.granted', { granted: granted.join('; ') }) }] : []),
    ...(state === 'authorize_again' ? [] : accessFact(record, isByCode, say, now)),
    ...(refreshed === '' ? [] : [{ text: say('fact.refreshed', { time: refreshed }) }]),
  ];
};
