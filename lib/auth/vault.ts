import { defaultAdvisor } from '../default-advisor';
import { hash, randomBytes, randomUUID } from 'node:crypto';
import { late, within, type Clock } from '../service/clock';
import { oneAtATime } from '../service/concurrency';
import { backoff } from '../service/retry';
import type { Movable } from '../state/moving';
import {
  changeRecord,
  key,
  pagesUnder,
  unchanged,
  type Operation,
  type Store,
  type StoreEntry,
  type Version,
} from '../state/store';
import type { Connection } from './connection';
import type { Identity, TokenAnswer } from './token-endpoint';
import { day, minute, second } from '../durations';
import { Listeners } from '../listeners';

/** One advisor's authorization. */
export interface Grant {
  readonly environment: string;
  readonly advisor: string;
  /** The token endpoint and the application that the grant belongs to: it is never sent elsewhere. */
  readonly tokenUrl: string;
  readonly clientId: string;
  /** Sandbox or production: an authorization for one is never used for the other, even at the same address. */
  readonly service?: string | undefined;
  /** The base address when the grant was issued; older grants have none. */
  readonly baseUrl?: string;
  readonly accessToken: string | null;
  readonly refreshToken: string | null;
  /** Epoch milliseconds; null when the service did not say. */
  readonly expiresAt: number | null;
  readonly lifetime: number | null;
  readonly refreshedAt: number | null;
  readonly asked: readonly string[];
  readonly scopes: readonly string[];
  readonly identity: Identity | null;
  /** The service has refused a refresh: somebody must authorize again. */
  readonly refused: boolean;
}

const isOfService = ({ tokenUrl, service }: Grant, connection: Connection): boolean =>
  (service === undefined || service === connection.service) &&
  (tokenUrl === connection.tokenUrl || new URL(tokenUrl).origin === new URL(connection.tokenUrl).origin);

/**
 * Whether a grant was issued to this application at this service. If not, it is never sent, and somebody must authorize
 * again.
 */
export const isGrantFor = (grant: Grant, connection: Connection): boolean =>
  grant.clientId === connection.clientId && isOfService(grant, connection);

export const newGrant = (connection: Connection, advisor: string): Grant => ({
  environment: connection.environment,
  advisor,
  tokenUrl: connection.tokenUrl,
  clientId: connection.clientId,
  service: connection.service,
  baseUrl: connection.baseUrl,
  accessToken: null,
  refreshToken: null,
  expiresAt: null,
  lifetime: null,
  refreshedAt: null,
  asked: connection.scopes,
  scopes: [],
  identity: null,
  refused: false,
});

/**
 * A refresh does not change the person (OpenID Connect Core 1.0, section 12.2). It often returns no identity token, and
 * the subject of an access token may differ from that of the identity token.
 */
const samePerson = (before: Identity | null, now: Identity | null): Identity | null =>
  now && (before === null || before.subject === now.subject) ? now : before;

/**
 * Whether a refresh was answered for another person than the one who has authorized. Only an identity token says so for
 * certain.
 */
export const isForAnother = ({ identity }: Grant, { subjects }: TokenAnswer): boolean =>
  identity !== null && subjects.length > 0 && !subjects.includes(identity.subject);

/** The grant after a token was issued or refreshed. Fields that the answer lacks stay as they were. */
export const renewed = (grant: Grant, answer: TokenAnswer, now: number): Grant => ({
  ...grant,
  accessToken: answer.accessToken,
  refreshToken: answer.refreshToken ?? grant.refreshToken,
  expiresAt: answer.expiresIn === null ? null : now + answer.expiresIn,
  lifetime: answer.expiresIn,
  refreshedAt: now,
  scopes: answer.scopes ?? (grant.scopes.length > 0 ? grant.scopes : grant.asked),
  identity: samePerson(grant.identity, answer.identity),
  refused: false,
});

/** Whether the token is too close to its end to begin a request with. */
const isSpent = (grant: Grant, now: number): boolean =>
  grant.expiresAt !== null && now >= grant.expiresAt - Math.min(10 * second, (grant.lifetime ?? 0) / 20);

