import { resultOfFault, nothingKnown, consentStatusOf } from '../../lib/consent/consent-status';
import { countText } from '../../lib/guards/segments';
import { Held } from '../../lib/outbox/queue';
import type { Mutable } from '../../lib/mutable';
import { writtenOffset } from '../../lib/runtime/dates';
import type { Environment } from '../../lib/runtime/environment';
import { noSource, readAll, type Source } from '../../lib/runtime/inputs';
import { flowNode, type Handler, type Tools } from '../../lib/runtime/flow-node';
import type { Outcome } from '../../lib/runtime/outcomes';
import type { Message } from '../../lib/runtime/red';
import { whenRead } from '../../lib/runtime/slices';
import { zoneOf, type GuardedTurn } from '../../lib/texting/guard-chain';
import {
  advisorOfMessage,
  RecipientNode,
  withOwnAdvisor,
  type Reading,
} from '../../lib/texting/recipient-node';
import type { PhoneRules, TextingOrder } from '../../lib/texting/recipients';
import { consentTest, needsConsent, notBelieved, sendOutcome, sent } from './answer';
import { spec } from './spec';
import { asDuplicate, ReturnedRecipients, takeResend, textAgain, type Resend } from './resend';
import { datesOf, deliveryOf, millisecondsOf, movedDelivery, type Delivery } from './schedule';
import { onceKeyGiver, textGiver, textsOf, type Text } from './texts';
import { hour, minute, second } from '../../lib/durations';

/** What holds for all texts of one message. */
interface SendOrder extends TextingOrder {
  readonly delivery?: Delivery;
  /** The offset from UTC with which the delivery date was written, in milliseconds. */
  readonly offset?: number;
}

type SendTurn = GuardedTurn<Text, SendOrder>;

const sentOrScheduled = (payload: unknown): string => {
  const { scheduled, alreadySent } = payload as { scheduled: boolean; alreadySent?: true };
  if (scheduled) return 'status.scheduled';
  return alreadySent ? 'status.alreadySent' : 'status.sent';
};

const plannedFor = (payload: unknown): number | undefined =>
  (payload as { deliveryDate?: number }).deliveryDate;

const scheduled = ({ clock, settings }: Environment, date: unknown, frequency: unknown): Delivery =>
  // Dates in a flow are made by the system's clock, and the simulator's clock may be ahead of that: the earlier one
  // decides what is past.
  deliveryOf(date, frequency, settings, Math.min(clock.now(), Date.now()));

/** Reads the texts of a message: those of its fields, or exactly those of `msg.resend`. */
const reader = (tools: Tools, phones: Source) => {
  const texts = tools.source('text');
  const giveText = textGiver(texts);
  const giveAdvisor = withOwnAdvisor(tools);
  const isScheduled = tools.plain.text('schedule') === 'at';
  const schedule = isScheduled ? [tools.source('deliveryDate'), tools.source('frequency')] : [];
  const onceKeys = tools.source('onceKey');
  const giveKey = onceKeys.type === 'off' || onceKeys.type === 'text' ? undefined : onceKeyGiver(onceKeys);
  const sources: readonly Source[] = [
    tools.advisorSource,
    phones,
    texts,
    giveKey ? onceKeys : noSource,
    ...schedule,
  ];

  const again = (msg: Message, resend: Resend): Reading<Text, SendOrder> => ({
    items: [textAgain(resend, msg)],
    count: 1,
    list: false,
    completeOrder(shared) {
      const environment = tools.environment();
      tools.checkSettings();
      shared.advisor = resend.advisor;
      if (resend.timeZone === undefined) delete shared.timeZone;
      else shared.timeZone = resend.timeZone;
      const { deliveryDate, frequency } = resend;
      if (deliveryDate !== undefined) shared.delivery = scheduled(environment, deliveryDate, frequency);
    },
  });

  const fromFields = (
    msg: Message,
    rules: PhoneRules,
    [advisor, phone, text, once, date, frequency]: readonly unknown[],
  ): Reading<Text, SendOrder> | Promise<Reading<Text, SendOrder>> => {
    const texts = textsOf(phone, phones.where, rules, (item, entry) => {
      item.text = giveText(entry, msg, text);
      if (giveKey) item.onceKey = giveKey(entry, msg, once);
      giveAdvisor(item, entry);
    });
    return whenRead(texts, (recipients) => ({
      ...recipients,
      completeOrder(shared: Mutable<SendOrder>) {
        shared.advisor = advisorOfMessage(tools, advisor, msg, recipients.items);
        if (!isScheduled) return;
        shared.delivery = scheduled(tools.environment(), date, frequency);
        const offset = writtenOffset(date);
        if (offset !== undefined) shared.offset = offset;
      },
    }));
  };

  return (msg: Message, rules: PhoneRules): Reading<Text, SendOrder> | Promise<Reading<Text, SendOrder>> => {
    const resend = takeResend(msg, tools.node.id);
    if (resend) return again(msg, resend);
    const values = readAll(sources, msg);
    return values instanceof Promise
      ? values.then((read) => fromFields(msg, rules, read))
      : fromFields(msg, rules, values);
  };
};

/** Milliseconds before each further try of a text that is refused for a consent which is accepted. */
const delaysOfReturned: readonly number[] = [30 * second, 2 * minute, 10 * minute];

/** A number that the service does not know has given no consent. */
const nothingKnownIf404 = (fault: unknown) => {
  if (resultOfFault(fault).kind !== 'unknown_number') throw fault;
  return { ...nothingKnown, attempts: 1 };
};

