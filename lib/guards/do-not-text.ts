import { Listeners } from '../listeners';
import type { Item } from '../outbox/item';
import type { Outcome } from '../outbox/outcome';
import { orMake, processMemory } from '../process-memory';
import type { BlockedItem as Blocked } from '../runtime/activity-items';
import type { Environment } from '../runtime/environment';
import type { Guard, GuardTools } from '../runtime/item-node';
import { serviceError, type ServiceError } from '../service/errors';
import type { Movable } from '../state/moving';
import {
  endOf,
  key,
  pagesUnder,
  StoreClosed,
  TakenOver,
  type Store,
  type StoreCommand,
  unchanged,
} from '../state/store';

/** The reason why a request to a number may not be made: its entry, or an entry or a whole list that cannot be read. */
export type BlockedBy = Blocked | 'unreadable' | 'unreadable list';

/** Notifies all processes that one of them has blocked a number. */
export interface BlockCommand extends StoreCommand {
  readonly kind: 'block';
  readonly phone: string;
}

const table = 'work';
const pageSize = 200;

/** Which list: the one of all simulators, or the one of all real services. */
export type Realm = 'simulator' | 'service';

interface BlockedPage {
  readonly data: readonly Blocked[];
  readonly total: number;
}

class StoreList {
  /** Changes with each block that this process learns of. */
  version = 0;
  private readonly prefix: Buffer;
  /** How many attempts are in flight in this process, by number. */
  private readonly attempts = new Map<string, number>();
  /** Blocks that wait for the end of an attempt. */
  private readonly waiting = new Set<() => void>();
  private readonly listeners = new Listeners<[phone: string]>();
  readonly onBlock = this.listeners.add;
  /** Whether it is worthwhile to look if anybody is on the list. */
  private mayBeEmpty = true;
  /** The losses of the store when the list was found empty: without another process, only this one adds to it. */
  private emptyAt: number | undefined;

  constructor(
    private readonly store: Store,
    realm: Realm,
  ) {
    this.prefix = key('blocked', realm);
  }

  /** Nobody is on the list, as is known without reading it; false when in doubt. */
  get isEmpty(): boolean {
    return this.emptyAt !== undefined && this.emptyAt === (this.store.losses ?? 0);
  }

  async get(phone: string): Promise<Blocked | undefined> {
    return (await this.store.get<Blocked>(table, this.keyOf(phone)))?.value;
  }

  async page(skip: number, limit: number): Promise<BlockedPage> {
    const range = { from: this.prefix, to: endOf(this.prefix) };
    const [found, total] = await Promise.all([
      this.store.page<Blocked>(table, { ...range, limit, skip }),
      this.store.count(table, range.from, range.to),
    ]);
    return { data: found.map(({ value }) => value), total };
  }

  /** Everybody on the list, also if others leave it meanwhile. */
  async *all(): AsyncGenerator<Blocked> {
    for await (const page of pagesUnder<Blocked>(this.store, table, this.prefix, pageSize))
      for (const { value } of page) yield value;
  }

  /**
   * When this resolves, requests to the number have finished and no other starts. A number that is already blocked
   * keeps its time, and its reason unless a new one is given.
   */
  async block(phone: string, reason: string | null, now: number): Promise<Blocked> {
    const at = this.keyOf(phone);
    let blocked: Blocked;
    for (;;) {
      const entry = await this.store.get<Blocked>(table, at);
      const known = entry?.value;
      blocked = { phone, since: known?.since ?? now, reason: reason ?? known?.reason ?? null };
      if (await this.store.write([{ table, put: at, value: blocked }], [unchanged(table, at, entry)])) break;
    }
    const command: BlockCommand = { kind: 'block', at: this.store.now(), phone };
    await Promise.all([this.onRemoteBlock(command), this.store.peers?.tellOthers(command, Infinity)]);
    return blocked;
  }

  /** Called when another process has blocked a number; resolves when requests to it in this process have finished. */
  async onRemoteBlock({ phone }: BlockCommand): Promise<void> {
    this.version += 1;
    this.emptyAt = undefined;
    this.listeners.call(phone);
    while (this.attempts.has(phone)) await new Promise<void>((resolve) => this.waiting.add(resolve));
  }

  async unblock(phone: string): Promise<void> {
    await this.store.write([{ table, remove: this.keyOf(phone) }]);
    this.mayBeEmpty = true;
  }

  /** The reason that forbids a request to a number. */
  async check(phone: string): Promise<BlockedBy | undefined> {
    if (this.isEmpty) return undefined;
    const { store, prefix, version } = this;
    const { losses = 0 } = store;
    const range = { from: prefix, to: endOf(prefix) };
    // Most lists are empty, and to see that takes less time than to hash a number. A database reads many numbers at
    // once, but only one range at a time.
    this.mayBeEmpty &&= !store.peers && (await store.keys(table, { ...range, limit: 1 })).length === 0;
    const { mayBeEmpty: isEmpty } = this;
    const at = isEmpty ? prefix : this.keyOf(phone);
    const found = isEmpty ? undefined : await store.get<Blocked>(table, at);
    if (found) return found.value;
    // The list is unknown, so nobody is texted.
    if (store.hasLostKeys) return 'unreadable list';
    if (isEmpty && version === this.version) this.emptyAt = losses;
    return store.isUnreadable(table, at) ? 'unreadable' : undefined;
  }

