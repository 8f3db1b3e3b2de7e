import type { Mutable } from '../mutable';
import type { AcceptedItem } from '../outbox/queue';
import type { TextShared } from '../guards/text-hours';
import { readAll, type Source } from '../runtime/inputs';
import { isControl, type Tools } from '../runtime/flow-node';
import type { Job } from '../runtime/job';
import { RequestNode, type RequestNodeOptions, type Turn } from '../runtime/request-node';
import type { Outcome } from '../runtime/outcomes';
import type { Message } from '../runtime/red';
import {
  advisorOfMessage,
  phonesOfControl,
  sharedIn,
  usedFields,
  whenRead,
  type PhoneRules,
  type Recipient,
  type Recipients,
} from './recipients';

export { withOwnAdvisor } from './recipients';
export type TextingOrder = TextShared;

/** The recipients of a message, and what holds for all of them. */
export interface Reading<T extends Recipient, O extends TextingOrder> extends Recipients<T> {
  /** Completes the order; if it throws, each recipient fails. */
  readonly completeOrder: (shared: Mutable<O>) => void;
}

export interface RecipientNodeOptions<T extends Recipient, O extends TextingOrder> extends Omit<
  RequestNodeOptions<O>,
  'mayHold'
> {
  /** The property that names the recipients. */
  readonly source: Source;
  /** If it throws, the message fails. */
  readonly read: (msg: Message, rules: PhoneRules) => Reading<T, O> | Promise<Reading<T, O>>;
  /**
   * From a recipient to an outcome; a throw becomes a failure. With `order.dryRun`, it makes no request that sends or asks
   * anything.
   */
  readonly work: (turn: Turn<T, O>) => Promise<Outcome>;
  /** Adds what else this node's outcomes carry; `index` is the place of the recipient, or of a duplicate, in the list. */
  readonly completeOutcome?: (
    outcome: Mutable<Outcome>,
    shared: O,
    recipient: T,
    index: number,
    entry: unknown,
  ) => Outcome;
}

/** The turn of a plain recipient with a plain order. */
export type RecipientTurn = Turn<Recipient, TextingOrder>;

/** `read` for nodes that need only the advisor and the recipients from a message. */
export const readWith =
  <O extends TextingOrder>(
    tools: Tools,
    source: Source,
    recipientsIn: (value: unknown, rules: PhoneRules) => Recipients | Promise<Recipients>,
    complete?: (shared: Mutable<O>, msg: Message) => void,
  ): RecipientNodeOptions<Recipient, O>['read'] =>
  (msg, rules) => {
    const reading = ([advisor, who]: readonly unknown[]):
      Reading<Recipient, O> | Promise<Reading<Recipient, O>> =>
      whenRead(recipientsIn(who, rules), (recipients) => ({
        ...recipients,
        completeOrder(shared: Mutable<O>) {
          shared.advisor = advisorOfMessage(tools, advisor, msg, recipients.items);
          complete?.(shared, msg);
        },
      }));
    const values = readAll([tools.advisorSource, source], msg);
    return values instanceof Promise ? values.then(reading) : reading(values);
  };

/** The order as it holds for one recipient. */
const orderFor = <T extends Recipient, O extends TextingOrder>({
  shared,
  item: { advisor },
}: Pick<AcceptedItem<T, O>, 'shared' | 'item'>): O =>
  advisor === undefined ? shared : { ...shared, advisor };

/** The way of a message through a texting node: to its recipients, onto the record, and to one outcome for each. */
export class RecipientNode<
  T extends Recipient = Recipient,
  O extends TextingOrder = TextingOrder,
> extends RequestNode<T, O> {
  constructor(
    tools: Tools,
    private readonly options: RecipientNodeOptions<T, O>,
  ) {
    super(tools, options);
  }

  control(msg: Message, at?: number): boolean {
    if (!isControl(msg, 'reset')) return false;
    this.reset(this.phonesOf(msg), at);
    return true;
  }

  input(msg: Message, job: Job): void | Promise<void> {
    const list: { isInSlices: boolean; accepted?: Promise<void> } = { isInSlices: false };
    const holdOthers = (): void => {
      list.isInSlices = true;
      if (list.accepted) this.openAfter(list.accepted);
    };
    const reading = this.options.read(msg, { ...this.phoneRules, onSlices: holdOthers });
    if (!(reading instanceof Promise)) return this.acceptReading(msg, job, reading);
    list.accepted = reading.then((read) => this.acceptReading(msg, job, read));
    if (list.isInSlices) holdOthers();
    return list.accepted;
  }

  /** Messages that come while a long list is read wait in line: a reset among them means the list too. */
  private openAfter(accepted: Promise<void>): void {
    const opened = accepted
      .catch(() => undefined)
      .then(() => {
        if (this.opening === opened) this.opening = undefined;
      });
    this.opening = opened;
  }

  completeFailure(failure: Outcome, msg: Message): Outcome {
    return usedFields(failure, { data: { index: 0 }, shared: this.orderIn(msg), entry: undefined });
  }

  /** The numbers that a control message is for; undefined means all. */
  phonesOf(msg: Message): readonly string[] | undefined {
    return phonesOfControl(msg, this.phoneRules);
  }

  protected workOn(turn: Turn<T, O>): Promise<Outcome> {
    const { work } = this.options;
    const own = { ...turn, shared: orderFor(turn) };
    return work(own);
  }

  protected completeOutcome(
    outcome: Outcome,
    shared: O,
    recipient: T,
    index: number,
    entry: unknown,
  ): Outcome {
    const own = orderFor({ shared, item: recipient });
    const whole = usedFields(outcome, { data: recipient, shared: own, entry });
    return this.options.completeOutcome?.(whole, own, recipient, index, entry) ?? whole;
  }

  /** A node that makes no request ignores `msg.dryRun`. */
  private orderIn(msg: Message, isList = false): TextingOrder {
    const { dryRun, ...shared } = sharedIn(msg, isList);
    return dryRun && !this.options.isLocal ? { ...shared, dryRun } : shared;
  }

  private get phoneRules(): PhoneRules {
    const country = this.environment?.settings.country ?? '';
    return { country, field: this.tools.plain.text('phoneField').trim() };
  }

  private acceptReading(msg: Message, job: Job, reading: Reading<T, O>): void | Promise<void> {
    const said = this.orderIn(msg, reading.list);
    return this.accept(msg, job, { ...reading, source: this.options.source }, (shared) => {
      Object.assign(shared, said);
      reading.completeOrder(shared);
    });
  }
}
