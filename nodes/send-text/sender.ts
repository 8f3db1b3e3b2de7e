import { consentTest } from '../../lib/consent/missing';
import { dressed } from '../../lib/runtime/dressed';
import { readAll, type Source } from '../../lib/runtime/fields';
import { isOrder, type Handler, type Tools } from '../../lib/runtime/flow-node';
import type { Job } from '../../lib/runtime/job';
import { refuse } from '../../lib/runtime/messages';
import { NodeOutbox, type Order, type Turn } from '../../lib/runtime/node-outbox';
import { outcomeStatus } from '../../lib/runtime/outcome-status';
import { failure, type Outcome } from '../../lib/runtime/outcomes';
import { phonesOrdered } from '../../lib/runtime/recipients';
import type { Message } from '../../lib/runtime/red';
import { outcomeOf } from './answer';
import { byOriginal, prepareTexts, textOf, type Text } from './prepare';
import { Returned, takeResend, textAgain, type Resend } from './resend';
import { deliveryOf, type Delivery } from './schedule';

/** What holds for all texts of one message. */
interface SendOrder extends Order {
  readonly delivery?: Delivery;
}

type Turned = Turn<Text, SendOrder>;

const sentOrScheduled = (payload: unknown): string =>
  (payload as { scheduled: boolean }).scheduled ? 'status.scheduled' : 'status.sent';

/** From a message to one outcome per recipient. */
export class Sender implements Handler {
  private readonly phones;
  private readonly texts;
  private readonly readFirst: readonly Source[];
  private readonly readAgain: readonly Source[];
  private readonly giveText;
  private readonly isScheduled: boolean;
  private readonly show: (outcome: Outcome, failed?: number) => void;
  private readonly record: NodeOutbox<Text, SendOrder>;
  private readonly returned = new Returned();
  private isConsentMissing: ReturnType<typeof consentTest> | undefined;

  constructor(private readonly tools: Tools) {
    this.phones = tools.source('phone');
    this.texts = tools.source('text');
    this.giveText = textOf(this.texts);
    this.isScheduled = tools.plain.text('schedule') === 'at';
    const schedule = this.isScheduled ? [tools.source('deliveryDate'), tools.source('frequency')] : [];
    this.readFirst = [tools.advisorSource, this.phones, this.texts, ...schedule];
    this.readAgain = [tools.advisorSource, ...schedule];
    this.show = outcomeStatus(tools, { first: sentOrScheduled, third: 'status.needsConsent' }, () =>
      this.record.progress(),
    );
    this.record = new NodeOutbox<Text, SendOrder>(tools, {
      work: (turn) => this.send(turn),
      dress: (outcome, order, text, index, entry) => this.dress(outcome, order, text, index, entry),
      phoneOf: ({ phone }) => phone,
      cancelled: () => failure(refuse('cancelled', 'cancelled').problem),
      told: this.show,
    });
  }

  get opening(): Promise<void> | undefined {
    return this.record.opening;
  }

  control(msg: Message): boolean {
    if (!isOrder(msg, 'reset')) return false;
    this.record.reset(phonesOrdered(msg, this.record.environment?.settings.country ?? ''));
    return true;
  }

  input(msg: Message, job: Job): void | Promise<void> {
    const again = takeResend(msg, this.tools.node.id);
    const values = readAll(again ? this.readAgain : this.readFirst, msg);
    if (values instanceof Promise) {
      return values.then((read) => {
        this.take(msg, job, again, read);
      });
    }
    this.take(msg, job, again, values);
    return undefined;
  }

  isBusy(): boolean {
    return this.record.isBusy;
  }

  close(): Promise<void> {
    return this.record.close();
  }

  private take(msg: Message, job: Job, again: Resend | undefined, values: readonly unknown[]): void {
    const [advisor, ...others] = values;
    const [phones, text] = again ? [] : others.splice(0, 2);
    const country = this.record.environment?.settings.country ?? '';
    const { list, texts } = again
      ? { list: false, texts: [textAgain(again)] }
      : prepareTexts(phones, this.phones.where, country, (recipient) => this.giveText(recipient, msg, text));
    void this.record.take(msg, job, { ...byOriginal(texts), list, source: this.phones }, (order) => {
      const environment = this.tools.environment();
      this.tools.checkSettings();
      order.advisor = again?.advisor ?? this.tools.advisor(environment, advisor, msg);
      if (!this.isScheduled) return;
      const { clock, settings } = environment;
      const [date, frequency] = others;
      // Dates in a flow come from the clock on the wall, which a simulator's may have been moved ahead of.
      const now = Math.min(clock.now(), Date.now());
      order.delivery = deliveryOf(date, frequency, settings.deliveryDateUnit, now);
    });
  }

  private send(turn: Turned): Promise<Outcome> {
    const { item, order } = turn;
    if (item.sentAs !== undefined) return this.asOriginal(order, item);
    const sending = this.sendOne(turn);
    if (item.again) this.returned.keep(order.advisor, item, sending);
    return sending;
  }

  /** A duplicate that came back leaves as its original did; what became of one before a restart is not known here. */
  private async asOriginal({ advisor, delivery }: SendOrder, item: Text): Promise<Outcome> {
    const scheduled = delivery !== undefined;
    const original = await this.returned.find(advisor, item);
    return original ?? { port: 0, payload: { messageId: null, memberId: null, scheduled, attempts: 0 } };
  }

  private async sendOne({ environment, client, order, item, signal, begin, undo }: Turned): Promise<Outcome> {
    const { advisor, delivery } = order;
    const scheduled = delivery !== undefined;
    const { phone = '', text = '' } = item;
    const { data, attempts } = await client.call(
      'sendMessage',
      { body: delivery ? { phone, text, ...delivery } : { phone, text } },
      { advisor, lane: this.tools.node.id, signal, begin, undo },
    );
    const isConsentMissing = (this.isConsentMissing ??= consentTest(environment.settings.consentPattern));
    return outcomeOf(data, { attempts, scheduled, isConsentMissing });
  }

  /** The fields a texting node writes as used, and what the message needs to come round again. */
  private dress(outcome: Outcome, order: SendOrder, item: Text, index: number, entry: unknown): Outcome {
    const { phone, text, sentAs } = item;
    const duplicateOf = index === item.index ? sentAs : item.index;
    const duplicate = duplicateOf !== undefined && { duplicateOf };
    const whole = dressed(outcome, order, item, entry);
    if (duplicate && outcome.port !== 1) whole.payload = { ...(outcome.payload as object), ...duplicate };
    if (outcome.port === 2 && phone !== undefined && text !== undefined) {
      const { advisor } = order;
      const resend: Resend = { node: this.tools.node.id, phone, text, advisor, ...duplicate };
      whole.carry = { resend };
    }
    return whole;
  }
}
