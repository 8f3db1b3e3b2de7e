import type { Id } from '../service/endpoints';
import type { CountryCode, parsePhoneNumberFromString as parse } from 'libphonenumber-js';
import type { Mutable } from '../mutable';
import { e164 } from '../contract-values';
import { digitsTogether, fieldOf, isJsonText, isNothing, isRecord } from '../runtime/kinds';
import { invalidInput } from '../runtime/errors';
import { checkLength, excerpt } from '../runtime/inputs';
import { hideNumbers } from '../runtime/log';
import type { Item, Order, ItemsOfMessage } from '../runtime/outbox-node';
import type { Message } from '../runtime/red';
import { mapInSlices, whenRead } from '../runtime/slices';
import { ServiceError, type MessageValue } from '../service/errors';

/** One entry of a phone field, as it was read. */
export interface PhoneEntry {
  /** In E.164; undefined when the given value is not a number that may be texted. */
  readonly phone: string | undefined;
  /** The value as it was given. */
  readonly given: unknown;
  /** The whole object that the list held for this recipient. */
  readonly record: Record<string, unknown> | undefined;
}

let parsePhoneNumber: typeof parse | undefined;

const national = (number: string, country: string): string | undefined => {
  // The tables of this module take a hundred kilobytes: it is loaded when the first number without a plus comes.
  parsePhoneNumber ??= (require('libphonenumber-js') as { parsePhoneNumberFromString: typeof parse })
    .parsePhoneNumberFromString;
  const found = parsePhoneNumber(number, country as CountryCode);
  return found?.isPossible() && e164.test(found.number) ? found.number : undefined;
};

/** A value that starts with + is judged by the contract's pattern alone (*Limits*); others need a country. */
export const phoneNumber = (value: unknown, country: string): string | undefined => {
  const text = typeof value === 'number' ? String(value) : typeof value === 'string' ? value.trim() : '';
  if (text.startsWith('+')) {
    const number = digitsTogether(text);
    return e164.test(number) ? number : undefined;
  }
  // The parser would find one number in a JSON text, and the rest of the list would be lost.
  if (isJsonText(text)) return undefined;
  return text !== '' && country !== '' ? national(text, country) : undefined;
};

/** How the numbers of a phone field are read. */
export interface PhoneRules {
  /** The region of numbers that are not written with +; empty means E.164 alone. */
  readonly country: string;
  /** The name of the number's field in the objects of a list. */
  readonly field: string;
  /** Called when a list is so long that it is read in slices. */
  readonly onSlices?: () => void;
}

const entryOf = (entry: unknown, { country, field }: PhoneRules): PhoneEntry => {
  const record = isRecord(entry) ? entry : undefined;
  const given = record ? fieldOf(record, field) : entry;
  return { phone: phoneNumber(given, country), given, record };
};

/** One number, or the entries of a list. Throws `invalid_input` when it is neither, or an empty list. */
const givenIn = (
  value: unknown,
  where: MessageValue,
): { readonly list: boolean; readonly given: readonly unknown[] } => {
  if (Array.isArray(value) && value.length > 0) {
    checkLength(value, where);
    return { list: true, given: value };
  }
  if (typeof value !== 'string' && typeof value !== 'number')
    throw invalidInput(Array.isArray(value) ? 'phones_empty' : 'phones_kind', { where });
  return { list: false, given: [value] };
};

/**
 * `msg.phone` for a recipient of a list without a readable number: what stood there, and not the whole list, which a flow
 * that tries this message again would text once more.
 */
const asGiven = ({ given }: PhoneEntry): string | number | null =>
  typeof given === 'string' || typeof given === 'number' ? given : null;

/** No number that is written without its country code is shorter. */
const fewestDigits = 6;

/** What to tell the user about a text that is not a number we may use. */
export const wrongNumber = (text: string, country: string): ServiceError => {
  if (!/\d/.test(text)) return invalidInput('phone_none');
  if (text.trim().startsWith('+')) {
    const number = digitsTogether(text.trim()).slice(1);
    return /^\d+$/.test(number)
      ? invalidInput('phone_digits', { count: number.length })
      : invalidInput('phone_format');
  }
  const count = text.replaceAll(/\D/g, '').length;
  if (count < fewestDigits) return invalidInput('phone_short', { count });
  return country === '' ? invalidInput('phone_country') : invalidInput('phone_impossible', { country });
};

/** Where a value was found that is not a number we may text. */
interface Whereabouts {
  readonly where: MessageValue;
  /** The value is an entry of a list. */
  readonly list: boolean;
  /** The name of the number's field in the objects of a list. */
  readonly field?: string;
}

/** What to tell the user about a value that is not a number we may text. */
export const notANumber = (
  given: unknown,
  country: string,
  { where, list, field = 'phone' }: Whereabouts,
): ServiceError => {
  if (isNothing(given)) return invalidInput(list ? 'phone_entry' : 'phone_missing', { where, column: field });
  if (typeof given !== 'string' && typeof given !== 'number') return invalidInput('phone_kind');
  const text = String(given);
  return isJsonText(text) ? invalidInput('phone_json', { where }) : wrongNumber(text, country);
};

const mostNames = 10;
const phoneWords = /phone|mobil|cell|tel|sms|handy|móvil|電話|携帯/iu;

const looksLikeNumber = (value: unknown): boolean => {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !/^[\s\d+().\p{Pd}/]+$/u.test(text)) return false;
  const digits = text.replaceAll(/\D/g, '').length;
  return digits >= 7 && digits <= 15;
};

