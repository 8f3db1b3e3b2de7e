import { consentTest } from '../../lib/consent/missing';
import { dressed } from '../../lib/runtime/dressed';
import type { Environment } from '../../lib/runtime/environment';
import { readAll, type Source } from '../../lib/runtime/inputs';
import { isOrder, type Handler, type Tools } from '../../lib/runtime/flow-node';
import type { Job } from '../../lib/runtime/job';
import { refuse } from '../../lib/runtime/errors';
import { NodeOutbox, type Order, type Turn } from '../../lib/runtime/node-outbox';
import { outcomeStatus } from '../../lib/runtime/outcome-status';
import { failure, type Outcome } from '../../lib/runtime/outcomes';
import { phonesOrdered } from '../../lib/runtime/recipients';
import type { Message } from '../../lib/runtime/red';
import { outcomeOf } from './answer';
import { byOriginal, prepareTexts, textOf, type Text } from './prepare';
import { asDuplicate, Returned, takeResend, textAgain, type Resend } from './resend';
import { deliveryOf, millisecondsOf, type Delivery } from './schedule';

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
  private readonly sources: readonly Source[];
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
    this.sources = [tools.advisorSource, this.phones, this.texts, ...schedule];
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
    this.record.reset(phonesOrdered(msg, this.country));
    return true;
  }

  input(msg: Message, job: Job): void | Promise<void> {
    const again = takeResend(msg, this.tools.node.id);
    if (again) {
      this.takeAgain(msg, job, again);
      return undefined;
    }
    const values = readAll(this.sources, msg);
    if (values instanceof Promise) {
      return values.then((read) => {
        this.take(msg, job, read);
      });
    }
    this.take(msg, job, values);
    return undefined;
  }

  isBusy(): boolean {
    return this.record.isBusy;
  }

  close(): Promise<void> {
    return this.record.close();
  }

  private get country(): string {
    return this.record.environment?.settings.country ?? '';
  }

  private take(msg: Message, job: Job, values: readonly unknown[]): void {
    const [advisor, phones, text, date, frequency] = values;
    const { list, texts } = prepareTexts(phones, this.phones.where, this.country, (recipient) =>
      this.giveText(recipient, msg, text),
    );
    void this.record.take(msg, job, { ...byOriginal(texts), list, source: this.phones }, (order) => {
      const environment = this.tools.environment();
      order.advisor = this.tools.advisor(environment, advisor, msg);
      if (this.isScheduled) order.delivery = this.deliveryOf(environment, date, frequency);
    });
  }

  /** Exactly what could not be sent before: nothing is read again. */
  private takeAgain(msg: Message, job: Job, again: Resend): void {
    const items = [textAgain(again, msg)];
    void this.record.take(msg, job, { items, count: 1, list: false, source: this.phones }, (order) => {
      const environment = this.tools.environment();
      this.tools.checkSettings();
      order.advisor = again.advisor;
      const { deliveryDate, frequency } = again;
      if (deliveryDate !== undefined) order.delivery = this.deliveryOf(environment, deliveryDate, frequency);
    });
  }

  private deliveryOf({ clock, settings }: Environment, date: unknown, frequency: unknown): Delivery {
    // Dates in a flow come from the clock on the wall, which a simulator's may have been moved ahead of.
    return deliveryOf(date, frequency, settings, Math.min(clock.now(), Date.now()));
  }

  private send(turn: Turned): Promise<Outcome> {
    return this.returned.send(turn.order.advisor, turn.item, () => this.sendOne(turn));
  }

  private async sendOne({ environment, client, order, item, signal, begin, undo }: Turned): Promise<Outcome> {
    const { advisor, delivery } = order;
    const { phone = '', text = '' } = item;
    const { data, attempts } = await client.call(
      'sendMessage',
      { body: delivery ? { phone, text, ...delivery } : { phone, text } },
      { advisor, lane: this.tools.node.id, signal, begin, undo },
    );
    const isConsentMissing = (this.isConsentMissing ??= consentTest(environment.settings.consentPattern));
    const deliveryDate = delivery && millisecondsOf(delivery, environment.settings);
    return outcomeOf(data, { attempts, deliveryDate, isConsentMissing });
  }

  /** The fields a texting node writes as used, and what the message needs to come round again. */
  private dress(outcome: Outcome, order: SendOrder, item: Text, index: number, entry: unknown): Outcome {
    const { phone, text } = item;
    const told = index === item.index ? outcome : asDuplicate(outcome, item.index);
    const whole = dressed(told, order, item, entry);
    if (outcome.port === 2 && phone !== undefined && text !== undefined) {
      const { advisor, delivery } = order;
      const resend: Resend = { node: this.tools.node.id, phone, text, advisor, ...this.scheduleOf(delivery) };
      whole.carry = { resend };
    }
    return whole;
  }

  private scheduleOf(delivery: Delivery | undefined): Pick<Resend, 'deliveryDate' | 'frequency'> {
    if (!delivery) return {};
    const { frequency } = delivery;
    const deliveryDate = millisecondsOf(delivery, this.tools.environment().settings);
    return { deliveryDate, ...(frequency !== undefined && { frequency }) };
  }
}
