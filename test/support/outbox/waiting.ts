import { hour } from '../../../lib/durations';
import { Waiting } from '../../../lib/consent/waiting';
import type { Wait, Waits } from '../../../lib/consent/waits';
import type { Batch, OutboxItem } from '../../../lib/outbox/message-items';
import { Queue, type QueueHost } from '../../../lib/outbox/queue';
import { systemClock, type Clock } from '../../../lib/service/clock';
import type { Operation, Store } from '../../../lib/state/store';
import { plainHost } from './requests';

export interface WaitingNodeOptions<I, O> {
  readonly store: Store;
  readonly waits: () => Waits;
  readonly waitOf: (name: Buffer, item: I, shared: O) => Wait;
  readonly emit: QueueHost<I & OutboxItem, O, string>['emit'];
  readonly fault?: (fault: unknown) => void;
  /** The outcome of an item that cannot be waited for. */
  readonly atOnce?: (item: I) => string | undefined;
  readonly space?: string;
  readonly clock?: Clock;
}

/** A node whose items wait. A cancelled one leaves with the reason. */
export class WaitingQueue<I extends OutboxItem, O> {
  readonly queue: Queue<I, O, string>;
  private readonly waiting: Waiting<I, O, string>;

  constructor({ store, waits, waitOf, emit, fault, atOnce, ...options }: WaitingNodeOptions<I, O>) {
    const { space = 'space', clock = systemClock } = options;
    const queue = new Queue<I, O, string>({
      store,
      node: 'node',
      type: 'type',
      space,
      width: 16,
      resumeWithin: hour,
      clock,
      isPatient: () => true,
      host: {
        ...plainHost,
        ...(fault && { fault }),
        emit,
        work: async (turn) => atOnce?.(turn.item) ?? this.waiting.park(turn),
        outcomeFor: async (accepted, reason) => {
          await this.waiting.forget(accepted);
          return reason;
        },
      },
    });
    this.queue = queue;
    this.waiting = new Waiting({ queue, store, node: 'node', space, waitsAt: waits, waitOf });
  }

  get count(): number {
    return this.waiting.count;
  }

  async start(): Promise<void> {
    await this.queue.start();
    await this.waiting.restoreLost();
  }

  /** Resolves when the items are saved. */
  accept(items: readonly I[], shared: O): Promise<void> {
    const batch: Batch<I, O> = { message: {}, shared, items, count: items.length };
    this.queue.accept(batch, undefined);
    return this.queue.whenSaved();
  }

  end(name: Buffer, outcome: string, removals: readonly Operation[] = []): Promise<void> {
    return this.waiting.end(name, outcome, removals);
  }

  restore(name: Buffer): Promise<boolean> {
    return this.waiting.restore(name);
  }

  flush(phones?: readonly string[]): void {
    this.waiting.flush(phones).catch((fault: unknown) => {
      throw fault;
    });
  }

  reset(phones?: readonly string[], at?: number): void {
    this.queue.reset(phones, at);
  }

  close(): Promise<void> {
    return this.queue.close();
  }
}
