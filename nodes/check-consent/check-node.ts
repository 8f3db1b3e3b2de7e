import { second } from '../../lib/durations';
import { consentOf, type Consent } from '../../lib/consent/consent';
import { paceOf, type Pace } from '../../lib/consent/rings';
import { Waiting } from '../../lib/consent/waiting';
import { doNotTextOf } from '../../lib/guards/do-not-text';
import type { Mutable } from '../../lib/mutable';
import type { AcceptedItem, ItemTurn, Reason } from '../../lib/outbox/queue';
import type { Environment } from '../../lib/runtime/environment';
import { isControl, type Tools } from '../../lib/runtime/flow-node';
import type { Job } from '../../lib/runtime/job';
import { nodeError } from '../../lib/runtime/errors';
import type { ItemsOfMessage } from '../../lib/runtime/outbox-node';
import { problemOf, type Outcome } from '../../lib/runtime/outcomes';
import type { Message } from '../../lib/runtime/red';
import {
  authorizeLook,
  failureLook,
  waitingLook,
  type ShownList,
  type StatusLook,
} from '../../lib/runtime/status';
import { fieldOf, isRecord } from '../../lib/runtime/kinds';
import { RecipientNode, type RecipientTurn, type TextingOrder } from '../../lib/texting/recipient-node';
import { phoneNumber, type Recipient } from '../../lib/texting/recipients';
import { cancelledWait, outcomeOfWait } from './outcome';
import { subjectOf, subjects } from './subject';

/** What holds for all recipients of a message. */
export interface CheckOrder extends TextingOrder {
  /** For waits alone: how often they are polled, and from when. */
  readonly pace?: Pace;
  readonly start?: number;
}

const longestName = 100;
/** Reading a thousand waits takes long: the status takes at most a tenth of the time. */
const restPerLook = 9;
/** Milliseconds: a shorter rest is left out. */
const shortestRest = 200;
/** An upper limit: a read may have waited for the store, which takes no CPU time. */
const longestRest = 10 * second;

/** The name in a recipient object or a contact; undefined when it has none. */
const nameIn = (record: unknown): string | undefined => {
  if (!isRecord(record)) return undefined;
  const [whole = '', full = '', first = '', last = ''] = ['name', 'fullName', 'firstName', 'lastName'].map(
    (field) => {
      const value = fieldOf(record, field);
      return typeof value === 'string' ? value.trim() : '';
    },
  );
  return (whole || full || `${first} ${last}`.trim()).slice(0, longestName) || undefined;
};

/** Whether a record is about this number: the record may be left on the message from an earlier recipient. */
const isOf = (record: unknown, phone: string | undefined, country: string): boolean => {
  const given = isRecord(record) ? fieldOf(record, 'phone') : undefined;
  if (phone === undefined || (typeof given !== 'string' && typeof given !== 'number')) return false;
  if (phoneNumber(given, country) === phone) return true;
  // The record may hold the number as it is written in its own country.
  const digits = String(given).replaceAll(/\D/g, '').replace(/^0+/, '');
  return digits.length >= 6 && phone.endsWith(digits);
};

/** Adds to the recipients the names in the message, for people who look at the list of waits. */
const withNames = (
  { items, entries, list }: ItemsOfMessage<Recipient>,
  msg: Message,
  country: string,
): readonly Recipient[] => {
  const records = [msg['recipient'], msg['contact']];
  const recordOf = ({ index, phone }: Recipient): unknown =>
    list ? entries?.[index] : records.find((record) => isOf(record, phone, country));
  if (list && !entries) return items;
  return items.map((item) => {
    const name = nameIn(recordOf(item));
    return name === undefined ? item : { ...item, name };
  });
};

/** Milliseconds after a poll is due until the status shows the time of the next one. */
const redrawn = 2000;