/** Whether somebody must authorize again: the grant was refused, or has ended and has no refresh token. */
export const isOver = (grant: Grant, now: number): boolean =>
  grant.refused || (grant.refreshToken === null && (grant.accessToken === null || isSpent(grant, now)));

/** Whether the token is close enough to its end to be refreshed while it still works. */
export const isNearEnd = (grant: Grant, now: number): boolean =>
  grant.expiresAt !== null && now >= grant.expiresAt - Math.min(5 * minute, (grant.lifetime ?? 0) / 5);

/** The access token, if it can be used now; not one that the service has just rejected. */
export const usableToken = (grant: Grant, now: number, rejected?: string): string | undefined =>
  grant.accessToken !== null && grant.accessToken !== rejected && !grant.refused && !isSpent(grant, now)
    ? grant.accessToken
    : undefined;

/**
 * The scopes that were requested and not granted. `openid` and `offline_access` allow no operation, and some services
 * never list them.
 */
export const missingScopes = (asked: readonly string[], granted: readonly string[]): string[] =>
  asked.filter((scope) => scope !== 'openid' && scope !== 'offline_access' && !granted.includes(scope));

export type GrantState = 'authorized' | 'authorize_again' | 'confirm';

/** The authorization of an advisor, and one of another person that awaits confirmation. */
export interface VaultEntry {
  readonly grant: Grant;
  readonly awaiting: Grant | null;
}

export const stateOf = ({ grant, awaiting }: VaultEntry, now: number): GrantState => {
  if (awaiting) return 'confirm';
  return isOver(grant, now) ? 'authorize_again' : 'authorized';
};

/** A link for an advisor who has no login here. */
export interface Link {
  readonly environment: string;
  readonly advisor: string;
  readonly expiresAt: number;
}

interface GrantRecord extends VaultEntry {
  /**
   * Its name, if environments share it (made from a refresh token), or the advisor has one for another service. Earlier
   * versions, which had only the former, have saved it under this name.
   */
  readonly seed?: string;
  /** The process that is about to use the refresh token, by a name that is unique for each start, and the store's time. */
  readonly renewing?: { readonly by: string; readonly at: number };
}

/** An authorization in memory; `version` is that of its record. */
interface Kept {
  readonly version?: Version;
  readonly entry: GrantRecord;
  /** Set while the authorization is in use and not saved yet. */
  readonly unsaved?: Unsaved | undefined;
  /** The last refresh tokens before its own. A database that has one of them again has lost commits, as in a failover. */
  readonly spent?: readonly (string | null)[];
}

interface Unsaved {
  /** It replaces a stored authorization with one of these refresh tokens; without them, any. */
  readonly replaces?: readonly (string | null)[];
}

const table = 'work';
const entriesAtOnce = 500;
const grantKind = 'grant';
const linkKind = 'link';
const missedKind = 'missed';
/** A record that changes with each authorization that is made, confirmed, refused or ended, for other processes to notice. */
const granted = key('granted', 'last');

/** Milliseconds after which an authorization is used though it is not on disk, because somebody is waiting for it. */
export const storingLimit = 5 * second;

/** The most milliseconds that a refresh takes, including the time to store it. */
const renewingLimit = 45 * second;
/** Milliseconds that somebody waits in front of a page. */
const lookingLimit = 8 * second;

/** Thrown when another process has the store. */
export class VaultAway extends Error {}

const entryName = (environment: string, advisor: string): string => JSON.stringify([environment, advisor]);

/**
 * Environments with the same refresh token share its authorization: if each had its own, the first to rotate the token
 * would end those of the others.
 */
const seedName = ({ tokenUrl, clientId, seed }: Connection): string =>
  `seed:${hash('sha256', JSON.stringify([tokenUrl, clientId, seed]), 'base64url')}`;

const isSeed = (name: string): boolean => name.startsWith('seed:');

const nameIn = ({ seed, grant }: GrantRecord): string => seed ?? entryName(grant.environment, grant.advisor);

const placeOf = (store: Store, name: string): Buffer => key(grantKind, store.hash(name));

const recordOf = (name: string, { grant, awaiting }: VaultEntry): GrantRecord => ({
  grant,
  awaiting,
  ...(name !== entryName(grant.environment, grant.advisor) && { seed: name }),
});

