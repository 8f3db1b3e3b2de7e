import type { Movable } from '../state/moving';
import { endOf, key, type Store, type StoreCommand, unchanged } from '../state/store';

/** A number that is not to be texted. */
export interface Blocked {
  readonly phone: string;
  /** Epoch milliseconds. */
  readonly since: number;
  readonly reason: string | null;
}

/** The reason why a request to a number may not be made. */
export type BlockedBy = Blocked | 'unreadable';

/** Tells all processes of a number that one of them has blocked. */
export interface BlockCommand extends StoreCommand {
  readonly kind: 'block';
  readonly phone: string;
}

export const isBlockCommand = (command: StoreCommand): command is BlockCommand => command.kind === 'block';

const table = 'work';

/** Counts by name; `none` resolves when a count is back at zero. */
class Counter {
  private readonly counts = new Map<string, number>();
  private readonly waiting = new Map<string, (() => void)[]>();

  add(name: string): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  remove(name: string): void {
    const left = (this.counts.get(name) ?? 0) - 1;
    if (left > 0) {
      this.counts.set(name, left);
      return;
    }
    this.counts.delete(name);
    const waiting = this.waiting.get(name) ?? [];
    this.waiting.delete(name);
    for (const resolve of waiting) resolve();
  }

  async none(name: string): Promise<void> {
    if (!this.counts.has(name)) return;
    await new Promise<void>((resolve) => {
      this.waiting.set(name, [...(this.waiting.get(name) ?? []), resolve]);
    });
  }
}

/**
 * The do-not-text list of one environment: for all its advisors, at any service. It is kept until somebody is
 * unblocked, also when the environment has left the flow.
 */
export class DoNotText {
  private readonly prefix: Buffer;
  /** Attempts under way in this process, by number. */
  private readonly attempts = new Counter();
  private readonly listeners = new Set<(phone: string) => void>();

  constructor(
    private readonly store: Store,
    environment: string,
  ) {
    this.prefix = key('blocked', environment);
  }

  async get(phone: string): Promise<Blocked | undefined> {
    return (await this.store.get<Blocked>(table, this.keyOf(phone)))?.value;
  }

  /** The blocked numbers, page by page. */
  async page(
    skip: number,
    limit: number,
  ): Promise<{ readonly data: readonly Blocked[]; readonly total: number }> {
    const range = { from: this.prefix, to: endOf(this.prefix) };
    const [found, total] = await Promise.all([
      this.store.page<Blocked>(table, { ...range, limit, skip }),
      this.store.count(table, range.from, range.to),
    ]);
    return { data: found.map(({ value }) => value), total };
  }

  /**
   * When this resolves, requests to the number have ended and no other begins. A number that is blocked already keeps its
   * time, and its reason unless a new one is given.
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
    await Promise.all([this.heard(command), this.store.tellOthers?.(command)]);
    return blocked;
  }

  /** Called when a number was blocked; resolves when the requests to it that are under way in this process have ended. */
  async heard({ phone }: BlockCommand): Promise<void> {
    for (const listener of this.listeners) listener(phone);
    await this.attempts.none(phone);
  }

  async unblock(phone: string): Promise<void> {
    await this.store.write([{ table, remove: this.keyOf(phone) }]);
  }

  /** Calls `listener` when a number is blocked. */
  onBlock(listener: (phone: string) => void): () => void {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  }

  /** The reason that forbids a request to a number. */
  async judge(phone: string): Promise<BlockedBy | undefined> {
    const found = await this.get(phone);
    if (found) return found;
    // Nobody knows who was on a damaged list: nobody is texted.
    const isDamaged = await this.store.hasLost(table, this.prefix, endOf(this.prefix));
    return isDamaged ? 'unreadable' : undefined;
  }

  /**
   * Begins an attempt to reach a number, which `block` waits for; resolves with what ends it, or with the reason that
   * forbids it.
   */
  async begin(phone: string): Promise<(() => void) | BlockedBy> {
    // Counted before the list is read: a block at the same time is either seen here, or waits for this attempt.
    this.attempts.add(phone);
    const end = (): void => {
      this.attempts.remove(phone);
    };
    let by: BlockedBy | undefined;
    try {
      by = await this.judge(phone);
    } catch (fault) {
      end();
      throw fault;
    }
    if (!by) return end;
    end();
    return by;
  }

  private keyOf(phone: string): Buffer {
    return key(this.prefix, this.store.hash(phone));
  }
}

interface ListEnvironment {
  readonly id: string;
  store(): Store | Promise<Store>;
}

const listsByStore = new WeakMap<object, Map<string, DoNotText>>();

/** The list of an environment: the same for all its nodes, also those in other uses of its subflow. */
export const doNotTextOf = async (environment: ListEnvironment): Promise<DoNotText> => {
  const store = await environment.store();
  const { behind = store } = store;
  const lists = listsByStore.get(behind) ?? new Map<string, DoNotText>();
  listsByStore.set(behind, lists);
  const list = lists.get(environment.id) ?? new DoNotText(store, environment.id);
  lists.set(environment.id, list);
  return list;
};

/** Copies the list of an environment to another store. */
export const movableBlocked = (environment: string): Movable<Blocked> => {
  const prefix = key('blocked', environment);
  return {
    table,
    prefix,
    copy: ({ value }, to) => [{ table, put: key(prefix, to.hash(value.phone)), value }],
  };
};
