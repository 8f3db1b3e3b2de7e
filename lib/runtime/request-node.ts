import { setImmediate as nextTurn } from 'node:timers/promises';
import { keysOf, records } from '../outbox/records';
import {
  Held,
  isResetBy,
  Queue,
  type AcceptedItem,
  type ItemTurn,
  type QueueHost,
  type Reason,
  type WaitOptions,
} from '../outbox/queue';
import { second } from '../durations';
import { systemClock } from '../service/clock';
import type { Mutable } from '../mutable';
import type { Problem } from '../service/errors';
import type { Client } from '../service/client';
import { ageClock, endOf, TakenOver } from '../state/store';
import { activityOf } from './activity';
import type { Environment } from './environment';
import { nodeError } from './errors';
import type { Handler, Tools } from './flow-node';
import type { Job } from './job';
import { OutboxNode, type Item, type Order } from './outbox-node';
import { failedOutcome, problemOf, type Outcome } from './outcomes';
import type { Message } from './red';
import { noSource } from './inputs';
import { heldLook, outcomeStatus, type OutcomeStatus, type StatusTexts } from './status';

/** One item whose work begins. */
export interface Turn<T, O> extends ItemTurn<T, O> {
  readonly environment: Environment;
  readonly client: Client;
}

/** What holds for all items of a node. */
export interface RequestNodeOptions<O> {
  readonly statusTexts: StatusTexts;
  /** The outcome of what is cancelled; a failure where the node has no other. */
  readonly cancelled?: (() => Outcome) | undefined;
  /** The node makes no request: it needs no service, and its items belong to none. */
  readonly isLocal?: boolean | undefined;
  /** The work may throw `Held`: items are put on record whatever `journal` says, so that they are not lost while held. */
  readonly mayHold?: boolean | undefined;
  /** For a node whose items may be waits: those of an earlier setting are saved whatever `journal` says. */
  readonly waits?: {
    readonly longestPause: WaitOptions<O>['longestPause'];
    /** All items are saved. */
    readonly isOn: boolean;
  };
}

/** The client of nodes that make no request. */
const noService: Client = {
  call: () => Promise.reject(nodeError('not_configured', 'no_environment')),
  pausedUntil: 0,
  close: () => Promise.resolve(),
};

