import { join } from 'node:path';
import { Authorizations } from '../../lib/auth/authorization';
import { GrantBook } from '../../lib/auth/grant-book';
import { keyFile } from '../../lib/auth/key-file';
import { fileLease, noLease, type Lease } from '../../lib/auth/lease';
import { readSecrets } from '../../lib/auth/secrets';
import { memoryShelf, settingsShelf, type RuntimeSettings } from '../../lib/auth/shelf';
import { TokenEndpoints, type PostForm } from '../../lib/auth/token-endpoint';
import { Tokens } from '../../lib/auth/tokens';
import { Vault } from '../../lib/auth/vault';
import { lazy } from '../../lib/runtime/lazy';
import { logOf, type Log } from '../../lib/runtime/log';
import type { Red } from '../../lib/runtime/red';
import { SharedSimulator } from '../../lib/runtime/simulator';
import { systemClock } from '../../lib/service/clock';
import type { Store } from '../../lib/state/store';

/** What all environments of a runtime share. */
export interface Services {
  readonly log: Log;
  readonly vault: Vault;
  readonly book: GrantBook;
  readonly tokens: Tokens;
  readonly authorizations: Authorizations;
  readonly simulator: SharedSimulator;
  readonly openStore: () => Promise<Store>;
  /** What outlives a deploy, and not the process. */
  readonly memory: () => Store;
}

/** Loaded at the first request: the transport brings axios and undici with it. */
const post: PostForm = (address, fields, options) => lazy.transport().postForm(address, fields, options);

const leaseOf = (userDir: string | undefined): Lease => (userDir ? fileLease(userDir) : noLease);

/**
 * A runtime without settings (as in tests) that has a user directory forgets nothing either for as long as the process
 * lives: what lies there is sealed with a key that this vault holds.
 */
const unsaved = new Map<string, Vault>();

const vaultOf = (settings: RuntimeSettings, isAvailable: boolean, log: Log): Vault => {
  const warn = (message: string): void => {
    log.warn(message);
  };
  const secrets = (): ReturnType<typeof readSecrets> => readSecrets(settings, process.env);
  if (isAvailable) {
    return new Vault({
      shelf: settingsShelf(settings),
      secrets,
      keyFile: settings.userDir ? keyFile(settings.userDir) : undefined,
      lease: leaseOf(settings.userDir),
      clock: systemClock,
      warn,
    });
  }
  const kept = unsaved.get(settings.userDir ?? '');
  if (kept) return kept;
  const vault = new Vault({ shelf: memoryShelf(), secrets, clock: systemClock, warn: () => undefined });
  if (settings.userDir) unsaved.set(settings.userDir, vault);
  return vault;
};

const isAvailable = (RED: Red): boolean => {
  try {
    return RED.settings.available();
  } catch {
    return false;
  }
};

const start = (RED: Red): Services => {
  const log = logOf(RED);
  const settings: RuntimeSettings = RED.settings;
  const { userDir } = settings;
  const vault = vaultOf(settings, isAvailable(RED), log);
  const book = new GrantBook(vault);
  const clock = systemClock;
  const endpoints = new TokenEndpoints({ clock, post });
  let memory: Store | undefined;
  return {
    log,
    vault,
    book,
    tokens: new Tokens({
      book,
      clock,
      endpoints,
      lease: leaseOf(userDir),
      warn: (message) => {
        log.warn(message);
      },
    }),
    authorizations: new Authorizations({ vault, book, clock, endpoints }),
    simulator: new SharedSimulator(userDir),
    memory: () => (memory ??= lazy.memoryStore().createMemoryStore()),
    async openStore() {
      if (!userDir) return this.memory();
      const { openEmbedded } = lazy.store();
      await vault.ready();
      return openEmbedded({
        directory: join(userDir, 'advisor-texting'),
        sealer: vault,
        warn: (message) => {
          log.warn(message);
        },
      });
    },
  };
};

const started = new WeakMap<Red, Services>();

/** One per runtime: Node-RED hands the same object to the registration and to every node of the type. */
export const servicesOf = (RED: Red): Services => {
  const services = started.get(RED) ?? start(RED);
  started.set(RED, services);
  return services;
};
