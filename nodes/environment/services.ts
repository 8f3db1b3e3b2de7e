import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Authorizations } from '../../lib/auth/authorization';
import {
  StoreKey,
  isStateKept,
  keyHolderOf,
  readSecrets,
  type RuntimeSettings,
  type Secrets,
} from '../../lib/auth/data-key';
import { TokenEndpoints, type PostForm } from '../../lib/auth/token-endpoint';
import { Tokens } from '../../lib/auth/tokens';
import { Vault } from '../../lib/auth/vault';
import { lazy } from '../../lib/runtime/lazy';
import { logOf, type Log } from '../../lib/runtime/log';
import { metrics } from '../../lib/runtime/metrics';
import type { Red } from '../../lib/runtime/red';
import { systemClock, type Clock } from '../../lib/service/clock';
import { createMemoryStore } from '../../lib/state/memory';
import type { PostgresHandle } from '../../lib/state/postgres';
import { StoreRecognition } from '../../lib/state/recognition';
import type { KeyHolder } from '../../lib/state/sealing';
import type { Store } from '../../lib/state/store';
import { tried } from '../../lib/kinds';
import { orMake, processMemory } from '../../lib/process-memory';
import { minute } from '../../lib/durations';
import { SharedSimulator } from './shared-simulator';

/** `npm run build` writes when it was: a clock that shows an earlier time is wrong. */
const buildTime = tried(
  () => JSON.parse(readFileSync(join(__dirname, '..', '..', 'built.json'), 'utf8')) as number,
);
const earliest = buildTime ?? Date.UTC(2025, 0, 1);

/** What all environments of a runtime share. */
export interface Services {
  readonly log: Log;
  readonly clock: Clock;
  readonly vault: Vault;
  readonly tokens: Tokens;
  readonly endpoints: TokenEndpoints;
  readonly authorizations: Authorizations;
  readonly simulator: SharedSimulator;
  readonly openStore: () => Promise<Store>;
  /** Whether the store is the one that was there before. */
  readonly recognition: StoreRecognition;
  /** Since when nothing could be saved, by the monotonic clock. A deploy does not reset it. */
  readonly outage: { since: number | undefined };
  /** The store in memory, which outlives a deploy, but not the process. */
  readonly memory: () => Store;
  /** The services of an environment whose state is in a database that several processes share. */
  inDatabase(url: string, environment: string): SharedServices;
  /** When environments with a database closed, by the monotonic clock: some may have left the flow. */
  readonly closed: Map<SharedServices, number>;
}

export interface SharedServices extends Services {
  readonly environment: string;
  readonly openDatabase: () => PostgresHandle;
  /** Opens the file in which this process kept the state before; undefined when there is none. */
  readonly openFile: () => Promise<Store> | undefined;
}

/** The transport is loaded at the first request, because it needs axios and undici. */
const post: PostForm = async (address, fields, options) => {
  const isRenewal = fields['grant_type'] === 'refresh_token';
  let isRenewed = false;
  try {
    const answer = await lazy.transport().postForm(address, fields, options);
    isRenewed = answer.status < 300;
    return answer;
  } finally {
    if (isRenewal) metrics()?.refresh(isRenewed);
  }
};

const start = (RED: Red): Services => {
  const log = logOf(RED);
  const warn = (message: string): void => log.warn(message);
  const settings: RuntimeSettings = RED.settings;
  const { userDir } = settings;
  const secrets = (): Secrets => readSecrets(settings, process.env);
  const hasSettings = tried(() => RED.settings.available()) ?? false;
  const key = new StoreKey({
    holder: keyHolderOf(settings),
    secrets,
    isNeeded: () => isStateKept(userDir),
    retryAfter: minute,
    warn: hasSettings ? warn : () => undefined,
  });
  const clock = systemClock;
  const endpoints = new TokenEndpoints({ clock, post });
  let inMemory: Store | undefined;
  const memory = (): Store => (inMemory ??= createMemoryStore());
  const openStore = async (): Promise<Store> => {
    if (!userDir) return memory();
    const { openEmbedded } = lazy.store();
    await key.ready();
    return openEmbedded({ directory: join(userDir, 'advisor-texting'), sealer: key, warn, earliest });
  };
  const startId = randomUUID();
  const authorizing = (open: () => Promise<Store>): Pick<Services, 'vault' | 'tokens' | 'authorizations'> => {
    const vault = new Vault({ openStore: open, clock, warn, startId });
    return {
      vault,
      tokens: new Tokens({ vault, clock, endpoints }),
      authorizations: new Authorizations({ vault, clock, endpoints }),
    };
  };
  const shared = new Map<string, SharedServices>();
  const services: Services = {
    log,
    clock,
    endpoints,
    ...authorizing(openStore),
    simulator: new SharedSimulator(userDir === undefined ? undefined : openStore),
    memory,
    openStore,
    recognition: new StoreRecognition(RED.settings, 'embedded'),
    outage: { since: undefined },
    closed: new Map(),
    inDatabase(url, environment) {
      const name = JSON.stringify([url, environment]);
      const openDatabase = (): PostgresHandle => {
        const { openPostgres } = lazy.postgres();
        const sealer = async (holder: KeyHolder): Promise<StoreKey> => {
          // Without a credential secret, the key of this process protects the one in the database.
          if (secrets().current === '') await key.ready();
          const own = key.key?.bytes.toString('base64') ?? '';
          const inDatabase = (): Secrets => {
            const { current, candidates } = secrets();
            return { current: current === '' ? own : current, candidates: [...candidates, own] };
          };
          if (inDatabase().current === '') throw new Error('there is no credential secret');
          const inCommon = new StoreKey({ holder, secrets: inDatabase, isNeeded: () => true, warn });
          await inCommon.ready();
          return inCommon;
        };
        return openPostgres({ url, group: environment, sealer, warn });
      };
      const openShared = async (): Promise<Store> => {
        const { opened, close } = openDatabase();
        return lazy.postgres().storeOf(await opened, close);
      };
      const recognition = new StoreRecognition(RED.settings, `postgres ${environment}`);
      const isFileLost = (): boolean => services.recognition.isKnown && !recognition.isKnown;
      return orMake(shared, name, () => ({
        ...services,
        environment,
        ...authorizing(openShared),
        openStore: openShared,
        recognition,
        outage: { since: undefined },
        openDatabase,
        openFile: () => (isStateKept(userDir) || isFileLost() ? openStore() : undefined),
      }));
    },
  };
  return services;
};

const started = processMemory('services', new WeakMap<Red, Services>());

/** A runtime has one set of services: Node-RED gives the same object to the registration and to every node of the type. */
export const servicesOf = (RED: Red): Services => orMake(started, RED, () => start(RED));
