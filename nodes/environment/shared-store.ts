import { activityOf } from '../../lib/runtime/activity';
import type { Environment, StoreListener } from '../../lib/runtime/environment';
import { betterHolderOf, existingEverywhere, forgetRemovedNodes } from '../../lib/outbox/removed-nodes';
import { systemClock } from '../../lib/service/clock';
import type { PostgresHandle, Slot } from '../../lib/state/postgres';
import type { Store, StoreCommand } from '../../lib/state/store';
import { second } from '../../lib/durations';

/** Milliseconds between two attempts to hand on orphans. */
const handOnEvery = 2 * second;

/** What a shared store needs of its environment. */
export interface SharedStoreHost extends Environment {
  /** This environment, and its copies in other uses of the same subflow. */
  uses(): readonly { readonly sharedStore: SharedStore | undefined }[];
  /** The store was lost to another process: this one takes its place. */
  replaceStore(opening: Promise<Store>): void;
  /** Called with a slot before anything else uses it. */
  prepareStore(store: Store): Promise<void>;
  noteTrouble(trouble: string | undefined, isOpen: boolean, isGone: boolean): void;
  readonly changed: () => void;
  /** The most requests at once that were wanted since the last call. */
  load(): number;
  /** Carries out a command of another process; with `orphan`, for the work in the slot of an ended process. */
  handleCommand(command: StoreCommand, orphan: Store | undefined): Promise<boolean>;
}

/**
 * The store of an environment in a database that several processes share. This process has a slot of its own, and
 * carries on the slots of processes that end.
 */
export class SharedStore {
  private readonly listeners = new Set<StoreListener>();
  private handle: PostgresHandle | undefined;
  private own: Slot | undefined;
  private isRenewing = false;
  /** The slots of ended processes that this one has taken over. */
  private readonly orphans = new Set<Slot>();
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
    for (const slot of this.orphans) void listener(slot, 'orphan');
    return () => void this.listeners.delete(listener);
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
        if (slot === this.own) return this.environment.handleCommand(command, undefined);
        return this.orphans.has(slot) && this.environment.handleCommand(command, slot);
      }),
    ];
    this.look();
    return this.ready(handle);
  }

  /** A slot that is lost while it is prepared is replaced by the next. */
  private async ready(handle: PostgresHandle): Promise<Slot> {
    for (;;) {
      const slot = await handle.opened;
      try {
        await this.environment.prepareStore(slot);
        return (this.own = slot);
      } catch (fault) {
        if (!slot.peers.isLost) throw fault;
      }
    }
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
    for (const slot of this.orphans) if (slot.peers.isLost) void this.letGoOf(slot);
    if (handle && own?.peers.isLost && !this.isRenewing) this.renew(handle);
    environment.changed();
  }

  /** Forgets data of nodes that left the flow; `existing` are the nodes that this process has. */
  forgetRemovedNodes(existing: ReadonlySet<string> | undefined): void {
    this.existingNodes = existing;
    if (!existing) return;
    this.handOnLater();
    const forget = async (): Promise<void> => {
      const own = await this.environment.store();
      const everywhere = await existingEverywhere(own, existing, () => this.handle?.database.processes ?? 1);
      if (!everywhere) return;
      await forgetRemovedNodes(own, everywhere);
      for (const slot of this.orphans) await forgetRemovedNodes(slot, everywhere);
    };
    // The environment closes, or another process has the slot: the next start of the flows repeats this.
    forget().catch(() => undefined);
  }

  private renew(handle: PostgresHandle): void {
    this.isRenewing = true;
    const opening = this.ready(handle);
    this.environment.replaceStore(opening);
    opening
      .then((slot) => this.notifyNodes(slot, 'own'))
      // The environment closes.
      .catch(() => undefined)
      .finally(() => (this.isRenewing = false));
  }

  /** Carries on the work in the slot of an ended process. */
  private goOnWith(slot: Slot): void {
    this.orphans.add(slot);
    void this.notifyNodes(slot, 'orphan');
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
    for (const slot of [...this.orphans]) {
      const to = await betterHolderOf(slot, existingNodes);
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
    this.orphans.delete(slot);
    await this.notifyNodes(slot, 'gone');
  }
}
