import { second } from '../../lib/durations';
import { consentOf, type Consent } from '../../lib/consent/consent';
import { nothingKnown, type ConsentStatus } from '../../lib/consent/consent-status';
import { paceOf, type Pace } from '../../lib/consent/rings';
import type { Wait } from '../../lib/consent/waits';
import { doNotTextOf } from '../../lib/guards/do-not-text';
import { WaitOutbox, type WaitHost } from '../../lib/outbox/wait-outbox';
import type { Environment } from '../../lib/runtime/environment';
import type { Tools } from '../../lib/runtime/flow-node';
import type { Job } from '../../lib/runtime/job';
import { nodeError } from '../../lib/runtime/errors';
import { OutboxNode, type ItemsOfMessage } from '../../lib/runtime/outbox-node';
import { failedOutcome, problemOf, type Outcome } from '../../lib/runtime/outcomes';
import type { Message } from '../../lib/runtime/red';
import {
  authorizeLook,
  failureLook,
  waitingLook,
  type OutcomeStatus,
  type ShownList,
  type StatusLook,
} from '../../lib/runtime/status';
import { fieldOf, isRecord } from '../../lib/runtime/kinds';
import { withUsedFields } from '../../lib/texting/outcome-fields';
import { phoneNumber, type Recipient, type TextingOrder } from '../../lib/texting/recipients';
import { cancelledWait, outcomeOfWait } from './outcome';
import { subjectOf } from './subject';

/** What holds for all waits of a message. */
export interface WaitOrder extends TextingOrder {
  readonly pace: Pace;
  readonly start: number;
}

type Outbox = WaitOutbox<Recipient, WaitOrder, Outcome, Wait>;

const longestName = 100;
/** Looking at a thousand waits takes long: the status takes at most a tenth of the time. */
const restPerLook = 9;
/** Milliseconds: a shorter rest is left out. */
const shortestRest = 200;
/** The most: a look may have waited for the store, which takes no CPU time. */
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

