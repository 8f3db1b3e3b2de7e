import { activityOf } from '../../lib/runtime/activity';
import type { Environment, StoreListener } from '../../lib/runtime/environment';
import { lazy } from '../../lib/runtime/lazy';
import { systemClock } from '../../lib/service/clock';
import type { PostgresHandle, Slot } from '../../lib/state/postgres';
import type { Store, StoreCommand } from '../../lib/state/store';
import { second } from '../../lib/durations';

/** Milliseconds between two attempts to hand on orphans. */
const handOnEvery = 2 * second;

const storeOver = (slot: Slot): Store => lazy.postgres().storeOf(slot, () => Promise.resolve());

/** An environment over another store, which may be that of another process. */
const over = (environment: Environment, store: Store, isElsewhere = false): Environment =>
  new Proxy<Environment>(environment, {
    get(target, property, view) {
      if (property === 'store') return () => Promise.resolve(store);
      if (property === 'isElsewhere') return isElsewhere;
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function') return value;
      return (value as () => unknown).bind(property === 'isBlocked' ? view : target);
    },
  });

/** What a shared store needs of its environment. */
export interface SharedStoreHost extends Environment {
  /** This environment, and its copies in other uses of the same subflow. */
  uses(): readonly { readonly sharedStore: SharedStore | undefined }[];
  /** The store was lost to another process, and this one has taken its place. */
  replaceStore(store: Store): void;
  noteTrouble(trouble: string | undefined, isOpen: boolean, isGone: boolean): void;
  readonly changed: () => void;
  /** The most requests at once that were wanted since the last call. */
  load(): number;
  /** Carries out a command of another process; `view` is the environment over the slot of an ended process. */
  handleCommand(command: StoreCommand, view: Environment | undefined): Promise<boolean>;
}

/**
 * The store of an environment in a database that several processes share. This process has a slot of its own, carries
 * on the slots of processes that end, and can read those of the others: each is this environment over another store.
 */
export class SharedStore {
  private readonly listeners = new Set<StoreListener>();
  private handle: PostgresHandle | undefined;
  private own: Slot | undefined;
  private isRenewing = false;
  /** The environment over the store that replaced a lost one. */
  private renewed: Environment | undefined;
  /** The slots of ended processes that this one has taken over. */
  private readonly orphans = new Map<Slot, Environment>();
  private readonly viewsElsewhere = new WeakMap<Slot, Environment>();
  private existingNodes: ReadonlySet<string> | undefined;
  private handingOn: Promise<void> = Promise.resolve();
  private forgetHandOn: (() => void) | undefined;
  private endings: readonly (() => void)[] = [];

  constructor(private readonly environment: SharedStoreHost) {}

  /** How many of `most` requests at once this process may make: the processes share the limits. */
  share(most: number): number {
    return this.handle?.database.share(most) ?? most;
  }

  onStore(listener: StoreListener): () => void {
    this.listeners.add(listener);
    for (const view of this.orphans.values()) void listener(view, 'orphan');
    return () => {
      this.listeners.delete(listener);
    };
  }

  /** The environment over the other stores in which this process works. */
  views(): readonly Environment[] {
    return this.renewed ? [...this.orphans.values(), this.renewed] : [...this.orphans.values()];
  }

  /** The environment over the slots of other processes. */
  elsewhere(): readonly Environment[] {
    const slots = (this.own?.peers.others() ?? []).filter(({ kind }) => kind === 'elsewhere');
    return slots.map((slot) => {
      const view = this.viewsElsewhere.get(slot) ?? over(this.environment, slot, true);
      this.viewsElsewhere.set(slot, view);
      return view;
    });
  }

  async open(handle: PostgresHandle): Promise<Store> {
    this.handle = handle;
    const { database } = handle;
    this.endings = [
      database.onChange(() => this.look()),
      database.onOrphan((slot) => {
        this.goOnWith(slot);
        this.forgetRemovedNodes(this.existingNodes);
      }),
      database.addLoad(() => this.environment.load()),
      database.onNews(() => {
        activityOf(this.environment).changed();
        // Another process may now have the nodes of a slot that this one has taken over.
        this.handOnLater();
      }),
      database.onCommand(async (slot, command) => {
        const view = this.orphans.get(slot);
        return (slot === this.own || view !== undefined) && this.environment.handleCommand(command, view);
      }),
    ];
    this.look();
    this.own = await handle.opened;
    return storeOver(this.own);
  }