  /**
   * Starts an attempt to reach a number, which `block` waits for; resolves with a function that ends it, or with the
   * reason that forbids it. With `checkedAt`, the version at which the number was not blocked, the list is read only if
   * it has changed.
   */
  async begin(phone: string, checkedAt?: number): Promise<(() => void) | BlockedBy> {
    // Counted before the list is read: a block at the same time is either seen here, or waits for this attempt.
    this.attempts.set(phone, (this.attempts.get(phone) ?? 0) + 1);
    const end = (): void => {
      const left = (this.attempts.get(phone) ?? 0) - 1;
      if (left > 0) this.attempts.set(phone, left);
      else this.attempts.delete(phone);
      for (const wake of this.waiting) wake();
      this.waiting.clear();
    };
    // A command of another process may be on its way: a shared list is read again.
    if (checkedAt === this.version && !this.store.peers) return end;
    const by = await this.check(phone).catch((fault: unknown) => {
      end();
      throw fault;
    });
    if (by) end();
    return by ?? end;
  }

  /** Copies to the other list everybody who is only on this one. */
  async copyTo(other: StoreList): Promise<void> {
    for await (const page of pagesUnder<Blocked>(this.store, table, this.prefix, pageSize))
      await Promise.all(page.map(({ value }) => other.add(value)));
  }

  async add(blocked: Blocked): Promise<void> {
    if (await this.get(blocked.phone)) return;
    const at = this.keyOf(blocked.phone);
    try {
      await this.store.write([{ table, put: at, value: blocked }], [unchanged(table, at, undefined)]);
    } finally {
      this.version += 1;
      this.emptyAt = undefined;
    }
  }

  private keyOf(phone: string): Buffer {
    return key(this.prefix, this.store.hash(phone));
  }
}

/** The list of environments that keep their state in several stores: everybody on one part of it is on the list. */
class JointList {
  readonly isEmpty = false;
  private completing: Promise<void> | undefined;

  /** The first part is that of the environment's own store. */
  constructor(readonly parts: readonly [StoreList, ...StoreList[]]) {}

  get version(): number {
    return this.parts.reduce((sum, { version }) => sum + version, 0);
  }

  /** Completes each part from the others, so that an environment that leaves takes nobody off the list. */
  complete(): Promise<void> {
    this.completing ??= this.copy().catch((fault: unknown) => {
      this.completing = undefined;
      throw fault;
    });
    return this.completing;
  }

  private async copy(): Promise<void> {
    for (const from of this.parts) for (const to of this.parts) if (from !== to) await from.copyTo(to);
  }

  async get(phone: string): Promise<Blocked | undefined> {
    const found = await Promise.all(this.parts.map((part) => part.get(phone)));
    return found.find((blocked) => blocked);
  }

  /** Each part has everybody, once what other processes have changed in one of them is copied too. */
  async page(skip: number, limit: number): Promise<BlockedPage> {
    await this.copy();
    return this.parts[0].page(skip, limit);
  }

  async *all(): AsyncGenerator<Blocked> {
    await this.copy();
    yield* this.parts[0].all();
  }

  async block(phone: string, reason: string | null, now: number): Promise<Blocked> {
    const known = await this.get(phone);
    const since = known?.since ?? now;
    const blocked = await Promise.all(
      this.parts.map((part) => part.block(phone, reason ?? known?.reason ?? null, since)),
    );
    return blocked[0] ?? { phone, since, reason };
  }

  async unblock(phone: string): Promise<void> {
    await Promise.all(this.parts.map((part) => part.unblock(phone)));
  }

  onBlock(listener: (phone: string) => void): () => void {
    const endings = this.parts.map((part) => part.onBlock(listener));
    return () => {
      for (const end of endings) end();
    };
  }

  /** A process that has only one of the environments has blocked the number in one part. */
  async onRemoteBlock(command: BlockCommand): Promise<void> {
    const blocked = await this.get(command.phone);
    if (blocked) await Promise.all(this.parts.map((part) => part.add(blocked)));
    await Promise.all(this.parts.map((part) => part.onRemoteBlock(command)));
  }

  async check(phone: string): Promise<BlockedBy | undefined> {
    await this.complete();
    const found = await Promise.all(this.parts.map((part) => part.check(phone)));
    return found.find((by) => by);
  }

  async begin(phone: string, checkedAt?: number): Promise<(() => void) | BlockedBy> {
    await this.complete();
    const isChecked = checkedAt === this.version;
    const started = await Promise.allSettled(
      this.parts.map((part) => part.begin(phone, isChecked ? part.version : undefined)),
    );
    const results = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    const end = (): void => {
      for (const each of results) if (typeof each === 'function') each();
    };
    const failed = started.find((each) => each.status === 'rejected');
    const by = results.find((each) => typeof each !== 'function');
    if (!failed && by === undefined) return end;
    end();
    if (by !== undefined) return by;
    throw failed?.reason;
  }
}

