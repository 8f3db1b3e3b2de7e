import { clientScopes } from '../../lib/auth/token-endpoint';
import { lazy } from '../../lib/runtime/lazy';
import type { Words } from '../../lib/runtime/language';
import type { CheckName, Finding, Need, Verdict } from '../../lib/service/rehearsal';
import { ServiceError } from '../../lib/service/errors';
import type { Grant } from '../../lib/auth/grants';
import { connectionOf, requestSettingsOf, serviceAddressOf, serviceOf, type Values } from './config';
import { originOf } from './form';
import type { Services } from './services';

/** Milliseconds. */
const patience = 10_000;

export interface Check<Name extends string = CheckName> {
  readonly check: Name;
  /** Null: not tried, nobody can tell, or nothing to set. */
  readonly ok: boolean | null;
  readonly message: string;
}

/** What `ok` cannot tell apart: something that could be tried was not, or there is no verdict to be had. */
export type Mark = 'ok' | 'wrong' | 'untried' | 'none';
export const markOf = (ok: Verdict): Mark => {
  if (ok === 'untried') return ok;
  if (ok === null) return 'none';
  return ok ? 'ok' : 'wrong';
};

export interface MarkedCheck<Name extends string = CheckName> extends Check<Name> {
  readonly mark: Mark;
}

/** A finding in the words of a language. */
export const spoken = <Name extends string>(
  { check, ok, key, values = {}, problem }: Finding<Name>,
  words: Words,
): MarkedCheck<Name> => ({
  check,
  ok: ok === 'untried' ? null : ok,
  mark: markOf(ok),
  message: problem ? words.problem(problem) : words.say(key, values),
});

/** Nothing is kept that could be tried again later where nothing was ever had. */
export const neverHad = (fault: unknown): Omit<Finding, 'check'> | undefined => {
  const wording = fault instanceof ServiceError ? fault.problem.wording : undefined;
  if (wording?.key !== 'token_later') return undefined;
  const { reason = '' } = wording.values;
  const isPassing = typeof reason === 'object' && 'reason' in reason && /HTTP (?:429|5)/.test(reason.reason);
  return { ok: false, key: isPassing ? 'check.tokenLater' : 'check.tokenFailed', values: { reason } };
};

/** Somebody who reads this has the environment open. */
const inTheDialog = (fault: unknown): Omit<Finding, 'check'> | undefined => {
  const key = fault instanceof ServiceError ? fault.problem.wording?.key : undefined;
  if (key === 'not_authorized') return { ok: false, key: 'check.notAuthorized' };
  if (key === 'authorization_ended') return { ok: false, key: 'check.authorizationEnded' };
  return undefined;
};

/** Milliseconds for pauses and repeats, while somebody looks at the dialog. */
const pauses = 20_000;

/** No check of the route's own: told with the query names, which are as much the service's habit. */
const factsKnown = ['check.dates', 'check.datesOther', 'check.groupIds', 'check.groupIdsMissing'];

/** An environment as it is, or as the form would have it. */
export interface Trial {
  readonly id: string;
  readonly values: Values;
  readonly advisor: string;
  /** The origin that the deployed one sends its requests to. */
  readonly deployedAt: string | undefined;
  readonly needs: readonly Need[];
  /** For the command: every finding is a line of its own, with its mark. */
  readonly isWhole: boolean;
}

/** Tries an environment with reads that change nothing. */
export const runChecks = async (
  { vault, tokens }: Services,
  { id, values, advisor, deployedAt, needs, isWhole }: Trial,
  words: Words,
): Promise<Check[]> => {
  const { checkNames, rehearse } = lazy.rehearsal();
  if (serviceOf(values) === 'simulator') {
    return checkNames.map((check) => ({ check, ok: true, message: words.say('check.simulator') }));
  }
  const connection = connectionOf(id, values);
  const address = serviceAddressOf(values);
  const isByCode = connection.grant === 'authorization_code';
  const grant = (): Grant | undefined =>
    isByCode ? vault.get(connection, advisor)?.grant : tokens.client.grant(connection);
  // An advisor's token goes where the environment is deployed to, or was to go when the advisor authorized it.
  const mayGo = (): boolean =>
    !isByCode || originOf(address.baseUrl) === (deployedAt ?? originOf(grant()?.baseUrl));
  const rehearsal: Parameters<typeof rehearse>[0] = {
    ...requestSettingsOf(values),
    ...address,
    needs,
    patience: pauses,
    wanted: clientScopes(connection),
    granted: () => grant()?.scopes,
    // Somebody is looking at the dialog: an honest answer now is better than a patient one.
    token: (rejected) =>
      tokens.tokenWithin(Math.max(patience, connection.timeout ?? 0), connection, advisor, rejected),
    withheld: () => (mayGo() ? undefined : 'refused.notDeployed'),
    tokenless: (fault) => inTheDialog(fault) ?? (grant() ? undefined : neverHad(fault)),
  };
  const findings = await (isByCode ? vault.useNow(() => rehearse(rehearsal)) : rehearse(rehearsal));
  if (isWhole) return findings.map((finding) => spoken(finding, words));
  const facts = findings.filter(({ key }) => factsKnown.includes(key));
  const isCheck = ({ check }: Finding): boolean => checkNames.some((name) => name === check);
  return findings.filter(isCheck).map((finding) => {
    const told = finding.check === 'names' ? [finding, ...facts] : [finding];
    const { check, ok: verdict } = spoken(finding, words);
    // There is a token, and other lines say why it was not shown to anybody.
    const ok = finding.key === 'check.tokenUnproven' ? true : verdict;
    return { check, ok, message: told.map((each) => spoken(each, words).message).join(' ') };
  });
};
