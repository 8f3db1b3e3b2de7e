import { second } from '../../lib/durations';
import { consentOf, type Consent } from '../../lib/consent/consent';
import { subjectOf, waitOf } from '../../lib/consent/look';
import { longestPause, paceOf, type Pace } from '../../lib/consent/pace';
import { doNotTextOf } from '../../lib/guards/do-not-text';
import type { Mutable } from '../../lib/mutable';
import type { AcceptedItem, ItemTurn, Queue, Reason } from '../../lib/outbox/queue';
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
import { subjects } from './subject';

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

/** The most waits that are read to say in a status how many people wait. */
const countedWaits = 1000;

/** Checks once, or looks until a wait is decided. */
export class CheckNode extends RecipientNode<Recipient, CheckOrder> {
  private readonly isWaiting: boolean;
  private readonly pace: Pace;
  private consent: Consent | undefined;
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
      waits: { isOn: isWaiting, longestPause: ({ pace }) => pace && longestPause(pace) },
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
    this.outbox?.flush(phones).catch((fault: unknown) => {
      this.fault(fault);
    });
    return true;
  }

  override async work(turn: ItemTurn<Recipient, CheckOrder>): Promise<Outcome | undefined> {
    const { consent } = this;
    if (!turn.isWait || turn.item.wrong || !consent) return super.work(turn);
    const ended = await consent.looks.look(turn, this.tools.node.id);
    return ended && outcomeOfWait(ended, subjectOf(turn.item));
  }

  override async outcomeFor(accepted: AcceptedItem<Recipient, CheckOrder>, reason: Reason): Promise<Outcome> {
    const isSaved = reason !== 'refused' && reason !== 'taken_over';
    if (!accepted.isWait || !isSaved) return super.outcomeFor(accepted, reason);
    if (reason === 'moved') this.noteCancelled('moved');
    return cancelledWait(accepted.seen ?? (await this.consent?.looks.seenOf(waitOf(accepted))));
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
    if ((this.outbox?.waitCount ?? 0) === 0) this.outcomeStatus.show(outcome, list);
    super.changed();
  }

  protected override async open(): Promise<void> {
    await super.open();
    const { tools, environment, outbox } = this;
    if (!environment || !outbox) return;
    const consent = await consentOf(environment);
    this.consent = consent;
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
      if (tools.closed.aborted) return;
      this.detach = consent.attach(tools.node.id, outbox, outcomeOfWait, () => {
        this.draw();
      });
    });
  }

  private draw(): void {
    const { outbox, consent, tools } = this;
    if (!outbox || !consent || outbox.waitCount === 0 || tools.closed.aborted) return;
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
    this.outlook(outbox, consent).then(
      ({ next, people }) => {
        looked();
        if (outbox.waitCount === 0 || tools.closed.aborted) return;
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

  /** When the next look is, and how many people wait. With more waits than are read, it is now, and nobody counts. */
  private async outlook(
    outbox: Queue<Recipient, CheckOrder, Outcome>,
    { looks, clock }: Consent,
  ): Promise<{ readonly next: number; readonly people: number | undefined }> {
    const now = clock.now();
    const people = new Set<unknown>();
    let next = Infinity;
    if (outbox.waitCount <= countedWaits)
      for await (const accepted of outbox.waits()) {
        people.add(accepted.item.phone ?? accepted.item.memberId);
        next = Math.min(next, looks.next(waitOf(accepted)));
      }
    return { next: next === Infinity ? now : next, people: people.size > 0 ? people.size : undefined };
  }

  private look(environment: Environment, next: number, people: number | undefined): StatusLook {
    const { words, now } = this.tools;
    try {
      if (!this.isAuthorized(environment)) return authorizeLook(words);
    } catch (thrown) {
      // The status is drawn by a timer, where nobody would catch a fault of the environment.
      return failureLook(words, problemOf(thrown), now(), now());
    }
    const outage = this.consent?.looks.outage;
    return waitingLook(words, { count: this.outbox?.waitCount ?? 0, next, people, outage }, now());
  }

  private isAuthorized(environment: Environment): boolean {
    return environment.advisors().every((advisor) => environment.advisorState(advisor) === 'authorized');
  }
}
