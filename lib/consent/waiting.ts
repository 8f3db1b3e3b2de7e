import { Parked, type AcceptedItem, type Queue } from '../outbox/queue';
import type { OutboxItem } from '../outbox/message-items';
import { itemIn, itemName } from '../outbox/records';
import type { Operation, Store } from '../state/store';
import type { ConsentStatus } from './consent-status';
import type { Wait, Waits } from './waits';

export interface WaitingOptions<I extends OutboxItem, O, E> {
  readonly queue: Queue<I, O, E>;
  readonly store: Store;
  readonly node: string;
  /** The waits of the environment at the service that it points to, or pointed to. */
  readonly waitsAt: (space: string) => Waits;
  readonly space: string;
  readonly waitOf: (name: Buffer, item: I, shared: O) => Wait;
}

/** The most waits that are read to say in a status how many people wait. */
const countedWaits = 1000;

export interface Outlook {
  /** When the next poll is due. */
  readonly next: number;
  /** How many people wait; undefined with too many to count. */
  readonly people: number | undefined;
}

/** The waits of one node: each is a parked item of its queue, which the polls of the environment end. */
export class Waiting<I extends OutboxItem, O, E> {
  private readonly queue: Queue<I, O, E>;
  private readonly waits: Waits;

  constructor(private readonly options: WaitingOptions<I, O, E>) {
    this.queue = options.queue;
    this.waits = options.waitsAt(options.space);
  }

  get count(): number {
    return this.queue.waitingCount;
  }

  /** Parks an item: from now on it is polled. */
  park(accepted: AcceptedItem<I, O>): never {
    const { operations, committed } = this.waits.begin([this.waitOf(accepted)]);
    throw new Parked(operations, committed);
  }

  /** Called when a wait has ended: its outcome is saved together with `removals`. */
  end(name: Buffer, outcome: E, removals: readonly Operation[]): Promise<void> {
    const { arrival, index } = itemIn(name);
    return this.queue.end(arrival, index, outcome, removals);
  }

  /** No poll finds the item any more; gives the last known status of its number. */
  async forget(accepted: AcceptedItem<I, O>): Promise<ConsentStatus> {
    const waits = this.options.waitsAt(accepted.space);
    const { operations, seen, committed } = await waits.removals(this.waitOf(accepted));
    try {
      const status = await seen();
      if (operations.length > 0) await this.options.store.write(operations);
      return status;
    } finally {
      committed();
    }
  }

  /** Cancels one wait; false when it has ended. */
  cancel(name: Buffer): Promise<boolean> {
    const { arrival, index } = itemIn(name);
    return this.queue.cancelParked(arrival, index);
  }

  /** Polls one wait now; false when it has ended. */
  async check(name: Buffer): Promise<boolean> {
    const accepted = await this.queue.parkedItem(name);
    if (accepted) void this.waits.flush([this.waitOf(accepted)]);
    return accepted !== undefined;
  }

  /** Polls all waits now, or those for these numbers. */
  async flush(phones?: readonly string[]): Promise<void> {
    await this.queue.settled();
    await this.waits.flush(this.all(phones));
  }

  /** Writes the entries of a wait anew: polls cannot find it, because they were damaged. */
  async restore(name: Buffer): Promise<boolean> {
    const accepted = await this.queue.parkedItem(name);
    if (accepted?.space !== this.options.space) return false;
    const { operations, committed } = this.waits.begin([this.waitOf(accepted)]);
    try {
      await this.options.store.write(operations);
    } finally {
      committed();
    }
    return true;
  }

  /** Restores the waits whose entries were lost. */
  async restoreLost(): Promise<void> {
    if (!(await this.waits.hasLost())) return;
    for await (const accepted of this.queue.parked())
      if (!(await this.waits.isIntact(this.waitOf(accepted)))) await this.restore(this.nameOf(accepted));
  }

  /** Undefined when nothing waits. With more waits than are read, the next poll counts as due now. */
  async outlook(now: number): Promise<Outlook | undefined> {
    if (this.count === 0) return undefined;
    if (this.count > countedWaits) return { next: now, people: undefined };
    const people = new Set<unknown>();
    let next = Infinity;
    for await (const wait of this.all()) {
      people.add('phone' in wait.subject ? wait.subject.phone : wait.subject.memberId);
      next = Math.min(next, this.waits.next(wait));
    }
    return {
      next: next === Infinity ? now : Math.max(next, now),
      people: people.size > 0 ? people.size : undefined,
    };
  }

  private async *all(phones?: readonly string[]): AsyncGenerator<Wait> {
    for await (const accepted of this.queue.parked(phones)) yield this.waitOf(accepted);
  }

  private waitOf(accepted: AcceptedItem<I, O>): Wait {
    return this.options.waitOf(this.nameOf(accepted), accepted.item, accepted.shared);
  }

  private nameOf({ arrival, item }: AcceptedItem<I, O>): Buffer {
    return itemName(this.options.node, arrival, item.index);
  }
}
