import { operationScopesOf } from '../../lib/auth/token-endpoint';
import { lazy } from '../../lib/runtime/lazy';
import type { Words } from '../../lib/runtime/language';
import type { Finding, Need, Verdict } from '../../lib/check/rehearsal';
import { ServiceError } from '../../lib/service/errors';
import { phoneNumber } from '../../lib/texting/recipients';
import type { Grant } from '../../lib/auth/vault';
import {
  connectionOf,
  requestSettingsOf,
  serviceAddressOf,
  serviceOf,
  settingsOf,
  type EnvironmentValues,
} from './config';
import { originOf } from './form';
import type { Services } from './services';
import { second } from '../../lib/durations';

/** Milliseconds. */
const answerWithin = 10 * second;

export interface Check {
  readonly check: string;
  /** Null when the check was not made, or has no result. */
  readonly ok: boolean | null;
  readonly message: string;
}

/** What a null `ok` means: `untried` could have been checked, `none` cannot be known. */
export type Mark = 'ok' | 'wrong' | 'untried' | 'none';
export const markOf = (ok: Verdict): Mark => {
  if (ok === 'untried') return ok;
  if (ok === null) return 'none';
  return ok ? 'ok' : 'wrong';
};

export interface MarkedCheck extends Check {
  readonly mark: Mark;
}

/** A finding in one language. */
export const spoken = ({ check, ok, key, values = {}, problem }: Finding, words: Words): MarkedCheck => ({
  check,
  ok: ok === 'untried' ? null : ok,
  mark: markOf(ok),
  message: problem ? words.problem(problem) : words.say(key, values),
});

/** Another sentence for `token_later`, which says that the authorization is kept: here there was never one to keep. */
export const neverHad = (fault: unknown): Omit<Finding, 'check'> | undefined => {
  const wording = fault instanceof ServiceError ? fault.problem.wording : undefined;
  if (wording?.key !== 'token_later') return undefined;
  const { reason = '' } = wording.values;
  const isPassing = typeof reason === 'string' && /HTTP (?:429|5)/.test(reason);
  return { ok: false, key: isPassing ? 'check.tokenLater' : 'check.tokenFailed', values: { reason } };
};

/** Findings with other words than a node's: their reader has the environment open. */
const inTheDialog = (fault: unknown): Omit<Finding, 'check'> | undefined => {
  const key = fault instanceof ServiceError ? fault.problem.wording?.key : undefined;
  if (key === 'not_authorized') return { ok: false, key: 'check.notAuthorized' };
  if (key === 'authorization_ended') return { ok: false, key: 'check.authorizationEnded' };
  return undefined;
};

/** The most milliseconds for pauses and retries, while somebody watches the dialog. */
const pauses = 20 * second;

/** These findings have no check of their own in the route: they are shown with the query names. */
const factsKnown = [
  'check.dates',
  'check.datesOther',
  'check.groupIds',
  'check.groupIdsMissing',
  'check.phones',
  'check.phonesRead',
  'check.phonesOther',
];

/** Whether the texting nodes of an environment can read a number. */
export const canReadIn = (values: EnvironmentValues): ((number: string) => boolean) => {
  const { country } = settingsOf(values);
  return (number) => phoneNumber(number, country) !== undefined;
};

/** An environment as it is deployed, or as the form has it. */
export interface Trial {
  readonly id: string;
  readonly values: EnvironmentValues;
  readonly advisor: string;
  /** The origin to which the deployed environment sends requests. */
  readonly deployedAt: string | undefined;
  readonly needs: readonly Need[];
  /** For the command line: each finding is a separate line, with its mark. */
  readonly isWhole: boolean;
}

/** Tests an environment with reads only, which change nothing. */
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
    isByCode ? vault.get(connection, advisor)?.grant : tokens.clientGrant(connection);
  // An advisor's token is sent only to the origin of the deployed environment, or to the one that the advisor authorized.
  const mayGo = (): boolean =>
    !isByCode || originOf(address.baseUrl) === (deployedAt ?? originOf(grant()?.baseUrl));
  const rehearsal: Parameters<typeof rehearse>[0] = {
    ...requestSettingsOf(values),
    ...address,
    needs,
    canRead: canReadIn(values),
    patience: pauses,
    wanted: operationScopesOf(connection),
    granted: () => grant()?.scopes,
    // Somebody is watching the dialog, so the token is not waited for as long as by a node.
    token: (rejected) =>
      tokens.tokenWithin(Math.max(answerWithin, connection.timeout ?? 0), connection, advisor, rejected),
    withheld: () => (mayGo() ? undefined : 'refused.notDeployed'),
    tokenless: (fault) =>
      (isWhole ? undefined : inTheDialog(fault)) ?? (grant() ? undefined : neverHad(fault)),
  };
  const findings = await (isByCode ? vault.useNow(() => rehearse(rehearsal)) : rehearse(rehearsal));
  if (isWhole) return findings.map((finding) => spoken(finding, words));
  const facts = findings.filter(({ key }) => factsKnown.includes(key));
  const isCheck = ({ check }: Finding): boolean => checkNames.includes(check);
  return findings.filter(isCheck).map((finding) => {
    const findings = finding.check === 'names' ? [finding, ...facts] : [finding];
    const { check, ok: verdict } = spoken(finding, words);
    // There is a token; other lines say why it was not sent to the service.
    const ok = finding.key === 'check.tokenUnproven' ? true : verdict;
    return { check, ok, message: findings.map((each) => spoken(each, words).message).join('\n') };
  });
};
