import { e164 } from '../../lib/contract-values';
import { resultOfFault, nothingKnown, consentStatusOf } from '../../lib/consent/consent-status';
import { hour, minute, second } from '../../lib/durations';
import { doNotTextGuard } from '../../lib/guards/do-not-text';
import { sendOnce } from '../../lib/guards/once';
import { countText } from '../../lib/guards/segments';
import { textHours, validZone, zoneOf, type TextShared } from '../../lib/guards/text-hours';
import type { Mutable } from '../../lib/mutable';
import { Later } from '../../lib/outbox/queue';
import { writtenOffset } from '../../lib/runtime/dates';
import type { Environment } from '../../lib/runtime/environment';
import { invalidInput } from '../../lib/runtime/errors';
import { isRecord, isWellFormed } from '../../lib/kinds';
import type { Tools } from '../../lib/runtime/flow-node';
import { noSource } from '../../lib/runtime/inputs';
import { itemNode, type Batch, type Guard, type ItemOf } from '../../lib/runtime/item-node';
import type { Item } from '../../lib/outbox/item';
import type { Outcome } from '../../lib/outbox/outcome';
import type { Message } from '../../lib/runtime/red';
import {
  notANumber,
  sharedIn,
  texting,
  usedFields,
  withName,
  type Recipient,
} from '../../lib/texting/recipients';
import { consentTest, needsConsent, notBelieved, sendOutcome, sent } from './answer';
import { spec } from './spec';
import { datesOf, deliveryOf, onTheWire, type Delivery } from './schedule';
import { onceKeyGiver, textGiver } from './template';

/** The index of a text in the list that it came in, from `msg.parts`. */
interface ListPlace {
  readonly list: string;
  readonly index: number;
}

/** One text to one number, ready to be sent; or the reason why it cannot be. */
interface Text extends Recipient {
  /** The text came back with consent, in `msg.resend`. */
  readonly cameBack?: true;
  /** Set when the text came back with consent: where it was in its list. */
  readonly place?: ListPlace;
  readonly onceKey?: string;
}

interface SendShared extends TextShared {
  readonly delivery?: Delivery;
  /** The offset from UTC with which the delivery date was written, in milliseconds. */
  readonly offset?: number;
}

type TextItem = Item<Text, SendShared>;

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

/** A text to the same number again in a list becomes a duplicate of the first. */
const withoutDuplicates = (items: readonly Text[]): Text[] => {
  const originals = new Map<string, { readonly text: Mutable<Text>; readonly others: { index: number }[] }>();
  return items.filter((text) => {
    if (text.wrong) return true;
    const key = JSON.stringify([text.advisor, text.phone, text.text]);
    const original = originals.get(key);
    if (!original) {
      originals.set(key, { text, others: [] });
      return true;
    }
    original.others.push({ index: text.index });
    original.text.duplicates = original.others;
    return false;
  });
};

/** What a message on *needs consent* carries for the send node that it came from. */
interface Resend {
  readonly node: string;
  readonly phone: string;
  readonly text: string;
  readonly advisor: string;
  /** Milliseconds; undefined for a text that is sent at once. */
  readonly deliveryDate?: number;
  readonly frequency?: number;
  readonly timeZone?: unknown;
  readonly onceKey?: string;
}

/** A flow may have made or changed `msg.resend`: its values are checked as those of the fields are. */
const faultIn = ({ phone, text, advisor, onceKey }: Readonly<Record<string, unknown>>) => {
  const where = (field: string): { readonly where: string } => ({ where: `msg.resend.${field}` });
  if (typeof phone !== 'string' || !e164.test(phone))
    return notANumber(phone, '', { ...where('phone'), list: false });
  if (typeof text !== 'string' || text.trim() === '') return invalidInput('text_kind', where('text'));
  if (!isWellFormed(text)) return invalidInput('text_broken');
  if (typeof advisor !== 'string' || advisor.trim() === '')
    return invalidInput('advisor_value', where('advisor'));
  if (onceKey !== undefined && (typeof onceKey !== 'string' || onceKey === ''))
    return invalidInput('once_key_missing', where('onceKey'));
  return undefined;
};

/** Removes `msg.resend` from the message and returns it, when it names this node. Throws `invalid_input`. */
const takeResend = (msg: Message, node: string): Resend | undefined => {
  const { resend } = msg;
  if (resend === undefined || !isRecord(resend) || resend.node !== node) return undefined;
  delete msg.resend;
  const fault = faultIn(resend);
  if (fault) throw fault;
  return resend as unknown as Resend;
};

const placeOf = ({ parts }: Message): ListPlace | undefined => {
  if (!isRecord(parts)) return undefined;
  const { id, index } = parts;
  return typeof id === 'string' && typeof index === 'number' ? { list: id, index } : undefined;
};

const textAgain = ({ phone, text, onceKey }: Resend, msg: Message): Text => {
  const place = placeOf(msg);
  const once = onceKey !== undefined && { onceKey };
  return { index: 0, phone, text, cameBack: true, ...(place && { place }), ...once };
};