/** The field of a recipient that probably holds its number: by name and value, else by name, else by value alone. */
const likelyField = (record: Readonly<Record<string, unknown>>): string | undefined => {
  const names = Object.keys(record);
  const withNumber = names.filter((name) => looksLikeNumber(record[name]));
  const byName = (among: readonly string[]): string | undefined =>
    among.find((name) => phoneWords.test(name));
  return byName(withNumber) ?? byName(names) ?? (withNumber.length === 1 ? withNumber[0] : undefined);
};

/** What to tell the user about an object in a list that has no number where one was looked for. */
const noNumberIn = (
  record: Readonly<Record<string, unknown>>,
  { field }: PhoneRules,
  where: MessageValue,
): ServiceError => {
  const names = Object.keys(record);
  if (names.length === 0) return invalidInput('phone_entry', { where, column: field });
  if (names.some((name) => name.toLowerCase() === field.toLowerCase()))
    return invalidInput('phone_field_empty', { where, column: field });
  const shown = names.slice(0, mostNames).map(excerpt).join(', ');
  const fields = hideNumbers(names.length > mostNames ? `${shown}, …` : shown);
  const likely = likelyField(record);
  return likely === undefined
    ? invalidInput('phone_field_missing', { where, column: field, fields })
    : invalidInput('phone_field_likely', {
        where,
        column: field,
        fields,
        likely: hideNumbers(excerpt(likely)),
      });
};

const wrongEntry = ({ given, record }: PhoneEntry, rules: PhoneRules, found: Whereabouts): ServiceError =>
  record && isNothing(given)
    ? noNumberIn(record, rules, found.where)
    : notANumber(given, rules.country, { ...found, field: rules.field });

/**
 * The numbers that a control message (`reset`, `flush`) is for; undefined means all. Throws `invalid_input` when one of
 * them cannot be read: a message that names a number does not mean all.
 */
export const phonesOfControl = (msg: Message, rules: PhoneRules): readonly string[] | undefined => {
  if (msg.phone === undefined) return undefined;
  const where = 'msg.phone';
  const { list, given } = givenIn(msg.phone, where);
  return Array.from(given, (each) => {
    const entry = entryOf(each, rules);
    if (entry.phone === undefined) throw wrongEntry(entry, rules, { where, list });
    return entry.phone;
  });
};

/** One recipient of a message, and what is used for it; or why nothing can be done. */
export interface Recipient extends Item {
  readonly phone?: string;
  /** What a list held where no number could be read. */
  readonly given?: string | number | null;
  readonly memberId?: Id;
  readonly text?: string;
  /** What the message calls the recipient, shown with a wait. */
  readonly name?: string;
}

/** The recipients of one message. */
export type Recipients<T extends Recipient = Recipient> = Omit<ItemsOfMessage<T>, 'source'>;

/**
 * The recipients that a phone field names; an unreadable number fails alone. `completeRecipient` adds what else a recipient has;
 * if it throws a ServiceError, that recipient fails. A long list is read in slices. Throws `invalid_input` when the value
 * is neither a number nor a list of them.
 */
export const recipientsOf = <T extends Recipient = Recipient>(
  value: unknown,
  where: MessageValue,
  rules: PhoneRules,
  completeRecipient?: (recipient: Mutable<T>, entry: PhoneEntry) => void,
): Recipients<T> | Promise<Recipients<T>> => {
  const { list, given } = givenIn(value, where);
  let isAnyRecord = false;
  const items = mapInSlices(given, (each, index): T => {
    const entry = entryOf(each, rules);
    const { phone } = entry;
    isAnyRecord ||= entry.record !== undefined;
    // All other fields of a recipient are optional.
    const recipient = { index } as Mutable<T>;
    if (phone === undefined) {
      recipient.wrong = wrongEntry(entry, rules, { where, list }).problem;
      if (list) recipient.given = asGiven(entry);
      return recipient;
    }
    recipient.phone = phone;
    try {
      completeRecipient?.(recipient, entry);
    } catch (thrown) {
      if (!(thrown instanceof ServiceError)) throw thrown;
      recipient.wrong = thrown.problem;
    }
    return recipient;
  });
  if (items instanceof Promise) rules.onSlices?.();
  return whenRead(items, (read): Recipients<T> => {
    // Numbers alone in msg.phone are what each outcome writes there.
    const isNeeded = list && (where !== 'msg.phone' || isAnyRecord);
    return { list, items: read, count: read.length, ...(isNeeded && { entries: given }) };
  });
};

/** `msg.dryRun`, which forms and CSV files may have as a text. */
const isDryRun = ({ dryRun }: Message): boolean => Boolean(dryRun) && dryRun !== 'false';

/** What holds for all recipients of one message. */
export interface TextingOrder extends Order {
  /** The time zone that the message gives for a single number. */
  readonly timeZone?: unknown;
  /** Nothing is sent: each recipient leaves as if it were. */
  readonly dryRun?: true;
}

/**
 * The zone of a single number. A recipient of a list who needed consent comes back alone, with the zone that it had there,
 * and with none if it had none: `msg.timeZone` says nothing of a list.
 */
const zoneIn = ({ resend, phone, timeZone }: Message): unknown =>
  isRecord(resend) && resend.phone === phone ? resend.timeZone : timeZone;

/** What a message says of all its recipients, before its fields are read. */
export const orderIn = (msg: Message, isList: boolean): TextingOrder => {
  const shared: Mutable<TextingOrder> = { advisor: '' };
  if (isDryRun(msg)) shared.dryRun = true;
  const timeZone = zoneIn(msg);
  if (!isList && !isNothing(timeZone)) shared.timeZone = timeZone;
  return shared;
};
