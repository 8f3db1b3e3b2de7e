import type { Draft } from '../draft';
import type { Client } from '../service/types';
import type { Resumed } from '../state/journal';
import { delivery } from './arrival';
import { Departures } from './departures';
import type { Environment } from './environment';
import { sharedBy, type Source } from './fields';
import type { Tools } from './flow-node';
import type { Job } from './job';
import { leftOver, openLedger, type Filed, type Item, type Kept, type Ledger } from './kept';
import { Landings } from './landings';
import { refuse } from './messages';
import { failure, problemOf, type Outcome } from './outcomes';
import type { Message } from './red';
import type { Order, Trade } from './trade';
import { progressOf, workOf, type Progress, type Work } from './work';

interface Open<T> {
  readonly environment: Environment;
  readonly ledger: Ledger<T>;
}

/** Why work was broken off that is not to be taken up again. */
const byOrder = 'reset';

/**
 * Does the work of one node, item by item: on record before it begins, its outcome on record before it is told. What a
 * close, a kill or a deploy interrupts is taken up by the next node of the same id.
 */
export class OnRecord<T extends Item, O extends Order> {
  private readonly works = new Set<Work<T, O>>();
  private readonly departures: Departures;
  private readonly landings: Landings;
  private readonly wentWrong: (fault: unknown) => void;
  private cancel = new AbortController();
  private isClosing = false;
  /** The last outcome could not be put on record: that is said once, and not for each of a list. */
  private isOffRecord = false;
  private open: Open<T> | undefined;
  /** What a predecessor left, until the flows have started and it is taken up. */
  private left: readonly Resumed<T, Kept>[] = [];
  /** What a predecessor left is read before the first message is taken, or it would be taken for its own; never fails. */
  opening: Promise<void> | undefined;

  constructor(
    private readonly tools: Tools,
    private readonly trade: Trade<T, O>,
  ) {
    this.wentWrong = (fault) => {
      tools.node.error(tools.words.problem(problemOf(fault)));
    };
    this.departures = new Departures(tools, () => this.isClosing, this.wentWrong);
    this.landings = new Landings(this.wentWrong);
    // A moment later: what the start tells may ask the node for this very record, which it does not hold yet.
    this.opening = Promise.resolve()
      .then(() => this.start())
      .finally(() => {
        this.opening = undefined;
      });
  }

  get environment(): Environment | undefined {
    return this.open?.environment;
  }

  get isBusy(): boolean {
    return this.works.size > 0;
  }

  progress(): Progress {
    return progressOf(this.works);
  }

  /**
   * Takes the items of a message on. `fill` completes the order, and what it throws fails each item; `begin` is for
   * whoever does something else with them.
   */
  take(
    msg: Message,
    job: Job,
    { items, list, source }: { items: readonly T[]; list: boolean; source: Source },
    fill: (order: Draft<O>) => void,
    begin = (order: O): void | Promise<void> => this.accept(msg, job, order, items),
  ): void | Promise<void> {
    // Whatever else an order has is optional.
    const order = { advisor: '' } as Draft<O>;
    if (list) {
      const shared = sharedBy(source);
      const id = job.asList(items.length, shared);
      order.list = shared === undefined ? { id } : { id, shared };
    }
    try {
      fill(order);
      return begin(order);
    } catch (thrown) {
      const why = failure(problemOf(thrown));
      for (const item of items) {
        job.leave(item.index, this.trade.dress(item.wrong ? failure(item.wrong) : why, order, item));
      }
      this.trade.told(why);
      return undefined;
    }
  }

  private accept(msg: Message, job: Job, order: O, items: readonly T[]): void {
    if (!this.open) throw refuse('not_configured', 'no_environment');
    const { ledger, environment } = this.open;
    const filed: Filed<O> = { order, environment: environment.id };
    const entry = ledger.accept({ message: msg, recipients: items, context: filed });
    const work = workOf<T, O>({ job, order, entry, items, total: items.length });
    this.works.add(work);
    this.run(environment, work);
  }

  /** Cancels what has not begun, on record, for the next node of this id may come at once; returns how many that were. */
  reset(): number {
    let cancelled = 0;
    for (const work of this.works) {
      const rest = work.items.slice(work.next);
      work.next = work.items.length;
      cancelled += rest.length;
      for (const item of rest) {
        const outcome = item.wrong ? failure(item.wrong) : this.trade.cancelled();
        this.landings.add(this.settle(work, item, outcome));
      }
    }
    for (const { open } of this.left) cancelled += open.filter(({ what }) => what === 'send').length;
    this.left = this.left.map((each) => this.cancelLeft(each));
    this.cancel.abort(byOrder);
    this.cancel = new AbortController();
    return cancelled;
  }

  /** What has not begun stays on record; what is under way lands first, or is unknown to the next node of this id. */
  async close(): Promise<void> {
    await this.opening;
    this.isClosing = true;
    this.cancel.abort();
    await this.landings.all();
    await delivery();
    await this.open?.ledger.settle();
  }

  private cancelLeft(left: Resumed<T, Kept>): Resumed<T, Kept> {
    const { order } = left.context as Filed<O>;
    const open = left.open.map((todo) => {
      if (todo.what !== 'send' || todo.recipient.wrong) return todo;
      const outcome = this.trade.dress(this.trade.cancelled(), order, todo.recipient);
      const kept: Kept = { outcome, untold: true };
      this.landings.add(left.entry.outcome(todo.index, kept));
      return { ...todo, what: 'tell' as const, outcome: kept };
    });
    return { ...left, open };
  }