interface Round {
  /** The index of the text that is sent. */
  readonly sent: number;
  /** The indexes of the texts that have come back in this round. */
  readonly places: Set<number>;
  readonly outcome: Promise<Outcome>;
}

const mostKept = 1000;

/**
 * The latest texts that came back with consent. Of equal texts of one list, the first to come back is sent, and the
 * others leave as its duplicates.
 */
class ReturnedRecipients {
  private readonly rounds = new Map<string, Round>();

  /** `when` is the delivery date: equal texts with different dates are different texts. */
  send(
    advisor: string,
    { phone, text, place, onceKey }: Text,
    when: unknown,
    send: () => Promise<Outcome>,
  ): Promise<Outcome> {
    if (!place) return send();
    const key = JSON.stringify([advisor, place.list, phone, text, onceKey, when]);
    const round = this.rounds.get(key);
    // A text that was in this round already has gone round the loop again: it begins a new round.
    if (round && !round.places.has(place.index)) {
      round.places.add(place.index);
      return round.outcome.then((outcome) => asDuplicate(outcome, round.sent));
    }
    const outcome = send();
    // The payload is copied, because the flow may change the one that leaves.
    const kept = outcome.then((each) => ({ ...each, payload: { ...(each.payload as object) } }));
    kept.catch(() => undefined);
    this.rounds.delete(key);
    this.rounds.set(key, { sent: place.index, places: new Set([place.index]), outcome: kept });
    const [oldest] = this.rounds.keys();
    if (this.rounds.size > mostKept && oldest !== undefined) this.rounds.delete(oldest);
    return outcome;
  }
}

/** The outcome of a text that was not sent because an equal one was. */
const asDuplicate = (outcome: Outcome, duplicateOf: number): Outcome => ({
  ...outcome,
  ...(outcome.port === 0 && { alreadySent: true }),
  ...(outcome.port !== 1 && { payload: { ...(outcome.payload as object), duplicateOf } }),
});

/** The part of a texting node that reads the texts of a message: those of its fields, or exactly those of `msg.resend`. */
const reader = (tools: Tools): ReturnType<typeof texting<Text, SendShared>> => {
  const phones = tools.source('phone');
  const texts = tools.source('text');
  const giveText = textGiver(texts);
  const isScheduled = tools.plain.text('schedule') === 'at';
  const schedule = isScheduled ? [tools.source('deliveryDate'), tools.source('frequency')] : [];
  const onceKeys = tools.source('onceKey');
  const giveKey = onceKeys.type === 'off' || onceKeys.type === 'text' ? undefined : onceKeyGiver(onceKeys);

  const again = (msg: Message, resend: Resend): Batch<Text, SendShared> => {
    const { advisor, deliveryDate, frequency, timeZone } = resend;
    const { dryRun } = sharedIn(msg, false);
    const shared: Mutable<SendShared> = { advisor: '', ...(dryRun && { dryRun }) };
    const check = (): void => {
      const environment = tools.environment();
      tools.checkSettings();
      shared.advisor = advisor;
      if (timeZone !== undefined) shared.timeZone = timeZone;
      if (deliveryDate !== undefined) shared.delivery = scheduled(environment, deliveryDate, frequency);
    };
    return {
      items: [withName(textAgain(resend, msg), msg)],
      count: 1,
      list: false,
      source: phones,
      shared,
      check,
    };
  };

  const ofFields = texting<Text, SendShared>(tools, {
    source: phones,
    others: [texts, giveKey ? onceKeys : noSource, ...schedule],
    complete(item, entry, msg, [text, once]) {
      item.text = giveText(entry, msg, text);
      if (giveKey) item.onceKey = giveKey(entry, msg, once);
    },
    distinct: withoutDuplicates,
    share: isScheduled
      ? (shared, _msg, [, , date, frequency]) => {
          shared.delivery = scheduled(tools.environment(), date, frequency);
          const offset = writtenOffset(date);
          if (offset !== undefined) shared.offset = offset;
        }
      : undefined,
  });

  return {
    ...ofFields,
    read(msg) {
      const resend = takeResend(msg, tools.node.id);
      return resend ? again(msg, resend) : ofFields.read(msg);
    },
  };
};

/** Fails texts that take more SMS segments than the node sends; 0 means any number. */
const longestText = (most: number): Guard<Text, SendShared>[] => {
  const pass: Guard<Text, SendShared>['pass'] = ({ data: { text = '' } }, next) => {
    const { segments } = countText(text);
    if (segments > most) throw invalidInput('text_segments', { segments, most });
    return next();
  };
  return most > 0 ? [{ pass }] : [];
};

/** Milliseconds before each retry of a text that is refused for lack of consent although the consent is accepted. */
const delaysOfReturned: readonly number[] = [30 * second, 2 * minute, 10 * minute];

