import type { Mutable } from '../mutable';
import { duplicatesOf, type Batch, type OutboxItem } from '../outbox/message-items';
import { QueueFull, type OutcomeToEmit } from '../outbox/queue';
import type { Input } from '../outbox/storable-message';
import type { Problem } from '../service/errors';
import { StoreClosed, TakenOver } from '../state/store';
import { activityOf } from './activity';
import { deliver } from './delivery';
import type { Environment } from './environment';
import { nodeError } from './errors';
import type { Tools } from './flow-node';
import { pathIn, type PropertyPath, type Source } from './inputs';
import { setAt, withoutList, type Job } from './job';
import { failedOutcome, problemOf, type Outcome } from './outcomes';
import type { Message } from './red';
import type { OutcomeStatus, ShownList } from './status';

/** One recipient of a message. */
export interface Item extends OutboxItem {
  /** The reason why nothing can be done for the item. */
  readonly wrong?: Problem;
}

/** What holds for all items of one message. */
export interface Order {
  readonly advisor: string;
  /** Set when an array came in: the id of its sequence, and where the message held the list. */
  readonly list?: { readonly id: string; readonly at?: PropertyPath };
}

/** The items of a message, as a node reads them. */
export interface ItemsOfMessage<T> {
  readonly items: readonly T[];
  /** Duplicates included. */
  readonly count: number;
  readonly entries?: readonly unknown[] | undefined;
  /** True when an array came in, even of one entry. */
  readonly list: boolean;
  readonly source: Source;
}

/** The error of a full outbox, as the flow gets it. */
const queueFullError = (thrown: unknown): unknown =>
  thrown instanceof QueueFull || thrown instanceof TakenOver ? nodeError('queue_full', 'queue_full') : thrown;

const indexesOf = ({ index, duplicates = [] }: Item): readonly number[] => [
  index,
  ...duplicates.map((each) => each.index),
];

/** How many outcomes of a list have left, by the names of the outputs. */
export type OutputCounts = Readonly<Record<string, number>>;

const codePrefix = 'code ';

/** The kinds under which `msg.summary` counts an outcome. */
const kindsIn = (tools: Tools, outcome: Outcome): readonly string[] => {
  const name = tools.outputs.nameOf(outcome);
  if (name === 'failed' && outcome.problem) return [name, codePrefix + outcome.problem.code];
  // `alreadySent` comes first, because duplicates are counted under the first kind.
  return outcome.alreadySent ? ['alreadySent', name] : [name];
};

/** Repeats and duplicates of texts that were sent. */
const alreadySentIn = (counts: OutputCounts): number =>
  (counts['alreadySent'] ?? 0) + (counts[duplicatesOf('sent')] ?? 0);

/** The counts of a list that has ended, as the status shows them. */
const shownCounts = (counts: OutputCounts): OutputCounts => ({
  ...counts,
  alreadySent: alreadySentIn(counts),
});

/** `msg.summary` without its id. */
const summaryOf = (tools: Tools, total: number, counts: OutputCounts): Record<string, unknown> => {
  const byCode: Record<string, number> = {};
  for (const [kind, count] of Object.entries(counts))
    if (kind.startsWith(codePrefix) && count > 0) byCode[kind.slice(codePrefix.length)] = count;
  const outputs = Object.fromEntries(tools.outputs.names.map((name) => [name, counts[name] ?? 0]));
  return { total, ...outputs, ...('sent' in outputs && { alreadySent: alreadySentIn(counts) }), byCode };
};

/** A message of which an item is in memory. */
interface MessageInMemory<O> {
  /** The `Job` of the message. */
  attachment: unknown;
  readonly input: Input & { readonly dropped: boolean };
  readonly record: { readonly shared: O; readonly count: number; readonly startId: string };
  readonly remaining: number;
}