/** Checks once, or parks what is waited for until it has ended. */
export class CheckNode extends RecipientNode<Recipient, CheckOrder> {
  private readonly isWaiting: boolean;
  private readonly pace: Pace;
  private consent: Consent | undefined;
  private waiting: Waiting<Recipient, CheckOrder, Outcome> | undefined;
  private detach: (() => void) | undefined;
  private refresh: (() => void) | undefined;
  /** The waits are being read for the status: there is one such read at a time. */
  private isLooking = false;
  private isStale = false;

  constructor(tools: Tools, checkOnce: (turn: RecipientTurn) => Promise<Outcome>) {
    const isWaiting = tools.plain.text('mode') === 'wait';
    super(tools, {
      ...subjects(tools),
      work: checkOnce,
      cancelled: cancelledWait,
      statusTexts: { first: 'status.accepted', third: 'status.notAccepted' },
      isParking: isWaiting,
      isPatient: ({ pace }) => pace !== undefined,
    });
    this.isWaiting = isWaiting;
    const seconds = (name: string): number => tools.plain.number(name);
    this.pace = paceOf({
      pollEvery: seconds('pollEvery'),
      pollFor: seconds('pollFor'),
      thenEvery: seconds('thenEvery'),
      giveUpAfter: seconds('giveUpAfter'),
    });
  }

  override accept(
    msg: Message,
    job: Job,
    taken: ItemsOfMessage<Recipient>,
    completeOrder: (shared: Mutable<CheckOrder>) => void,
  ): void | Promise<void> {
    if (!this.isWaiting) return super.accept(msg, job, taken, completeOrder);
    const country = this.environment?.settings.country ?? '';
    const named = { ...taken, items: withNames(taken, msg, country) };
    return super.accept(msg, job, named, (shared) => {
      completeOrder(shared);
      // A dry run never waits.
      if (shared.dryRun) return;
      if (!this.consent) throw nodeError('not_configured', 'no_environment');
      shared.pace = this.pace;
      shared.start = this.consent.clock.now();
    });
  }

  override control(msg: Message, at?: number): boolean {
    if (super.control(msg, at)) return true;
    if (!isControl(msg, 'flush')) return false;
    const phones = this.phonesOf(msg);
    // A close does not wait for it, and the next start does not continue it.
    this.waiting?.flush(phones).catch((fault: unknown) => {
      this.fault(fault);
    });
    return true;
  }

  override async work(turn: ItemTurn<Recipient, CheckOrder>): Promise<Outcome | undefined> {
    const { item, shared } = turn;
    if (shared.pace === undefined || item.wrong) return super.work(turn);
    const { environment } = this;
    const waiting = await this.waitingIn(environment);
    // A list that cannot be read is checked again at the first poll.
    const isBlocked =
      item.phone !== undefined && (await environment?.isBlocked(item.phone).catch(() => false));
    return isBlocked ? cancelledWait() : waiting.park(turn);
  }

  override async outcomeFor(accepted: AcceptedItem<Recipient, CheckOrder>, reason: Reason): Promise<Outcome> {
    const isSaved = reason !== 'refused' && reason !== 'taken_over';
    if (accepted.shared.pace === undefined || !isSaved) return super.outcomeFor(accepted, reason);
    const waiting = await this.waitingIn(this.environment);
    const seen = await waiting.forget(accepted);
    if (reason === 'moved') this.noteCancelled('moved');
    return cancelledWait(seen);
  }

  override showFailure(failure: Outcome): void {
    this.outcomeStatus.note(failure);
    this.outcomeStatus.show(failure, undefined);
  }

  override async close(): Promise<void> {
    await super.close();
    this.refresh?.();
    this.detach?.();
  }

  override changed(): void {
    this.draw();
    super.changed();
  }

  protected override noteEmitted(outcome: Outcome, list: ShownList | undefined): void {
    if (!list) this.outcomeStatus.note(outcome);
    // While others wait, the status says so.
    if ((this.waiting?.count ?? 0) === 0) this.outcomeStatus.show(outcome, list);
    super.changed();
  }

