import { UsageError } from '../lib/usage-error';
import { minute } from '../lib/durations';
import { visible } from '../lib/visible';
import { closeSync, fsyncSync, openSync, unlinkSync, writeSync } from 'node:fs';
import {
  authorizeAgain,
  operationScopesOf,
  TokenEndpoints,
  scopesIn,
  type TokenAnswer,
} from '../lib/auth/token-endpoint';
import type { Connection } from '../lib/auth/connection';
import { rehearseAuthorization, rehearseClient, type Chance } from './sign-in';
import { wordsIn, type Words } from '../lib/runtime/language';
import { isRecord } from '../lib/kinds';
import { systemClock } from '../lib/service/clock';
import { serviceError, ServiceError } from '../lib/service/errors';
import { contractScope } from '../lib/service/prefixes';
import { checkNames, factNames, finding, rehearse, type Finding } from '../lib/check/rehearsal';
import { postForm } from '../lib/service/transport';
import { faultInDatabase } from '../lib/state/postgres-connection';
import { canReadIn, markOf, neverHad, spoken, type MarkedCheck } from '../nodes/environment/checks';
import {
  connectionOf,
  faultInValues,
  requestSettingsOf,
  serviceAddressOf,
  serviceOf,
  type EnvironmentValues,
} from '../nodes/environment/config';
import { needsOf, runningIn } from '../nodes/environment/saved-nodes';
import { spec, usualScopes } from '../nodes/environment/spec';
import { hiderOf, resolveValues, type VariableValue } from '../nodes/environment/variables';
import {
  askRunning,
  isEnvironment,
  optionsIn,
  savedCredentials,
  savedNodesIn,
  placeIn,
  propertiesIn,
  runtimeSettingsIn,
  usualUserDir,
} from './installation';
import {
  environmentsMeant,
  faultInSetting,
  checkPreparedness,
  toldApart,
  type Prepared,
} from './preparedness';

/** The settings that this command uses, by their names in the environment. */
const settings = [...spec.fields.map(({ name }) => name), 'accessToken'];

const variableOf = (setting: string): string =>
  `ADVISOR_TEXTING_${setting.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;

/** The most milliseconds for pauses and retries, while somebody waits for this command. */
const patience = minute;

export const help = `Usage: advisor-texting check [--user-dir DIR | --settings FILE] [options]

Checks whether everything is ready for production, and prints a line for each check: its name, the result, and
what to change if there is a problem. It sends harmless requests to the service, within the rate limit of the
environment and of the service, and reads the settings and the flows of a Node-RED. It only reads: nothing is
changed, and nobody is texted.

  --user-dir DIR             the user directory of a Node-RED. Its settings.js is run as Node-RED runs it, so use the
                             account and the variables of Node-RED. Its flow file is checked
  --flows FILE               the flow file, if it is not in that directory
  --environment NAME         the environment to check, by name or id, if there are several
  --also NAME                another environment that some nodes should keep using; may be given several times
  --url URL                  the admin address of that Node-RED while it runs: it tests the connection itself, with
                             its own authorization. If it requires a login, put an access token with the permission
                             advisor-texting.write in ADVISOR_TEXTING_ADMIN_TOKEN
  --advisor KEY              with --url: the advisor whose authorization is used (default: the only one)
  --settings FILE            without a Node-RED: a JSON file with the properties of an environment; \${NAME} is a variable
  --use-refresh-token FILE   get a token with the refresh token. If the service replaces it, the new one is saved in
                             FILE, which must not exist yet
  --json                     print [{ check, ok, mark, message }], even if the check fails to run. ok is true, false or
                             null; if it is null, mark says why: "untried" or "none"
  --help                     show this help

Each line starts with "ok", "WRONG", "?" (could be tested, but was not) or "-" (cannot be determined, or no
setting changes it).

Settings and the variables that override them:
${settings.map((setting) => `  ${setting.padEnd(18)} ${variableOf(setting)}`).join('\n')}

