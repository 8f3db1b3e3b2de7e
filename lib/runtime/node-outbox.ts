import { layout } from '../outbox/records';
import { endOf, TakenOver } from '../state/store';
import { systemClock } from '../service/clock';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Mutable } from '../mutable';
import { duplicatesOf, type OpenJob, type NodeItem as OutboxItem } from '../outbox/open-job';
import { QueueFull, type Leaving, type Reason } from '../outbox/outbox';
import { RequestOutbox, type RequestHost, type ItemTurn as OutboxTurn } from '../outbox/request-outbox';
import type { Problem } from '../service/errors';
import type { Client } from '../service/types';
import { activityOf } from './activity';
import { deliver } from './delivery';
import type { Environment } from './environment';
import { sharedBy, type Source } from './inputs';
import type { Tools } from './flow-node';
import type { Job } from './job';
import { nodeError } from './errors';
import { failedOutcome, problemOf, type Outcome } from './outcomes';
import type { Message } from './red';

/** One recipient of a message. */
export interface Item extends OutboxItem {
  /** The reason why nothing can be done for the item. */
  readonly wrong?: Problem;
}

/** What holds for all items of one message. */
export interface Order {
  readonly advisor: string;
  /** Set when an array came in: the id of its sequence, and the message property that holds the list. */
  readonly list?: { readonly id: string; readonly shared?: string };
  /** The time zone that the message gives for a single number. */
  readonly timeZone?: unknown;
  /** Nothing is sent: each item leaves as it would if it were sent. */
  readonly dryRun?: true;
}

/** One item whose work begins. */
export interface Turn<T, O> extends OutboxTurn {
  readonly environment: Environment;
  readonly client: Client;
  readonly order: O;
  readonly item: T;
  /** The entry of the list that the item was made from. */
  readonly entry: unknown;
  /** Unique among the items of this node, also over restarts. */
  readonly name: string;
  /** When the item was accepted, by the store's time. */
  readonly since: number;
  /** The same object for all items of a message. */
  readonly job: object;
}

/** A node's own part: from an item to its outcome. */
export interface ItemHandler<T, O> {
  /** A throw becomes a failure. */
  readonly work: (turn: Turn<T, O>) => Promise<Outcome>;
  /** Adds the message fields that the node writes as used; `index` is that of the item, or of one of its duplicates. */
  readonly addUsedFields: (outcome: Outcome, order: O, item: T, index: number, entry: unknown) => Outcome;
  /** The outcome of what is cancelled; a failure where the node has no other. */
  readonly cancelled?: (() => Outcome) | undefined;
  /** The node makes no request: it needs no service, and its items belong to none. */
  readonly isLocal?: boolean | undefined;
  /** Called when an item ends without its work; `space` is where it was accepted. */
  readonly dropped?: (order: O, item: T, name: string, reason: Reason, space: string) => Promise<void>;
  /** Called with the number of held items, and the time until which the first is held. */
  readonly held?: (count: number, notBefore: number) => void;
  /** Called when the store is open. */
  readonly opened?: (environment: Environment) => void;
  /** `counts` come with the last outcome of a list: how many left by each output. */
  readonly emitted: (outcome: Outcome, counts?: Readonly<Record<string, number>>) => void;
}

/** The items of a message, as a node reads them. */
export interface TakenItems<T> {
  readonly items: readonly T[];
  /** Duplicates included. */
  readonly count: number;
  readonly entries?: readonly unknown[] | undefined;
  /** True when an array came in, even of one entry. */
  readonly list: boolean;
  readonly source: Source;
}

/** The error of a full outbox, as the flow gets it. */
export const queueFullError = (thrown: unknown): unknown =>
  thrown instanceof QueueFull || thrown instanceof TakenOver ? nodeError('queue_full', 'queue_full') : thrown;

/** Reports a fault of the store as an error of the node. */
export const reportFault = ({ node, words }: Tools, fault: unknown): void => {
  // The process that has taken over the store carries on its work, and the store has reported the loss.
  if (!(fault instanceof TakenOver)) node.error(words.problem(problemOf(fault)));
};

/** The client of nodes that make no request. */
const noService: Client = {
  call: () => Promise.reject(nodeError('not_configured', 'no_environment')),
  pausedUntil: 0,
  close: () => Promise.resolve(),
};

const indexesOf = ({ index, duplicates = [] }: Item): readonly number[] => [
  index,
  ...duplicates.map((each) => each.index),
];

const itemName = (open: { readonly arrival: Buffer }, { index }: Item): string =>
  `${open.arrival.toString('hex')} ${index}`;

const codePrefix = 'code ';

/** The kinds under which `msg.summary` counts an outcome. */
export const kindsIn = (tools: Tools, outcome: Outcome): readonly string[] => {
  const name = tools.exit.nameOf(outcome);
  if (name === 'failed' && outcome.problem) return [name, codePrefix + outcome.problem.code];
  // `alreadySent` comes first, because duplicates are counted under the first kind.
  return outcome.alreadySent ? ['alreadySent', name] : [name];
};