/** Makes the job of a message that was read from the store, as the outcomes at `indexes` are about to leave. */
const jobOf = <O extends Order>(
  tools: Tools,
  openJob: MessageInMemory<O>,
  startId: string,
  indexes: readonly number[],
): Job => {
  if (openJob.attachment) return openJob.attachment as Job;
  const { message, entries, dropped } = openJob.input;
  const { list } = openJob.record.shared;
  // A Complete node gets the message as it came in.
  if (list?.at && entries) setAt(message, list.at, entries);
  const job = tools.resumed(message, openJob.record.startId === startId);
  // Others of the list may have left long before: the job is not in memory all the time.
  if (list)
    job.asList(openJob.record.count, {
      listAt: list.at,
      id: list.id,
      remaining: openJob.remaining + indexes.length,
    });
  if (dropped) tools.warnOfDropped();
  openJob.attachment = job;
  return job;
};

/** The outbox of a node: for requests, or for waits. */
interface ItemOutbox<T extends Item, O> {
  readonly startId: string;
  accept(input: Batch<T, O>, attachment: unknown): void | Promise<void>;
  reset(phones?: readonly string[], at?: number): void;
  close(): Promise<void>;
}

/**
 * The items that a flow node has accepted: each is on record before it begins, and its outcome is on record before it
 * is told. Work that a close, a kill or a deploy interrupts is carried on by the next node of the same id.
 */
export abstract class OutboxNode<T extends Item, O extends Order, B extends ItemOutbox<T, O>> {
  environment: Environment | undefined;
  protected outbox: B | undefined;
  protected started: Promise<void> | undefined;
  protected readonly unlisten: (() => void)[] = [];
  /** Resolves when the store is open, or cannot be opened; never rejects. */
  opening: Promise<void> | undefined;

  constructor(protected readonly tools: Tools) {
    // The store is opened in a microtask: this object is not whole before.
    this.opening = Promise.resolve()
      .then(() => this.open())
      .catch((thrown: unknown) => {
        this.notOpened(thrown);
      })
      .finally(() => {
        this.opening = undefined;
      });
  }

  /** Sets the outbox and the environment, and starts the outbox when the flows have started. */
  protected abstract open(): Promise<void>;

  /** Adds the message fields that the node writes as used; `index` is that of the item, or of a duplicate. */
  protected abstract completeOutcome(
    outcome: Outcome,
    shared: O,
    item: T,
    index: number,
    entry: unknown,
  ): Outcome;

  protected abstract readonly outcomeStatus: OutcomeStatus;

  /**
   * Accepts the items of a message; resolves when a list of waits is on record. `completeOrder` completes the order; if it throws,
   * each item fails.
   */
  accept(
    msg: Message,
    job: Job,
    taken: ItemsOfMessage<T>,
    completeOrder: (shared: Mutable<O>) => void,
  ): void | Promise<void> {
    // All other fields of an order are optional.
    const shared = { advisor: '' } as Mutable<O>;
    if (taken.list) {
      const listAt = pathIn(this.tools.RED, taken.source, msg);
      const id = job.asList(taken.count, { listAt });
      shared.list = listAt ? { id, at: listAt } : { id };
    }
    const refuseAll = (thrown: unknown): void => {
      this.refuseAll(job, shared, taken, thrown);
    };
    try {
      completeOrder(shared);
      return this.acceptJob(msg, job, shared, taken)?.catch(refuseAll);
    } catch (thrown) {
      refuseAll(thrown);
      return undefined;
    }
  }

  /** Cancels items that have not begun: all, or those for these numbers. */
  reset(phones?: readonly string[], at?: number): void {
    this.outbox?.reset(phones, at);
  }

  async close(): Promise<void> {
    // A long list may be accepted after another one.
    while (this.opening) await this.opening;
    await this.tools.allRead();
    for (const end of this.unlisten) end();
    await this.outbox?.close();
    await this.started;
  }

  kindsOf(outcome: Outcome): readonly string[] {
    return kindsIn(this.tools, outcome);
  }

  emit(openJob: MessageInMemory<O>, item: T, toEmit: OutcomeToEmit<Outcome>): Promise<boolean> {
    const left = this.deliverOutcome(openJob, item, toEmit);
    const { outcome, isLast, counts } = toEmit;
    const isList = openJob.record.count > 1;
    this.noteEmitted(outcome, isList ? { counts: isLast ? shownCounts(counts) : undefined } : undefined);
    return left;
  }