  async close(): Promise<void> {
    this.forgetHandOn?.();
    for (const end of this.endings) end();
    await this.handle?.close();
  }

  /** Checks which slots this process has lost; a lost slot of its own is replaced by a new one. */
  look(): void {
    const { handle, environment, own } = this;
    const { trouble, isGone = false } = handle?.database ?? {};
    environment.noteTrouble(trouble, own !== undefined, isGone);
    for (const [slot, view] of this.orphans) {
      if (!slot.peers.isLost) continue;
      this.orphans.delete(slot);
      void this.notifyNodes(view, 'gone');
    }
    if (own?.peers.isLost && !this.isRenewing) void this.renew();
    environment.changed();
  }

  /** Forgets data of nodes that left the flow; `existing` are the nodes that this process has. */
  forgetRemovedNodes(existing: ReadonlySet<string> | undefined): void {
    this.existingNodes = existing;
    if (!existing) return;
    this.handOnLater();
    const { existingEverywhere, forgetRemovedNodes } = lazy.removedNodes();
    const forget = async (): Promise<void> => {
      const own = await this.environment.store();
      const everywhere = await existingEverywhere(own, existing, () => this.handle?.database.processes ?? 1);
      if (!everywhere) return;
      await forgetRemovedNodes(own, everywhere);
      for (const view of this.orphans.values()) await forgetRemovedNodes(await view.store(), everywhere);
    };
    // The environment closes, or another process has the slot: the next start of the flows repeats this.
    forget().catch(() => undefined);
  }

  private async renew(): Promise<void> {
    this.isRenewing = true;
    try {
      const slot = await this.handle?.opened;
      if (!slot) return;
      this.own = slot;
      const store = storeOver(slot);
      this.environment.replaceStore(store);
      this.renewed = this.viewOver(store);
      void this.notifyNodes(this.renewed, 'own');
    } catch {
      // The environment closes.
    } finally {
      this.isRenewing = false;
    }
  }

  /**
   * The environment over another store in which this process carries on; changes there count as changes of this
   * environment.
   */
  private viewOver(store: Store): Environment {
    const view = over(this.environment, store);
    activityOf(view).changed = () => activityOf(this.environment).changed();
    return view;
  }

  /** Carries on the work in the slot of an ended process. */
  private goOnWith(slot: Slot): void {
    const view = this.viewOver(storeOver(slot));
    this.orphans.set(slot, view);
    void this.notifyNodes(view, 'orphan');
  }

  private async notifyNodes(...news: Parameters<StoreListener>): Promise<void> {
    await Promise.all(Array.from(this.listeners, async (listener) => listener(...news)));
  }

  /** Limits how often orphans are handed on: many pulses bring news. */
  private handOnLater(): void {
    if (this.orphans.size === 0 || this.forgetHandOn) return;
    this.forgetHandOn = systemClock.after(handOnEvery, () => {
      this.forgetHandOn = undefined;
      // Attempts run one after the other. One that fails is repeated with the next news.
      this.handingOn = this.handingOn.then(() => this.handOnOrphans()).catch(() => undefined);
    });
  }

  /** Hands on each orphan whose nodes only another process has. */
  private async handOnOrphans(): Promise<void> {
    const { existingNodes, handle } = this;
    if (!existingNodes || !handle) return;
    const { betterHolderOf } = lazy.removedNodes();
    for (const [slot, view] of [...this.orphans]) {
      const to = await betterHolderOf(await view.store(), existingNodes);
      if (to === undefined) continue;
      const uses = this.environment
        .uses()
        .flatMap(({ sharedStore }) => (sharedStore?.orphans.has(slot) ? [sharedStore] : []));
      await Promise.all(uses.map((each) => each.letGoOf(slot)));
      const isGone = await handle.database.handOn(slot, to).catch(() => false);
      if (!isGone && !slot.peers.isLost) for (const each of uses) each.goOnWith(slot);
    }
  }

  /** Resolves when nothing is under way in the slot any more. */
  private async letGoOf(slot: Slot): Promise<void> {
    const view = this.orphans.get(slot);
    this.orphans.delete(slot);
    if (view) await this.notifyNodes(view, 'gone');
  }
}
