import { minute } from '../lib/durations';
import { spawnSync } from 'node:child_process';
import { createDecipheriv, createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import { isConfidential } from '../lib/addresses';
import { isRecord } from '../lib/kinds';
import { UsageError } from '../lib/usage-error';
import type { EnvironmentValues } from '../nodes/environment/config';
import type { SavedNode } from '../nodes/environment/saved-nodes';
import { spec } from '../nodes/environment/spec';

/** The options of a command line. */
export const optionsIn = <const T extends NonNullable<ParseArgsConfig['options']>>(
  args: readonly string[],
  options: T,
) => {
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
};

export const usualUserDir = (): string => join(homedir(), '.node-red');

/** The part of `settings.js` that is needed here. */
export interface SettingsFile {
  /** False means that credentials are not encrypted; undefined, that Node-RED has generated a secret. */
  readonly credentialSecret?: string | false;
  readonly flowFile?: string;
  readonly hasProjects: boolean;
  readonly uiHost?: string;
  readonly hasEditor: boolean;
  readonly hasLogin: boolean;
  /** The permissions of a user who has not logged in. */
  readonly withoutLogin?: unknown;
}

/**
 * `settings.js` runs in a separate process. Node-RED runs this file in the same way, but it may print, keep a timer
 * running, or exit the process.
 */
const loading = `
const settings = require(process.argv[1]);
const text = (value) => (typeof value === 'string' && value !== '' ? value : undefined);
const { credentialSecret: secret, adminAuth, httpAdminRoot, httpRoot } = settings;
require('node:fs').writeSync(3, JSON.stringify({
  credentialSecret: secret === false ? false : text(secret),
  flowFile: text(settings.flowFile),
  hasProjects: settings.editorTheme?.projects?.enabled === true,
  uiHost: text(settings.uiHost),
  hasEditor: (httpAdminRoot ?? httpRoot) !== false,
  hasLogin: Boolean(adminAuth),
  withoutLogin: typeof adminAuth?.default === 'function' ? 'function' : adminAuth?.default?.permissions,
}));
process.exit(0);
`;

/** Milliseconds for running `settings.js`. */
const patience = minute;

/** Undefined if the file does not exist or cannot be run. */
export const runtimeSettingsIn = (
  userDir: string,
  variables: NodeJS.ProcessEnv,
): SettingsFile | undefined => {
  const file = resolve(userDir, 'settings.js');
  if (!existsSync(file)) return undefined;
  const { output } = spawnSync(process.execPath, ['-e', loading, file], {
    cwd: resolve(userDir),
    env: { ...variables },
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
    timeout: patience,
  }) as { output: readonly (string | null)[] | null };
  try {
    return JSON.parse(output?.[3] ?? '') as SettingsFile;
  } catch {
    return undefined;
  }
};

const isFlowFile = (name: string): boolean => /^flows.*\.json$/.test(name) && !name.endsWith('_cred.json');

/** The flow file of a Node-RED: as in its settings, else by its default. */
export const flowFileIn = (userDir: string, flowFile?: string): string => {
  if (flowFile !== undefined) return resolve(userDir, flowFile);
  try {
    const names = readdirSync(userDir).filter(isFlowFile).sort();
    const file = [`flows_${hostname()}.json`, 'flows.json', ...names].find((name) => names.includes(name));
    if (file !== undefined) return join(userDir, file);
  } catch {
    // The error below says what to do.
  }
  throw new UsageError(
    `There is no flow file in ${userDir}: give the directory with --user-dir, or the file with --flows.`,
  );
};

const jsonIn = (file: string): unknown => {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    // The message of the parser would quote the file, which may contain secrets.
    throw new UsageError(`${file} cannot be read as JSON: check that it exists and contains valid JSON.`);
  }
};

export const savedNodesIn = (flowFile: string): SavedNode[] => {
  const flows = jsonIn(flowFile);
  return Array.isArray(flows) ? (flows as unknown[]).filter(isRecord) : [];
};

export const isEnvironment = ({ type }: SavedNode): boolean => type === spec.type;

/** Properties that Node-RED itself writes into a config node. */
const ofAnyNode = ['id', 'type', 'z', 'g', 'd', 'l', 'x', 'y', 'info', 'wires', 'credentials', '_users'];

/** Reads one object: the properties of an environment, and those in `more`. */
export const propertiesIn = (file: string, more: readonly string[]): EnvironmentValues => {
  const given = jsonIn(file);
  if (!isRecord(given) || Array.isArray(given))
    throw new UsageError(`${file} must contain one object with the properties of an environment.`);
  const { credentials, ...properties } = given;
  const all = { ...(isRecord(credentials) ? credentials : {}), ...properties };
  const known = [...spec.fields.map(({ name }) => name), ...more];
  const unknown = Object.keys(all).find((name) => ![...known, ...ofAnyNode].includes(name));
  if (unknown !== undefined) {
    const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z]/g, '');
    const meant = known.find((name) => plain(name) === plain(unknown));
    throw new UsageError(
      `${file} has "${unknown}", which is not a setting of an environment: ${meant === undefined ? `the settings are ${known.join(', ')}` : `write ${meant}`}.`,
    );
  }
  return all;
};

