import type { Connection } from '../../lib/auth/connection';
import { splitScopes } from '../../lib/auth/token-endpoint';
import { minutesOf } from '../../lib/runtime/dates';
import type { EnvironmentSettings } from '../../lib/runtime/environment';
import { faultInSettings, plainSettings, excerpt } from '../../lib/runtime/inputs';
import { invalidInput } from '../../lib/runtime/errors';
import { isNothing, isRecord, tried } from '../../lib/kinds';
import { lazy } from '../../lib/runtime/lazy';
import { applies, textFault, withDefaults, writtenPassword } from '../../lib/runtime/settings';
import { contractScope, usualPrefixes, type Prefixes } from '../../lib/service/prefixes';
import { queryNames } from '../../lib/service/endpoints';
import type { RepeatSends } from '../../lib/service/retry';
import { ServiceError, serviceError } from '../../lib/service/errors';
import { spec, usualScopes } from './spec';
import { variablesIn } from './variables';
import { second } from '../../lib/durations';

export type Service = 'simulator' | 'sandbox' | 'production';

/** Properties and credentials together, as saved or as in the form: any may be missing, or come from an older version. */
export type EnvironmentValues = Readonly<Record<string, unknown>>;

const text = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');

/** Throws when one of these texts does not have the format of its field. */
const checkTexts = (values: EnvironmentValues, settings: readonly string[]): void => {
  const all = withDefaults(spec.fields, values);
  for (const field of spec.fields) {
    if (field.kind !== 'text' || !settings.includes(field.name) || !applies(field, all)) continue;
    const fault = textFault(field, values[field.name]);
    if (fault === 'country' || fault === 'time' || fault === 'time_zone')
      throw invalidInput(`setting_${fault}`, { value: excerpt(values[field.name]) });
    const said = { name: environmentName(values), setting: { setting: field.name } };
    if (fault) throw serviceError('not_configured', `setting_${fault}`, said);
  }
};

const prefixesOf = (values: EnvironmentValues): Prefixes => ({
  core: text(values['corePrefix']) || usualPrefixes.core,
  text: text(values['textPrefix']) || usualPrefixes.text,
});

/** The scopes in the contract's words; scopes with the service's own prefixes are translated. */
const scopesOf = (
  value: unknown,
  grant: Connection['grant'],
  prefixes: Prefixes = usualPrefixes,
): string[] => {
  if (value === undefined) return scopesOf(usualScopes[grant], grant, prefixes);
  const given = Array.isArray(value) ? value.map(text) : splitScopes(text(value));
  const inContractWords = (scope: string): string =>
    /^(core|text)\./.test(scope) ? scope : contractScope(scope, prefixes);
  const always = grant === 'authorization_code' ? ['openid'] : [];
  return [...new Set([...always, ...given.filter(Boolean).map(inContractWords)])];
};

/**
 * Throws `not_configured`. `proxyAsWritten` is the setting as written in the flow: flows are readable, so it must not
 * contain a password.
 */
const proxyOf = (values: EnvironmentValues): string => {
  if (writtenPassword.test(text(values['proxyAsWritten'])))
    throw serviceError('not_configured', 'setting_proxy_password', {
      name: environmentName(values),
      setting: { setting: 'proxy' },
    });
  return text(values['proxy']);
};

/** Throws `not_configured` or `invalid_input`. An empty name means our own. */
const namesOf = (value: unknown): Record<string, string> => {
  if (isNothing(value)) return {};
  let given = value;
  if (typeof given === 'string') {
    try {
      given = JSON.parse(given);
    } catch {
      throw serviceError('not_configured', 'names_json');
    }
  }
  if (!isRecord(given)) throw invalidInput('names_record');
  for (const [key, name] of Object.entries(given)) {
    if (!queryNames.has(key)) throw invalidInput('names_unknown', { key, known: [...queryNames].join(', ') });
    if (typeof name !== 'string') throw invalidInput('names_text', { key });
  }
  return Object.fromEntries(
    Object.entries(given as Record<string, string>).filter(([, name]) => name.trim()),
  );
};