/** A number that the service does not know has given no consent. */
const nothingKnownIf404 = (fault: unknown) => {
  if (resultOfFault(fault).kind !== 'unknown_number') throw fault;
  return { ...nothingKnown, attempts: 1 };
};

export const create = itemNode<Text, SendShared>(spec, (tools) => {
  const returned = new ReturnedRecipients();
  const onceBy = tools.source('onceKey').type;
  const hours = tools.plain.text('hours');
  const onceFor = tools.plain.number('onceFor') * hour;
  let isConsentMissing: ReturnType<typeof consentTest> | undefined;

  /** The key that was given; with `text`, the text and its delivery date. */
  const onceOf = ({ text, onceKey }: Text, { delivery }: SendShared) => {
    const ofText = onceBy === 'text' ? JSON.stringify([text, delivery?.deliveryDate ?? null]) : undefined;
    const key = onceKey ?? ofText;
    return key === undefined ? undefined : { key, within: onceFor };
  };

  const deliveryDateOf = ({ shared: { delivery } }: Pick<TextItem, 'shared'>) => delivery?.deliveryDate;

  const send = async (item: TextItem): Promise<Outcome> => {
    const { shared, data, movedTo } = item;
    const { settings } = tools.environment();
    const { delivery } = shared;
    const { phone = '', text = '' } = data;
    const { data: answer, ...answered } = await item.call('sendMessage', {
      body: { phone, text, ...(delivery && onTheWire(delivery, movedTo, settings)) },
    });
    isConsentMissing ??= consentTest(settings.consentPattern);
    const dates = delivery && datesOf(delivery, movedTo);
    const attempts = answered.attempts + item.delays;
    return sendOutcome(answer, { text, attempts, offset: shared.offset, ...dates }, isConsentMissing);
  };

  const consentOf = (item: TextItem) =>
    item
      .call('getConsent', { query: { phone: item.data.phone ?? '' } })
      .then(({ data, attempts }) => ({ ...consentStatusOf(data), attempts }), nothingKnownIf404);

  /**
   * A service may report a consent before its sending side knows of it. A text that came back for its consent and is
   * refused for it again would loop through the flow forever: it is delayed instead, and then refused. Where nobody can
   * say what the consent is, it is delayed too, and then needs consent.
   */
  const sendReturned = async (item: TextItem): Promise<Outcome> => {
    const outcome = await send(item);
    if (outcome.port !== 2 || !outcome.problem) return outcome;
    const state = await consentOf(item).then(
      (known) => known.state,
      () => undefined,
    );
    if (state !== 'accepted' && state !== undefined) return outcome;
    const notBefore = tools.environment().clock.now() + (delaysOfReturned[item.delays] ?? Infinity);
    if (notBefore >= (deliveryDateOf(item) ?? Infinity))
      return state ? notBelieved(outcome.problem) : outcome;
    throw new Later(notBefore, item.delays + 1);
  };

  /** A dry run: how the text would leave on an account that requires consent, as far as the consent status shows. */
  const preview = async (item: TextItem): Promise<Outcome> => {
    const { shared, data, wouldHoldUntil: notBefore, movedTo } = item;
    const held = notBefore === undefined ? {} : { notBefore };
    const { text = '' } = data;
    const { state, memberId, attempts } = await consentOf(item);
    if (state !== 'accepted')
      return needsConsent(state ?? 'unknown_number', attempts, {
        segments: countText(text).segments,
        ...held,
      });
    const dates = shared.delivery && datesOf(shared.delivery, movedTo);
    return sent({ memberId }, { text, attempts, offset: shared.offset, ...dates }, held);
  };

  /** The `msg.resend` of a message that needs consent. */
  const resendOf = (item: ItemOf<Text, SendShared>): Resend | undefined => {
    const { shared, data } = item;
    const { phone, text, onceKey } = data;
    if (phone === undefined || text === undefined) return undefined;
    const timeZone = zoneOf(item);
    return {
      node: tools.node.id,
      phone,
      text,
      advisor: data.advisor ?? shared.advisor,
      ...shared.delivery,
      ...(timeZone !== undefined && { timeZone }),
      ...(onceKey !== undefined && { onceKey }),
    };
  };

  return {
    ...reader(tools),
    guards: (around) => [
      ...longestText(tools.plain.number('maxSegments')),
      ...validZone(around, hours),
      doNotTextGuard(around),
      sendOnce(around, onceOf),
      ...textHours(around, hours, deliveryDateOf),
    ],
    work(item) {
      const { data, shared } = item;
      if (shared.dryRun) return preview(item);
      if (!data.cameBack) return send(item);
      return returned.send(item.advisor, data, shared.delivery, () => sendReturned(item));
    },
    statusTexts: { first: sentOrScheduled, third: 'status.needsConsent', plannedFor },
    fields(outcome, item, index) {
      const whole = usedFields(outcome, item);
      const resend = whole.port === 2 ? resendOf(item) : undefined;
      if (resend) whole.carry = { resend };
      return index === item.data.index ? whole : asDuplicate(whole, item.data.index);
    },
  };
});
