import { Listeners } from '../listeners';
import type { Item } from '../outbox/item';
import type { Outcome } from '../outbox/outcome';
import { orMake, processMemory } from '../process-memory';
import type { BlockedItem as Blocked } from '../runtime/activity-items';
import type { Environment } from '../runtime/environment';
import type { Guard, GuardTools } from '../runtime/item-node';
import { wokenBy } from '../service/concurrency';
import { serviceError, type ServiceError } from '../service/errors';
import type { Movable } from '../state/moving';
import {
  changeRecord,
  key,
  pagesUnder,
  StoreClosed,
  TakenOver,
  under,
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

/** Grows with each block that this process learns of, and when the list that applies to an environment may be another. */
const changes = processMemory('environments', { count: 0 });

export const forgetLists = (): void => {
  changes.count += 1;
};

/**
 * The do-not-text list in a store, for all environments and advisors of a realm. It is kept until somebody is unblocked.
 * Where environments keep their state in several stores, everybody on the list in one of them is on the list.
 */
export class DoNotText {
  private readonly prefix: Buffer;
  /** The lists in the stores of other environments. */
  private others: readonly DoNotText[] = [];
  private completing: Promise<void> | undefined;
  /** How many attempts are in flight in this process, by number: a block waits for them. */
  private readonly attempts = new Map<string, number>();
  private readonly attemptEnds = new Listeners();
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
    return this.others.length === 0 && this.isOwnEmpty;
  }

  private get isOwnEmpty(): boolean {
    return this.emptyAt !== undefined && this.emptyAt === (this.store.engine.losses ?? 0);
  }

  get version(): number {
    return changes.count;
  }

  private get parts(): readonly DoNotText[] {
    return [this, ...this.others];
  }

  join(others: ReadonlySet<DoNotText>): void {
    if (this.others.length === others.size && this.others.every((each) => others.has(each))) return;
    this.others = [...others];
    this.completing = undefined;
    forgetLists();
    // Nobody is texted before the list is complete: its first user completes it, and gets the fault.
    this.complete().catch(() => undefined);
  }

  async get(phone: string): Promise<Blocked | undefined> {
    const found = await Promise.all(this.parts.map((part) => part.getOwn(phone)));
    return found.find((blocked) => blocked);
  }

  /** Reads this store alone. */
  async getOwn(phone: string): Promise<Blocked | undefined> {
    return (await this.store.get<Blocked>(table, this.keyOf(phone)))?.value;
  }

  async page(skip: number, limit: number) {
    await this.copy();
    const range = under(this.prefix);
    const [found, total] = await Promise.all([
      this.store.page<Blocked>(table, { ...range, limit, skip }),
      this.store.count(table, range.from, range.to),
    ]);
    return { data: found.map(({ value }) => value), total };
  }

  /** Everybody on the list, also if others leave it meanwhile. */
  async *all(): AsyncGenerator<Blocked> {
    await this.copy();
    for await (const page of pagesUnder<Blocked>(this.store, table, this.prefix, pageSize))
      for (const { value } of page) yield value;
  }

  /**
   * When this resolves, requests to the number have finished and no other starts. A number that is already blocked
   * keeps its time, and its reason unless a new one is given.
   */
  async block(phone: string, reason: string | null, now: number): Promise<Blocked> {
    const known = await this.get(phone);
    const meant: Blocked = { phone, since: known?.since ?? now, reason: reason ?? known?.reason ?? null };
    const [blocked = meant] = await Promise.all(this.parts.map((part) => part.blockOwn(meant)));
    return blocked;
  }

  private async blockOwn({ phone, since, reason }: Blocked): Promise<Blocked | undefined> {
    const { store } = this;
    const blocked = await changeRecord<Blocked>(store, table, this.keyOf(phone), (known) => ({
      phone,
      since: known?.since ?? since,
      reason: reason ?? known?.reason ?? null,
    }));
    const command: BlockCommand = { kind: 'block', at: store.now(), phone };
    await Promise.all([this.noteBlock(phone), store.peers?.tellOthers(command, Infinity)]);
    return blocked;
  }

  /** Resolves when requests to the number in this process have finished. */
  private async noteBlock(phone: string): Promise<void> {
    changes.count += 1;
    this.emptyAt = undefined;
    this.listeners.call(phone);
    while (this.attempts.has(phone)) await wokenBy(this.attemptEnds.add);
  }

  /** Called when another process, which may have only one of the stores, has blocked a number; resolves as `block` does. */
  async onRemoteBlock({ phone }: BlockCommand): Promise<void> {
    const blocked = this.others.length > 0 && (await this.get(phone));
    if (blocked) await Promise.all(this.parts.map((part) => part.add(blocked)));
    await Promise.all(this.parts.map((part) => part.noteBlock(phone)));
  }

  async unblock(phone: string): Promise<void> {
    await Promise.all(
      this.parts.map(async (part) => {
        await part.store.write([{ table, remove: part.keyOf(phone) }]);
        part.mayBeEmpty = true;
      }),
    );
  }

  /** The reason that forbids a request to a number. */
  async check(phone: string): Promise<BlockedBy | undefined> {
    if (this.others.length === 0) return this.checkOwn(phone);
    await this.complete();
    const found = await Promise.all(this.parts.map((part) => part.checkOwn(phone)));
    return found.find((by) => by);
  }

  private async checkOwn(phone: string): Promise<BlockedBy | undefined> {
    if (this.isOwnEmpty) return undefined;
    const { store, prefix } = this;
    const { losses = 0 } = store.engine;
    const { count } = changes;
    // Most lists are empty, and to see that takes less time than to hash a number. A database reads many numbers at
    // once, but only one range at a time.
    this.mayBeEmpty &&=
      !store.peers && (await store.keys(table, { ...under(prefix), limit: 1 })).length === 0;
    const { mayBeEmpty: isEmpty } = this;
    const at = isEmpty ? prefix : this.keyOf(phone);
    const found = isEmpty ? undefined : await store.get<Blocked>(table, at);
    if (found) return found.value;
    // The list is unknown, so nobody is texted.
    if (store.engine.hasLostKeys) return 'unreadable list';
    if (isEmpty && count === changes.count) this.emptyAt = losses;
    return store.isUnreadable(table, at) ? 'unreadable' : undefined;
  }

  /**
   * Starts an attempt to reach a number, which `block` waits for; resolves with a function that ends it, or with the
   * reason that forbids it. The list is read only if it may have changed since `checkedAt`.
   */
  async begin(phone: string, checkedAt?: number): Promise<(() => void) | BlockedBy> {
    // Counted before the list is read: a block at the same time is either seen here, or waits for this attempt.
    this.attempts.set(phone, (this.attempts.get(phone) ?? 0) + 1);
    const end = (): void => {
      const left = (this.attempts.get(phone) ?? 0) - 1;
      if (left > 0) this.attempts.set(phone, left);
      else this.attempts.delete(phone);
      this.attemptEnds.call();
    };
    // A command of another process may be on its way: a shared list is read again.
    if (checkedAt === this.version && !this.parts.some(({ store }) => store.peers)) return end;
    const by = await this.check(phone).catch((fault: unknown) => {
      end();
      throw fault;
    });
    if (by) end();
    return by ?? end;
  }

  /** Copies to each part what the others have, so that an environment that leaves takes nobody off the list. */
  private complete(): Promise<void> {
    this.completing ??= this.copy().catch((fault: unknown) => {
      this.completing = undefined;
      throw fault;
    });
    return this.completing;
  }

  private async copy(): Promise<void> {
    for (const from of this.parts)
      for (const to of this.parts)
        if (from !== to)
          for await (const page of pagesUnder<Blocked>(from.store, table, from.prefix, pageSize))
            await Promise.all(page.map(({ value }) => to.add(value)));
  }

  private async add(blocked: Blocked): Promise<void> {
    if (await this.getOwn(blocked.phone)) return;
    const at = this.keyOf(blocked.phone);
    try {
      await this.store.write([{ table, put: at, value: blocked }], [unchanged(table, at, undefined)]);
    } finally {
      changes.count += 1;
      this.emptyAt = undefined;
    }
  }

  private keyOf(phone: string): Buffer {
    return key(this.prefix, this.store.hash(phone));
  }
}