const seeded = (connection: Connection): Grant => ({
  ...newGrant(connection, defaultAdvisor),
  refreshToken: connection.seed,
});

/** Whether a grant has tokens: a disconnected one has none. */
const isInUse = ({ accessToken, refreshToken }: Grant): boolean =>
  accessToken !== null || refreshToken !== null;

const isOtherPerson = (before: Grant, now: Grant): boolean =>
  before.identity !== null && now.identity !== null && before.identity.subject !== now.identity.subject;

const mostSpent = 10;

/**
 * Whether the stored authorization is older than the one at hand. A service may issue an earlier refresh token again: then
 * the stored one was refreshed later.
 */
const isSetBack = ({ grant: { refreshToken, refreshedAt } }: VaultEntry, { spent, entry }: Kept): boolean =>
  refreshToken !== null &&
  spent?.includes(refreshToken) === true &&
  (refreshedAt ?? 0) <= (entry.grant.refreshedAt ?? 0);

const linkKey = (token: string): Buffer => key(linkKind, hash('sha256', token, 'buffer'));

/** What every text asks about a connection. */
interface View {
  readonly entries: ReadonlyMap<string, VaultEntry>;
  readonly advisors: readonly string[];
}

export interface VaultOptions {
  /** Opens the store of authorizations; each call gives a handle of its own. */
  readonly openStore: () => Promise<Store>;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
  readonly startId: string;
}

/**
 * The authorizations of all environments, each a record in the store. They are read when the vault opens, and then kept
 * in memory; a change is first written to the store. The vault is open while somebody keeps it open.
 */
export class Vault {
  private readonly kept = new Map<string, Kept>();
  private readonly listeners = new Listeners();
  readonly onChange = this.listeners.add;
  private views = new WeakMap<Connection, View>();
  private holders = 0;
  private openingStore: Promise<Store> | undefined;
  private closing: Promise<unknown> = Promise.resolve();
  private isLoaded = false;
  /** The version of the record that says when authorizations last changed. */
  private lastGrant: Version | undefined;
  private unlisten: (() => void) | undefined;
  /** Confirmations and disconnections: each sees what the one before has done. */
  private readonly decisions = new Map<string, Promise<void>>();

  constructor(private readonly options: VaultOptions) {}

  get isOpen(): boolean {
    return this.isLoaded;
  }

  /** Undefined once the authorizations have been read. */
  get opening(): Promise<void> | undefined {
    return this.isLoaded ? undefined : this.store().then(() => undefined);
  }

  /** Keeps the vault open until the result is called. */
  keepOpen(): () => Promise<void> {
    this.holders += 1;
    this.store().catch(() => undefined);
    let isHeld = true;
    return async () => {
      if (!isHeld) return;
      isHeld = false;
      this.holders -= 1;
      if (this.holders === 0) await this.close();
    };
  }

  async use<T>(work: () => T | Promise<T>): Promise<T> {
    const release = this.keepOpen();
    try {
      await this.opening;
      return await work();
    } finally {
      await release();
    }
  }

  /** For somebody who waits in front of a page: throws `VaultAway` when another process has the store. */
  async useNow<T>(work: () => T | Promise<T>): Promise<T> {
    const release = this.keepOpen();
    try {
      const { opening } = this;
      if (opening && (await within(this.options.clock, lookingLimit, opening)) === late)
        throw new VaultAway();
      return await work();
    } finally {
      release().catch(() => undefined);
    }
  }

  // Authorizations

  /** The name of an advisor's authorization: equal names mean one authorization. */
  name(connection: Connection, advisor: string): string {
    const own = this.ownName(connection, advisor);
    const isSeeded = connection.seed !== '' && advisor === defaultAdvisor && !this.kept.has(own);
    return isSeeded ? seedName(connection) : own;
  }

  /** An authorization in an undeployed dialog must not replace one for another service that running flows use. */
  private ownName(connection: Connection, advisor: string): string {
    const { environment, service, clientId, tokenUrl } = connection;
    const name = entryName(environment, advisor);
    const first = this.kept.get(name)?.entry.grant;
    return !first || isGrantFor(first, connection)
      ? name
      : JSON.stringify([environment, advisor, service, clientId, new URL(tokenUrl).origin]);
  }

