import { setImmediate as nextTurn } from 'node:timers/promises';
import type { OpenJob } from '../outbox/open-job';
import type { Reason } from '../outbox/outbox';
import { layout } from '../outbox/records';
import {
  Held,
  isResetBy,
  RequestOutbox,
  type RequestHost,
  type ItemTurn as OutboxTurn,
} from '../outbox/request-outbox';
import { systemClock } from '../service/clock';
import type { Client } from '../service/types';
import { endOf, TakenOver } from '../state/store';
import { activityOf } from './activity';
import type { Environment } from './environment';
import { nodeError } from './errors';
import type { Tools } from './flow-node';
import { NodeOutbox, type CompleteOutcome, type Item, type Order, type ShowOutcome } from './node-outbox';
import { failedOutcome, problemOf, type Outcome } from './outcomes';
import { heldLook } from './status';

/** An item that a node has accepted, and where. */
export interface AcceptedItem<T, O> {
  readonly environment: Environment;
  readonly order: O;
  readonly item: T;
  /** Unique among the items of this node, also over restarts. */
  readonly name: string;
  /** The service for which the item was accepted. */
  readonly space: string;
}

/** One item whose work begins. */
export interface Turn<T, O> extends AcceptedItem<T, O>, OutboxTurn {
  readonly client: Client;
  /** The entry of the list that the item was made from. */
  readonly entry: unknown;
  /** When the item was accepted, by the store's time. */
  readonly since: number;
  /** The same object for all items of a message. */
  readonly openJob: object;
}

/** A node's own part: from an item to its outcome. */
export interface ItemHandler<T, O> {
  /** A throw becomes a failure. */
  readonly work: (turn: Turn<T, O>) => Promise<Outcome>;
  readonly completeOutcome: CompleteOutcome<T, O>;
  readonly show: ShowOutcome;
  /** The outcome of what is cancelled; a failure where the node has no other. */
  readonly cancelled?: (() => Outcome) | undefined;
  /** The node makes no request: it needs no service, and its items belong to none. */
  readonly isLocal?: boolean | undefined;
  /** The work may throw `Held`: items are put on record whatever `journal` says, so that they are not lost while held. */
  readonly mayHold?: boolean | undefined;
  /** Called when an item ends without its work. */
  readonly endedWithoutWork?: ((accepted: AcceptedItem<T, O>, reason: Reason) => Promise<void>) | undefined;
}

/** The client of nodes that make no request. */
const noService: Client = {
  call: () => Promise.reject(nodeError('not_configured', 'no_environment')),
  pausedUntil: 0,
  close: () => Promise.resolve(),
};