/** `msg.summary` without its id. */
const summaryOf = (
  tools: Tools,
  total: number,
  counts: Readonly<Record<string, number>>,
): Record<string, unknown> => {
  const byCode: Record<string, number> = {};
  for (const [kind, count] of Object.entries(counts))
    if (kind.startsWith(codePrefix) && count > 0) byCode[kind.slice(codePrefix.length)] = count;
  const outputs = Object.fromEntries(tools.outputs.map((name) => [name, counts[name] ?? 0]));
  const alreadySent = (counts['alreadySent'] ?? 0) + (counts[duplicatesOf('sent')] ?? 0);
  return { total, ...outputs, ...('sent' in outputs && { alreadySent }), byCode };
};

/** Makes the job of a message that was read from the store. */
const jobOf = <T extends Item, O extends Order>(
  tools: Tools,
  open: OpenJob<T, O, Outcome>,
  life: string,
): Job => {
  if (open.attachment) return open.attachment as Job;
  const { message, dropped } = open.input;
  const { list } = open.record.order;
  const job = tools.resumed(message, open.record.life === life);
  if (list) job.asList(open.record.count, list.shared, list.id);
  if (dropped) tools.warnOfDropped();
  open.attachment = job;
  return job;
};

/**
 * Lets an outcome leave, together with the duplicates of its item; false when the node closed first. An outcome that
 * did not arrive leaves again, so it is counted only when it has arrived.
 */
export const emitOutcome = async <T extends Item, O extends Order>(
  tools: Tools,
  open: OpenJob<T, O, Outcome>,
  life: string,
  item: T,
  { outcome, repeated, counts, isLast, mark }: Leaving<Outcome>,
  addUsedFields: ItemHandler<T, O>['addUsedFields'],
): Promise<boolean> => {
  const { RED, node, closed } = tools;
  const { order, count } = open.record;
  const { entries } = open.input;
  const indexes = indexesOf(item);
  let job = jobOf(tools, open, life);
  let isFirst = true;
  let uncounted: (() => void)[] = [];
  const hasArrived = await deliver(RED, node, outcome.port, closed, () => {
    if (!isFirst) job = job.anew();
    isFirst = false;
    uncounted = [];
    indexes.forEach((index, place) => {
      const whole = addUsedFields(outcome, order, item, index, entries?.[index]);
      const summary =
        isLast && order.list && place === indexes.length - 1 ? summaryOf(tools, count, counts) : undefined;
      const toCount = (each: () => void): void => {
        uncounted.push(each);
      };
      job.leave(index, repeated ? { ...whole, repeated } : whole, { mark, summary, toCount });
    });
  });
  if (hasArrived) for (const each of uncounted) each();
  return hasArrived;
};

/**
 * The items that a flow node has accepted: each is on record before it begins, and its outcome is on record before it
 * is told. Work that a close, a kill or a deploy interrupts is carried on by the next node of the same id.
 */
export class NodeOutbox<T extends Item, O extends Order> implements RequestHost<T, O, Outcome> {
  private outbox: RequestOutbox<T, O, Outcome> | undefined;
  environment: Environment | undefined;
  private unlist: (() => void) | undefined;
  private moved = 0;
  private forgetWarning: (() => void) | undefined;
  /** Resolves when the store is open, or cannot be opened; never rejects. */
  opening: Promise<void> | undefined;
  private started: Promise<void> | undefined;

  constructor(
    private readonly tools: Tools,
    private readonly handler: ItemHandler<T, O>,
  ) {
    // The store is opened in a microtask: callbacks of the opening may need this object, which its owner does not have
    // yet.
    this.opening = Promise.resolve()
      .then(() => this.open())
      .catch((thrown: unknown) => {
        const why = problemOf(thrown);
        if (why.code !== 'not_configured') this.fault(thrown);
        handler.emitted(failedOutcome(why));
      })
      .finally(() => {
        this.opening = undefined;
      });
  }

  get isBusy(): boolean {
    return this.outbox?.isBusy ?? false;
  }

  progress(): { readonly done: number; readonly total: number } {
    return this.outbox?.progress ?? { done: 0, total: 0 };
  }

