import { e164 } from '../../lib/contract-values';
import type { Mutable } from '../../lib/mutable';
import { epochOf } from '../../lib/runtime/dates';
import type { EnvironmentSettings } from '../../lib/runtime/environment';
import { invalidInput } from '../../lib/runtime/errors';
import { excerpt, pick, type Source } from '../../lib/runtime/inputs';
import {
  fieldOf,
  hasBrokenPlaceholder,
  isNothing,
  isRecord,
  isWellFormed,
  placeholder,
} from '../../lib/runtime/kinds';
import type { Outcome } from '../../lib/outbox/outcome';
import type { Message } from '../../lib/runtime/red';
import type { ServiceError, MessageValue } from '../../lib/service/errors';
import {
  notANumber,
  recipientsOf,
  whenRead,
  type PhoneEntry,
  type PhoneRules,
  type Recipient,
  type Recipients,
} from '../../lib/texting/recipients';

/** The index of a text in the list that it came in, from `msg.parts`. */
export interface ListPlace {
  readonly list: string;
  readonly index: number;
}

/** One text to one number, ready to be sent; or the reason why it cannot be. */
export interface Text extends Recipient {
  /** The text came back with consent, in `msg.resend`. */
  readonly cameBack?: true;
  /** Set when the text came back with consent: where it was in its list. */
  readonly place?: ListPlace;
  /** The key by which the text is sent once. */
  readonly onceKey?: string;
}

/** JSON is sent as UTF-8, which has no lone surrogates (RFC 8259, section 8): another text would arrive than was written. */
const wholeText = (text: string): string => {
  if (!isWellFormed(text)) throw invalidInput('text_broken');
  return text;
};

/** Gives each recipient its text: its own, else that of the node's field, with its placeholders filled. */
export type TextOf = (entry: PhoneEntry, msg: Message, value: unknown) => string;

/** A text, or a finite number as one; undefined for anything else, and for a blank text. */
const asText = (value: unknown): string | undefined => {
  const text = typeof value === 'number' && Number.isFinite(value) ? String(value) : value;
  return typeof text === 'string' && text.trim() !== '' ? text : undefined;
};

/** Gives the field of this name of a recipient, a contact or a message. */
type FieldSource = (name: string) => unknown;

const fieldsOf =
  (record: unknown): FieldSource =>
  (name) =>
    pick(record, name, fieldOf);

/** What the flow's author wrote is filled from the message too; a text that came in with the message is not. */
const isAuthored = ({ type }: Source): boolean => type !== 'msg';

type Filled =
  | { readonly text: string }
  | { readonly missing: string }
  /** Braces never reach a phone, not even those in a badly filled table. */
  | { readonly withBraces: string }
  | { readonly isBroken: true };

/** Compiles a text: each `{{field}}` is filled from the first of the sources that has it. */
export const compileTemplate = (template: string): ((sources: readonly FieldSource[]) => Filled) => {
  if (!template.includes('{{')) return () => ({ text: template });
  if (hasBrokenPlaceholder(template)) return () => ({ isBroken: true });
  const names: string[] = [];
  const pieces: string[] = [];
  let from = 0;
  for (const match of template.matchAll(placeholder)) {
    pieces.push(template.slice(from, match.index));
    names.push(match[1]?.trim() ?? '');
    from = match.index + match[0].length;
  }
  const tail = template.slice(from);
  return (sources) => {
    let text = '';
    for (const [index, name] of names.entries()) {
      let value: string | undefined;
      for (const fieldIn of sources) value ??= asText(fieldIn(name));
      if (value === undefined) return { missing: name };
      if (value.includes('{{')) return { withBraces: name };
      text += (pieces[index] ?? '') + value;
    }
    return { text: text + tail };
  };
};

const noText = (source: Source, value: unknown, msg: Message): ServiceError => {
  if (source.type === 'str') return invalidInput('text_literal_empty');
  const isEmpty = value === undefined || value === null || value === '';
  if (isEmpty && source.where === 'msg.text' && asText(msg.payload) !== undefined) {
    return invalidInput('text_in_payload');
  }
  return invalidInput(isEmpty ? 'text_missing' : 'text_kind', { where: source.where });
};

/** An address book node gives the contact as the payload, and users who wire it to a text try the field's bare name. */
const noField = (name: string, { payload }: Message, authored: boolean): ServiceError => {
  const field = excerpt(name);
  if (!authored) return invalidInput('placeholder_own', { field });
  return asText(pick(payload, name)) === undefined
    ? invalidInput('placeholder_missing', { field })
    : invalidInput('placeholder_in_payload', { field });
};

/** Fills templates; the last one is kept compiled, because the recipients of a list mostly share it. */
const templateFiller = (): ((
  template: string,
  entry: PhoneEntry,
  msg: Message,
  authored: boolean,
) => string) => {
  let last: string | undefined;
  let compiled = compileTemplate('');
  return (template, { record }, msg, authored) => {
    if (template !== last) compiled = compileTemplate(template);
    last = template;
    const own = fieldsOf(record);
    const filled = compiled(authored ? [own, fieldsOf(msg['contact']), (name) => pick(msg, name)] : [own]);
    if ('isBroken' in filled) throw invalidInput('placeholder_broken');
    if ('withBraces' in filled)
      throw invalidInput('placeholder_braces', { field: excerpt(filled.withBraces) });
    if ('missing' in filled) throw noField(filled.missing, msg, authored);
    return filled.text;
  };
};