/** The waits of one node: each is on record, and leaves when it ends. */
export class WaitNode
  extends OutboxNode<Recipient, WaitOrder, Outbox>
  implements WaitHost<Recipient, WaitOrder, Outcome, Wait>
{
  private readonly pace: Pace;
  private consent: Consent | undefined;
  private detach: (() => void) | undefined;
  private refresh: (() => void) | undefined;
  /** The waits are being read for the status: there is one such reading at a time. */
  private isLooking = false;
  private isStale = false;

  constructor(
    tools: Tools,
    protected readonly outcomeStatus: OutcomeStatus,
  ) {
    super(tools);
    const seconds = (name: string): number => tools.plain.number(name);
    this.pace = paceOf({
      pollEvery: seconds('pollEvery'),
      pollFor: seconds('pollFor'),
      thenEvery: seconds('thenEvery'),
      giveUpAfter: seconds('giveUpAfter'),
    });
  }

  /** Begins a wait for each recipient; all are on record when this resolves. */
  protected override async acceptJob(
    msg: Message,
    job: Job,
    order: WaitOrder,
    recipients: ItemsOfMessage<Recipient>,
  ): Promise<void> {
    const { consent, pace } = this;
    if (!consent) throw nodeError('not_configured', 'no_environment');
    const { country } = this.tools.environment().settings;
    const items = withNames(recipients, msg, country);
    const start = consent.clock.now();
    await super.acceptJob(msg, job, { ...order, pace, start }, { ...recipients, items });
    this.changed();
    // The waits are on record: a fault from here on must not fail them.
    await this.endBlocked(recipients).catch((fault: unknown) => {
      this.fault(fault);
    });
  }

  /** Cancels the waits for numbers on the do-not-text list. */
  private async endBlocked({ items }: ItemsOfMessage<Recipient>): Promise<void> {
    const environment = this.tools.environment();
    const phones = [...new Set(items.flatMap(({ phone }) => phone ?? []))];
    const found = await Promise.all(
      phones.map(async (phone) => ((await environment.isBlocked(phone)) ? phone : [])),
    );
    const blocked = found.flat();
    if (blocked.length > 0) this.reset(blocked);
  }

  flush(phones?: readonly string[]): void {
    this.outbox?.flush(phones);
  }

  override async close(): Promise<void> {
    await super.close();
    this.refresh?.();
    this.detach?.();
  }

  atOnce({ wrong, phone, memberId }: Recipient): Outcome | undefined {
    if (wrong) return failedOutcome(wrong);
    // The record was damaged: nobody knows any more whom the wait was for.
    return phone === undefined && memberId === undefined ? cancelledWait() : undefined;
  }

  waitOf(item: Buffer, recipient: Recipient, { advisor, start, pace }: WaitOrder): Wait {
    return {
      item,
      advisor: recipient.advisor ?? advisor,
      subject: subjectOf(recipient),
      start,
      pace,
      name: recipient.name,
    };
  }

  cancelled(_reason: 'reset' | 'moved', _recipient: Recipient, seen: unknown): Outcome {
    return cancelledWait((seen as ConsentStatus | undefined) ?? nothingKnown);
  }

  personOf({ phone, memberId }: Recipient): unknown {
    return phone ?? memberId;
  }

  moved(count: number): void {
    const { node, words } = this.tools;
    node.warn(words.say('warning.moved', { count: words.number(count) }));
  }

  override changed(): void {
    this.draw();
    super.changed();
  }

  protected completeOutcome(
    outcome: Outcome,
    order: WaitOrder,
    recipient: Recipient,
    _index: number,
    entry: unknown,
  ): Outcome {
    return withUsedFields(outcome, order, recipient, entry);
  }

  protected override noteEmitted(outcome: Outcome, list: ShownList | undefined): void {
    if (!list) this.outcomeStatus.note(outcome);
    // While others wait, the status says so.
    if (this.outbox?.count === 0) this.outcomeStatus.show(outcome, list);
  }

  protected async open(): Promise<void> {
    const { tools } = this;
    const environment = tools.environment();
    const consent = await consentOf(environment);
    if (!consent.store.durable) tools.markUnsaved();
    const outbox: Outbox = new WaitOutbox({
      store: consent.store,
      node: tools.node.id,
      type: tools.node.type,
      space: environment.space,
      host: this,
      polling: (space) => consent.waitsAt(space),
    });
    await outbox.prepare();
    const blocked = await doNotTextOf(environment);
    this.consent = consent;
    this.outbox = outbox;
    this.environment = environment;
    this.unlisten.push(
      blocked.onBlock((phone) => {
        outbox.reset([phone]);
      }),
      environment.addPending(tools.node, () => outbox.count),
      environment.onChange(() => {
        this.draw();
      }),
    );
    // Waits may end at once, so they start when the nodes that follow can be sent to.
    tools.whenStarted(() => {
      if (!tools.closed.aborted) this.started = this.start(consent, outbox);
    });
  }

  private async start(consent: Consent, outbox: Outbox): Promise<void> {
    try {
      this.detach = consent.attach(this.tools.node.id, {
        end: async (item, { advisor, subject }, outcome, removals) => {
          await outbox.end(item, outcomeOfWait(outcome, subject), removals);
          if (outcome.kind === 'accepted' && 'phone' in subject)
            await consent.history.accepted(advisor, subject.phone, outcome.status.memberId);
        },
        changed: () => {
          this.draw();
        },
        restore: (item) => outbox.restore(item),
        cancel: (item) => outbox.cancelOne(item),
        check: (item) => outbox.checkOne(item),
      });
      await outbox.start();
      this.draw();
    } catch (fault) {
      this.fault(fault);
    }
  }

  private draw(): void {
    const { outbox, consent, tools } = this;
    if (!outbox || !consent || outbox.count === 0 || tools.closed.aborted) return;
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
    outbox.outlook(consent.clock.now()).then(
      (outlook) => {
        looked();
        if (outlook === undefined || outbox.count === 0 || tools.closed.aborted) return;
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
    return waitingLook(words, { count: this.outbox?.count ?? 0, next, people, outage }, now());
  }

  private isAuthorized(environment: Environment): boolean {
    return environment.advisors().every((advisor) => environment.advisorState(advisor) === 'authorized');
  }
}
