import { randomBytes } from 'node:crypto';
import { key, removeUnder, type Condition, type Entry, type Store } from '../state/store';

/** What a text with a key of its own is known by: at one service, in one send node, for one advisor and number. */
export interface OnceKey {
  readonly space: string;
  readonly node: string;
  readonly advisor: string;
  readonly phone: string;
  readonly key: string;
}

/** Who holds a key, and how far that text has come. */
interface Claim {
  /** The item, by its arrival and its index. */
  readonly item: string;
  /** The process that claimed it. */
  readonly run: string;
  /** When it was claimed, sent or cancelled, by the store's time. */
  readonly at: number;
  readonly state: 'open' | 'sent' | 'unknown' | 'cancelled';
  /** Of an open one: it is held until then. */
  readonly notBefore?: number;
  /** Of one that was sent. */
  readonly payload?: unknown;
}

/** What the guard says to a text. */
export type Verdict =
  | { readonly kind: 'own' }
  | { readonly kind: 'sent'; readonly payload: unknown }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'cancelled' }
  /** The first is held, or in flight. */
  | { readonly kind: 'wait'; readonly notBefore: number | undefined };

const table = 'work';
const run = randomBytes(9).toString('base64url');

/** Has a text with the same key been sent? Answered from the store, over restarts and instances. */
export class Once {
  private readonly waiting = new Map<string, (() => void)[]>();

  constructor(private readonly store: Store) {}

  /**
   * Claims a key for an item, unless another has it: for `within` milliseconds from when that was sent. `isThere` tells
   * whether the item of a claim that an earlier process made is still on record.
   */
  async claim(
    of: OnceKey,
    item: { readonly name: string; readonly since: number },
    within: number,
    isThere: (name: string) => Promise<boolean>,
  ): Promise<Verdict> {
    const at = this.keyOf(of);
    for (;;) {
      const entry = await this.store.get<Claim>(table, at);
      const held = await this.judge(entry, item, within, isThere);
      if (held) return held;
      const value: Claim = { item: item.name, run, at: this.store.now(), state: 'open' };
      const condition: Condition = entry ? { table, key: at, version: entry.version } : { table, key: at };
      if (await this.store.write([{ table, put: at, value }], [condition])) return { kind: 'own' };
    }
  }

  /** What `claim` would say; nothing is claimed. */
  async look(of: OnceKey, within: number): Promise<Verdict> {
    const entry = await this.store.get<Claim>(table, this.keyOf(of));
    const item = { name: '', since: Infinity };
    return (await this.judge(entry, item, within, async () => true)) ?? { kind: 'own' };
  }

  /** How the text of an item ended. An end that says nothing was sent gives the key back. */
  async end(
    of: OnceKey,
    item: string,
    end: { readonly state: 'sent' | 'unknown' | 'cancelled' | 'none'; readonly payload?: unknown },
  ): Promise<void> {
    await this.update(of, item, (claim) =>
      end.state === 'none'
        ? undefined
        : { item, run, at: this.store.now(), state: end.state, payload: end.payload ?? claim.payload },
    );
  }

  async hold(of: OnceKey, item: string, notBefore: number): Promise<void> {
    await this.update(of, item, (claim) => ({ ...claim, notBefore }));
  }

  /** Resolves when something has become of a key, or after a moment: another process may hold it. */
  async changed(of: OnceKey, signal: AbortSignal): Promise<void> {
    const name = this.keyOf(of).toString('latin1');
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, 500);
      const end = (): void => {
        clearTimeout(timer);
        resolve();
      };
      signal.addEventListener('abort', end, { once: true });
      this.waiting.set(name, [...(this.waiting.get(name) ?? []), end]);
    });
  }

  private async judge(
    entry: Entry<Claim> | undefined,
    { name, since }: { readonly name: string; readonly since: number },
    within: number,
    isThere: (name: string) => Promise<boolean>,
  ): Promise<Verdict | undefined> {
    const claim = entry?.value;
    if (!claim) return undefined;
    if (claim.item === name) return claim.state === 'open' ? { kind: 'own' } : undefined;
    const isOver = this.store.now() - claim.at >= within;
    switch (claim.state) {
      case 'sent':
        return isOver ? undefined : { kind: 'sent', payload: claim.payload };
      case 'unknown':
        return isOver ? undefined : { kind: 'unknown' };
      case 'cancelled':
        // Who came while the first waited goes with it.
        return since <= claim.at ? { kind: 'cancelled' } : undefined;
      case 'open':
        if (claim.run === run || (await isThere(claim.item)))
          return { kind: 'wait', notBefore: claim.notBefore };
        // It was in flight when its process was killed, and is on no record.
        return isOver ? undefined : { kind: 'unknown' };
    }
  }

  private async update(
    of: OnceKey,
    item: string,
    change: (claim: Claim) => Claim | undefined,
  ): Promise<void> {
    const at = this.keyOf(of);
    for (;;) {
      const entry = await this.store.get<Claim>(table, at);
      if (entry?.value.item !== item || entry.value.state !== 'open') break;
      const value = change(entry.value);
      const condition: Condition = { table, key: at, version: entry.version };
      const operation = value ? ({ table, put: at, value } as const) : ({ table, remove: at } as const);
      if (await this.store.write([operation], [condition])) break;
    }
    const name = at.toString('latin1');
    const waiting = this.waiting.get(name) ?? [];
    this.waiting.delete(name);
    for (const wake of waiting) wake();
  }

  private keyOf({ space, node, advisor, phone, key: own }: OnceKey): Buffer {
    return key('once', space, node, this.store.hash(JSON.stringify([advisor, phone, own])));
  }
}

const opened = new WeakMap<Store, Once>();

export const onceIn = (store: Store): Once => {
  const once = opened.get(store) ?? new Once(store);
  opened.set(store, once);
  return once;
};

/** What was sent at a service is forgotten, for it has forgotten it, too: a simulator that was reset. */
export const forgetOnce = (store: Store, space: string): Promise<void> =>
  removeUnder(store, table, key('once', space));