Scopes are separated by spaces; names is JSON, such as {"page":"pageNumber"}.

The checks "client" and "authorization" test the sign-in with an invalid refresh token and an authorization
request that nobody completes: no token is issued or used up.

The token is accessToken, or else comes from client credentials (grant "client_credentials"), or else from
refreshToken with --use-refresh-token. With --url, Node-RED uses its own.

The exit code is 0 if everything was tested and nothing is wrong, 1 if something is wrong, and 2 if something could
not be tested or the check could not run; the output then says what is missing.
`;

const read = (args: readonly string[]) =>
  optionsIn(args, {
    settings: { type: 'string' },
    'user-dir': { type: 'string' },
    flows: { type: 'string' },
    environment: { type: 'string' },
    also: { type: 'string', multiple: true },
    url: { type: 'string' },
    advisor: { type: 'string' },
    'use-refresh-token': { type: 'string' },
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
  });
type CheckOptions = ReturnType<typeof read>;

const textOf = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');

/** Gets a token by the refresh grant; a new refresh token is on disk before the access token is used. */
const refreshInto = async (
  file: string,
  refreshToken: string,
  connection: Connection,
  endpoints: TokenEndpoints,
  waiting: { readonly signal: AbortSignal },
): Promise<TokenAnswer> => {
  let place: number;
  try {
    place = openSync(file, 'wx', 0o600);
  } catch {
    throw new UsageError(
      `${file} already exists or cannot be written: choose another file for the refresh token.`,
    );
  }
  let isKept = false;
  try {
    const result = await endpoints.run(
      connection,
      () => endpoints.refresh(connection, refreshToken),
      waiting,
    );
    if (result.outcome === 'refused') throw authorizeAgain(connection, 'default');
    const { refreshToken: rotated } = result.answer;
    if (rotated !== null && rotated !== refreshToken) {
      isKept = true;
      writeSync(place, rotated);
      fsyncSync(place);
      process.stderr.write(
        `The service issued a new refresh token, which is saved in ${file}. Replace the old one, which may no longer work.\n`,
      );
    }
    return result.answer;
  } finally {
    closeSync(place);
    if (!isKept) unlinkSync(file);
  }
};

const noToken = serviceError('authorization_required', 'token_unusable');
/** The error when the token endpoint takes longer than the patience of this command. */
const isLate = serviceError('network_error', 'token_unreached', { reason: { reason: 'timeout' } });

const missingIn = (values: EnvironmentValues, wanted: readonly string[]): string[] =>
  wanted.filter((setting) => textOf(values[setting]) === '');

/** Names each missing setting and its variable: it can be given by either. */
const ways = (missing: readonly string[]): string =>
  missing.map((setting) => `${setting} (${variableOf(setting)})`).join(', ');

const untried = (check: string, missing: readonly string[]): Finding =>
  finding(check)('untried', 'check.clientUntried', { settings: ways(missing) });

/** Whether the token endpoint answers and knows the application, independent of the token in use. */
const clientFinding = async (
  values: EnvironmentValues,
  isGiven: boolean,
  chance: Chance,
): Promise<Finding> => {
  if (isGiven) return { check: 'client', ok: true, key: 'check.clientGiven' };
  const missing = missingIn(values, ['tokenUrl', 'clientId', 'clientSecret']);
  if (missing.length > 0) return untried('client', missing);
  return rehearseClient(connectionOf('check', { ...values, grant: 'client_credentials' }), chance);
};

/** Whether the authorization page accepts the application, the redirect URI and the scopes. */
const authorizationFinding = async (values: EnvironmentValues, chance: Chance): Promise<Finding> => {
  if (values['grant'] === 'client_credentials')
    return { check: 'authorization', ok: null, key: 'check.authorizationNobody' };
  const missing = missingIn(values, ['authUrl', 'redirectUri', 'clientId']);
  if (missing.length > 0) return untried('authorization', missing);
  // Settings that only the token endpoint needs may be missing here.
  const unneeded = { tokenUrl: values['authUrl'], clientSecret: 'none' };
  return rehearseAuthorization(connectionOf('check', { ...values, ...unneeded }), chance);
};

const signInFindings = async (
  values: EnvironmentValues,
  isGiven: boolean,
  chance: Chance,
): Promise<Finding[]> => [
  await clientFinding(values, isGiven, chance),
  await authorizationFinding(values, chance),
];

/** All requests to the service, and to the two addresses that tokens come from. */
const connectionFindings = async (
  { values, prepared }: CheckedEnvironment,
  refreshFile: string | undefined,
  chance: Chance,
): Promise<Finding[]> => {
  const accessToken = textOf(values['accessToken']);
  const refreshToken = textOf(values['refreshToken']);
  const isByClient = values['grant'] === 'client_credentials';
  const needsEndpoint = accessToken === '' && (isByClient || refreshFile !== undefined);
  // Nobody signs in here, and with a given token no token request is made, so these settings may be missing.
  const complete = {
    ...values,
    grant: 'client_credentials',
    scopes: values['scopes'] ?? usualScopes[isByClient ? 'client_credentials' : 'authorization_code'],
    ...(needsEndpoint ? {} : { tokenUrl: values['baseUrl'], clientId: 'none', clientSecret: 'none' }),
  };
  const address = serviceAddressOf(complete);
  const connection = connectionOf('check', complete);
  const endpoints = new TokenEndpoints({ ...chance, post: postForm });
  const giveUp = new AbortController();
  const waiting = { signal: giveUp.signal };
  let answer: TokenAnswer | undefined;
  const obtain = async (): Promise<string> => {
    if (accessToken !== '') return accessToken;
    if (isByClient)
      answer = await endpoints.run(connection, () => endpoints.clientCredentials(connection), waiting);
    else if (refreshFile !== undefined && refreshToken !== '')
      answer = await refreshInto(refreshFile, refreshToken, connection, endpoints, waiting);
    else throw noToken;
    return answer.accessToken;
  };
  // A request in flight is not cut: a new refresh token must not be lost.
  const forget = chance.clock.after(patience, () => giveUp.abort());
  // The token is requested first, so that a file that cannot be written ends the command before any other check.
  const first = await obtain()
    .catch((fault: unknown) => {
      if (!(fault instanceof ServiceError)) throw fault;
      return fault.code === 'cancelled' ? isLate : fault;
    })
    .finally(forget);
  const granted = (): readonly string[] | undefined => {
    // An answer without scopes grants those that were requested (RFC 6749, section 5.1).
    if (answer) return answer.scopes ?? operationScopesOf(connection);
    const { prefixes } = requestSettingsOf(values);
    return scopesIn(accessToken)?.map((scope) => contractScope(scope, prefixes));
  };
  const findings = await rehearse({
    ...requestSettingsOf(values),
    ...address,
    ...chance,
    patience,
    needs: prepared ? needsOf(prepared.nodes, String(values['id'])) : [],
    canRead: canReadIn(values),
    wanted: operationScopesOf(connection),
    granted,
    token: () => {
      if (typeof first === 'string') return first;
      throw first;
    },
    tokenless: (fault) => {
      if (fault === noToken) return { ok: 'untried', key: 'check.tokenNeeded' };
      return fault === isLate
        ? { ok: 'untried', key: 'check.tokenLater', values: { reason: { reason: 'timeout' } } }
        : neverHad(fault);
    },
  });
  return [...findings, ...(await signInFindings(values, answer !== undefined, chance))];
};

/** The environment to be checked. */
interface CheckedEnvironment {
  /** The settings as they are written, with variables in them. */
  readonly written: EnvironmentValues;
  readonly values: EnvironmentValues;
  /** The settings that were given by variables of the process. */
  readonly given: readonly string[];
  readonly prepared?: Prepared;
  /** The file of credentials that could not be decrypted. */
  readonly unread?: string | undefined;
}

const listed = (environments: readonly EnvironmentValues[]): string =>
  environments
    .map((each) => `${String(each['id'])} (${textOf(each['name']) || `no name, ${serviceOf(each)}`})`)
    .join(', ');

const onlyOne = (
  found: readonly EnvironmentValues[],
  running: readonly EnvironmentValues[],
  flowFile: string,
  named: string | undefined,
): EnvironmentValues => {
  const [one, another] = found;
  if (one && !another) return one;
  if (!one && running.length === 0) throw new UsageError(`${flowFile} has no active environment.`);
  if (!one)
    throw new UsageError(
      `${flowFile} has no active environment ${named === undefined ? 'that is set to sandbox or production' : `"${named}"`}: choose another with --environment. Active environments: ${listed(running)}`,
    );
  throw new UsageError(`There are several environments: choose one with --environment. ${listed(found)}`);
};

const checkedEnvironment = (options: CheckOptions, variables: NodeJS.ProcessEnv): CheckedEnvironment => {
  const lookup: VariableValue = (name) => variables[name];
  const given = settings.flatMap((setting) => {
    const value = variables[variableOf(setting)];
    return value === undefined || value === '' ? [] : [[setting, value] as const];
  });
  const fromVariables: EnvironmentValues = Object.fromEntries(given);
  const resolved = (written: EnvironmentValues): EnvironmentValues => ({
    service: 'sandbox',
    ...resolveValues(written, lookup),
    ...fromVariables,
    proxyAsWritten: 'proxy' in fromVariables ? '' : (written['proxy'] ?? ''),
  });
  const { 'user-dir': named, flows, environment, settings: file } = options;
  if (named === undefined && flows === undefined) {
    if (file === undefined && given.length === 0)
      throw new UsageError('There is nothing to check: use --user-dir DIR, --settings FILE, or variables.');
    if (options.url !== undefined)
      throw new UsageError('--url needs --user-dir DIR: the user directory of that Node-RED.');
    const written = file === undefined ? {} : propertiesIn(file, ['accessToken']);
    return { written, values: resolved(written), given: Object.keys(fromVariables) };
  }
  if (file !== undefined)
    throw new UsageError(
      'Use either --settings or --user-dir, not both: the flow file contains the settings.',
    );
  const userDir = named ?? usualUserDir();
  const runtime = runtimeSettingsIn(userDir, variables);
  const place = placeIn(userDir, runtime, flows);
  const nodes = savedNodesIn(place.flowFile);
  const running = runningIn(nodes).filter(isEnvironment);
  const one = onlyOne(environmentsMeant(nodes, environment), running, place.flowFile, environment);
  const unknown = (options.also ?? []).find((name) => environmentsMeant(running, name).length === 0);
  if (unknown !== undefined)
    throw new UsageError(
      `--also names no active environment: "${unknown}". Active environments: ${listed(running)}`,
    );
  const { credentials, unread } = savedCredentials(String(one['id']), place);
  // A node of an older version may lack this setting: that means the simulator.
  const written = { service: 'simulator', ...one, ...credentials };
  const values = resolved(written);
  const prepared = { userDir, settings: runtime, nodes, values, also: options.also ?? [] };
  return { written, values, given: Object.keys(fromVariables), prepared, unread };
};

const isLine = (value: unknown): value is Omit<MarkedCheck, 'mark'> & { mark?: MarkedCheck['mark'] } => {
  if (!isRecord(value)) return false;
  const { check: name, ok, message } = value;
  return typeof name === 'string' && typeof message === 'string' && (ok === null || typeof ok === 'boolean');
};

/** The first line says why nothing was tried; the others refer to it. */
const untriedFor = (first: Omit<Finding, 'check' | 'ok'>, names: readonly string[]): Finding[] =>
  names.map((name, index) =>
    index === 0
      ? { check: name, ok: 'untried', ...first }
      : { check: name, ok: 'untried', key: 'check.untriedAbove' },
  );
const ofService = [...checkNames, ...factNames];

/** Makes a running Node-RED test the connection, with its authorizations. */
const testRunning = async (
  url: string,
  { values }: CheckedEnvironment,
  { advisor }: CheckOptions,
  token: string | undefined,
): Promise<MarkedCheck[] | Finding[]> => {
  const route = { url, id: String(values['id']), route: 'test', token };
  const asked = await askRunning(route, { advisor, whole: true });
  if ('failed' in asked) {
    const key =
      { 400: 'runningRefused', 401: 'runningLogin', 403: 'runningLogin', 404: 'runningElsewhere' }[
        asked.status
      ] ?? 'runningFailed';
    return untriedFor({ key: `check.${key}`, values: { url, reason: asked.failed } }, ofService);
  }
  const lines = Array.isArray(asked.answer) ? (asked.answer as unknown[]).filter(isLine) : [];
  if (lines.length === 0) return untriedFor({ key: 'check.runningElsewhere', values: { url } }, ofService);
  // An older version sends no marks.
  return lines.map((line) => ({ ...line, mark: line.mark ?? markOf(line.ok ?? 'untried') }));
};

/** The settings with defaults for those that are wrong, which have separate lines. */
const usable = (values: EnvironmentValues): EnvironmentValues =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !faultInSetting(values, name)));

const settingsFinding = (values: EnvironmentValues): Finding => {
  const rest = Object.fromEntries(Object.entries(values).filter(([name]) => !toldApart.includes(name)));
  const fault = faultInValues(rest);
  return fault
    ? { check: 'settings', ok: false, key: '', problem: fault.problem }
    : { check: 'settings', ok: true, key: 'check.settingsFine' };
};

/**
 * Where the state is kept, and whether it can be; `unread` when the address is among credentials that could not be
 * decrypted.
 */
const storeFinding = async (values: EnvironmentValues, unread: string | undefined): Promise<Finding> => {
  const found = finding('store');
  if (values['store'] !== 'postgres') return found(true, 'check.storeEmbedded');
  if (unread !== undefined && textOf(values['storeUrl']) === '')
    return found('untried', 'check.credentialsUnread', { file: unread, variables: variableOf('storeUrl') });
  const { service, store, storeUrl } = values;
  const fault = faultInValues({ service, store, storeUrl });
  if (fault) return { check: 'store', ok: false, key: '', problem: fault.problem };
  const reason = await faultInDatabase(textOf(storeUrl));
  return reason === undefined
    ? found(true, 'check.storeReached')
    : found(false, 'check.storeUnreached', { setting: { setting: 'storeUrl' }, reason });
};

/** A running Node-RED tests what it has deployed: settings given on the command line would seem to have been tested. */
const refuseUnused = ({ given }: CheckedEnvironment): void => {
  const unused = given.filter((setting) => !['clientId', 'clientSecret', 'storeUrl'].includes(setting));
  if (unused.length > 0)
    throw new UsageError(
      `With --url, Node-RED tests its own settings and ignores ${unused.map(variableOf).join(', ')}: leave out one or the other.`,
    );
};

const linesOf = async (
  options: CheckOptions,
  variables: NodeJS.ProcessEnv,
  words: Words,
  chance: Chance,
): Promise<MarkedCheck[]> => {
  const subject = checkedEnvironment(options, variables);
  const { written, prepared, unread } = subject;
  if (serviceOf(subject.values) === 'simulator')
    throw new UsageError('The simulator needs no check: choose a sandbox or production environment.');
  const hide = hiderOf(
    written,
    (name) => variables[name],
    () => false,
  );
  const lineOf = (one: Finding): MarkedCheck => {
    const line = spoken(one, words);
    return { ...line, message: hide(line.message) };
  };
  const { url, 'use-refresh-token': refreshFile } = options;
  const values = usable(subject.values);
  const connect = async (): Promise<(MarkedCheck | Finding)[]> => {
    if (url !== undefined) {
      refuseUnused(subject);
      const token = variables['ADVISOR_TEXTING_ADMIN_TOKEN'];
      return [
        ...(await testRunning(url, subject, options, token)),
        ...(await signInFindings(values, false, chance)),
      ];
    }
    const hasToken = textOf(values['accessToken']) !== '';
    const missing = missingIn(values, hasToken ? ['apiKey'] : ['apiKey', 'clientId', 'clientSecret']);
    if (unread !== undefined && missing.length > 0) {
      const said = { file: unread, variables: missing.map(variableOf).join(', ') };
      return [
        ...untriedFor({ key: 'check.credentialsUnread', values: said }, ofService),
        ...(await signInFindings(values, false, chance)),
      ];
    }
    return connectionFindings({ ...subject, values }, refreshFile, chance);
  };
  const tried = await connect().catch((fault: unknown): Finding[] => {
    // Settings are missing or wrong: checks that are not about the connection are still made.
    if (!(fault instanceof ServiceError) || !prepared) throw fault;
    const [first, ...rest] = untriedFor({ key: '', problem: fault.problem }, [
      ...ofService,
      'client',
      'authorization',
    ]);
    return first ? [{ ...first, ok: false }, ...rest] : [];
  });
  const rest: Finding[] = [
    settingsFinding(subject.values),
    await storeFinding(subject.values, unread),
    ...(prepared ? checkPreparedness({ ...prepared, values: subject.values }) : []),
  ];
  return [...tried, ...rest].map((each) => ('mark' in each ? each : lineOf(each)));
};

const signs = { ok: 'ok', wrong: 'WRONG', untried: '?', none: '-' } as const;

const print = (lines: readonly MarkedCheck[], isJson: boolean): void => {
  process.stdout.write(
    isJson
      ? visible(`${JSON.stringify(lines, null, 2)}\n`, '\n')
      : lines
          .map(
            ({ check: name, mark, message }) =>
              `${visible(`${signs[mark].padEnd(6)}${name.padEnd(18)}${message}`)}\n`,
          )
          .join(''),
  );
};

/**
 * Resolves with the exit code: 0 when everything is fine, 1 when something is wrong, 2 when something could not be
 * tested.
 */
export const check = async (
  args: readonly string[],
  variables: NodeJS.ProcessEnv,
  chance: Chance = { clock: systemClock, random: Math.random },
): Promise<number> => {
  const { LC_ALL, LC_MESSAGES, LANG } = variables;
  const words = wordsIn((LC_ALL ?? LC_MESSAGES ?? LANG ?? '').slice(0, 2));
  const isJson = args.includes('--json');
  try {
    const options = read(args);
    if (options.help === true) {
      process.stdout.write(help);
      return 0;
    }
    const lines = await linesOf(options, variables, words, chance);
    print(lines, isJson);
    if (lines.some(({ mark }) => mark === 'wrong')) return 1;
    return lines.some(({ mark }) => mark === 'untried') ? 2 : 0;
  } catch (fault) {
    const isKnown = fault instanceof UsageError || fault instanceof ServiceError;
    // A program that reads JSON must always get JSON.
    if (!isKnown && !isJson) throw fault;
    const said = fault instanceof Error ? fault.message : String(fault);
    const message = fault instanceof ServiceError ? words.problem(fault.problem) : said;
    process.stderr.write(`${visible(message, '\n')}\nSee: advisor-texting check --help\n`);
    if (isJson) print([{ check: 'settings', ok: null, mark: 'untried', message }], true);
    return 2;
  }
};