/** The do-not-text list of the installation: for all environments and advisors. It is kept until somebody is unblocked. */
export type DoNotText = StoreList | JointList;

type ListEnvironment = Pick<Environment, 'service' | 'store' | 'otherListStores'>;

const listsByStore = new WeakMap<object, Map<Realm, StoreList>>();
const jointLists = new WeakMap<StoreList, JointList>();

const realmOf = ({ service }: Pick<ListEnvironment, 'service'>): Realm =>
  service === 'simulator' ? 'simulator' : 'service';

const listIn = (store: Store, realm: Realm): StoreList => {
  const lists = orMake(listsByStore, store.engine, () => new Map<Realm, StoreList>());
  return orMake(lists, realm, () => new StoreList(store, realm));
};

/** Changes when the list that applies to an environment may be another, or nobody may be texted until a store is confirmed. */
const lookups = processMemory('environments', { generation: 0 });

export const forgetLists = (): void => {
  lookups.generation += 1;
};

/** The part of the list in the environment's own store: blocks of all environments reach it, and no other store is needed. */
export const ownListOf = async (environment: ListEnvironment): Promise<StoreList> =>
  listIn(await environment.store(), realmOf(environment));

/** The list that applies to an environment: the same for all environments of its realm. */
export const doNotTextOf = async (environment: ListEnvironment): Promise<DoNotText> => {
  const realm = realmOf(environment);
  const own = await ownListOf(environment);
  const others = (await environment.otherListStores?.()) ?? [];
  const rest = new Set(others.map((store) => listIn(store, realm)));
  rest.delete(own);
  if (rest.size === 0) return own;
  const known = jointLists.get(own);
  if (known?.parts.length === rest.size + 1 && known.parts.every((part) => part === own || rest.has(part)))
    return known;
  const made = new JointList([own, ...rest]);
  jointLists.set(own, made);
  // Nobody is texted before the list is complete: its first user completes it, and gets the fault.
  made.complete().catch(() => undefined);
  return made;
};

/** Copies the list of the real services to another store. */
export const movableBlocked = (): Movable<Blocked> => {
  const prefix = key('blocked', 'service' satisfies Realm);
  return {
    prefix,
    copy: ({ value }, to) => ({ put: key(prefix, to.hash(value.phone)), value }),
  };
};

export const refusalBy = (by: BlockedBy): ServiceError => {
  if (by === 'unreadable') return serviceError('blocked', 'blocked_unreadable');
  return serviceError('blocked', by === 'unreadable list' ? 'blocked_list_unreadable' : 'blocked');
};

/** Texts nobody who is on the list, and nobody at all while a setting is wrong or an empty store is not confirmed. */
export const doNotTextGuard = ({ environment, recheck }: GuardTools): Guard => {
  let known: DoNotText | undefined;
  let knownAt: number | undefined;
  let unlisten: (() => void) | undefined;

  const listOf = async (): Promise<DoNotText> => {
    if (known && knownAt === lookups.generation) return known;
    const at = environment.isStoreLost ? undefined : lookups.generation;
    const list = await doNotTextOf(environment);
    knownAt = at;
    if (known === list) return list;
    known = list;
    unlisten?.();
    // Texts that are held for a number leave as soon as it is blocked.
    unlisten = list.onBlock(recheck);
    return list;
  };

  /** Reads the current list: a deploy of another environment may close a store that it was kept in. */
  const ask = async <R>(question: (list: DoNotText) => Promise<R>): Promise<R> => {
    try {
      return await question(await listOf());
    } catch (fault) {
      if (!(fault instanceof StoreClosed) && !(fault instanceof TakenOver)) throw fault;
      knownAt = undefined;
      return question(await listOf());
    }
  };

  /** Every attempt asks the list again, unless it has not changed since `version`. */
  const permitAttempts = (item: Item, list: DoNotText, version: number): void => {
    const { phone = '' } = item.data;
    const permit = async (): Promise<() => void> => {
      const ended = await ask((current) => current.begin(phone, current === list ? version : undefined));
      if (typeof ended === 'function') return ended;
      throw refusalBy(ended);
    };
    item.add({ permit });
  };

  const passChecked = async (item: Item, next: () => Promise<Outcome>): Promise<Outcome> => {
    const { shared, data } = item;
    if (!shared.dryRun && environment.isStoreLost) await environment.mayText?.(item.signal);
    const { list, version, by } = await ask(async (current) => ({
      list: current,
      version: current.version,
      by: await current.check(data.phone ?? ''),
    }));
    if (by) throw refusalBy(by);
    permitAttempts(item, list, version);
    return next();
  };

  // Reads whether anybody is on it, so that the first texts do not overtake each other.
  ask((list) => list.check('')).catch(() => undefined);
  return {
    close: () => unlisten?.(),
    pass(item, next) {
      if (environment.fault) throw environment.fault;
      if (!known?.isEmpty || knownAt !== lookups.generation) return passChecked(item, next);
      permitAttempts(item, known, known.version);
      return next();
    },
  };
};
