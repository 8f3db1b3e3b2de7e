import { systemClock } from '../service/clock';
import type { Problem } from '../service/problems';
import type { Client } from '../service/types';
import { Journal, type JournalEntry, type Resumed } from '../state/journal';
import { liveJournal } from '../state/live-journal';
import type { Environment } from './environment';
import { readAll, sharedBy, type Source } from './fields';
import { isOrder, type Handler, type Tools } from './flow-node';
import type { Job } from './job';
import { refuse } from './messages';
import { failure, problemOf, type Outcome } from './outcomes';
import { eachOf } from './queue';
import { noRecipients, notANumber, recipientsOf } from './recipients';
import type { Message } from './red';

/** Somebody a message is about, or why it cannot be told who. */
export interface Person {
  readonly index: number;
  readonly phone?: string;
  readonly memberId?: number;
  /** The object a list held for this person, whole. */
  readonly recipient?: Record<string, unknown>;
  readonly wrong?: Problem;
}

export interface People {
  /** An array came in, even of one. */
  readonly list: boolean;
  readonly people: readonly Person[];
}

/** Everybody a phone field names; a number that is none fails alone. */
export const peopleByPhone = (value: unknown, where: string, country: string): People => {
  const found = recipientsOf(value, country);
  if (!found) throw noRecipients(value, where);
  const people = found.recipients.map(({ phone, given, record }, index): Person => {
    const recipient = record && { recipient: record };
    return phone === undefined
      ? { index, ...recipient, wrong: notANumber(given, country).problem }
      : { index, phone, ...recipient };
  });
  return { list: found.list, people };
};

/** What holds for all people of one message. */
export interface Order {
  readonly advisor: string;
  readonly list?: { readonly id: string; readonly shared?: string };
}

/** One person's turn. */
export interface Turn {
  readonly environment: Environment;
  readonly client: Client;
  readonly advisor: string;
  readonly person: Person;
  readonly signal: AbortSignal;
  /** To be awaited before a request leaves that must not be made twice. */
  readonly begin: () => Promise<void>;
}

export interface PeopleOptions {
  /** The property that says who. */
  readonly source: Source;
  readonly read: (value: unknown, environment: Environment | undefined) => People;
  /** Throws what becomes a failure. */
  readonly work: (turn: Turn) => Promise<Outcome>;
  /** In place of `work` on the whole message, when it gives true. */
  readonly takeWhole?: (msg: Message, job: Job, order: Order, people: readonly Person[]) => Promise<void>;
  readonly cancelled: () => Outcome;
  readonly told: (outcome: Outcome, left: number, total: number) => void;
}

interface Kept {
  readonly outcome: Outcome;
  /** The node was closing: it has certainly not been told. */
  readonly untold?: true;
}

interface Ready {
  readonly environment: Environment;
  readonly journal: Pick<Journal<Person, Kept>, 'accept' | 'resume' | 'settle'>;
}

interface Work {
  readonly job: Job;
  readonly order: Order;
  readonly entry: JournalEntry<Kept>;
  readonly total: number;
  left: number;
}

/** Leaves a little of the 15 s that a runtime gives its nodes to close. */
const closeLimit = 12_000;

/** What a texting node writes as used. */
export const dressed = (
  outcome: Outcome,
  { advisor }: Order,
  { phone, memberId, recipient }: Person,
): Outcome => ({
  ...outcome,
  set: {
    ...(phone !== undefined && { phone }),
    ...(memberId !== undefined && { memberId }),
    ...(advisor !== '' && { advisor }),
    ...(recipient && { recipient }),
    ...outcome.set,
  },
});

/** From a message to one outcome for each of its people, on record as the texts of a send are. */
export class PeopleHandler implements Handler {
  private ready: Ready | undefined;
  private opening: Promise<void> | undefined;
  private isClosing = false;
  private stop = new AbortController();
  private readonly underWay = new Set<Promise<void>>();

  constructor(
    private readonly tools: Tools,
    private readonly options: PeopleOptions,
  ) {
    this.opening = this.open().finally(() => {
      this.opening = undefined;
    });
  }

  control(msg: Message): boolean {
    if (!isOrder(msg, 'reset')) return false;
    this.stop.abort();
    this.stop = new AbortController();
    return true;
  }

  input(msg: Message, job: Job): void | Promise<void> {
    if (this.opening) return this.opening.then(() => this.input(msg, job));
    const values = readAll([this.tools.advisorSource, this.options.source], msg);
    return values instanceof Promise
      ? values.then((read) => this.take(msg, job, read))
      : this.take(msg, job, values);
  }

  async close(): Promise<void> {
    await this.opening;
    this.isClosing = true;
    const cutOff = systemClock.after(closeLimit, () => {
      this.stop.abort();
    });
    await Promise.all(this.underWay);
    cutOff();
    await this.ready?.journal.settle();
  }