/** Undefined for any other value: a variable that is not set must become neither the simulator nor production. */
export const serviceOf = (values: EnvironmentValues): Service | undefined => {
  const { service = 'simulator' } = values;
  return (['simulator', 'sandbox', 'production'] as const).find((option) => option === service);
};

/** Undefined when there are none, or when they are wrong, which `checkHours` reports. */
const textHoursOf = (values: EnvironmentValues): EnvironmentSettings['textHours'] => {
  const [from, until] = [minutesOf(text(values['textFrom'])), minutesOf(text(values['textUntil']))];
  if (from === undefined || until === undefined) return undefined;
  return { from, until, outside: values['outsideHours'] === 'fail' ? 'fail' : 'hold' };
};

const checkHours = (values: EnvironmentValues): void => {
  const [from, until] = [text(values['textFrom']), text(values['textUntil'])];
  if (from === '' && until === '') return;
  if (from === '' || until === '' || minutesOf(from) === minutesOf(until))
    throw invalidInput('setting_hours');
};

/** The values are checked by `checkSettings` before anything is sent. */
export const settingsOf = (values: EnvironmentValues): EnvironmentSettings => {
  const { flag, number } = plainSettings(spec, values);
  return {
    country: text(values['country']).toUpperCase(),
    timeZone: text(values['timeZone']),
    textHours: textHoursOf(values),
    consentPattern: text(values['consentPattern']),
    journal: flag('journal'),
    resumeWithin: number('resumeWithin') * second,
    deliveryDateUnit: values['deliveryDateUnit'] === 's' ? 's' : 'ms',
    maxConcurrent: number('maxConcurrent'),
  };
};

/** Throws `not_configured` for variables that are not set: these are still as written. */
const checkVariables = (values: EnvironmentValues, settings: readonly string[]): void => {
  const variables = [...new Set(settings.flatMap((setting) => variablesIn(values[setting])))];
  if (variables.length > 0)
    throw serviceError('not_configured', 'variables_unset', { name: environmentName(values), variables });
};

/** These have errors of their own. */
const elsewhere = ['baseUrl', 'authUrl', 'tokenUrl', 'redirectUri', 'name', 'consentPattern'];

/**
 * Checks the settings that are not part of the connection. Throws `not_configured` for a variable that is not set,
 * `invalid_input` for a wrong value.
 */
const checkSettings = (values: EnvironmentValues): void => {
  // `checkService` reports this, and nothing else can be checked without a service.
  if (serviceOf(values) === undefined) return;
  const settings = spec.fields.flatMap(({ kind, name }) =>
    ['choice', 'number', 'flag', 'text', 'json'].includes(kind) && !elsewhere.includes(name) ? [name] : [],
  );
  checkVariables(values, settings);
  checkTexts(values, settings);
  checkHours(values);
  const fault = faultInSettings(spec, values);
  if (fault) throw fault;
  namesOf(values['names']);
  checkStore(values);
};

export const faultInValues = (values: EnvironmentValues): ServiceError | undefined => {
  try {
    checkSettings(values);
    return undefined;
  } catch (fault) {
    if (fault instanceof ServiceError) return fault;
    throw fault;
  }
};

/** Throws `not_configured` or `invalid_input`. */
export const requestSettingsOf = (values: EnvironmentValues) => {
  checkSettings(values);
  checkVariables(values, ['consentPattern']);
  // A rejected text could not be distinguished from one that lacks consent.
  checkTexts(values, ['consentPattern']);
  const { number, text: chosen } = plainSettings(spec, values);
  return {
    prefixes: prefixesOf(values),
    proxy: proxyOf(values),
    names: namesOf(values['names']),
    timeout: number('timeout') * second,
    retries: number('retries'),
    repeatSends: chosen('repeatSends') as RepeatSends,
    maxConcurrent: number('maxConcurrent'),
    requestsPerSecond: number('requestsPerSecond'),
  };
};

/** Throws `not_configured` with what to fill in or correct. */
const checkNeeded = (values: EnvironmentValues, settings: readonly string[]): void => {
  const name = environmentName(values);
  checkVariables(values, settings);
  const missing = settings.filter((setting) => text(values[setting]) === '');
  if (missing.length > 0) {
    throw serviceError('not_configured', 'settings_missing', {
      name,
      settings: missing.map((setting) => ({ setting })),
    });
  }
  checkTexts(values, settings);
};