  private entryOf(connection: Connection, advisor: string): VaultEntry | undefined {
    const name = this.name(connection, advisor);
    const fresh = isSeed(name) ? { grant: seeded(connection), awaiting: null } : undefined;
    return this.kept.get(name)?.entry ?? fresh;
  }

  /** The names of an advisor's own authorizations, one for each service. */
  private ownNames(environment: string, advisor: string): string[] {
    const isOwn = ([name, { entry }]: [string, Kept]): boolean =>
      !isSeed(name) && entry.grant.environment === environment && entry.grant.advisor === advisor;
    return [...this.kept].filter(isOwn).map(([name]) => name);
  }

  get(connection: Connection, advisor: string): VaultEntry | undefined {
    return this.view(connection).entries.get(advisor);
  }

  /** The advisors of an environment; with a connection, also the one of its refresh token. */
  list(environment: string, connection?: Connection): [advisor: string, entry: VaultEntry][] {
    if (connection) return [...this.view(connection).entries];
    const own = [...this.kept].flatMap(([name, { entry }]): [string, VaultEntry][] =>
      !isSeed(name) && entry.grant.environment === environment ? [[entry.grant.advisor, entry]] : [],
    );
    return [...new Map(own)];
  }

  /**
   * The keys of the advisors who have authorized for this service; if nobody has, of all. There may be many, and each
   * message without an advisor asks.
   */
  advisors(connection: Connection): readonly string[] {
    return this.view(connection).advisors;
  }

  private view(connection: Connection): View {
    const made = this.views.get(connection);
    if (made) return made;
    const entries = new Map(this.list(connection.environment));
    for (const advisor of [...entries.keys(), defaultAdvisor]) {
      const entry = this.entryOf(connection, advisor);
      if (entry) entries.set(advisor, entry);
    }
    const known = [...entries].flatMap(([advisor, { grant }]) =>
      isOfService(grant, connection) ? [advisor] : [],
    );
    const view = { entries, advisors: known.length > 0 ? known : [...entries.keys()] };
    this.views.set(connection, view);
    return view;
  }

  /** Records a new authorization. If it is another person's, it waits for confirmation while the old one goes on. */
  async authorized(connection: Connection, grant: Grant): Promise<VaultEntry> {
    const name = this.name(connection, grant.advisor);
    const before = this.kept.get(name)?.entry.grant;
    // Another service names the same person in its own way.
    const isUsed = before !== undefined && isInUse(before) && isGrantFor(before, connection);
    if (isUsed && isOtherPerson(before, grant)) {
      const entry = { grant: before, awaiting: grant };
      await this.setAwaiting(name, entry);
      return entry;
    }
    const entry = { grant, awaiting: null };
    await this.save(this.ownName(connection, grant.advisor), entry);
    return entry;
  }

  /** Changes nothing else in the record: another process may have refreshed the authorization since it was read here. */
  private async setAwaiting(name: string, entry: VaultEntry): Promise<void> {
    const store = await this.store();
    const { awaiting } = entry;
    const set = (found?: GrantRecord): GrantRecord | undefined => found && { ...found, awaiting };
    const isThere = await changeRecord(store, table, placeOf(store, name), set, authorizationsChanged(store));
    await (isThere ? this.reread(name) : this.save(name, entry));
  }

  /**
   * False when nothing awaits confirmation. The authorization of a shared refresh token stays as it is, for its other
   * users.
   */
  confirm(environment: string, advisor: string, connection?: Connection): Promise<boolean> {
    return this.inTurn(async () => {
      const own = connection ? this.ownName(connection, advisor) : entryName(environment, advisor);
      const name = connection ? this.name(connection, advisor) : own;
      const entry = this.kept.get(name)?.entry;
      if (entry?.awaiting?.environment !== environment) return false;
      await this.save(own, { grant: entry.awaiting, awaiting: null });
      if (name !== own) await this.setAwaiting(name, { ...entry, awaiting: null });
      return true;
    });
  }

