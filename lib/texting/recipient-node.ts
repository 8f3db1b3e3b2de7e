import { doNotTextOf, type BlockedBy } from '../guards/do-not-text';
import type { Mutable } from '../mutable';
import { readAll, type Source } from '../runtime/inputs';
import { refuse } from '../runtime/errors';
import { isOrder, type Handler, type Tools } from '../runtime/flow-node';
import type { Job } from '../runtime/job';
import { NodeOutbox, type Order, type Turn } from '../runtime/node-outbox';
import { outcomeStatus, type Said } from '../runtime/outcome-status';
import { problemOf, type Outcome } from '../runtime/outcomes';
import type { Message } from '../runtime/red';
import { ServiceError } from '../service/errors';
import { isDryRun, phonesOrdered, withUsedFields, type Recipient, type Recipients } from './recipients';

/** The recipients of a message, and what holds for all of them. */
export interface Reading<T extends Recipient, O extends Order> extends Recipients<T> {
  /** Completes the order; what it throws fails each recipient. */
  readonly complete: (order: Mutable<O>) => void;
}

/** One recipient's turn. */
export interface GuardedTurn<T, O> extends Turn<T, O> {
  /** For `client.call`: asks before each attempt whether it may be made. */
  readonly permit?: () => Promise<() => void>;
}

export interface RecipientNodeOptions<T extends Recipient, O extends Order> {
  /** The property that says who. */
  readonly source: Source;
  /** What it throws fails the message. */
  readonly read: (msg: Message, country: string) => Reading<T, O> | Promise<Reading<T, O>>;
  /** It texts people: the guards are asked. */
  readonly isGuarded?: true;
  /** What may not leave as it is: throws `invalid_input`. */
  readonly check?: (recipient: T) => void;
  /** From a recipient to an outcome. What it throws becomes a failure. */
  readonly work: (turn: GuardedTurn<T, O>) => Promise<Outcome>;
  /** The same for `msg.dryRun`: makes no request that sends or asks anything. */
  readonly dryRun: (turn: Turn<T, O>) => Promise<Outcome>;
  readonly cancelled: () => Outcome;
  readonly said: Said;
  /** What an outcome says besides, also of a duplicate, whose place in the list is `index`. */
  readonly complement?: (outcome: Mutable<Outcome>, order: O, recipient: T, index: number) => Outcome;
}

/** One recipient's turn, where there is nothing special about either. */
export type RecipientTurn = GuardedTurn<Recipient, Order>;

/** For nodes that read no more of a message than whose advisor it is for, and who. */
export const readWith =
  <O extends Order>(
    tools: Tools,
    source: Source,
    recipientsIn: (value: unknown, country: string) => Recipients,
    complete?: (order: Mutable<O>, msg: Message) => void,
  ): RecipientNodeOptions<Recipient, O>['read'] =>
  (msg, country) => {
    const reading = ([advisor, who]: readonly unknown[]): Reading<Recipient, O> => ({
      ...recipientsIn(who, country),
      complete(order) {
        order.advisor = tools.advisor(tools.environment(), advisor, msg);
        complete?.(order, msg);
      },
    });
    const values = readAll([tools.advisorSource, source], msg);
    return values instanceof Promise ? values.then(reading) : reading(values);
  };

const refusalBy = (by: BlockedBy): ServiceError =>
  by === 'unreadable' ? refuse('blocked', 'blocked_unreadable') : refuse('blocked', 'blocked');

/** The way of a message through a texting node: to its recipients, onto the record, and to one outcome for each. */
export class RecipientNode<T extends Recipient = Recipient, O extends Order = Order> implements Handler {
  private readonly outbox: NodeOutbox<T, O>;
  readonly show: (outcome: Outcome, counts?: Readonly<Record<string, number>>) => void;

  constructor(
    tools: Tools,
    private readonly options: RecipientNodeOptions<T, O>,
  ) {
    this.show = outcomeStatus(tools, options.said, () => this.outbox.progress());
    this.outbox = new NodeOutbox<T, O>(tools, {
      work: (turn) => this.work(turn),
      dress: (outcome, order, recipient, index, entry) => {
        const whole = withUsedFields(outcome, order, recipient, entry);
        return options.complement?.(whole, order, recipient, index) ?? whole;
      },
      cancelled: options.cancelled,
      phoneOf: ({ phone }) => phone,
      told: this.show,
    });
  }

  get opening(): Promise<void> | undefined {
    return this.outbox.opening;
  }

  control(msg: Message): boolean {
    if (!isOrder(msg, 'reset')) return false;
    this.reset(this.phonesOf(msg));
    return true;
  }

  /** `begin` is for whoever does something else with the recipients than `work`. */
  input(
    msg: Message,
    job: Job,
    begin?: (order: O, recipients: Recipients<T>) => Promise<void>,
  ): void | Promise<void> {
    const isDry = isDryRun(msg);
    const fail = (thrown: unknown): never => {
      throw isDry ? new ServiceError({ ...problemOf(thrown), dryRun: true }) : thrown;
    };
    let reading;
    try {
      reading = this.options.read(msg, this.country);
    } catch (thrown) {
      return fail(thrown);
    }
    // A dry run never does anything else.
    const instead = isDry ? undefined : begin;
    return reading instanceof Promise
      ? reading.then((read) => this.take(msg, job, read, instead), fail)
      : this.take(msg, job, reading, instead);
  }

  isBusy(): boolean {
    return this.outbox.isBusy;
  }

  /** Whom an order is for; undefined means all. */
  phonesOf(msg: Message): readonly string[] | undefined {
    return phonesOrdered(msg, this.country);
  }

  reset(phones: readonly string[] | undefined): void {
    this.outbox.reset(phones);
  }

  close(): Promise<void> {
    return this.outbox.close();
  }

  private get country(): string {
    return this.outbox.environment?.settings.country ?? '';
  }

  /** The guards, in their order: what was given, the do-not-text list. */
  private async work(turn: Turn<T, O>): Promise<Outcome> {
    const { options } = this;
    const { item, order, environment } = turn;
    options.check?.(item);
    if (!options.isGuarded) return order.dryRun ? options.dryRun(turn) : options.work(turn);
    const { phone = '' } = item;
    const list = await doNotTextOf(environment);
    if (order.dryRun) {
      const by = await list.judge(phone);
      if (by) throw refusalBy(by);
      return options.dryRun(turn);
    }
    const permit = async (): Promise<() => void> => {
      const ended = await list.begin(phone);
      if (typeof ended === 'function') return ended;
      throw refusalBy(ended);
    };
    return options.work({ ...turn, permit });
  }

  private take(
    msg: Message,
    job: Job,
    reading: Reading<T, O>,
    begin: ((order: O, recipients: Recipients<T>) => Promise<void>) | undefined,
  ): void | Promise<void> {
    const taken = { ...reading, source: this.options.source };
    return this.outbox.take(
      msg,
      job,
      taken,
      (order) => {
        if (isDryRun(msg)) order.dryRun = true;
        reading.complete(order);
      },
      begin && ((order) => begin(order, reading)),
    );
  }
}
