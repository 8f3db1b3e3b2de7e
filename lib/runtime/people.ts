import type { Mutable } from '../mutable';
import { dressed, type Used } from './dressed';
import type { Environment } from './environment';
import { readAll, type Source } from './inputs';
import { isOrder, type Handler, type Tools } from './flow-node';
import type { Job } from './job';
import { NodeOutbox, type Item, type Order, type Taken, type Turn } from './node-outbox';
import { outcomeStatus, type Said } from './outcome-status';
import type { Outcome } from './outcomes';
import { asGiven, noRecipients, notANumber, phonesOrdered, recipientsOf } from './recipients';
import type { Message } from './red';

/** Somebody a message is about, or why it cannot be told who. */
export type Person = Item & Omit<Used, 'text'>;

export type People = Omit<Taken<Person>, 'source'>;

/** Everybody a phone field names; a number that is none fails alone. */
export const peopleByPhone = (value: unknown, where: string, country: string): People => {
  const found = recipientsOf(value, country);
  if (!found) throw noRecipients(value, where);
  const people = found.recipients.map((each, index): Person => {
    const { phone } = each;
    const person: Mutable<Person> = { index };
    if (phone !== undefined) person.phone = phone;
    else person.wrong = notANumber(each.given, country, { where, list: found.list }).problem;
    if (phone === undefined && found.list) person.given = asGiven(each);
    return person;
  });
  const records = found.recipients.map(({ record }) => record);
  const entries = records.some((record) => record) && records;
  return { list: found.list, items: people, count: people.length, ...(entries && { entries }) };
};

/** One person's turn. */
export type PersonTurn = Turn<Person, Order>;

export interface PeopleOptions {
  /** The property that says who. */
  readonly source: Source;
  readonly read: (value: unknown, environment: Environment | undefined) => People;
  /** Throws what becomes a failure. */
  readonly work: (turn: PersonTurn) => Promise<Outcome>;
  readonly cancelled: () => Outcome;
  readonly said: Said;
}

/** From a message to one outcome for each of its people. */
export class PeopleHandler implements Handler {
  private readonly record: NodeOutbox<Person, Order>;
  readonly show: (outcome: Outcome, failed?: number) => void;

  constructor(
    private readonly tools: Tools,
    private readonly options: PeopleOptions,
  ) {
    this.show = outcomeStatus(tools, options.said, () => this.record.progress());
    this.record = new NodeOutbox<Person, Order>(tools, {
      work: options.work,
      dress: (outcome, order, person, _index, entry) => dressed(outcome, order, person, entry),
      cancelled: options.cancelled,
      phoneOf: ({ phone }) => phone,
      told: this.show,
    });
  }

  get opening(): Promise<void> | undefined {
    return this.record.opening;
  }

  control(msg: Message): boolean {
    if (!isOrder(msg, 'reset')) return false;
    this.reset(this.phonesOf(msg));
    return true;
  }

  /** `begin` is for whoever does something else with them than `work`. */
  input(
    msg: Message,
    job: Job,
    begin?: (order: Order, people: People) => Promise<void>,
  ): void | Promise<void> {
    const values = readAll([this.tools.advisorSource, this.options.source], msg);
    return values instanceof Promise
      ? values.then((read) => this.take(msg, job, read, begin))
      : this.take(msg, job, values, begin);
  }

  isBusy(): boolean {
    return this.record.isBusy;
  }

  /** Whom an order is for; undefined means all. */
  phonesOf(msg: Message): readonly string[] | undefined {
    return phonesOrdered(msg, this.record.environment?.settings.country ?? '');
  }

  reset(phones: readonly string[] | undefined): void {
    this.record.reset(phones);
  }

  close(): Promise<void> {
    return this.record.close();
  }

  private take(
    msg: Message,
    job: Job,
    [advisor, who]: readonly unknown[],
    begin: ((order: Order, people: People) => Promise<void>) | undefined,
  ): void | Promise<void> {
    const { read, source } = this.options;
    const people = read(who, this.record.environment);
    return this.record.take(
      msg,
      job,
      { ...people, source },
      (order) => {
        order.advisor = this.tools.advisor(this.tools.environment(), advisor, msg);
      },
      begin && ((order) => begin(order, people)),
    );
  }
}