  /**
   * False when there was none. A refresh token that was given as a credential stays used: disconnecting must not use it
   * again.
   */
  disconnect(environment: string, advisor: string, connection?: Connection): Promise<boolean> {
    return this.inTurn(async () => {
      const names = this.ownNames(environment, advisor);
      const name = connection ? this.name(connection, advisor) : '';
      const entry = connection && isSeed(name) ? this.entryOf(connection, advisor) : undefined;
      for (const own of names) await this.remove(own);
      if (!entry) return names.length > 0;
      const grant = { ...entry.grant, accessToken: null, refreshToken: null, refused: true };
      await this.save(name, { grant, awaiting: null });
      return true;
    });
  }

  private inTurn(decide: () => Promise<boolean>): Promise<boolean> {
    return oneAtATime('', decide, this.decisions);
  }

  environments(): Set<string> {
    return new Set(Array.from(this.kept.values(), ({ entry }) => entry.grant.environment));
  }

  /**
   * Forgets environments that have been out of the flow for `keptFor` milliseconds, and links that have expired. The
   * authorization of a refresh token stays while one of these connections has the token too.
   */
  async forgetMissing(
    existing: ReadonlySet<string>,
    keptFor: number,
    connections: readonly Connection[] = [],
  ): Promise<void> {
    const shared = new Set(connections.map(seedName));
    const store = await this.store();
    const now = store.now();
    const gone = new Set<string>();
    for (const id of this.environments()) {
      const missed = key(missedKind, store.hash(id));
      const since = await store.get<number>(table, missed);
      if (existing.has(id)) {
        if (since) await store.write([{ table, remove: missed }]);
      } else if (!since) {
        await store.write([{ table, put: missed, value: now }]);
      } else if (now - since.value >= keptFor) {
        for (const [name, { entry }] of this.kept)
          if (entry.grant.environment === id && !shared.has(name)) await this.remove(name);
        await store.write([{ table, remove: missed }]);
        gone.add(id);
      }
    }
    await this.sweepLinks(store, gone);
  }

  // Renewing

  async reread(name: string): Promise<void> {
    const store = await this.store();
    await this.adopt(name, await store.get<GrantRecord>(table, placeOf(store, name)));
  }

  /** Takes what is stored into use, unless it is older than what is in use, or about to be replaced by that. */
  private adopt(name: string, found: StoreEntry<GrantRecord> | undefined): Promise<void> | undefined {
    const kept = this.kept.get(name);
    if (found?.version === kept?.version || this.isAhead(name, found?.value)) return undefined;
    if (found && kept && isSetBack(found.value, kept))
      return this.save(name, kept.entry, [found.value.grant.refreshToken]);
    if (found) this.take(name, { version: found.version, entry: found.value });
    else this.drop(name);
    return undefined;
  }

  /** Whether another process has started a refresh and not finished it. */
  isInDoubt(name: string): boolean {
    const { renewing } = this.kept.get(name)?.entry ?? {};
    return renewing !== undefined && renewing.by !== this.options.startId;
  }

  /**
   * Saves that the refresh token is about to be used, which also shows that the store takes writes. False while another
   * process on the same store may be using it, and when one has used it since this process last read it. A refresh
   * token that came from a refresh and could not be saved is used anyway.
   */
  async intend(name: string, entry: VaultEntry): Promise<boolean> {
    const { startId: by } = this.options;
    const known = this.kept.get(name);
    if (known?.unsaved?.replaces) return true;
    const store = await this.store();
    const { renewing } = known?.entry ?? {};
    if (!store.peers && renewing?.by === by) return true;
    const at = store.now();
    if (store.peers && renewing && renewing.by !== by && at - renewing.at < renewingLimit) return false;
    const put = placeOf(store, name);
    const value = { ...recordOf(name, entry), renewing: { by, at } };
    const version = known?.version;
    const condition = unchanged(table, put, version === undefined ? undefined : { version });
    const isOurs = await store.write([{ table, put, value }], [condition]);
    await this.reread(name);
    return isOurs;
  }

  /** Takes a refreshed authorization into use. `from` is the refresh token that it was made with. */
  refreshed(name: string, entry: VaultEntry, from: string): Promise<void> {
    return this.save(name, entry, [...(this.kept.get(name)?.unsaved?.replaces ?? []), from]);
  }

