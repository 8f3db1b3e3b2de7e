import { consentOf, type Consent } from '../../lib/consent/shared';
import { paceOf } from '../../lib/consent/schedule';
import type { NewWait, NodeWaits, Settled } from '../../lib/consent/waits';
import { arrival, delivery } from '../../lib/runtime/arrival';
import { dressed } from '../../lib/runtime/dressed';
import { isOrder, type Handler, type Tools } from '../../lib/runtime/flow-node';
import type { Job } from '../../lib/runtime/job';
import { refuse } from '../../lib/runtime/messages';
import { failure, problemOf } from '../../lib/runtime/outcomes';
import { PeopleHandler, type Person } from '../../lib/runtime/people';
import { phoneNumber } from '../../lib/runtime/recipients';
import type { Message } from '../../lib/runtime/red';
import { areFlowsStopping, atNextStart } from '../../lib/runtime/started';
import { look, type Look } from '../../lib/runtime/status';
import type { Order } from '../../lib/runtime/trade';
import { warnOfWaits } from '../../lib/runtime/wait-trouble';
import { checkStatus, lookOf } from './look';
import { cancelledLook, outcomeOf } from './outcome';
import { subjectOf, subjects } from './subject';

/** What is kept with the message of a list, to let each of its people leave as part of the sequence they came in. */
interface About {
  readonly order: Order;
  /** Of the whole list, those included that were wrong and did not wait. */
  readonly count: number;
}

/** How long after a look is due the status says when the next one is. */
const redrawn = 2000;

/** `wait`: each person's wait is on disk, and leaves when it ends. */
export class WaitHandler implements Handler {
  private readonly pace;
  private readonly people: PeopleHandler;
  /** The inputs of waits begun since the node started: their `done` is still to be settled. */
  private readonly inputs = new Map<string, Job>();
  private consent: Consent | undefined;
  private waits: NodeWaits | undefined;
  private country = '';
  private isClosed = false;
  private end = (): void => undefined;
  private readonly ended = new Promise<void>((resolve) => {
    this.end = resolve;
  });
  /** Until waits can be added to those of this node. */
  opening: Promise<void> | undefined;
  private readonly attached: Promise<void>;
  private readonly opened: Promise<void>;
  private refresh: (() => void) | undefined;
  private unlisten: (() => void) | undefined;

  constructor(private readonly tools: Tools) {
    const seconds = (name: string): number => tools.plain.number(name);
    this.pace = paceOf({
      pollEvery: seconds('pollEvery'),
      pollFor: seconds('pollFor'),
      thenEvery: seconds('thenEvery'),
      giveUpAfter: seconds('giveUpAfter'),
    });
    this.people = new PeopleHandler(tools, {
      ...subjects(tools),
      // Messages on record from when this node was set to look once.
      work: lookOf(tools),
      takeWhole: (msg, job, order, people) => this.begin(this.waits ?? this.late(), msg, job, order, people),
      cancelled: cancelledLook,
      said: checkStatus,
    });
    // After the rest: it shows at once that there is no environment.
    this.attached = this.showing(() => this.attach());
    this.opened = this.attached.then(() => this.showing(() => this.goOn()));
    this.opening = Promise.all([this.people.opening, this.attached]).then(() => {
      this.opening = undefined;
    });
  }

  input(msg: Message, job: Job): void | Promise<void> {
    return this.people.input(msg, job);
  }

  /** All waits of this node, or those for `msg.phone`. */
  control(msg: Message): boolean {
    const isReset = isOrder(msg, 'reset');
    if (!isReset && !isOrder(msg, 'flush')) return false;
    const given = msg.phone;
    const isForAll = given === undefined || given === null || given === '';
    const phones = isForAll ? [undefined] : this.phonesIn(given);
    for (const phone of phones) {
      if (isReset) this.waits?.reset(phone);
      else this.waits?.flush(phone);
    }
    return true;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.end();
    await this.attached;
    this.refresh?.();
    this.unlisten?.();
    await this.waits?.detach();
    await this.opened;
    await delivery();
    await this.people.close();
  }

  /** A number that cannot be read matches no wait, rather than all of them. */
  private phonesIn(given: unknown): readonly string[] {
    const all: readonly unknown[] = Array.isArray(given) ? given : [given];
    return all.map((each) => phoneNumber(each, this.country) ?? 'no number');
  }