  protected override async open(): Promise<void> {
    await super.open();
    const { tools, environment, outbox } = this;
    if (!environment || !outbox) return;
    const waiting = await this.waitingIn(environment);
    const { consent } = this;
    const blocked = await doNotTextOf(environment);
    this.unlisten.push(
      blocked.onBlock((phone) => {
        outbox.reset([phone]);
      }),
      environment.onChange(() => {
        this.draw();
      }),
    );
    tools.whenStarted(() => {
      if (tools.closed.aborted || !consent) return;
      this.detach = this.attachTo(consent, waiting);
      waiting.restoreLost().then(
        () => {
          this.draw();
        },
        (fault: unknown) => {
          this.fault(fault);
        },
      );
    });
  }

  private async waitingIn(
    environment: Environment | undefined,
  ): Promise<Waiting<Recipient, CheckOrder, Outcome>> {
    if (this.waiting) return this.waiting;
    if (!environment || !this.outbox) throw nodeError('not_configured', 'no_environment');
    const consent = await consentOf(environment);
    this.consent = consent;
    this.waiting ??= new Waiting<Recipient, CheckOrder, Outcome>({
      queue: this.outbox,
      store: consent.store,
      node: this.tools.node.id,
      space: environment.space,
      waitsAt: (space) => consent.waitsAt(space),
      waitOf: (name, recipient, { advisor, start = 0, pace = this.pace }) => ({
        item: name,
        advisor: recipient.advisor ?? advisor,
        subject: subjectOf(recipient),
        start,
        pace,
        name: recipient.name,
      }),
    });
    return this.waiting;
  }

  private attachTo(consent: Consent, waiting: Waiting<Recipient, CheckOrder, Outcome>): () => void {
    return consent.attach(this.tools.node.id, {
      end: async (item, { advisor, subject }, outcome, removals) => {
        await waiting.end(item, outcomeOfWait(outcome, subject), removals);
        if (outcome.kind === 'accepted' && 'phone' in subject)
          await consent.history.accepted(advisor, subject.phone, outcome.status.memberId);
      },
      changed: () => {
        this.draw();
      },
      restore: (item) => waiting.restore(item),
      cancel: (item) => waiting.cancel(item),
      check: (item) => waiting.check(item),
    });
  }

  private draw(): void {
    const { waiting, consent, tools } = this;
    if (!waiting || !consent || waiting.count === 0 || tools.closed.aborted) return;
    const environment = tools.environment();
    if (this.isLooking) {
      this.isStale = true;
      return;
    }
    this.isLooking = true;
    this.isStale = false;
    const began = performance.now();
    const rested = (): void => {
      this.isLooking = false;
      if (this.isStale) this.draw();
    };
    const looked = (): void => {
      const rest = Math.min(restPerLook * (performance.now() - began), longestRest);
      if (rest < shortestRest) rested();
      else setTimeout(rested, rest).unref();
    };
    waiting.outlook(consent.clock.now()).then(
      (outlook) => {
        looked();
        if (outlook === undefined || waiting.count === 0 || tools.closed.aborted) return;
        const { next, people } = outlook;
        this.refresh?.();
        this.refresh = environment.clock.after(Math.max(next - consent.clock.now(), 0) + redrawn, () => {
          this.draw();
        });
        tools.status.show(() => this.look(environment, next, people));
      },
      (fault: unknown) => {
        looked();
        this.fault(fault);
      },
    );
  }

  private look(environment: Environment, next: number, people: number | undefined): StatusLook {
    const { words, now } = this.tools;
    try {
      if (!this.isAuthorized(environment)) return authorizeLook(words);
    } catch (thrown) {
      // The status is drawn by a timer, where nobody would catch a fault of the environment.
      return failureLook(words, problemOf(thrown), now(), now());
    }
    const outage = this.consent?.waits.outage;
    return waitingLook(words, { count: this.waiting?.count ?? 0, next, people, outage }, now());
  }

  private isAuthorized(environment: Environment): boolean {
    return environment.advisors().every((advisor) => environment.advisorState(advisor) === 'authorized');
  }
}