  /**
   * Accepts the items of a message. `fill` completes the order; if it throws, each item fails. A node that does something
   * else with the items gives its own `begin`.
   */
  take(
    msg: Message,
    job: Job,
    taken: TakenItems<T>,
    fill: (order: Mutable<O>) => void,
    begin = (order: O): void | Promise<void> => {
      this.accept(msg, job, order, taken);
    },
  ): void | Promise<void> {
    // All other fields of an order are optional.
    const order = { advisor: '' } as Mutable<O>;
    if (taken.list) {
      const shared = sharedBy(taken.source);
      const id = job.asList(taken.count, shared);
      order.list = shared === undefined ? { id } : { id, shared };
    }
    const refuseAll = (thrown: unknown): void => {
      this.refuseAll(job, order, taken, thrown);
    };
    try {
      fill(order);
      return begin(order)?.catch(refuseAll);
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
    await this.opening;
    this.unlist?.();
    await this.outbox?.close();
    await this.started;
    this.warnOfMoved();
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

  work(open: OpenJob<T, O, Outcome>, item: T, turn: OutboxTurn): Promise<Outcome> {
    if (item.wrong) return Promise.resolve(failedOutcome(item.wrong));
    const { environment } = this;
    if (!environment) throw nodeError('not_configured', 'no_environment');
    const client = this.handler.isLocal ? noService : environment.client();
    const begin = (ready: Client): Promise<Outcome> => {
      const entry = open.input.entries?.[item.index];
      return this.handler.work({
        ...turn,
        environment,
        client: ready,
        order: open.record.order,
        item,
        entry,
        name: itemName(open, item),
        since: open.record.at,
        job: open,
      });
    };
    return client instanceof Promise ? client.then(begin) : begin(client);
  }

  failed(thrown: unknown, isBrokenOff: boolean): Outcome | undefined {
    const why = problemOf(thrown);
    if (why.code !== 'cancelled') return failedOutcome(why);
    return isBrokenOff ? undefined : this.ended('reset');
  }

  ended(reason: Reason): Outcome {
    switch (reason) {
      case 'reset':
        return this.handler.cancelled?.() ?? failedOutcome(nodeError('cancelled', 'cancelled').problem);
      case 'moved':
        this.noteMoved();
        return failedOutcome(nodeError('cancelled', 'environment_changed').problem);
      case 'stale':
        return failedOutcome(nodeError('stale', 'stale').problem);
      case 'unknown':
        return failedOutcome(
          nodeError('outcome_unknown', 'unknown_after_restart', {}, { attempts: 1 }).problem,
        );
      case 'refused':
        return failedOutcome(nodeError('queue_full', 'queue_full').problem);
    }
  }

  async dropped(open: OpenJob<T, O, Outcome>, item: T, reason: Reason): Promise<void> {
    const { order, space } = open.record;
    await this.handler.dropped?.(order, item, itemName(open, item), reason, space);
  }

  held(count: number, notBefore: number): void {
    this.handler.held?.(count, notBefore);
  }

  /** Items that are held for the number are judged again. */
  release(phone: string): void {
    this.outbox?.release(phone);
  }

  kindsOf(outcome: Outcome): readonly string[] {
    return kindsIn(this.tools, outcome);
  }

  async emit(open: OpenJob<T, O, Outcome>, item: T, leaving: Leaving<Outcome>): Promise<boolean> {
    const left = emitOutcome(this.tools, open, this.outbox?.life ?? '', item, leaving, (...args) =>
      this.handler.addUsedFields(...args),
    );
    const { outcome, isLast, counts } = leaving;
    this.handler.emitted(outcome, isLast && open.record.count > 1 ? counts : undefined);
    this.hasChanged();
    return left;
  }

  fault(fault: unknown): void {
    reportFault(this.tools, fault);
  }

  /** Held texts are on record whatever `journal` says, and leave also when the environment has no text hours any more. */
  private async isHeldFromBefore(environment: Environment): Promise<boolean> {
    if (!this.handler.held) return false;
    try {
      const { jobs } = layout(this.tools.node.id);
      return (await (await environment.store()).count('work', jobs, endOf(jobs))) > 0;
    } catch {
      return false;
    }
  }

  private async open(): Promise<void> {
    const { tools } = this;
    const environment = tools.environment();
    const { maxConcurrent, resumeWithin, textHours } = environment.settings;
    // Items that may be held are on record, whatever `journal` says.
    const journal =
      environment.settings.journal || (this.handler.held !== undefined && textHours?.outside === 'hold');
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
    this.handler.opened?.(environment);
    const unlist = [
      environment.addPending(this.tools.node, () => outbox.reader.count()),
      activityOf(environment).add({ id: tools.node.id, name: tools.node.name ?? '' }, outbox),
    ];
    this.unlist = () => {
      for (const each of unlist) each();
    };
    tools.whenStarted(() => {
      // The start waits one turn of the event loop, because an order to cancel may be in line.
      this.started = nextTurn()
        // Flows that are stopped right after their start have closed the store by now.
        .then(() => (tools.closed.aborted ? undefined : outbox.start()))
        .catch((fault: unknown) => {
          this.fault(fault);
        });
    });
  }

  private accept(msg: Message, job: Job, order: O, { items, count, entries }: TakenItems<T>): void {
    if (!this.outbox) throw nodeError('not_configured', 'no_environment');
    const onRecord = job.takeHandOver();
    try {
      this.outbox.accept({ message: msg, order, items, count, entries, onRecord }, job);
      this.hasChanged();
    } catch (thrown) {
      onRecord?.();
      throw queueFullError(thrown);
    }
  }

  private hasChanged(): void {
    if (this.environment) activityOf(this.environment).changed();
  }

  private refuseAll(job: Job, order: O, { items, entries, count }: TakenItems<T>, thrown: unknown): void {
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
        job.leave(index, this.handler.addUsedFields(outcome, order, item, index, entries?.[index]), {
          ...(order.list && left === 0 && { summary: summaryOf(this.tools, count, counts) }),
        });
      }
    this.handler.emitted(why);
  }
}
