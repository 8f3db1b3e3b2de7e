import { hour } from '../../../lib/durations';
import { waitOf, type Consent, type WaitItem, type WaitShared } from '../../../lib/consent/consent';
import { recommended } from '../../../lib/consent/pace';
import type { WaitOutcome } from '../../../lib/consent/consent-status';
import type { Outcome } from '../../../lib/outbox/outcome';
import { Queue } from '../../../lib/outbox/queue';
import { hosted, plainHost, type NodeHost } from './requests';

export const space = 'environment/service';

export interface WaitingNodeOptions<I extends WaitItem, O extends WaitShared, E> {
  readonly consent: Consent;
  readonly node?: string;
  readonly width?: number;
  readonly emit: NodeHost<I, O, E>['emit'];
  readonly outcomeOf: (outcome: WaitOutcome) => E;
  readonly kindsOf?: (outcome: E) => readonly string[];
  readonly fault?: (fault: unknown) => void;
  readonly changed?: () => void;
  /** The outcome of an item that nobody can wait for. */
  readonly atOnce?: (item: I) => E | undefined;
}

/** A node whose items wait. */
export class WaitingQueue<I extends WaitItem, O extends WaitShared, E = string> {
  readonly queue: Queue<I, O>;
  private readonly node: string;
  private detach: () => void = () => undefined;

  constructor(private readonly options: WaitingNodeOptions<I, O, E>) {
    const { consent, node = 'node', width = 16, emit, outcomeOf, fault, atOnce, kindsOf } = options;
    const { store, clock } = consent;
    this.node = node;
    this.queue = new Queue<I, O>({
      store,
      node,
      type: 'type',
      space,
      width,
      resumeWithin: hour,
      clock,
      ...hosted<I, O, E>({
        fault: fault ?? plainHost.fault,
        kindsOf: kindsOf ?? ((outcome) => [String(outcome)]),
        emit,
        work: async (item) => {
          const ended = atOnce?.(item.data);
          if (ended !== undefined) return ended;
          const outcome = await consent.look(item, node);
          return outcome && outcomeOf(outcome);
        },
        outcomeFor: async (item) => {
          const status = await consent.seenOf(waitOf(item));
          return outcomeOf({ kind: 'not_accepted', reason: 'cancelled', status });
        },
      }),
    });
  }

  get count(): number {
    return this.queue.waitCount;
  }

  async start(): Promise<void> {
    const { consent, outcomeOf, changed = () => undefined } = this.options;
    const decided = (outcome: WaitOutcome): Outcome => ({ port: 0, payload: outcomeOf(outcome) });
    this.detach = consent.attach(this.node, { queue: this.queue, outcomeOf: decided, changed });
    await this.queue.start();
  }

  /** Resolves when the items are saved. */
  accept(items: readonly I[], shared: O): Promise<void> {
    this.queue.accept({}, { shared: { pace: recommended, ...shared }, items, count: items.length });
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