const handler = (tools: Tools): Handler => {
  const source = tools.source('phone');
  const returned = new ReturnedRecipients();
  const onceBy = tools.source('onceKey').type;
  const onceFor = tools.plain.number('onceFor') * hour;
  /** The key that was given; with `text`, the text and its delivery date. */
  const onceKeyOf = (delivery: Delivery | undefined, { text, onceKey }: Text): string | undefined => {
    if (onceKey !== undefined) return onceKey;
    return onceBy === 'text' ? JSON.stringify([text, delivery?.deliveryDate ?? null]) : undefined;
  };
  let isConsentMissing: ReturnType<typeof consentTest> | undefined;

  const send = async ({
    movedTo,
    permit,
    environment,
    client,
    shared,
    item,
    signal,
    begin,
    undo,
    delays,
  }: SendTurn): Promise<Outcome> => {
    const { advisor } = shared;
    const delivery = shared.delivery && movedDelivery(shared.delivery, movedTo, environment.settings);
    const { phone = '', text = '' } = item;
    const { data, ...answered } = await client.call(
      'sendMessage',
      { body: delivery ? { phone, text, ...delivery } : { phone, text } },
      { advisor, lane: tools.node.id, signal, begin, undo, permit },
    );
    isConsentMissing ??= consentTest(environment.settings.consentPattern);
    const dates = datesOf(shared.delivery, movedTo, environment.settings);
    const attempts = answered.attempts + delays;
    return sendOutcome(data, { text, attempts, offset: shared.offset, ...dates }, isConsentMissing);
  };

  const consentOf = ({ client, shared: { advisor }, item: { phone = '' }, signal }: SendTurn) =>
    client
      .call('getConsent', { query: { phone } }, { advisor, lane: tools.node.id, signal })
      .then(({ data, attempts }) => ({ ...consentStatusOf(data), attempts }), nothingKnownIf404);

  /**
   * A service may report a consent before its sending side knows of it. A text that came back for its consent and is
   * refused for it again would go round the flow without end: it is delayed instead, and then refused. Where nobody can
   * say what the consent is, it is delayed too, and then needs consent.
   */
  const sendReturned = async (turn: SendTurn): Promise<Outcome> => {
    const outcome = await send(turn);
    if (outcome.port !== 2 || !outcome.problem) return outcome;
    const state = await consentOf(turn).then(
      (known) => known.state,
      () => undefined,
    );
    if (state !== 'accepted' && state !== undefined) return outcome;
    const { environment, shared, delays } = turn;
    const notBefore = environment.clock.now() + (delaysOfReturned[delays] ?? Infinity);
    const deliveryDate = shared.delivery && millisecondsOf(shared.delivery, environment.settings);
    if (notBefore >= (deliveryDate ?? Infinity)) return state ? notBelieved(outcome.problem) : outcome;
    throw new Held(notBefore, delays + 1);
  };

  /** A dry run: how the text would leave on an account that requires consent, as far as the consent status tells. */
  const preview = async (turn: SendTurn): Promise<Outcome> => {
    const { environment, shared, item, notBefore, movedTo } = turn;
    const held = notBefore === undefined ? {} : { notBefore };
    const { text = '' } = item;
    const { segments } = countText(text);
    const { state, memberId, attempts } = await consentOf(turn);
    if (state !== 'accepted') return needsConsent(state ?? 'unknown_number', attempts, { segments, ...held });
    const dates = datesOf(shared.delivery, movedTo, environment.settings);
    return sent({ memberId }, { text, attempts, offset: shared.offset, ...dates }, held);
  };

  const scheduleOf = (delivery: Delivery | undefined): Pick<Resend, 'deliveryDate' | 'frequency'> => {
    if (!delivery) return {};
    const { frequency } = delivery;
    const deliveryDate = millisecondsOf(delivery, tools.environment().settings);
    return { deliveryDate, ...(frequency !== undefined && { frequency }) };
  };

  /** The `msg.resend` of a message that needs consent. */
  const resendOf = (shared: SendOrder, recipient: Text, entry: unknown): Resend | undefined => {
    const { phone, text } = recipient;
    const { advisor, delivery } = shared;
    if (phone === undefined || text === undefined) return undefined;
    const timeZone = zoneOf(shared, entry);
    return {
      node: tools.node.id,
      phone,
      text,
      advisor,
      ...scheduleOf(delivery),
      ...(timeZone !== undefined && { timeZone }),
      ...(recipient.onceKey !== undefined && { onceKey: recipient.onceKey }),
    };
  };

  return new RecipientNode<Text, SendOrder>(tools, {
    source,
    read: reader(tools, source),
    guards: {
      maxSegments: tools.plain.number('maxSegments'),
      hours: tools.plain.text('hours') === 'any' ? 'any' : 'environment',
      onceOf: ({ delivery }, text) => {
        const key = onceKeyOf(delivery, text);
        return key === undefined ? undefined : { key, within: onceFor };
      },
      deliveryDateOf: ({ delivery }, { settings }) => delivery && millisecondsOf(delivery, settings),
    },
    work: (turn) => {
      const { item, shared } = turn;
      if (shared.dryRun) return preview(turn);
      if (!item.cameBack) return send(turn);
      return returned.send(shared.advisor, item, shared.delivery, () => sendReturned(turn));
    },
    statusTexts: { first: sentOrScheduled, third: 'status.needsConsent', plannedFor },
    completeOutcome(outcome, shared, text, index, entry) {
      const whole: Mutable<Outcome> =
        index === text.index ? outcome : { ...asDuplicate(outcome, text.index) };
      const resend = outcome.port === 2 ? resendOf(shared, text, entry) : undefined;
      if (resend) whole.carry = { resend };
      return whole;
    },
  });
};

export const create = flowNode(spec, handler);
