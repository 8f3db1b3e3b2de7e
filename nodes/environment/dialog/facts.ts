import type { AdvisorItem } from '../../../lib/runtime/activity-items';
import { localMoment } from '../../../lib/editor/locale';
import type { Say } from '../../../lib/editor/values';
import { visible } from '../../../lib/visible';

/** An advisor as the route lists it. */
export type ListedAdvisor = Omit<AdvisorItem, 'state'> & {
  readonly state: AdvisorItem['state'] | 'none';
  /** The identity that waits for confirmation; only in the state `confirm`. */
  readonly awaiting?: string | null;
};

export const notYet = (advisor: string): ListedAdvisor => ({
  advisor,
  state: 'none',
  identity: null,
  scopes: [],
  missingScopes: [],
  expiresAt: null,
  refreshedAt: null,
});

/** `isByCode` is false for an application that signs in with its own credentials. */
export const lookOf = ({ state, refreshedAt }: ListedAdvisor, isByCode: boolean, say: Say) => {
  if (state === 'authorize_again') {
    const text = isByCode ? say('state.authorizeAgain') : say('state.refused');
    return { icon: 'times-circle', kind: 'bad', text };
  }
  if (state === 'confirm') return { icon: 'question-circle', kind: 'bad', text: say('state.confirm') };
  if (isByCode && state === 'none') return { icon: 'circle-o', kind: 'open', text: say('state.none') };
  if (!isByCode && refreshedAt === null) return { icon: 'cog', kind: 'open', text: say('state.byItself') };
  const text = isByCode ? say('state.authorized') : say('state.signedIn');
  return { icon: 'check-circle', kind: 'good', text };
};

/** Facts about an advisor, line by line. `name` puts a scope into words. */
export const factsOf = (
  { state, identity, awaiting, scopes, missingScopes, expiresAt, refreshedAt }: ListedAdvisor,
  isByCode: boolean,
  say: Say,
  name: (scope: string) => string,
): readonly JQuery[] => {
  const now = new Date();
  const facts: JQuery[] = [];
  const add = (text: string, look = ''): unknown =>
    facts.push($('<li>', { class: look, text: visible(text) }));
  const warn = (text: string): unknown => add(text, 'advisor-warning');
  if (state === 'authorize_again') warn(isByCode ? say('fact.authorizeAgain') : say('fact.refused'));
  if (state === 'confirm') {
    const somebody = say('fact.somebody');
    warn(say('fact.confirm', { before: identity ?? somebody, after: awaiting ?? somebody }));
  } else if (identity !== null) add(say('fact.identity', { identity }));
  const missing = missingScopes.map(name).join('; ');
  if (missing !== '')
    warn(isByCode ? say('fact.missing', { missing }) : say('fact.missingByItself', { missing }));
  const granted = scopes.filter((scope) => scope !== 'openid').map(name);
  if (granted.length > 0) add(say('fact.granted', { granted: granted.join('; ') }));
  if (state !== 'authorize_again' && expiresAt !== null) {
    const time = localMoment(new Date(expiresAt), now);
    if (!isByCode || scopes.includes('offline_access')) add(say('fact.renewed', { time }));
    else if (expiresAt > now.getTime()) add(say('fact.until', { time }));
    else warn(say('fact.ended', { time }));
  }
  if (refreshedAt !== null) add(say('fact.refreshed', { time: localMoment(new Date(refreshedAt), now) }));
  return facts;
};
