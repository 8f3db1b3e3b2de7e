import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Authorizations } from '../../lib/auth/authorization';
import type { Connection } from '../../lib/auth/connection';
import { GrantBook } from '../../lib/auth/grant-book';
import { keyFile } from '../../lib/auth/key-file';
import { fileLease, type Lease } from '../../lib/auth/lease';
import { readSecrets } from '../../lib/auth/secrets';
import { settingsShelf, type RuntimeSettings } from '../../lib/auth/shelf';
import { TokenEndpoints, type PostForm } from '../../lib/auth/token-endpoint';
import { Tokens } from '../../lib/auth/tokens';
import { Vault } from '../../lib/auth/vault';
import { MovableClock } from '../../lib/service/clock';
import { ServiceError } from '../../lib/service/errors';
import { postForm } from '../../lib/service/transport';
import type { Simulator } from '../../simulator';

const folders: string[] = [];

export const freshFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'advisor-texting-auth-'));
  folders.push(folder);
  return folder;
};

export const removeFolders = (): void => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
};

export type Stored = Record<string, unknown>;

/** As Node-RED's own: all settings in memory, all written at once when one has changed, those of settings.js in front and read-only. */
export class FileSettings implements RuntimeSettings {
  readonly #file: string;
  readonly #stored: Stored;
  /** As on a full disk: nothing is written, though memory has it. */
  isFull = false;

  constructor(
    readonly userDir: string,
    readonly local: Readonly<Stored> = {},
  ) {
    this.#file = join(userDir, '.config.runtime.json');
    this.#stored = readStored(userDir);
  }

  get readOnly(): boolean {
    return this.local['readOnly'] === true;
  }

  get(name: string): unknown {
    return structuredClone(Object.hasOwn(this.local, name) ? this.local[name] : this.#stored[name]);
  }

  set(name: string, value: unknown): Promise<void> {
    const isSame = isDeepStrictEqual(this.#stored[name], value);
    this.#stored[name] = structuredClone(value);
    if (isSame) return Promise.resolve();
    if (this.isFull) return Promise.reject(new Error('ENOSPC'));
    if (!this.readOnly) {
      writeFileSync(`${this.#file}.new`, JSON.stringify(this.#stored));
      renameSync(`${this.#file}.new`, this.#file);
    }
    return Promise.resolve();
  }
}

export const readStored = (userDir: string): Stored => {
  try {
    return JSON.parse(readFileSync(join(userDir, '.config.runtime.json'), 'utf8')) as Stored;
  } catch {
    return {};
  }
};

/** What one Node-RED process has of all this. */
export interface Process {
  readonly settings: FileSettings;
  readonly warnings: string[];
  readonly vault: Vault;
  readonly book: GrantBook;
  readonly tokens: Tokens;
  readonly authorizations: Authorizations;
  /** Every request to the token endpoint. */
  readonly posted: Readonly<Record<string, string>>[];
}

export interface ProcessOptions {
  readonly local?: Readonly<Stored>;
  readonly variables?: NodeJS.ProcessEnv;
  readonly clock?: MovableClock;
  readonly post?: PostForm;
  readonly random?: () => number;
  readonly lease?: Lease;
  readonly isFull?: boolean;
  readonly retryAfter?: number;
}

export const frozenClock = (): MovableClock => {
  const start = Date.now();
  return new MovableClock(() => start);
};

/** Starts on a user directory as Node-RED would, with whatever is in it. */
export const startProcess = (userDir: string, options: ProcessOptions = {}): Process => {
  const {
    local = { credentialSecret: 'a' },
    variables = {},
    clock = frozenClock(),
    post = postForm,
  } = options;
  const settings = new FileSettings(userDir, local);
  settings.isFull = options.isFull ?? false;
  const warnings: string[] = [];
  const vault = new Vault({
    shelf: settingsShelf(settings),
    secrets: () => readSecrets(settings, variables),
    keyFile: keyFile(userDir),
    lease: fileLease(userDir),
    ...(options.retryAfter === undefined ? {} : { retryAfter: options.retryAfter }),
    clock,
    warn: (message) => warnings.push(message),
  });
  const book = new GrantBook(vault);
  const posted: Readonly<Record<string, string>>[] = [];
  const recorded: PostForm = (address, fields, more) => {
    posted.push(fields);
    return post(address, fields, more);
  };
  const endpoints = new TokenEndpoints({ clock, post: recorded, random: options.random ?? (() => 1) });
  return {
    settings,
    warnings,
    vault,
    book,
    posted,
    tokens: new Tokens({
      book,
      clock,
      endpoints,
      lease: options.lease ?? fileLease(userDir),
      warn: (message) => warnings.push(message),
    }),
    authorizations: new Authorizations({ vault, book, clock, endpoints }),
  };
};

export const callbackUri = 'http://127.0.0.1:1880/advisor-texting/callback';

export const connectionTo = (
  service: Pick<Simulator, 'authUrl' | 'tokenUrl' | 'credentials'> & Partial<Pick<Simulator, 'baseUrl'>>,
  changes: Partial<Connection> = {},
): Connection => ({
  environment: 'env1',
  name: 'Sandbox',
  grant: 'authorization_code',
  baseUrl: service.baseUrl ?? '',
  authUrl: service.authUrl,
  tokenUrl: service.tokenUrl,
  redirectUri: callbackUri,
  clientId: service.credentials.clientId,
  clientSecret: service.credentials.clientSecret,
  scopes: ['openid', 'offline_access', 'text.messaging.read', 'core.contacts.read'],
  seed: '',
  retries: 4,
  ...changes,
});

/** What an advisor decides on the simulator's page; gives the address the browser is sent back to. */
export const decide = async (url: string, advisor = 'Alice', decision = 'approve'): Promise<URL> => {
  const answer = await fetch(url, {
    method: 'POST',
    redirect: 'manual',
    body: new URLSearchParams({ advisor, decision }),
  });
  return new URL(answer.headers.get('location') ?? 'about:blank');
};

/** The whole flow, for an advisor's key. */
export const authorize = async (
  { authorizations }: Process,
  connection: Connection,
  advisor = 'default',
  person = 'Alice',
): Promise<void> => {
  const back = await decide(await authorizations.begin(connection, advisor), person);
  const finished = await authorizations.finish(back.searchParams, { browser: '' });
  if (!finished.ok) throw new Error(`Not authorized: ${finished.why}`);
};

export const failureOf = async (work: () => unknown): Promise<ServiceError> => {
  try {
    await work();
  } catch (fault) {
    if (fault instanceof ServiceError) return fault;
    throw fault;
  }
  throw new Error('It did not fail.');
};

/** Moves the clock until something has come of the work. */
export const patiently = async <T>(
  clock: MovableClock,
  work: () => T | Promise<T>,
  step = 250,
): Promise<T> => {
  const under = { way: true };
  const result = Promise.resolve(work()).finally(() => (under.way = false));
  result.catch(() => undefined);
  while (under.way) await clock.move(step);
  return result;
};
