import { createHash } from 'node:crypto';
import { defaultAdvisor, type Connection } from './connection';
import { isOver, newGrant, type Grant } from './grants';
import type { Vault } from './vault';

export type GrantState = 'authorized' | 'authorize_again' | 'confirm';

/** What is kept for one advisor: the authorization in use, and one of another person that awaits confirmation. */
export interface Entry {
  readonly grant: Grant;
  readonly awaiting: Grant | null;
}

export const stateOf = ({ grant, awaiting }: Entry, now: number): GrantState => {
  if (awaiting) return 'confirm';
  return isOver(grant, now) ? 'authorize_again' : 'authorized';
};

const prefix = 'grant:';
const nameOf = (environment: string, advisor: string): string =>
  prefix + JSON.stringify([environment, advisor]);

/**
 * Environments given the same refresh token share its authorization: kept apart, the first to rotate the token would
 * end the others'.
 */
const seedName = ({ tokenUrl, clientId, seed }: Connection): string =>
  `seed:${createHash('sha256')
    .update(JSON.stringify([tokenUrl, clientId, seed]))
    .digest('base64url')}`;

/** What has been looked up for a connection: the answers to questions that every text asks. */
interface View {
  readonly entries: Map<string, Entry>;
  list: [advisor: string, entry: Entry][] | undefined;
}

const seeded = (connection: Connection): Grant => ({
  ...newGrant(connection, defaultAdvisor),
  refreshToken: connection.seed,
});

/** What was disconnected leaves no tokens behind. */
const isInUse = ({ accessToken, refreshToken }: Grant): boolean =>
  accessToken !== null || refreshToken !== null;

const isOtherPerson = (before: Grant, now: Grant): boolean =>
  before.identity !== null && now.identity !== null && before.identity.subject !== now.identity.subject;

/** The authorizations of all environments, as the vault holds them. */
export class GrantBook {
  readonly #vault: Vault;
  readonly #entries = new Map<string, Entry | undefined>();
  readonly #listeners = new Set<() => void>();
  readonly #writing = new Set<string>();
  #views = new WeakMap<Connection, View>();

  constructor(vault: Vault) {
    this.#vault = vault;
  }

  /** Under which name the authorization of an advisor is kept: equal names are one authorization. */
  name(connection: Connection, advisor: string): string {
    const own = nameOf(connection.environment, advisor);
    const isSeeded = connection.seed !== '' && advisor === defaultAdvisor && !this.#entry(own);
    return isSeeded ? seedName(connection) : own;
  }

  get(connection: Connection, advisor: string): Entry | undefined {
    const { entries } = this.#view(connection);
    const known = entries.get(advisor);
    if (known) return known;
    const found = this.#find(connection, advisor);
    if (found) entries.set(advisor, found);
    return found;
  }

  /** The advisors known for an environment; a connection also tells of the one that a refresh token seeds. */
  list(environment: string, connection?: Connection): readonly [advisor: string, entry: Entry][] {
    if (connection?.environment !== environment) return this.#listed(environment, connection);
    return (this.#view(connection).list ??= this.#listed(environment, connection));
  }

  #find(connection: Connection, advisor: string): Entry | undefined {
    const name = this.name(connection, advisor);
    const entry = this.#entry(name);
    if (!entry && name.startsWith('seed:')) return { grant: seeded(connection), awaiting: null };
    return entry;
  }

  #view(connection: Connection): View {
    const view = this.#views.get(connection) ?? { entries: new Map(), list: undefined };
    this.#views.set(connection, view);
    return view;
  }

  /** After whatever may have changed an answer. */
  #forgetViews(): void {
    this.#views = new WeakMap();
  }

  #listed(environment: string, connection?: Connection): [advisor: string, entry: Entry][] {
    const found = this.#vault.names(prefix).flatMap((name): [string, Entry][] => {
      const entry = this.#entry(name);
      return entry?.grant.environment === environment ? [[entry.grant.advisor, entry]] : [];
    });
    const isKnown = found.some(([advisor]) => advisor === defaultAdvisor);
    const seed = connection?.seed && !isKnown ? this.get(connection, defaultAdvisor) : undefined;
    return seed ? [...found, [defaultAdvisor, seed]] : found;
  }

  /** On disk when it resolves, and only then in use. */
  async put(name: string, entry: Entry): Promise<void> {
    this.#entry(name);
    this.#writing.add(name);
    try {
      await this.#vault.write(name, entry);
    } finally {
      this.#writing.delete(name);
    }
    this.#entries.set(name, entry);
    this.#forgetViews();
    this.#changed();
  }

  /** A new authorization. One of another person waits until somebody confirms it, and the old one goes on. */
  async authorized(connection: Connection, grant: Grant): Promise<Entry> {
    const name = this.name(connection, grant.advisor);
    const before = this.#entry(name)?.grant;
    const isOther = before !== undefined && isInUse(before) && isOtherPerson(before, grant);
    const entry: Entry = isOther ? { grant: before, awaiting: grant } : { grant, awaiting: null };
    await this.put(isOther ? name : nameOf(grant.environment, grant.advisor), entry);
    return entry;
  }

  /** False when nothing awaits confirmation. What a refresh token seeds stays as it is, for others who share it. */
  async confirm(environment: string, advisor: string, connection?: Connection): Promise<boolean> {
    const own = nameOf(environment, advisor);
    const name = connection ? this.name(connection, advisor) : own;
    const entry = this.#entry(name);
    if (entry?.awaiting?.environment !== environment) return false;
    await this.put(own, { grant: entry.awaiting, awaiting: null });
    if (name !== own) await this.put(name, { ...entry, awaiting: null });
    return true;
  }

  /** False when there was none. A seed stays spent: disconnecting must not take it up again. */
  async disconnect(environment: string, advisor: string, connection?: Connection): Promise<boolean> {
    const name = connection ? this.name(connection, advisor) : nameOf(environment, advisor);
    const entry = connection ? this.get(connection, advisor) : this.#entry(name);
    if (!entry) return false;
    if (name.startsWith('seed:')) {
      const grant = { ...entry.grant, accessToken: null, refreshToken: null, refused: true };
      await this.put(name, { grant, awaiting: null });
    } else {
      await this.#vault.remove(name);
      this.#entries.delete(name);
      this.#forgetViews();
      this.#changed();
    }
    return true;
  }

  /** Forgets all authorizations of an environment that is gone for good. */
  async forget(environment: string): Promise<void> {
    for (const name of [...this.#vault.names(prefix), ...this.#vault.names('seed:')]) {
      if (this.#entry(name)?.grant.environment !== environment) continue;
      await this.#vault.remove(name);
      this.#entries.delete(name);
    }
    this.#forgetViews();
  }

  /** Takes up what another process has written. */
  async reread(): Promise<void> {
    await this.#vault.reread();
    for (const name of this.#entries.keys()) {
      // One being written is already in the vault's memory, and must not be seen before it is on disk.
      if (!this.#writing.has(name)) this.#entries.delete(name);
    }
    this.#forgetViews();
  }

  environments(): Set<string> {
    const names = [...this.#vault.names(prefix), ...this.#vault.names('seed:')];
    return new Set(names.flatMap((name) => this.#entry(name)?.grant.environment ?? []));
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #entry(name: string): Entry | undefined {
    if (!this.#entries.has(name)) this.#entries.set(name, this.#vault.read(name) as Entry | undefined);
    return this.#entries.get(name);
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