  /** Reports a fault of the store as an error of the node. */
  fault(fault: unknown): void {
    const { node, words } = this.tools;
    // The next start, or the process that has taken over the store, finds the work on record and carries it on.
    if (!(fault instanceof TakenOver || fault instanceof StoreClosed))
      node.error(words.problem(problemOf(fault)));
  }

  changed(): void {
    if (this.environment) activityOf(this.environment).changed();
  }

  protected acceptJob(
    msg: Message,
    job: Job,
    shared: O,
    { items, count, entries }: ItemsOfMessage<T>,
  ): void | Promise<void> {
    if (!this.outbox) throw nodeError('not_configured', 'no_environment');
    const onRecord = job.takeHandOver();
    const refused = (thrown: unknown): never => {
      onRecord?.();
      throw queueFullError(thrown);
    };
    try {
      // Entries are saved themselves: the list is not saved twice.
      const message = entries ? withoutList(msg, shared.list?.at) : msg;
      const accepted = this.outbox.accept({ message, shared, items, count, entries, onRecord }, job);
      this.changed();
      return accepted?.catch(refused);
    } catch (thrown) {
      return refused(thrown);
    }
  }

  protected notOpened(thrown: unknown): void {
    this.outcomeStatus.show(failedOutcome(problemOf(thrown)), {});
  }

  /** Shows an outcome in the status; without `list`, it is that of a single message. */
  protected noteEmitted(outcome: Outcome, list: ShownList | undefined): void {
    if (!list) this.outcomeStatus.note(outcome);
    this.outcomeStatus.show(outcome, list);
    this.changed();
  }

  /**
   * Lets an outcome leave, together with the duplicates of its item; false when the node closed first. An outcome that
   * did not arrive leaves again, so it is counted only when it has arrived.
   */
  private async deliverOutcome(
    openJob: MessageInMemory<O>,
    item: T,
    { outcome, repeated, counts, isLast, mark }: OutcomeToEmit<Outcome>,
  ): Promise<boolean> {
    const { tools } = this;
    const { shared, count } = openJob.record;
    const { entries } = openJob.input;
    const indexes = indexesOf(item);
    let job = jobOf(tools, openJob, this.outbox?.startId ?? '', indexes);
    let isFirst = true;
    let uncounted: (() => void)[] = [];
    const hasArrived = await deliver(tools.RED, tools.node, outcome.port, tools.closed, () => {
      if (!isFirst) job = job.anew();
      isFirst = false;
      uncounted = [];
      indexes.forEach((index, place) => {
        const whole = this.completeOutcome(outcome, shared, item, index, entries?.[index]);
        const summary =
          isLast && shared.list && place === indexes.length - 1 ? summaryOf(tools, count, counts) : undefined;
        const toCount = (each: () => void): void => {
          uncounted.push(each);
        };
        const entry = entries?.[index];
        job.emit(index, repeated ? { ...whole, repeated } : whole, { mark, summary, toCount, entry });
      });
    });
    if (hasArrived) for (const each of uncounted) each();
    return hasArrived;
  }

  private refuseAll(
    job: Job,
    shared: O,
    { items, entries, count }: ItemsOfMessage<T>,
    thrown: unknown,
  ): void {
    const why = failedOutcome(problemOf(thrown));
    // Whether a number can be read may depend on the country of an environment that is missing.
    const isUnready = why.problem?.code === 'not_configured';
    const counts: Record<string, number> = {};
    let left = count;
    for (const item of items)
      for (const index of indexesOf(item)) {
        const outcome = item.wrong && !isUnready ? failedOutcome(item.wrong) : why;
        for (const kind of kindsIn(this.tools, outcome)) counts[kind] = (counts[kind] ?? 0) + 1;
        left -= 1;
        const entry = entries?.[index];
        job.emit(index, this.completeOutcome(outcome, shared, item, index, entry), {
          entry,
          ...(shared.list && left === 0 && { summary: summaryOf(this.tools, count, counts) }),
        });
      }
    if (count > 1) this.outcomeStatus.show(why, { counts });
    else this.noteEmitted(why, undefined);
  }
}