export const textGiver = (source: Source): TextOf => {
  const fill = templateFiller();
  const authored = isAuthored(source);
  return (entry, msg, value) => {
    const { record } = entry;
    const ownText = record && fieldOf(record, 'text');
    if (ownText !== undefined) {
      const own = asText(ownText);
      if (own === undefined) throw invalidInput('text_own_empty');
      return wholeText(fill(own, entry, msg, false));
    }
    const text = asText(value);
    if (text === undefined) throw noText(source, value, msg);
    return wholeText(fill(text, entry, msg, authored));
  };
};

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

/** The texts of one message: each is checked, and equal ones in one list are sent once. */
export const textsOf = (
  phones: unknown,
  where: MessageValue,
  rules: PhoneRules,
  /** Gives a recipient its text; if it throws, the text fails. */
  complete: (text: Mutable<Text>, entry: PhoneEntry) => void,
): Recipients<Text> | Promise<Recipients<Text>> => {
  const recipients = recipientsOf<Text>(phones, where, rules, complete);
  return whenRead(recipients, (read) =>
    read.list ? { ...read, items: withoutDuplicates(read.items) } : read,
  );
};

/** Gives each recipient the once-key of its text: the filled literal, or the value of the source. */
export const onceKeyGiver = (
  source: Source,
): ((entry: PhoneEntry, msg: Message, value: unknown) => string) => {
  const fill = templateFiller();
  return (entry, msg, value) => {
    const given = asText(value);
    const key = given !== undefined && source.type === 'str' ? fill(given, entry, msg, true) : given;
    if (key === undefined) throw invalidInput('once_key_missing', { where: source.where });
    return key;
  };
};

/** The schedule fields as the service takes them (contract, *Message request*). */
export interface Delivery {
  readonly scheduleDelivery: true;
  readonly deliveryDate: number;
  readonly frequency?: number;
}

const wholeNumber = (value: unknown): number | undefined => {
  const number = typeof value === 'string' && /^\s*[+-]?\d+\s*$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : undefined;
};

type Zone = Pick<EnvironmentSettings, 'deliveryDateUnit' | 'timeZone'>;

/** The date is epoch milliseconds, an ISO string or a Date. Throws `invalid_input`. */
export const deliveryOf = (
  date: unknown,
  frequency: unknown,
  { deliveryDateUnit, timeZone }: Zone,
  now: number,
): Delivery => {
  const at = epochOf(date, timeZone);
  if (Number.isNaN(at)) throw invalidInput(isNothing(date) ? 'date_missing' : 'date_unreadable');
  if (at <= now) throw invalidInput('date_past');
  const often = isNothing(frequency) ? undefined : wholeNumber(frequency);
  if (often === undefined && !isNothing(frequency)) throw invalidInput('frequency_kind');
  return {
    scheduleDelivery: true,
    deliveryDate: deliveryDateUnit === 's' ? Math.round(at / 1000) : at,
    ...(often !== undefined && { frequency: often }),
  };
};

/** The delivery date in milliseconds, even if the service uses seconds. */
export const millisecondsOf = ({ deliveryDate }: Delivery, { deliveryDateUnit }: Zone): number =>
  deliveryDateUnit === 's' ? deliveryDate * 1000 : deliveryDate;

/** A delivery that was moved into the recipient's text hours, to a whole second. */
export const movedDelivery = (
  delivery: Delivery,
  movedTo: number | undefined,
  { deliveryDateUnit }: Zone,
): Delivery =>
  movedTo === undefined
    ? delivery
    : { ...delivery, deliveryDate: deliveryDateUnit === 's' ? movedTo / 1000 : movedTo };

/** When a scheduled text is delivered, and when it was meant to be, if that differs; in milliseconds. */
export const datesOf = (delivery: Delivery | undefined, movedTo: number | undefined, settings: Zone) => {
  const asked = delivery && millisecondsOf(delivery, settings);
  return { deliveryDate: movedTo ?? asked, ...(movedTo !== undefined && { movedFrom: asked }) };
};

/** What a message on *needs consent* carries for the send node that it came from. */
export interface Resend {
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
export const takeResend = (msg: Message, node: string): Resend | undefined => {
  const { resend } = msg;
  if (!isRecord(resend) || resend.node !== node) return undefined;
  const fault = faultIn(resend);
  if (fault) throw fault;
  delete msg.resend;
  return resend as unknown as Resend;
};

const placeOf = ({ parts }: Message): ListPlace | undefined => {
  if (!isRecord(parts)) return undefined;
  const { id, index } = parts;
  return typeof id === 'string' && typeof index === 'number' ? { list: id, index } : undefined;
};

export const textAgain = ({ phone, text, onceKey }: Resend, msg: Message): Text => {
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
export class ReturnedRecipients {
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
export const asDuplicate = (outcome: Outcome, duplicateOf: number): Outcome =>
  outcome.port === 1 ? outcome : { ...outcome, payload: { ...(outcome.payload as object), duplicateOf } };
