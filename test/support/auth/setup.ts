import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { Authorizations } from '../../../lib/auth/authorization';
import type { Connection } from '../../../lib/auth/connection';
import {
  StoreKey,
  isStateKept,
  keyHolderOf,
  readSecrets,
  type RuntimeSettings,
} from '../../../lib/auth/data-key';
import { TokenEndpoints, type PostForm } from '../../../lib/auth/token-endpoint';
import { Tokens } from '../../../lib/auth/tokens';
import { Vault } from '../../../lib/auth/vault';
import type { Clock } from '../../../lib/service/clock';
import { MovableClock } from '../../../simulator/movable-clock';
import { ServiceError } from '../../../lib/service/errors';
import { postForm } from '../../../lib/service/transport';
import { openEmbedded } from '../../../lib/state/embedded';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Store } from '../../../lib/state/store';
import type { Simulator } from '../../../simulator';
import { overStore } from '../state/over-store';

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

/**
 * Like Node-RED's own: all settings in memory, all written when one changes, those of settings.js take precedence and
 * are read-only.
 */
export class FileSettings implements RuntimeSettings {
  private readonly file: string;
  private readonly stored: Stored;
  /** As on a full disk: nothing is written, though memory has it. */
  isFull = false;

  constructor(
    readonly userDir: string,
    readonly local: Readonly<Stored> = {},
  ) {
    this.file = join(userDir, '.config.runtime.json');
    this.stored = readStored(userDir);
  }

  get readOnly(): boolean {
    return this.local['readOnly'] === true;
  }

  get(name: string): unknown {
    return structuredClone(Object.hasOwn(this.local, name) ? this.local[name] : this.stored[name]);
  }

  set(name: string, value: unknown): Promise<void> {
    const isSame = isDeepStrictEqual(this.stored[name], value);
    this.stored[name] = structuredClone(value);
    if (isSame) return Promise.resolve();
    if (this.isFull) return Promise.reject(new Error('ENOSPC'));
    if (!this.readOnly) {
      writeFileSync(`${this.file}.new`, JSON.stringify(this.stored));
      renameSync(`${this.file}.new`, this.file);
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

/** The parts of one Node-RED process. */
export interface Process {
  readonly settings: FileSettings;
  readonly warnings: string[];
  readonly key: StoreKey;
  readonly vault: Vault;
  readonly tokens: Tokens;
  readonly endpoints: TokenEndpoints;
  readonly authorizations: Authorizations;
  /** Every request to the token endpoint. */
  readonly posted: Readonly<Record<string, string>>[];
  /** What happens to its writes. */
  readonly disk: Disk;
  readonly openStore: () => Promise<Store>;
  close(): Promise<void>;
}

export interface ProcessOptions {
  readonly local?: Readonly<Stored>;
  readonly variables?: NodeJS.ProcessEnv;
  readonly clock?: Clock;
  readonly post?: PostForm;
  readonly random?: () => number;
  /** In a database in the user directory; else in memory, which outlives the process as the user directory does. */
  readonly isOnDisk?: boolean;
  readonly isFull?: boolean;
  readonly retryAfter?: number;
}

/** The writes of one process: counted, and waiting or failing while the disk is full. */
export class Disk {
  bytes = 0;
  private manner: 'refuses' | 'waits' | undefined;
  private waiting: (() => void)[] = [];

  fill(manner: 'refuses' | 'waits'): void {
    this.manner = manner;
  }

  free(): void {
    this.manner = undefined;
    for (const go of this.waiting.splice(0)) go();
  }

  over(store: Store): Store {
    return overStore(store, {
      write: async (operations, conditions) => {
        if (this.manner === 'refuses') throw new Error('ENOSPC');
        while (this.manner) await new Promise<void>((resolve) => this.waiting.push(resolve));
        for (const operation of operations)
          if ('put' in operation) this.bytes += operation.put.length + JSON.stringify(operation.value).length;
        return store.write(operations, conditions);
      },
    });
  }
}

const memories = new Map<string, Store>();

const memoryOf = (userDir: string, clock: Clock): Store => {
  const memory = memories.get(userDir) ?? createMemoryStore({ clock });
  memories.set(userDir, memory);
  return overStore(memory, { close: () => Promise.resolve() });
};

export const frozenClock = (): MovableClock => {
  const start = Date.now();
  return new MovableClock(() => start);
};

/** Starts on an existing user directory as Node-RED would. */
export const startProcess = async (userDir: string, options: ProcessOptions = {}): Promise<Process> => {
  const {
    local = { credentialSecret: 'a' },
    variables = {},
    clock = frozenClock(),
    post = postForm,
  } = options;
  const settings = new FileSettings(userDir, local);
  settings.isFull = options.isFull ?? false;
  const warnings: string[] = [];
  const warn = (message: string): unknown => warnings.push(message);
  const key = new StoreKey({
    holder: keyHolderOf(settings),
    secrets: () => readSecrets(settings, variables),
    isNeeded: () => isStateKept(userDir),
    ...(options.retryAfter === undefined ? {} : { retryAfter: options.retryAfter }),
    warn,
  });
  const disk = new Disk();
  const openStore = async (): Promise<Store> => {
    if (!options.isOnDisk) return disk.over(memoryOf(userDir, clock));
    await key.ready();
    return disk.over(await openEmbedded({ directory: join(userDir, 'advisor-texting'), sealer: key, warn }));
  };
  const vault = new Vault({ openStore, clock, warn, startId: randomUUID() });
  const posted: Readonly<Record<string, string>>[] = [];
  const recorded: PostForm = (address, fields, more) => {
    posted.push(fields);
    return post(address, fields, more);
  };
  const endpoints = new TokenEndpoints({ clock, post: recorded, random: options.random ?? (() => 1) });
  const close = vault.keepOpen();
  await vault.opening;
  return {
    settings,
    warnings,
    key,
    vault,
    posted,
    disk,
    openStore,
    endpoints,
    tokens: new Tokens({ vault, clock, endpoints }),
    authorizations: new Authorizations({ vault, clock, endpoints }),
    close,
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

/** What an advisor decides on the simulator's page; returns the redirect address. */
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
  { authorizations }: Pick<Process, 'authorizations'>,
  connection: Connection,
  advisor = 'default',
  person = 'Alice',
): Promise<void> => {
  const back = await decide(await authorizations.begin(connection, advisor), person);
  const finished = await authorizations.finish(back.searchParams, { browser: '' });
  if (!finished.ok) throw new Error(`Not authorized: ${finished.why}`);
};

/** A token from another machine: by authorizing once. */
export const refreshTokenFrom = async (
  simulator: Simulator,
  changes: Partial<Connection> = {},
  person?: string,
): Promise<string> => {
  const folder = freshFolder();
  const elsewhere = await startProcess(folder);
  const connection = connectionTo(simulator, changes);
  await authorize(elsewhere, connection, 'default', person);
  rmSync(folder, { recursive: true });
  const { refreshToken } = elsewhere.vault.get(connection, 'default')?.grant ?? {};
  if (!refreshToken) throw new Error('The simulator gave no refresh token.');
  return refreshToken;
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

/** Moves the clock until the work is done. */
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
