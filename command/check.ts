import { closeSync, fsyncSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { authorizeAgain, clientScopes, TokenEndpoints } from '../lib/auth/token-endpoint';
import type { Connection } from '../lib/auth/connection';
import type { TokenAnswer } from '../lib/auth/grants';
import { rehearseAuthorization, rehearseClient } from '../lib/auth/sign-in-rehearsal';
import { wordsIn, type Words } from '../lib/runtime/language';
import { isRecord } from '../lib/runtime/red';
import { systemClock } from '../lib/service/clock';
import { serviceError, ServiceError } from '../lib/service/errors';
import { rehearse, type Finding } from '../lib/service/rehearsal';
import { postForm } from '../lib/service/transport';
import { neverHad, spoken, type Check } from '../nodes/environment/checks';
import {
  connectionOf,
  requestSettingsOf,
  serviceAddressOf,
  serviceOf,
  type Values,
} from '../nodes/environment/config';
import { hiderOf, resolveValues, type Lookup } from '../nodes/environment/variables';
import {
  askRunning,
  credentialsOf,
  flowFileIn,
  nodesIn,
  propertiesIn,
  runtimeSettingsIn,
  UsageError,
  usualUserDir,
  type Variables,
} from './installation';
import { environmentsMeant, judgePreparedness, type Prepared } from './preparedness';

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

export const help = `Usage: advisor-texting check [--user-dir DIR | --settings FILE] [options]

Looks whether everything is ready for production, and prints a line for each check: its name, whether it is in
order, and what to set if it is not. It asks the service what can be asked without harm, and looks at the settings and
the flows of a Node-RED. It only reads: nothing is written, nobody is texted.

  --user-dir DIR             the directory of a Node-RED. Its settings.js is run as Node-RED runs it, so use the
                             account and the variables of Node-RED; its flow file has the environment and the nodes
  --flows FILE               the flow file, when it is not the one in that directory
  --environment NAME         which environment, by name or id, when there are several
  --url URL                  the admin address of that Node-RED while it runs: it tries the connection itself, with
                             the authorization that it keeps. ADVISOR_TEXTING_ADMIN_TOKEN holds an access token where
                             it has logins; the permission advisor-texting.write is needed
  --advisor KEY              whose authorization, with --url; "default" unless told
  --settings FILE            without a Node-RED: JSON with the properties of an environment; \${NAME} is a variable
  --use-refresh-token FILE   get a token with the refresh token. The service may replace it by a new one, which
                             is then in FILE; FILE must not exist yet
  --json                     print [{ check, ok, message }]; ok is true, false or null (no verdict)
  --help                     show this

Settings and the variables that outweigh them:
${settings.map((setting) => `  ${setting.padEnd(14)} ${variableOf(setting)}`).join('\n')}

The lines "client" and "authorization" try how tokens come about, with a refresh token that nobody was ever
given and an authorization that nobody signs in to: nothing is issued, nothing is spent.

A token comes from accessToken, else from client credentials (grant "client_credentials"), else from
refreshToken if you say --use-refresh-token. With --url, Node-RED uses its own.

The exit code is 0 when all was tried and nothing is wrong, 1 when something is wrong, and 2 when something could
not be tried or the check could not be made: what to give is then said.
`;

const read = (args: readonly string[]) => {
  try {
    return parseArgs({
      args: [...args],
      options: {
        settings: { type: 'string' },
        'user-dir': { type: 'string' },
        flows: { type: 'string' },
        environment: { type: 'string' },
        url: { type: 'string' },
        advisor: { type: 'string' },
        'use-refresh-token': { type: 'string' },
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
};
type Options = ReturnType<typeof read>;

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

const signInFindings = async (values: Values, isGiven: boolean): Promise<Finding[]> => [
  await clientFinding(values, isGiven),
  await authorizationFinding(values),
];

/** All that is asked of the service, and of the two addresses that tokens come from. */
const connectionFindings = async (values: Values, refreshFile: string | undefined): Promise<Finding[]> => {
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
  return [...findings, ...(await signInFindings(values, answer !== undefined))];
};

/** What is to be checked. */
interface Subject {
  /** As it is written, with variables in it. */
  readonly written: Values;
  readonly values: Values;
  readonly prepared?: Prepared;
}

const onlyOne = (found: readonly Values[], flowFile: string): Values => {
  const [one, another] = found;
  if (one && !another) return one;
  if (!one)
    throw new UsageError(
      `No such environment runs in ${flowFile}: name it with --environment, or set Service to sandbox or production.`,
    );
  const names = found.map(({ id, name }) => `${String(id)} (${String(name)})`).join(', ');
  throw new UsageError(`There are several environments: name one with --environment. ${names}`);
};

const subjectOf = (options: Options, variables: Variables): Subject => {
  const lookup: Lookup = (name) => variables[name];
  const given = settings.flatMap((setting) => {
    const value = variables[variableOf(setting)];
    return value === undefined || value === '' ? [] : [[setting, value] as const];
  });
  const fromVariables: Values = Object.fromEntries(given);
  const resolved = (written: Values): Values => ({
    service: 'sandbox',
    ...resolveValues(written, lookup),
    ...fromVariables,
    proxyAsWritten: 'proxy' in fromVariables ? '' : (written['proxy'] ?? ''),
  });
  const { 'user-dir': named, flows, environment, settings: file } = options;
  if (named === undefined && flows === undefined) {
    if (file === undefined && given.length === 0)
      throw new UsageError('There is nothing to check: give --user-dir DIR, --settings FILE, or variables.');
    if (options.url !== undefined)
      throw new UsageError('--url needs --user-dir DIR: the directory of the Node-RED that runs there.');
    const written = file === undefined ? {} : propertiesIn(file);
    return { written, values: resolved(written) };
  }
  if (file !== undefined)
    throw new UsageError('Give either --settings or --user-dir: the flow file has the settings.');
  const userDir = named ?? usualUserDir();
  const runtime = runtimeSettingsIn(userDir, variables);
  const flowFile = flows ?? flowFileIn(userDir, runtime?.flowFile);
  const nodes = nodesIn(flowFile);
  const one = onlyOne(environmentsMeant(nodes, environment), flowFile);
  const credentials = credentialsOf(String(one['id']), { userDir, flowFile, settings: runtime });
  // A node of an older version may lack it: that is the simulator.
  const written = { service: 'simulator', ...one, ...credentials };
  const values = resolved(written);
  return { written, values, prepared: { userDir, settings: runtime, nodes, values } };
};

/** A line, and whether something that could have been tried was not. */
interface Line {
  readonly line: Check<string>;
  readonly isUntried: boolean;
}

/** Without these, nothing is known about the connection. */
const essential = ['reachability', 'token', 'apiKey', 'prefixes'];
const unlooked = ['check.clientUntried', 'check.settingsUnread'];

const isCheck = (value: unknown): value is Check<string> => {
  if (!isRecord(value)) return false;
  const { check: name, ok, message } = value;
  return typeof name === 'string' && typeof message === 'string' && (ok === null || typeof ok === 'boolean');
};

/** The connection as the Node-RED that runs finds it, with the authorizations it keeps. */
const testRunning = async (
  url: string,
  { values }: Subject,
  { advisor = 'default' }: Options,
  token: string | undefined,
): Promise<Line[]> => {
  const asked = await askRunning({ url, id: String(values['id']), route: 'test', token }, { advisor });
  if ('failed' in asked)
    throw new UsageError(`The Node-RED at ${url} did not test the connection (${asked.failed}).`);
  const lines = Array.isArray(asked.answer) ? (asked.answer as unknown[]).filter(isCheck) : [];
  if (lines.length === 0) throw new UsageError(`What answers at ${url} is not a Node-RED with this package.`);
  return lines.map((line) => ({ line, isUntried: line.ok === null && essential.includes(line.check) }));
};

const linesOf = async (options: Options, variables: Variables, words: Words): Promise<Line[]> => {
  const subject = subjectOf(options, variables);
  const { written, values, prepared } = subject;
  if (serviceOf(values) === 'simulator')
    throw new UsageError('The simulator needs no check: name the settings of a sandbox or of production.');
  const hide = hiderOf(
    written,
    (name) => variables[name],
    () => false,
  );
  const told = (finding: Finding<string>): Line => {
    const line = spoken(finding, words);
    const isEssential = essential.includes(finding.check) || unlooked.includes(finding.key);
    return { line: { ...line, message: hide(line.message) }, isUntried: line.ok === null && isEssential };
  };
  const { url, 'use-refresh-token': refreshFile } = options;
  const token = variables['ADVISOR_TEXTING_ADMIN_TOKEN'];
  const ofConnection = async (): Promise<Line[]> =>
    url === undefined
      ? (await connectionFindings(values, refreshFile)).map(told)
      : [
          ...(await testRunning(url, subject, options, token)),
          ...(await signInFindings(values, false)).map(told),
        ];
  if (!prepared) return ofConnection();
  const ofMachine = judgePreparedness(prepared).map(told);
  const tried = await ofConnection().catch((fault: unknown) => {
    // Settings that are missing or wrong: what is not about the connection can be told all the same.
    if (!(fault instanceof ServiceError)) throw fault;
    return [told({ check: 'reachability', ok: false, key: '', problem: fault.problem })];
  });
  return [...tried, ...ofMachine];
};

const signs = { true: 'ok', false: 'WRONG', null: '-' } as const;

/** The exit code: 0 when all is in order, 1 when something is wrong, 2 when something could not be tried. */
export const check = async (args: readonly string[], variables: Variables): Promise<number> => {
  const { LC_ALL, LC_MESSAGES, LANG } = variables;
  const words = wordsIn((LC_ALL ?? LC_MESSAGES ?? LANG ?? '').slice(0, 2));
  try {
    const options = read(args);
    if (options.help === true) {
      process.stdout.write(help);
      return 0;
    }
    const lines = await linesOf(options, variables, words);
    const told = lines.map(({ line }) => line);
    process.stdout.write(
      options.json === true
        ? `${JSON.stringify(told, null, 2)}\n`
        : told
            .map(
              ({ check: name, ok, message }) => `${signs[`${ok}`].padEnd(6)}${name.padEnd(18)}${message}\n`,
            )
            .join(''),
    );
    if (told.some(({ ok }) => ok === false)) return 1;
    return lines.some(({ isUntried }) => isUntried) ? 2 : 0;
  } catch (fault) {
    if (!(fault instanceof UsageError) && !(fault instanceof ServiceError)) throw fault;
    const message = fault instanceof ServiceError ? words.problem(fault.problem) : fault.message;
    process.stderr.write(`${message}\nSee: advisor-texting check --help\n`);
    return 2;
  }
};
