import { closeSync, fsyncSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { authorizeAgain, clientScopes, TokenEndpoints } from '../lib/auth/token-endpoint';
import type { Connection } from '../lib/auth/connection';
import type { TokenAnswer } from '../lib/auth/grants';
import { rehearseAuthorization, rehearseClient } from '../lib/auth/sign-in-rehearsal';
import { wordsIn } from '../lib/runtime/language';
import { systemClock } from '../lib/service/clock';
import { serviceError, ServiceError } from '../lib/service/errors';
import { rehearse, type Finding } from '../lib/service/rehearsal';
import { postForm } from '../lib/service/transport';
import { neverHad, spoken } from '../nodes/environment/checks';
import {
  connectionOf,
  requestSettingsOf,
  serviceAddressOf,
  serviceOf,
  type Values,
} from '../nodes/environment/config';
import { hiderOf, resolveValues } from '../nodes/environment/variables';

/** Settings that matter here, by the names that the environment has for them. */
const settings = [
  'service',
  'baseUrl',
  'authUrl',
  'tokenUrl',
  'redirectUri',
  'grant',
  'scopes',
  'corePrefix',
  'textPrefix',
  'names',
  'proxy',
  'clientId',
  'clientSecret',
  'apiKey',
  'refreshToken',
  'accessToken',
] as const;

const variableOf = (setting: string): string =>
  `ADVISOR_TEXTING_${setting.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;

export const help = `Usage: advisor-texting check [--settings FILE] [options]

Asks a service what can be asked without harm, and prints a line for each check: its name, whether it is in
order, and what to set if it is not. It only reads: nothing is written, nobody is texted.

  --settings FILE            JSON with the properties of an environment; \${NAME} is a variable of this process
  --use-refresh-token FILE   get a token with the refresh token. The service may replace it by a new one, which
                             is then in FILE; FILE must not exist yet
  --json                     print [{ check, ok, message }]; ok is true, false or null (not tried)
  --help                     show this

Settings and the variables that outweigh them:
${settings.map((setting) => `  ${setting.padEnd(14)} ${variableOf(setting)}`).join('\n')}

The lines "client" and "authorization" try how tokens come about, with a refresh token that nobody was ever
given and an authorization that nobody signs in to: nothing is issued, nothing is spent.

A token comes from accessToken, else from client credentials (grant "client_credentials"), else from
refreshToken if you say --use-refresh-token.

The exit code is 0 when nothing is wrong, 1 when something is, and 2 when the check could not be made.
`;

type Variables = Readonly<Record<string, string | undefined>>;

/** Something the person at the keyboard can put right. */
class UsageError extends Error {}

const read = (args: readonly string[]) => {
  try {
    return parseArgs({
      args: [...args],
      options: {
        settings: { type: 'string' },
        'use-refresh-token': { type: 'string' },
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
};

const settingsIn = (file: string): Values => {
  let given: unknown;
  try {
    given = JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    // The message of the parser would quote the file, which may hold secrets.
    throw new UsageError(`${file} cannot be read as JSON: check that it exists and what is in it.`);
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new UsageError(`${file} must hold one object: the properties of an environment.`);
  const { credentials, ...properties } = given as Record<string, unknown>;
  return { ...(typeof credentials === 'object' ? credentials : {}), ...properties };
};

const textOf = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');

/** Gives a token of the refresh grant; a new refresh token is on disk before the access token is used. */
const refreshInto = async (
  file: string,
  refreshToken: string,
  connection: Connection,
  endpoints: TokenEndpoints,
): Promise<TokenAnswer> => {
  let place: number;
  try {
    place = openSync(file, 'wx', 0o600);
  } catch {
    throw new UsageError(
      `${file} exists already or cannot be written: name a new file for the refresh token.`,
    );
  }
  let isKept = false;
  try {
    const result = await endpoints.run(connection, () => endpoints.refresh(connection, refreshToken));
    if (result.outcome === 'refused') throw authorizeAgain(connection, 'default');
    const { refreshToken: rotated } = result.answer;
    if (rotated !== null && rotated !== refreshToken) {
      isKept = true;
      writeSync(place, rotated);
      fsyncSync(place);
      process.stderr.write(
        `The service gave a new refresh token. It is in ${file}; the old one may no longer work: put the new one in its place.\n`,
      );
    }
    return result.answer;
  } finally {
    closeSync(place);
    if (!isKept) unlinkSync(file);
  }
};

const noToken = serviceError('authorization_required', 'token_unusable');

const missingIn = (values: Values, wanted: readonly string[]): string =>
  wanted.filter((setting) => textOf(values[setting]) === '').join(', ');

const untried = (check: 'client' | 'authorization', missing: string): Finding => ({
  check,
  ok: null,
  key: 'check.clientUntried',
  values: { settings: missing },
});

/** Whether the token endpoint is there and knows the application, whatever token was used. */
const clientFinding = async (values: Values, isGiven: boolean): Promise<Finding> => {
  if (isGiven) return { check: 'client', ok: true, key: 'check.clientGiven' };
  const missing = missingIn(values, ['tokenUrl', 'clientId', 'clientSecret']);
  if (missing !== '') return untried('client', missing);
  return rehearseClient(connectionOf('check', { ...values, grant: 'client_credentials' }));
};

/** Whether the authorization page takes the application, the redirect address and the scopes. */
const authorizationFinding = async (values: Values): Promise<Finding> => {
  if (values['grant'] === 'client_credentials')
    return { check: 'authorization', ok: null, key: 'check.authorizationNobody' };
  const missing = missingIn(values, ['authUrl', 'redirectUri', 'clientId']);
  if (missing !== '') return untried('authorization', missing);
  // What only the token endpoint needs may be missing here.
  const unneeded = { tokenUrl: values['authUrl'], clientSecret: 'none' };
  return rehearseAuthorization(connectionOf('check', { ...values, ...unneeded }));
};

const findingsOf = async (values: Values, refreshFile: string | undefined): Promise<Finding[]> => {
  const accessToken = textOf(values['accessToken']);
  const refreshToken = textOf(values['refreshToken']);
  const isByClient = values['grant'] === 'client_credentials';
  const needsEndpoint = accessToken === '' && (isByClient || refreshFile !== undefined);
  // Nobody signs in here, and where there is a token already nothing is asked of a token endpoint.
  const complete = {
    ...values,
    grant: 'client_credentials',
    ...(needsEndpoint ? {} : { tokenUrl: values['baseUrl'], clientId: 'none', clientSecret: 'none' }),
  };
  const address = serviceAddressOf(complete);
  const connection = { ...connectionOf('check', complete), retries: 0 };
  const endpoints = new TokenEndpoints({ clock: systemClock, post: postForm });
  let answer: TokenAnswer | undefined;
  const obtain = async (): Promise<string> => {
    if (accessToken !== '') return accessToken;
    if (isByClient) answer = await endpoints.run(connection, () => endpoints.clientCredentials(connection));
    else if (refreshFile !== undefined && refreshToken !== '')
      answer = await refreshInto(refreshFile, refreshToken, connection, endpoints);
    else throw noToken;
    return answer.accessToken;
  };
  // Before anything is asked, so that a file that cannot be written stops it all.
  const first = await obtain().catch((fault: unknown) => {
    if (!(fault instanceof ServiceError)) throw fault;
    return fault;
  });
  const findings = await rehearse({
    ...requestSettingsOf(values),
    ...address,
    wanted: clientScopes(connection),
    // RFC 6749, section 5.1: an answer that names no scopes grants those that were asked for.
    granted: () => answer && (answer.scopes ?? clientScopes(connection)),
    token: () => {
      if (typeof first === 'string') return first;
      throw first;
    },
    tokenless: (fault) => (fault === noToken ? { ok: null, key: 'check.tokenNeeded' } : neverHad(fault)),
  });
  return [...findings, await clientFinding(values, answer !== undefined), await authorizationFinding(values)];
};

const signs = { true: 'ok', false: 'WRONG', null: '-' } as const;

/** The exit code: 0 when nothing is wrong, 1 when something is, 2 when the check could not be made. */
export const check = async (args: readonly string[], variables: Variables): Promise<number> => {
  const { LC_ALL, LC_MESSAGES, LANG } = variables;
  const words = wordsIn((LC_ALL ?? LC_MESSAGES ?? LANG ?? '').slice(0, 2));
  try {
    const options = read(args);
    if (options.help === true) {
      process.stdout.write(help);
      return 0;
    }
    const lookup = (name: string): string | undefined => variables[name];
    const written = options.settings === undefined ? {} : settingsIn(options.settings);
    const given = settings.flatMap((setting) => {
      const value = lookup(variableOf(setting));
      return value === undefined || value === '' ? [] : [[setting, value] as const];
    });
    if (options.settings === undefined && given.length === 0)
      throw new UsageError('There is nothing to check: give --settings FILE, or variables.');
    const fromVariables: Values = Object.fromEntries(given);
    const values: Values = {
      service: 'sandbox',
      ...resolveValues(written, lookup),
      ...fromVariables,
      proxyAsWritten: 'proxy' in fromVariables ? '' : (written['proxy'] ?? ''),
    };
    if (serviceOf(values) === 'simulator')
      throw new UsageError('The simulator needs no check: name the settings of a sandbox or of production.');
    const hide = hiderOf(written, lookup, () => false);
    const lines = (await findingsOf(values, options['use-refresh-token'])).map((finding) => {
      const line = spoken(finding, words);
      return { ...line, message: hide(line.message) };
    });
    process.stdout.write(
      options.json === true
        ? `${JSON.stringify(lines, null, 2)}\n`
        : lines
            .map(
              ({ check: name, ok, message }) => `${signs[`${ok}`].padEnd(6)}${name.padEnd(14)}${message}\n`,
            )
            .join(''),
    );
    return lines.some(({ ok }) => ok === false) ? 1 : 0;
  } catch (fault) {
    if (!(fault instanceof UsageError) && !(fault instanceof ServiceError)) throw fault;
    const message = fault instanceof ServiceError ? words.problem(fault.problem) : fault.message;
    process.stderr.write(`${message}\nSee: advisor-texting check --help\n`);
    return 2;
  }
};