/** The items of a node whose work is a request. */
export class NodeRequests<T extends Item, O extends Order>
  extends NodeOutbox<T, O, RequestOutbox<T, O, Outcome>>
  implements RequestHost<T, O, Outcome>
{
  private moved = 0;
  private forgetWarning: (() => void) | undefined;

  constructor(
    tools: Tools,
    private readonly handler: ItemHandler<T, O>,
  ) {
    super(tools, handler.completeOutcome, handler.show);
  }

  get isBusy(): boolean {
    return this.outbox?.isBusy ?? false;
  }

  progress(): { readonly done: number; readonly total: number } {
    return this.outbox?.progress ?? { done: 0, total: 0 };
  }

  override async close(): Promise<void> {
    await super.close();
    this.warnOfMoved();
  }

  /** Items that are held for the number are judged again. */
  judgeAgain(phone: string): void {
    this.outbox?.judgeAgain(phone);
  }

  async work(openJob: OpenJob<T, O, Outcome>, item: T, turn: OutboxTurn): Promise<Outcome | undefined> {
    if (item.wrong) return failedOutcome(item.wrong);
    try {
      const accepted = this.acceptedItem(openJob, item);
      const client = this.handler.isLocal ? noService : accepted.environment.client();
      return await this.handler.work({
        ...turn,
        ...accepted,
        client: client instanceof Promise ? await client : client,
        entry: openJob.input.entries?.[item.index],
        since: openJob.record.at,
        openJob,
      });
    } catch (thrown) {
      if (thrown instanceof Held) throw thrown;
      const why = problemOf(thrown);
      if (why.code !== 'cancelled') return failedOutcome(why);
      const isBrokenOff = turn.signal.aborted && !isResetBy(turn.signal);
      return isBrokenOff ? undefined : this.outcomeWithoutWork('reset');
    }
  }

  async endWithoutWork(openJob: OpenJob<T, O, Outcome>, item: T, reason: Reason): Promise<Outcome> {
    const isOnRecord = reason !== 'refused' && reason !== 'taken_over';
    if (isOnRecord && this.environment)
      await this.handler
        .endedWithoutWork?.(this.acceptedItem(openJob, item), reason)
        .catch((fault: unknown) => {
          // The process that has taken over the store does the same.
          if (!(fault instanceof TakenOver)) throw fault;
        });
    return this.outcomeWithoutWork(reason);
  }

  held(count: number, notBefore: number): void {
    const { status, words, now } = this.tools;
    status.show(() => heldLook(words, count, notBefore, now()));
  }

  protected override notOpened(thrown: unknown): void {
    if (problemOf(thrown).code !== 'not_configured') this.fault(thrown);
    super.notOpened(thrown);
  }

  protected async open(): Promise<void> {
    const { tools } = this;
    const environment = tools.environment();
    const { maxConcurrent, resumeWithin, textHours } = environment.settings;
    const journal =
      environment.settings.journal || (this.handler.mayHold === true && textHours?.outside === 'hold');
    const isKept = journal || (await this.isHeldFromBefore(environment));
    const store = await (isKept ? environment.store() : environment.memory());
    if (journal && !store.durable) tools.markUnsaved();
    const outbox = new RequestOutbox<T, O, Outcome>({
      store,
      node: tools.node.id,
      space: this.handler.isLocal ? `${environment.id}/local` : environment.space,
      width: maxConcurrent,
      resumeWithin,
      clock: environment.clock,
      host: this,
    });
    this.outbox = outbox;
    this.environment = environment;
    this.unlisten.push(
      environment.addPending(tools.node, () => outbox.reader.count()),
      activityOf(environment).add({ id: tools.node.id, name: tools.node.name ?? '' }, outbox),
    );
    tools.whenStarted(() => {
      // The start waits one turn of the event loop, because a reset may be in line.
      this.started = nextTurn()
        // Flows that are stopped right after their start have closed the store by now.
        .then(() => (tools.closed.aborted ? undefined : outbox.start()))
        .catch((fault: unknown) => {
          this.fault(fault);
        });
    });
  }

  private acceptedItem(openJob: OpenJob<T, O, Outcome>, item: T): AcceptedItem<T, O> {
    const { environment } = this;
    if (!environment) throw nodeError('not_configured', 'no_environment');
    const { order, space } = openJob.record;
    return { environment, order, item, name: `${openJob.arrival.toString('hex')} ${item.index}`, space };
  }

  private outcomeWithoutWork(reason: Reason): Outcome {
    switch (reason) {
      case 'reset':
        return this.handler.cancelled?.() ?? failedOutcome(nodeError('cancelled', 'cancelled').problem);
      case 'moved':
        this.noteMoved();
        return failedOutcome(nodeError('cancelled', 'environment_changed').problem);
      case 'stale':
        return failedOutcome(nodeError('stale', 'stale').problem);
      case 'unknown':
      case 'taken_over':
        return failedOutcome(
          nodeError('outcome_unknown', 'unknown_after_restart', {}, { attempts: 1 }).problem,
        );
      case 'refused':
        return failedOutcome(nodeError('queue_full', 'queue_full').problem);
    }
  }

  /** Items that were accepted for another service are found page by page: they are counted before the one warning. */
  private noteMoved(): void {
    this.moved += 1;
    this.forgetWarning ??= systemClock.after(1000, () => this.warnOfMoved());
  }

  private warnOfMoved(): void {
    const { node, words } = this.tools;
    this.forgetWarning?.();
    this.forgetWarning = undefined;
    if (this.moved > 0) node.warn(words.say('warning.movedWork', { count: words.number(this.moved) }));
    this.moved = 0;
  }

  /** Held texts are on record whatever `journal` says, and leave also when the environment has no text hours any more. */
  private async isHeldFromBefore(environment: Environment): Promise<boolean> {
    if (!this.handler.mayHold) return false;
    try {
      const { jobs } = layout(this.tools.node.id);
      return (await (await environment.store()).count('work', jobs, endOf(jobs))) > 0;
    } catch {
      return false;
    }
  }
}