  /**
   * Takes an authorization into use; resolves when it is saved, or after a while. Saving is retried until it succeeds,
   * unless somebody authorizes again or disconnects.
   */
  private async save(name: string, entry: VaultEntry, replaces?: Unsaved['replaces']): Promise<void> {
    const { clock, warn } = this.options;
    const unsaved: Unsaved = replaces ? { replaces } : {};
    this.take(name, { ...this.kept.get(name), entry, unsaved });
    const saving = this.keepSaving(name, entry, unsaved);
    if ((await within(clock, storingLimit, saving)) !== late) return;
    warn(
      'An authorization cannot be saved. It still works, but if Node-RED stopped now, the advisor would have to authorize again. Saving is retried until it succeeds. Check that the disk is writable and not full.',
    );
    void saving.then((isSaved) => {
      if (isSaved) warn('The authorization is now saved.');
    });
  }

  /** False when a newer authorization is stored. */
  private async keepSaving(name: string, entry: VaultEntry, unsaved: Unsaved): Promise<boolean> {
    for (let round = 0; this.kept.get(name)?.unsaved === unsaved; round++) {
      try {
        const store = await this.store();
        const put = placeOf(store, name);
        const found = unsaved.replaces && (await store.get<GrantRecord>(table, put));
        if (!this.isAhead(name, found?.value)) {
          await this.reread(name);
          return false;
        }
        const { awaiting } = found?.value ?? entry;
        const operation = { table, put, value: recordOf(name, { ...entry, awaiting }) } as const;
        const conditions = unsaved.replaces ? [unchanged(table, put, found)] : [];
        const news = unsaved.replaces && !entry.grant.refused ? [] : authorizationsChanged(store);
        if (!(await store.write([operation, ...news], conditions))) continue;
        const kept = this.kept.get(name);
        if (kept?.unsaved === unsaved) this.kept.set(name, { ...kept, unsaved: undefined });
        await this.reread(name);
        return true;
      } catch {
        await new Promise<void>((resolve) => this.options.clock.after(backoff(round, 1), resolve));
      }
    }
    return false;
  }

  /** Whether the authorization in use is not saved yet and replaces the stored one. */
  private isAhead(name: string, stored: VaultEntry | undefined): boolean {
    const unsaved = this.kept.get(name)?.unsaved;
    if (!unsaved?.replaces) return unsaved !== undefined;
    return stored ? unsaved.replaces.includes(stored.grant.refreshToken) : isSeed(name);
  }

  // Links

  /** The secret part of a link. Only its hash is stored. */
  async createLink(environment: string, advisor: string, lifetime = day): Promise<string> {
    const token = randomBytes(24).toString('base64url');
    const value: Link = { environment, advisor, expiresAt: this.options.clock.now() + lifetime };
    await (await this.store()).write([{ table, put: linkKey(token), value }]);
    return token;
  }

  /** Undefined when the link is unknown, used or expired. Reading does not use it up. */
  async readLink(token: string): Promise<Link | undefined> {
    const link = await this.link(token);
    return link && this.options.clock.now() < link.expiresAt ? link : undefined;
  }

  async link(token: string): Promise<Link | undefined> {
    return (await (await this.store()).get<Link>(table, linkKey(token)))?.value;
  }

  /** False when the link was used before. */
  async spendLink(token: string): Promise<boolean> {
    const store = await this.store();
    const place = linkKey(token);
    const found = await store.get<Link>(table, place);
    return found !== undefined && store.write([{ table, remove: place }], [unchanged(table, place, found)]);
  }

  private async sweepLinks(store: Store, gone: ReadonlySet<string>): Promise<void> {
    const now = this.options.clock.now();
    for await (const entries of pagesUnder<Link>(store, table, key(linkKind), entriesAtOnce)) {
      const over = entries.filter(({ value }) => now >= value.expiresAt || gone.has(value.environment));
      if (over.length > 0) await store.write(over.map(({ key: remove }): Operation => ({ table, remove })));
    }
  }

  // The store