export const environmentName = (values: EnvironmentValues): string =>
  text(values['name']) || text(values['service']) || 'simulator';

/** Throws `not_configured` when the service is an unset variable, `invalid_input` when it is not a known service. */
const checkService = (values: EnvironmentValues): void => {
  if (serviceOf(values) !== undefined) return;
  checkNeeded(values, ['service']);
  throw invalidInput('service_unknown', { name: environmentName(values), setting: { setting: 'service' } });
};

/** The address of the database; empty when the state is kept in the user directory. */
export const storeUrlOf = (values: EnvironmentValues): string =>
  plainSettings(spec, values).text('store') === 'postgres' ? text(values['storeUrl']) : '';

const checkStore = (values: EnvironmentValues): void => {
  if (serviceOf(values) === 'simulator' || plainSettings(spec, values).text('store') !== 'postgres') return;
  checkNeeded(values, ['storeUrl']);
  if (!lazy.postgresConnection().isPgInstalled())
    throw serviceError('not_configured', 'pg_missing', { name: environmentName(values) });
};

export const grantOf = (values: EnvironmentValues): Connection['grant'] =>
  plainSettings(spec, values).text('grant') === 'client_credentials'
    ? 'client_credentials'
    : 'authorization_code';

const codeOnly = ['authUrl', 'redirectUri'];

const tokenFields = (values: EnvironmentValues): string[] => {
  const fields = ['authUrl', 'tokenUrl', 'redirectUri', 'clientId', 'clientSecret'];
  return fields.filter((field) => grantOf(values) === 'authorization_code' || !codeOnly.includes(field));
};

/** How to get tokens. Throws `not_configured` or `invalid_input`. */
export const connectionOf = (environment: string, values: EnvironmentValues): Connection => {
  checkService(values);
  checkSettings(values);
  checkNeeded(values, tokenFields(values));
  const grant = grantOf(values);
  const prefixes = prefixesOf(values);
  return {
    environment,
    service: text(values['service']),
    name: environmentName(values),
    grant,
    baseUrl: text(values['baseUrl']),
    authUrl: text(values['authUrl']),
    tokenUrl: text(values['tokenUrl']),
    redirectUri: text(values['redirectUri']),
    clientId: text(values['clientId']),
    clientSecret: text(values['clientSecret']),
    scopes: scopesOf(values['scopes'], grant, prefixes),
    prefixes,
    proxy: proxyOf(values),
    seed: grant === 'authorization_code' ? text(values['refreshToken']) : '',
    retries: plainSettings(spec, values).number('retries'),
    timeout: plainSettings(spec, values).number('timeout') * second,
  };
};

/** Undefined while it is not configured. */
export const connectionIn = (id: string, values: EnvironmentValues | undefined): Connection | undefined => {
  return tried(() => values && connectionOf(id, values));
};

/** Throws `not_configured` when a variable among the scopes is not set. Lists still show such a scope as it is written. */
export const checkScopes = (values: EnvironmentValues): void => {
  checkVariables(values, ['scopes']);
};

/** Where to send requests, once the environment is complete. Throws `not_configured`. */
export const serviceAddressOf = (values: EnvironmentValues): { baseUrl: string; apiKey: string } => {
  checkService(values);
  checkScopes(values);
  checkNeeded(values, ['baseUrl', ...tokenFields(values), 'apiKey']);
  return { baseUrl: text(values['baseUrl']), apiKey: text(values['apiKey']) };
};

/**
 * The address of one of our routes, beside the callback in the redirect URI. It is relative to the editor when the
 * redirect URI leads elsewhere.
 */
export const addressBeside = (redirectUri: string, route: string): string => {
  const path = `advisor-texting/${route}`;
  const root = /^(.*\/)advisor-texting\/callback$/.exec(redirectUri.split('?')[0] ?? '')?.[1];
  return root === undefined ? path : root + path;
};