  /** The client is there from the second message on; what must wait for it is on record by then. */
  private run(environment: Environment, work: Work<T, O>): void {
    const begin = (client: Client): void => {
      const lanes = Math.min(environment.settings.maxConcurrent, work.items.length);
      for (let lane = 0; lane < lanes; lane++) this.landings.add(this.pull(environment, client, work));
    };
    const refuseAll = (thrown: unknown): void => {
      const why = problemOf(thrown);
      for (const item of work.items.slice(work.next))
        this.landings.add(this.settle(work, item, failure(item.wrong ?? why)));
      work.next = work.items.length;
    };
    try {
      const client = environment.client();
      if (client instanceof Promise) client.then(begin, refuseAll);
      else begin(client);
    } catch (thrown) {
      refuseAll(thrown);
    }
  }

  private async pull(environment: Environment, client: Client, work: Work<T, O>): Promise<void> {
    while (!this.isClosing) {
      const item = work.items[work.next];
      if (!item) return;
      work.next += 1;
      try {
        await this.carryOut(environment, client, work, item);
      } catch (fault) {
        // The others of the list go on.
        this.wentWrong(fault);
      }
    }
  }

  private async carryOut(environment: Environment, client: Client, work: Work<T, O>, item: T): Promise<void> {
    if (item.wrong) return this.settle(work, item, failure(item.wrong));
    const request = { hasBegun: false };
    const { signal } = this.cancel;
    let outcome: Outcome;
    try {
      outcome = await this.trade.work({
        environment,
        client,
        order: work.order,
        item,
        signal,
        begin: () => {
          request.hasBegun = true;
          return work.entry.begin(item.index);
        },
      });
    } catch (thrown) {
      const why = problemOf(thrown);
      if (why.code !== 'cancelled') outcome = failure(why);
      else if (!this.isClosing || signal.reason === byOrder) outcome = this.trade.cancelled();
      else return request.hasBegun ? work.entry.undo(item.index) : undefined;
    }
    await this.settle(work, item, outcome);
  }

  /** Puts the outcome on record, then tells it, also when that failed; its duplicates go with it. */
  private async settle(work: Work<T, O>, item: T, outcome: Outcome): Promise<void> {
    const duplicates = work.duplicates.get(item.index);
    const items = duplicates ? [item, ...duplicates] : [item];
    const outcomes = items.map((each) => this.trade.dress(outcome, work.order, each));
    try {
      await this.record(work, items, outcomes);
      // The node may have begun to close meanwhile: then nobody is there to be told.
      if (this.isClosing) await this.record(work, items, outcomes);
      this.isOffRecord = false;
    } catch (fault) {
      if (!this.isOffRecord) this.wentWrong(fault);
      this.isOffRecord = true;
    }
    if (this.isClosing) return;
    items.forEach((each, position) => this.tell(work, each, outcomes[position] ?? outcome));
  }

  private async record(work: Work<T, O>, items: readonly T[], outcomes: readonly Outcome[]): Promise<void> {
    const { isClosing } = this;
    const onDisk = outcomes.map((outcome, position) =>
      work.entry.outcome(items[position]?.index ?? 0, isClosing ? { outcome, untold: true } : { outcome }),
    );
    await (onDisk.length === 1 ? onDisk[0] : Promise.all(onDisk));
  }

  private tell(work: Work<T, O>, item: T, outcome: Outcome): void {
    this.departures.leave(work.job, work.entry, item.index, outcome);
    work.left -= 1;
    if (outcome.port === 1) work.failed += 1;
    if (work.left === 0) this.works.delete(work);
    this.trade.told(outcome, work.left === 0 && work.total > 1 ? work.failed : 0);
  }

  private async start(): Promise<void> {
    const { tools } = this;
    try {
      const environment = tools.environment();
      const { ledger, isUnsaved } = await openLedger<T>(environment, tools.node.id);
      if (isUnsaved) tools.markUnsaved();
      this.left = await ledger.resume(environment.settings.resumeWithin);
      this.open = { environment, ledger };
      if (this.left.length === 0) return;
      // A turn later: an order to cancel it may be in line.
      tools.whenStarted(() => setImmediate(() => this.goOn(environment)));
    } catch (thrown) {
      const why = problemOf(thrown);
      if (why.code !== 'not_configured') tools.node.error(tools.words.problem(why));
      this.trade.told(failure(why));
    }
  }

  private goOn(environment: Environment): void {
    const { left } = this;
    this.left = [];
    if (this.isClosing) return;
    for (const each of left) {
      try {
        this.run(environment, this.takeUp(environment, each));
      } catch (fault) {
        // Another version may have left what this one does not know: that stays on record, and the rest goes on.
        this.wentWrong(fault);
      }
    }
  }

  /** Tells what a restart left to tell, and returns what it left to do. */
  private takeUp(
    { id }: Environment,
    { entry, message, dropped, context, count, open }: Resumed<T, Kept>,
  ): Work<T, O> {
    const { order, environment } = context as Filed<O>;
    const job = this.tools.resumed(message);
    if (order.list) job.asList(count, order.list.shared, order.list.id);
    if (dropped) this.tools.warnOfDropped();

    const { toDo, toTell, toSettle } = leftOver(open, environment === id);
    const work = workOf<T, O>({ job, order, entry, items: toDo, total: open.length });
    this.works.add(work);
    for (const { item, outcome } of toTell) this.tell(work, item, outcome);
    for (const { item, outcome } of toSettle) this.landings.add(this.settle(work, item, outcome));
    return work;
  }
}