  private async store(): Promise<Store> {
    this.openingStore ??= this.closing.then(() => this.load());
    const opening = this.openingStore;
    try {
      const store = await opening;
      if (!store.peers?.isLost || this.openingStore !== opening) return store;
      this.openingStore = this.load();
      void store.close();
      return await this.store();
    } catch (fault) {
      if (this.openingStore === opening) this.openingStore = undefined;
      throw fault;
    }
  }

  private async load(): Promise<Store> {
    const store = await this.options.openStore();
    const { peers } = store;
    this.unlisten?.();
    // A look that fails is repeated with the next news.
    this.unlisten = peers?.onNews(() => void this.look().catch(() => undefined));
    // Read before the authorizations: what is made meanwhile must be noticed.
    this.lastGrant = peers && (await store.get(table, granted))?.version;
    await this.readAll(store);
    this.isLoaded = true;
    this.changed();
    return store;
  }

  private async readAll(store: Store): Promise<void> {
    const before = new Map(this.kept);
    const stored = new Set<string>();
    // What this process has changed meanwhile is newer.
    const adopt = (name: string, found?: StoreEntry<GrantRecord>): void => {
      if (this.kept.get(name) === before.get(name)) void this.adopt(name, found);
    };
    for await (const entries of pagesUnder<GrantRecord>(store, table, key(grantKind), entriesAtOnce))
      for (const entry of entries) {
        const name = nameIn(entry.value);
        stored.add(name);
        adopt(name, entry);
      }
    for (const name of before.keys()) if (!stored.has(name)) adopt(name);
  }

  private async close(): Promise<void> {
    const { openingStore: opening, isLoaded } = this;
    this.openingStore = undefined;
    this.isLoaded = false;
    this.unlisten?.();
    const closing = opening?.then(
      (store) => store.close(),
      () => undefined,
    );
    this.closing = closing ?? Promise.resolve();
    // A store that cannot be read yet is closed as soon as it can be.
    if (isLoaded) await this.closing;
  }

  /** Other processes may have made or ended authorizations. */
  private async look(): Promise<void> {
    if (!this.openingStore) return;
    const store = await this.store();
    const now = (await store.get(table, granted))?.version;
    if (now === this.lastGrant) return;
    await this.readAll(store);
    this.lastGrant = now;
  }

  private take(name: string, kept: Kept): void {
    const before = this.kept.get(name);
    const { refreshToken: own } = kept.entry.grant;
    const earlier = [...(before?.spent ?? []), before?.entry.grant.refreshToken ?? null];
    const spent = earlier.filter((token) => token !== null && token !== own).slice(-mostSpent);
    this.kept.set(name, { ...kept, spent });
    const [old, now] = [before, kept].map((each) => each && JSON.stringify(recordOf(name, each.entry)));
    if (old !== now) this.changed();
  }

  private drop(name: string): void {
    this.kept.delete(name);
    this.changed();
  }

  private async remove(name: string): Promise<void> {
    const store = await this.store();
    await store.write([{ table, remove: placeOf(store, name) }, ...authorizationsChanged(store)]);
    this.drop(name);
  }

  private changed(): void {
    this.views = new WeakMap();
    // Whoever waits for the vault is called when all of it was read.
    if (this.isLoaded) this.listeners.call();
  }
}

/** The authorizations of an environment, to be moved to another store. */
export const movableGrants = (
  environment: string,
  connection: Connection | undefined,
): Movable<GrantRecord> => {
  const ofSeed = connection?.seed ? seedName(connection) : '';
  return {
    prefix: key(grantKind),
    isMeant: ({ seed = '', grant }) => (isSeed(seed) ? seed === ofSeed : grant.environment === environment),
    copy: ({ value }, to) => {
      const name = nameIn(value);
      return { put: placeOf(to, name), value: recordOf(name, value) };
    },
    // An older one may have a refresh token that was used: most services accept each once.
    isNewer: (here, there) => (here.grant.refreshedAt ?? 0) > (there.grant.refreshedAt ?? 0),
  };
};

/** Tells the other processes on a store, if it has others, to read its authorizations again. */
export const authorizationsChanged = ({ peers }: Store): Operation[] =>
  peers ? [{ table, put: granted, value: randomUUID() }] : [];