const generatedSecret = (userDir: string): unknown => {
  for (const name of ['.config.runtime.json', '.config.json']) {
    const file = join(userDir, name);
    const config = existsSync(file) ? jsonIn(file) : undefined;
    if (isRecord(config) && config['_credentialSecret'] !== undefined) return config['_credentialSecret'];
  }
  return undefined;
};

/** The files of flows and credentials of a Node-RED, and the secret of the credentials. */
export interface FlowFiles {
  readonly flowFile: string;
  readonly credentialFiles: readonly string[];
  readonly secret: unknown;
}

/** The open project of a Node-RED, which has its own files and secret. */
const projectIn = (userDir: string): FlowFiles | undefined => {
  const config = join(userDir, '.config.projects.json');
  const { activeProject, projects } = existsSync(config)
    ? (jsonIn(config) as Readonly<Record<string, unknown>>)
    : {};
  if (typeof activeProject !== 'string') return undefined;
  const folder = join(userDir, 'projects', activeProject);
  const description = join(folder, 'package.json');
  const { 'node-red': about } = existsSync(description)
    ? (jsonIn(description) as Readonly<Record<string, unknown>>)
    : {};
  const settings = isRecord(about) && isRecord(about['settings']) ? about['settings'] : {};
  const { flowFile = 'flows.json', credentialsFile = 'flows_cred.json' } = settings;
  const own = isRecord(projects) ? projects[activeProject] : undefined;
  return {
    flowFile: join(folder, String(flowFile)),
    credentialFiles: [join(folder, String(credentialsFile))],
    secret: isRecord(own) ? own['credentialSecret'] : undefined,
  };
};

export const placeIn = (
  userDir: string,
  settings: SettingsFile | undefined,
  named: string | undefined,
): FlowFiles => {
  const project = settings?.hasProjects === true ? projectIn(userDir) : undefined;
  if (project && (named === undefined || resolve(named) === resolve(project.flowFile))) return project;
  const flowFile = named ?? flowFileIn(userDir, settings?.flowFile);
  const beside = flowFile.replace(/\.json$/, '_cred.json');
  return {
    flowFile,
    credentialFiles: [join(userDir, basename(beside)), beside],
    secret: settings?.credentialSecret ?? generatedSecret(userDir),
  };
};

/** The credentials of a node, as Node-RED has stored them; `unread` is their file when the secret is wrong. */
export const savedCredentials = (
  id: string,
  { credentialFiles, secret }: FlowFiles,
): { readonly credentials: EnvironmentValues; readonly unread?: string } => {
  const file = credentialFiles.find(existsSync);
  if (file === undefined) return { credentials: {} };
  let stored = jsonIn(file);
  const sealed = isRecord(stored) ? stored['$'] : undefined;
  if (typeof sealed === 'string') {
    try {
      const key = createHash('sha256').update(String(secret)).digest();
      const decipher = createDecipheriv('aes-256-ctr', key, Buffer.from(sealed.slice(0, 32), 'hex'));
      const plain = decipher.update(sealed.slice(32), 'base64', 'utf8') + decipher.final('utf8');
      stored = JSON.parse(plain);
    } catch {
      return { credentials: {}, unread: file };
    }
  }
  const own = isRecord(stored) ? stored[id] : undefined;
  return { credentials: isRecord(own) ? own : {} };
};

/** The address of a route about one environment, in a running Node-RED. */
const routeOf = (url: string, id: string, route: string): URL => {
  if (!URL.canParse(url) || !isConfidential(new URL(url)))
    throw new UsageError(
      '--url must be an address such as http://127.0.0.1:1880/, or an https:// address if it is on another machine.',
    );
  return new URL(`advisor-texting/${encodeURIComponent(id)}/${route}`, url.endsWith('/') ? url : `${url}/`);
};

/** The answer of a running Node-RED, or the reason why there is none. */
export const askRunning = async (
  { url, id, route, token }: { url: string; id: string; route: string; token: string | undefined },
  body?: object,
): Promise<{ readonly answer: unknown } | { readonly failed: string; readonly status: number }> => {
  const address = routeOf(url, id, route);
  try {
    const answer = await fetch(address, {
      redirect: 'error',
      headers: {
        ...(token !== undefined && token !== '' && { authorization: `Bearer ${token}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    if (answer.ok) return { answer: await answer.json() };
    const said: unknown = await answer.json().catch(() => undefined);
    const message = isRecord(said) && typeof said['message'] === 'string' ? said['message'] : undefined;
    return { failed: message ?? `HTTP ${String(answer.status)}`, status: answer.status };
  } catch {
    return { failed: 'Node-RED cannot be reached', status: 0 };
  }
};