type ListEnvironment = Pick<Environment, 'service' | 'store' | 'otherListStores'>;

const listsByStore = new WeakMap<object, Map<Realm, DoNotText>>();

const listIn = (store: Store, { service }: Pick<ListEnvironment, 'service'>): DoNotText => {
  const realm = service === 'simulator' ? 'simulator' : 'service';
  const lists = orMake(listsByStore, store.engine, () => new Map<Realm, DoNotText>());
  return orMake(lists, realm, () => new DoNotText(store, realm));
};

/** The list in the environment's own store: blocks of all environments reach it. */
export const ownListOf = async (environment: ListEnvironment): Promise<DoNotText> =>
  listIn(await environment.store(), environment);

/** The list that applies to an environment: the same for all environments of its realm. */
export const doNotTextOf = async (environment: ListEnvironment): Promise<DoNotText> => {
  const own = await ownListOf(environment);
  const stores = (await environment.otherListStores?.()) ?? [];
  const others = new Set(stores.map((store) => listIn(store, environment)));
  others.delete(own);
  own.join(others);
  return own;
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
    if (known && knownAt === changes.count) return known;
    const at = environment.isStoreLost ? undefined : changes.count;
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

  /** Every attempt asks the list again, unless nothing has changed since `checkedAt`. */
  const permitAttempts = (item: Item, checkedAt: number): void => {
    const { phone = '' } = item.data;
    const permit = async (): Promise<() => void> => {
      const ended = await ask((list) => list.begin(phone, checkedAt));
      if (typeof ended === 'function') return ended;
      throw refusalBy(ended);
    };
    item.add({ permit });
  };

  const passChecked = async (item: Item, next: () => Promise<Outcome>): Promise<Outcome> => {
    const { shared, data } = item;
    if (!shared.dryRun && environment.isStoreLost) await environment.mayText(item.signal);
    const { count } = changes;
    const by = await ask((list) => list.check(data.phone ?? ''));
    if (by) throw refusalBy(by);
    permitAttempts(item, count);
    return next();
  };

  // Reads whether anybody is on it, so that the first texts do not overtake each other.
  ask((list) => list.check('')).catch(() => undefined);
  return {
    close: () => unlisten?.(),
    pass(item, next) {
      if (environment.fault) throw environment.fault;
      if (!known?.isEmpty || knownAt !== changes.count) return passChecked(item, next);
      permitAttempts(item, changes.count);
      return next();
    },
  };
};
