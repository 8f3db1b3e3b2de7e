import { randomUUID } from 'node:crypto';
import { isRecord, tried } from '../kinds';
import { Listeners } from '../listeners';
import { changeRecord, key, type Store, type StoreEntry } from './store';

/** Which store this is. One that was lost and started again has another id. */
export interface Identity {
  readonly id: string;
  /** The ids of lost stores in whose place somebody has confirmed this one. */
  readonly replaces: readonly unknown[];
}

const table = 'work';
export const identityKey = key('identity');

/** The identity of a store, which is made where there is none; undefined when it is there and cannot be read. */
const identityOf = async (store: Store): Promise<StoreEntry<Identity> | undefined> => {
  for (;;) {
    const found = await store.get<Identity>(table, identityKey);
    if (found) return found;
    if (store.isUnreadable(table, identityKey) || store.engine.hasLostKeys) return undefined;
    const value: Identity = { id: randomUUID(), replaces: [] };
    await store.write([{ table, put: identityKey, value }], [{ table, key: identityKey }]);
  }
};

/** Where the runtime's settings, which outlive a store, remember the id of the store that was last used in a place. */
const property = 'advisorTextingStores';

/** A runtime without settings, as in tests, throws. */
interface Settings {
  get(property: string): unknown;
  set(property: string, value: unknown): Promise<unknown>;
}

/**
 * Distinguishes an empty store that replaces a lost one from a first start. The do-not-text list and the record of
 * who was texted and asked are lost with a store: nobody is texted until somebody has confirmed that.
 */
export class StoreRecognition {
  /** The ids of the stores that this one was found in place of, and nobody has confirmed that. */
  private missed: readonly unknown[] = [];
  private readonly listeners = new Listeners();
  readonly onChange = this.listeners.add;

  constructor(
    private readonly settings: Settings,
    private readonly place: string,
  ) {}

  /** Whether this place had a store. */
  get isKnown(): boolean {
    return this.known !== undefined;
  }

  /** The store is another than the one that was used, and nobody has confirmed it. */
  get isLost(): boolean {
    return this.missed.length > 0;
  }

  private get known(): unknown {
    return this.remembered()[this.place];
  }

  private remembered(): Readonly<Record<string, unknown>> {
    const found = tried(() => this.settings.get(property));
    return isRecord(found) ? found : {};
  }

  private async remember(id?: string): Promise<void> {
    const { [this.place]: _, ...others } = this.remembered();
    try {
      await this.settings.set(property, id === undefined ? others : { ...others, [this.place]: id });
    } catch {
      // The next start takes the store for the first one.
    }
  }

  /**
   * Compares the store with the one that this place had, and remembers it where there was none. A new place takes over
   * from all others, unless an environment beside this one shares its do-not-text list: then it is not alone.
   */
  async look(store: Store, isAlone: boolean): Promise<void> {
    // A store in memory is new in each process, and every status says so.
    const identity = store.engine.durable ? await identityOf(store) : undefined;
    if (identity) await this.see(identity.value, isAlone);
  }

  /** Where several processes share the store, one may confirm it for all. */
  async see(identity: Identity, isAlone: boolean): Promise<void> {
    const { known, isLost: wasLost } = this;
    const { id, replaces } = identity;
    const others = isAlone ? Object.values(this.remembered()) : [];
    const before = known === undefined ? others : [known];
    this.missed = before.filter((each) => each !== id && !replaces.includes(each));
    if (!this.isLost && known !== id) await this.remember(id);
    if (this.isLost !== wasLost) this.listeners.call();
  }

  /** Takes the store for that of this place from now on; false when there is nothing to confirm. */
  async confirm(store: Store, isAlone: boolean): Promise<boolean> {
    const { missed } = this;
    if (!this.isLost || !(await identityOf(store))) return false;
    // Other processes on the same database read this, and go on too.
    await changeRecord<Identity>(
      store,
      table,
      identityKey,
      (identity) => identity && { ...identity, replaces: [...identity.replaces, ...missed] },
    );
    await this.look(store, isAlone);
    return true;
  }

  /** Called when the do-not-text list has moved to another store: if this one is used again, it is a new one. */
  async leave(store: Store): Promise<void> {
    if (!this.isKnown) return;
    await store.write([{ table, remove: identityKey }]);
    await this.remember();
  }
}

/** For the log, and for people who look at the environment. */
export const lostTrouble = (environment: string): string =>
  'The store of this environment is gone or was changed for another, and an empty one was found in its place: the ' +
  'do-not-text list, queued texts, waits, authorizations, and the record of who was texted and asked are lost. Nobody is ' +
  'texted. Stop Node-RED, restore a backup or the earlier setting, and start it; or enter the blocked numbers again, then ' +
  `confirm the empty store in the dialog of the environment, or with POST advisor-texting/${environment}/store/confirm.`;