  private take(msg: Message, job: Job, [advisor, who]: readonly unknown[]): void | Promise<void> {
    const { source, takeWhole } = this.options;
    const { list, people } = this.options.read(who, this.ready?.environment);
    const shared = sharedBy(source);
    if (list) job.asList(people.length, shared);
    const id = job.sequenceId;
    const sequence = id === undefined ? {} : { list: { id, ...(shared !== undefined && { shared }) } };
    let order: Order = { ...sequence, advisor: '' };
    try {
      const environment = this.tools.environment();
      order = { ...order, advisor: this.tools.advisor(environment, advisor, msg) };
      if (!this.ready) throw refuse('not_configured', 'no_environment');
    } catch (thrown) {
      const why = failure(problemOf(thrown));
      people.forEach((person, position) => {
        const outcome = person.wrong ? failure(person.wrong) : why;
        job.leave(person.index, dressed(outcome, order, person));
        this.options.told(outcome, people.length - position - 1, people.length);
      });
      return undefined;
    }
    if (takeWhole) return takeWhole(msg, job, order, people);
    const { environment, journal } = this.ready;
    const entry = journal.accept(this.tools.node.id, { message: msg, recipients: people, context: order });
    const work = { job, order, entry, total: people.length, left: people.length };
    this.run(environment, work, people);
    return undefined;
  }

  private run(environment: Environment, work: Work, people: readonly Person[]): void {
    const { signal } = this.stop;
    const running = eachOf(people, environment.settings.maxConcurrent, (person) =>
      this.isClosing ? Promise.resolve() : this.one(environment, work, person, signal),
    ).catch((fault: unknown) => {
      this.tools.node.error(problemOf(fault).message);
    });
    this.underWay.add(running);
    void running.finally(() => this.underWay.delete(running));
  }

  private async one(
    environment: Environment,
    work: Work,
    person: Person,
    signal: AbortSignal,
  ): Promise<void> {
    const request = { hasBegun: false };
    const begin = (): Promise<void> => {
      request.hasBegun = true;
      return work.entry.begin(person.index);
    };
    let outcome: Outcome;
    try {
      if (person.wrong) outcome = failure(person.wrong);
      else if (signal.aborted) outcome = this.options.cancelled();
      else {
        const client = await environment.client();
        outcome = await this.options.work({
          environment,
          client,
          advisor: work.order.advisor,
          person,
          signal,
          begin,
        });
      }
    } catch (thrown) {
      const why = problemOf(thrown);
      // What a close keeps from beginning stays on record for the next node of this id.
      if (why.code === 'cancelled' && this.isClosing && !request.hasBegun) return;
      outcome = why.code === 'cancelled' ? this.options.cancelled() : failure(why);
    }
    await this.settle(work, person, dressed(outcome, work.order, person));
  }

  private async settle(work: Work, person: Person, outcome: Outcome): Promise<void> {
    await work.entry.outcome(person.index, { outcome });
    if (this.isClosing) await work.entry.outcome(person.index, { outcome, untold: true });
    else this.tell(work, person, outcome);
  }

  private tell(work: Work, person: Person, outcome: Outcome): void {
    work.job.leave(person.index, outcome);
    work.entry.told(person.index);
    work.left -= 1;
    this.options.told(outcome, work.left, work.total);
  }

  private async open(): Promise<void> {
    try {
      const environment = this.tools.environment();
      const { settings, clock } = environment;
      let journal: Ready['journal'] = liveJournal<Person, Kept>();
      if (settings.journal) {
        const store = await environment.store();
        if (!store.durable) this.tools.markUnsaved();
        journal = new Journal<Person, Kept>(store, () => clock.now());
      }
      const left = await journal.resume(this.tools.node.id, settings.resumeWithin);
      this.ready = { environment, journal };
      if (left.length > 0) {
        this.tools.whenStarted(() => {
          for (const each of left) this.takeUp(environment, each);
        });
      }
    } catch (thrown) {
      const why = problemOf(thrown);
      if (why.code !== 'not_configured') this.tools.node.error(why.message);
      this.options.told(failure(why), 0, 1);
    }
  }

  private takeUp(environment: Environment, resumed: Resumed<Person, Kept>): void {
    const { entry, message, dropped, context, count, open } = resumed;
    const order = context as Order;
    const job = this.tools.resumed(message);
    if (order.list) job.asList(count, order.list.shared, order.list.id);
    if (dropped) this.tools.warnOfDropped();
    const work = { job, order, entry, total: open.length, left: open.length };
    for (const todo of open) {
      const { recipient: person } = todo;
      if (todo.what === 'tell') {
        const { outcome, untold } = todo.outcome;
        this.tell(work, person, untold ? outcome : { ...outcome, repeated: true });
      } else if (todo.what !== 'send') {
        const why =
          todo.what === 'stale'
            ? refuse('stale', 'stale')
            : refuse('outcome_unknown', 'unknown_after_restart', {}, { attempts: 1 });
        void this.settle(work, person, dressed(failure(why.problem), order, person));
      }
    }
    const toDo = open.filter(({ what }) => what === 'send').map(({ recipient }) => recipient);
    this.run(environment, work, toDo);
  }
}
