import { hour } from '../../../lib/durations';
import type { Consent } from '../../../lib/consent/consent';
import type { WaitItem, WaitShared } from '../../../lib/consent/look';
import { longestPause, recommended } from '../../../lib/consent/pace';
import type { WaitOutcome } from '../../../lib/consent/consent-status';
import type { Batch } from '../../../lib/outbox/message-items';
import { Queue, type AcceptedItem, type QueueHost } from '../../../lib/outbox/queue';
import { plainHost } from './requests';

export const space = 'environment/service';

export interface WaitingNodeOptions<I extends WaitItem, O extends WaitShared, E> {
  readonly consent: Consent;
  readonly node?: string;
  readonly width?: number;
  readonly emit: QueueHost<I, O, E>['emit'];
  readonly outcomeOf: (outcome: WaitOutcome) => E;
  readonly kindsOf?: (outcome: E) => readonly string[];
  readonly fault?: (fault: unknown) => void;
  readonly changed?: () => void;
  /** The outcome of an item that nobody can wait for. */
  readonly atOnce?: (item: I) => E | undefined;
}

/** A node whose items wait. */
export class WaitingQueue<I extends WaitItem, O extends WaitShared, E = string> {
  readonly queue: Queue<I, O, E>;
  private readonly node: string;
  private detach: () => void = () => undefined;

  constructor(private readonly options: WaitingNodeOptions<I, O, E>) {
    const { consent, node = 'node', width = 16, emit, outcomeOf, fault, atOnce, kindsOf } = options;
    const { store, clock, looks } = consent;
    this.node = node;
    this.queue = new Queue<I, O, E>({
      store,
      node,
      type: 'type',
      space,
      width,
      resumeWithin: hour,
      clock,
      waits: { clock, longestPause: ({ pace = recommended }) => longestPause(pace) },
      host: {
        held: () => undefined,
        fault: fault ?? plainHost.fault,
        kindsOf: kindsOf ?? ((outcome) => [String(outcome)]),
        emit,
        work: async (turn) => {
          const ended = atOnce?.(turn.item);
          if (ended !== undefined) return ended;
          const outcome = await looks.look(turn, node);
          return outcome && outcomeOf(outcome);
        },
        outcomeFor: async ({ seen, item, shared }: AcceptedItem<I, O>) => {
          const subject = item.phone === undefined ? { memberId: item.memberId ?? 0 } : { phone: item.phone };
          const status = await looks.seenOf({ seen, subject, advisor: item.advisor ?? shared.advisor });
          return outcomeOf({ kind: 'not_accepted', reason: 'cancelled', status });
        },
      },
    });
  }

  get count(): number {
    return this.queue.waitCount;
  }

  async start(): Promise<void> {
    const { consent, outcomeOf, changed = () => undefined } = this.options;
    this.detach = consent.attach(this.node, this.queue, outcomeOf, changed);
    await this.queue.start();
  }

  /** Resolves when the items are saved. */
  accept(items: readonly I[], shared: O): Promise<void> {
    const batch: Batch<I, O> = { message: {}, shared, items, count: items.length };
    this.queue.accept(batch, undefined);
    return this.queue.whenSaved();
  }

  flush(phones?: readonly string[]): void {
    this.queue.flush(phones).catch((fault: unknown) => {
      throw fault;
    });
  }

  reset(phones?: readonly string[], at?: number): void {
    this.queue.reset(phones, at);
  }

  async close(): Promise<void> {
    await this.queue.close();
    this.detach();
  }

  /** As a process that was killed. */
  stop(): void {
    this.detach();
  }
}