  private async begin(
    waits: NodeWaits | undefined,
    msg: Message,
    job: Job,
    order: Order,
    people: readonly Person[],
  ): Promise<void> {
    if (!waits) throw refuse('not_configured', 'no_environment');
    const well = people.filter(({ wrong }) => !wrong);
    const about: About | undefined = order.list && { order, count: people.length };
    const newWait = (person: Person): NewWait => ({
      advisor: order.advisor,
      subject: subjectOf(person),
      ...(order.list && { context: person }),
    });
    const adding = well.length === 0 ? [] : waits.add(msg, well.map(newWait), this.pace, about);
    for (const person of people) {
      if (person.wrong) job.leave(person.index, dressed(failure(person.wrong), order, person));
    }
    for (const id of await adding) this.inputs.set(id, job);
    this.showWaiting();
  }

  /** A message came and the node closed before it could wait: on disk, the wait is there for the next node of this id. */
  private late(): NodeWaits | undefined {
    if (!this.isClosed || !this.consent) return undefined;
    const waits = this.consent.waits.attach(this.tools.node.id, () => Promise.resolve(false));
    waits.ready.catch(() => undefined);
    void waits.detach();
    return waits;
  }

  /** Asked anew after each pause: a deploy may have come meanwhile. */
  private hasClosed(): boolean {
    return this.isClosed;
  }

  private async attach(): Promise<void> {
    const { tools } = this;
    const environment = tools.environment();
    this.country = environment.settings.country;
    const consent = await consentOf(environment, warnOfWaits(tools));
    this.consent = consent;
    if (this.hasClosed()) return;
    if (!consent.isDurable) tools.markUnsaved();
    // Its waits may end at once, so whoever they are sent to must be there.
    const started = new Promise<void>((resolve) => {
      tools.whenStarted(resolve);
    });
    await Promise.race([started, this.ended]);
    if (this.hasClosed()) return;
    const show = (): void => {
      this.showWaiting();
    };
    this.waits = consent.waits.attach(tools.node.id, (settled) => this.settled(settled), show);
    this.unlisten = environment.onChange(show);
  }

  private async goOn(): Promise<void> {
    await this.waits?.ready;
    this.showWaiting();
  }

  /** What it throws becomes the status. */
  private async showing(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (thrown) {
      this.people.show(failure(problemOf(thrown)));
    }
  }

  /** Gives whether it arrived: a deploy may close those it is for, and this node with them. */
  private async settled(ended: Settled): Promise<boolean> {
    const { RED, node } = this.tools;
    if (areFlowsStopping(RED)) {
      const started = new Promise<void>((resolve) => atNextStart(RED, resolve));
      await Promise.race([started, this.ended]);
    }
    if (this.hasClosed()) return false;
    const arriving = arrival(RED, node, outcomeOf(ended.outcome, ended.subject));
    this.leave(ended);
    return arriving;
  }

  private leave(ended: Settled): void {
    const { id, message, dropped, subject, advisor, outcome, repeated } = ended;
    const { order, count } = (ended.about as About | undefined) ?? { order: { advisor }, count: 1 };
    const person = (ended.context as Person | null | undefined) ?? { index: 0, ...subject };
    if (dropped) this.tools.warnOfDropped();
    const job = this.inputs.get(id) ?? this.resumed(message, order, count);
    this.inputs.delete(id);
    job.leave(person.index, {
      ...dressed(outcomeOf(outcome, subject), order, person),
      ...(repeated && { repeated }),
    });
    if (outcome.kind === 'accepted' && 'phone' in subject) {
      void this.consent?.asked.accepted(advisor, subject.phone, outcome.status.memberId);
    }
    if (this.waits && this.waits.count > 0) this.showWaiting();
    else this.people.show(outcomeOf(outcome, subject));
  }

  private resumed(message: Record<string, unknown>, { list }: Order, count: number): Job {
    const job = this.tools.resumed(message);
    if (list) job.asList(count, list.shared, list.id);
    return job;
  }

  private showWaiting(): void {
    const { waits } = this;
    if (!waits || waits.count === 0 || this.isClosed) return;
    this.tools.status.show(() => this.waitingLook(waits));
  }

  private waitingLook(waits: NodeWaits): Look {
    const { words } = this.tools;
    const environment = this.tools.environment();
    const { next, advisors, outage } = waits.survey();
    if (next === undefined) return look('grey', 'ring', words.say('status.noneWaiting'));
    this.refresh?.();
    this.refresh = environment.clock.after(Math.max(next - environment.clock.now(), 0) + redrawn, () => {
      this.showWaiting();
    });
    if (advisors.some((advisor) => environment.advisorState(advisor) !== 'authorized')) {
      return look('red', 'ring', words.say('status.authorizeAgain'));
    }
    const count = words.number(waits.count);
    const why = outage && words.find(`failed.${outage.code}`);
    if (why !== undefined) return look('yellow', 'ring', words.say('status.waitingDespite', { count, why }));
    return look('blue', 'ring', words.say('status.waiting', { count, time: words.time(next) }));
  }
}

export const waitHandler = (tools: Tools): Handler => new WaitHandler(tools);