/** A node whose items are worked on by requests. */
export abstract class RequestNode<T extends Item, O extends Order>
  extends OutboxNode<T, O, Queue<T, O, Outcome>>
  implements QueueHost<T, O, Outcome>, Handler
{
  /** How many were cancelled since the last warning, by the warning. */
  private readonly cancelled = { movedWork: 0, retypedWork: 0, moved: 0 };
  private forgetWarning: (() => void) | undefined;
  readonly outcomeStatus: OutcomeStatus;

  constructor(
    tools: Tools,
    private readonly requestOptions: RequestNodeOptions<O>,
  ) {
    super(tools);
    this.outcomeStatus = outcomeStatus(tools, requestOptions.statusTexts, () => this.outbox?.progress);
  }

  abstract input(msg: Message, job: Job): void | Promise<void>;

  /** From an item to its outcome. A throw becomes a failure. */
  protected abstract workOn(turn: Turn<T, O>): Promise<Outcome>;

  /** Ends a whole message with one failure, which is put on record as any outcome is. */
  refuse(
    msg: Message,
    job: Job,
    why: Problem,
    completeOrder: (shared: Mutable<O>) => void = () => undefined,
  ): void {
    // All other fields of an item are optional.
    const items = [{ index: 0, wrong: why } as T];
    void this.accept(msg, job, { items, count: 1, list: false, source: noSource }, completeOrder);
  }

  isBusy(): boolean {
    return this.outbox?.isBusy ?? false;
  }

  showFailure(failure: Outcome): void {
    this.noteEmitted(failure, undefined);
  }

  override async close(): Promise<void> {
    await super.close();
    this.warnOfCancelled();
  }

  async work(turn: ItemTurn<T, O>): Promise<Outcome | undefined> {
    if (turn.item.wrong) return failedOutcome(turn.item.wrong);
    try {
      const { environment } = this;
      if (!environment) throw nodeError('not_configured', 'no_environment');
      const client = this.requestOptions.isLocal ? noService : environment.client();
      const { item, shared, message, arrival, entry, name, space, acceptedAt, signal, store, delays } = turn;
      const { isWait, seen, dueAt, isOutOfTurn } = turn;
      return await this.workOn({
        ...{ item, shared, message, arrival, entry, name, space, acceptedAt, signal, store, delays },
        ...{ isWait, seen, dueAt, isOutOfTurn },
        begin: turn.begin,
        undo: turn.undo,
        atEnd: turn.atEnd,
        environment,
        client: client instanceof Promise ? await client : client,
      });
    } catch (thrown) {
      if (thrown instanceof Held) throw thrown;
      const why = problemOf(thrown);
      if (why.code !== 'cancelled') return failedOutcome(why);
      const isBrokenOff = turn.signal.aborted && !isResetBy(turn.signal);
      return isBrokenOff ? undefined : this.outcomeBy('reset');
    }
  }

  async outcomeFor(accepted: AcceptedItem<T, O>, reason: Reason): Promise<Outcome> {
    const isOnRecord = reason !== 'refused' && reason !== 'taken_over';
    if (isOnRecord && this.environment)
      await this.endsWithoutWork(this.environment, accepted, reason).catch((fault: unknown) => {
        // The process that has taken over the store does the same.
        if (!(fault instanceof TakenOver)) throw fault;
      });
    return this.outcomeBy(reason);
  }

  held(count: number, notBefore: number): void {
    const { status, words, now } = this.tools;
    status.show(() => heldLook(words, count, notBefore, now()));
  }

  /** Called before an item that is on record ends without its work. */
  protected endsWithoutWork(
    _environment: Environment,
    _accepted: AcceptedItem<T, O>,
    _reason: Reason,
  ): Promise<void> {
    return Promise.resolve();
  }

  protected override notOpened(thrown: unknown): void {
    if (problemOf(thrown).code !== 'not_configured') this.fault(thrown);
    super.notOpened(thrown);
  }

  protected async open(): Promise<void> {
    const { tools } = this;
    const environment = tools.environment();
    const { maxConcurrent, resumeWithin, textHours } = environment.settings;
    const { waits, mayHold } = this.requestOptions;
    const journal =
      environment.settings.journal ||
      waits?.isOn === true ||
      (mayHold === true && textHours?.outside === 'hold');
    const isKept = journal || (await this.isSavedFromBefore(environment));
    const store = await (isKept ? environment.store() : environment.memory());
    if (journal && !store.durable) tools.markUnsaved();
    const outbox = new Queue<T, O, Outcome>({
      store,
      node: tools.node.id,
      type: tools.node.type,
      space: this.requestOptions.isLocal ? `${environment.id}/local` : environment.space,
      width: maxConcurrent,
      resumeWithin,
      clock: environment.clock,
      ...(waits && { waits: { ...waits, clock: ageClock(environment, store) } }),
      host: this,
    });
    this.outbox = outbox;
    this.environment = environment;
    this.unlisten.push(
      environment.addPending(tools.node, () => outbox.reader.pending()),
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

  private outcomeBy(reason: Reason): Outcome {
    switch (reason) {
      case 'reset':
        return (
          this.requestOptions.cancelled?.() ?? failedOutcome(nodeError('cancelled', 'cancelled').problem)
        );
      case 'moved':
        this.noteCancelled('movedWork');
        return failedOutcome(nodeError('cancelled', 'environment_changed').problem);
      case 'retyped':
        this.noteCancelled('retypedWork');
        return failedOutcome(nodeError('cancelled', 'node_changed').problem);
      case 'stale':
        return failedOutcome(nodeError('stale', 'stale').problem);
      case 'crashes':
        return failedOutcome(
          nodeError('outcome_unknown', 'unknown_after_crashes', {}, { attempts: 1 }).problem,
        );
      case 'unknown':
      case 'taken_over':
        return failedOutcome(
          nodeError('outcome_unknown', 'unknown_after_restart', {}, { attempts: 1 }).problem,
        );
      case 'refused':
        return failedOutcome(nodeError('queue_full', 'queue_full').problem);
    }
  }

  /** Items that are cancelled at a start are found page by page: they are counted before the one warning. */
  protected noteCancelled(warning: keyof typeof this.cancelled): void {
    this.cancelled[warning] += 1;
    this.forgetWarning ??= systemClock.after(second, () => this.warnOfCancelled());
  }

  private warnOfCancelled(): void {
    const { cancelled } = this;
    const { node, words } = this.tools;
    this.forgetWarning?.();
    this.forgetWarning = undefined;
    if (cancelled.movedWork > 0)
      node.warn(words.say('warning.movedWork', { count: words.number(cancelled.movedWork) }));
    if (cancelled.retypedWork > 0)
      node.warn(words.say('warning.retypedWork', { count: words.number(cancelled.retypedWork) }));
    if (cancelled.moved > 0) node.warn(words.say('warning.moved', { count: words.number(cancelled.moved) }));
    Object.assign(cancelled, { movedWork: 0, retypedWork: 0, moved: 0 });
  }

  /** What is held or waits is saved whatever `journal` says, and goes on when the settings have changed. */
  private async isSavedFromBefore(environment: Environment): Promise<boolean> {
    const { mayHold, waits } = this.requestOptions;
    if (!mayHold && !waits) return false;
    try {
      const keys = keysOf(this.tools.node.id);
      const store = await environment.store();
      const counts = [keys.items, keys.waits].map((prefix) => store.count(records, prefix, endOf(prefix)));
      return (await Promise.all(counts)).some((count) => count > 0);
    } catch {
      return false;
    }
  }
}
