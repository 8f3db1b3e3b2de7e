import { setImmediate as nextTick } from 'node:timers/promises';
import type { Id } from '../service/endpoints';
import type {
  CountryCode,
  isValidPhoneNumber as isValid,
  parsePhoneNumberFromString as parse,
} from 'libphonenumber-js';
import type { Mutable } from '../mutable';
import { e164 } from '../contract-values';
import {
  asText,
  digitsTogether,
  fieldOf,
  isJsonText,
  isNothing,
  isRecord,
  sameName,
  withoutMarks,
} from '../kinds';
import { invalidInput } from '../runtime/errors';
import { excerpt, oneOrList, readAll, type Source } from '../runtime/inputs';
import { hideNumbers } from '../runtime/log';
import type { TextShared } from '../guards/text-hours';
import { anyAdvisor, ownAdvisor, type Tools } from '../runtime/flow-node';
import type { Batch, ItemNodeOptions, ItemOf } from '../runtime/item-node';
import type { Outcome } from '../outbox/outcome';
import type { ItemData } from '../outbox/records';
import type { Message } from '../runtime/red';
import { ServiceError, type MessageValue } from '../service/errors';

export type PhoneEntry = ReturnType<typeof entryOf>;

let parsePhoneNumber: typeof parse | undefined;

const parsed = (number: string, country?: string): ReturnType<typeof parse> => {
  // The tables of this module take a hundred kilobytes: it is loaded when the first number needs it.
  parsePhoneNumber ??= (require('libphonenumber-js') as { parsePhoneNumberFromString: typeof parse })
    .parsePhoneNumberFromString;
  return parsePhoneNumber(number, country as CountryCode | undefined);
};

/**
 * Whether a number without + may or may not start with its country code: spreadsheets drop the + and leading zeros. The
 * other number may be somebody else's.
 */
const isAmbiguous = (found: ReturnType<typeof parse>, number: string): boolean => {
  const digits = number.replaceAll(/\D/g, '');
  if (found?.number !== `+${found?.countryCallingCode ?? ''}${digits}`) return false;
  if (!digits.startsWith(found.countryCallingCode)) return false;
  // Only the complete tables know how long numbers of each kind are.
  const { isValidPhoneNumber } = require('libphonenumber-js/max') as { isValidPhoneNumber: typeof isValid };
  return isValidPhoneNumber(`+${digits}`);
};

const national = (number: string, country: string): string | undefined => {
  const found = parsed(number, country);
  if (!found?.isPossible() || !e164.test(found.number) || isAmbiguous(found, number)) return undefined;
  // A text cannot reach an extension, and somebody else may have the number itself. A second number after a semicolon
  // is an extension to the parser (RFC 3966, section 3).
  return found.ext === undefined ? found.number : undefined;
};

/** The zero that only callers within the country dial: +49 (0)171 is +49 171. */
const zeroWithin = '(0)';

/** No number that is written without its country code is shorter. */
const fewestDigits = 6;

const digitsIn = (text: string): number => text.replaceAll(/\D/g, '').length;

const prefix = /^tel[:.]?\s*/i;

/** Whether there are words beside a number, such as a name: the parser would ignore them, wherever they belong. */
const hasWords = (text: string): boolean => /\p{L}/u.test(text.trim().replace(prefix, ''));

/** A csv node that parses values turns 2.18555E+09 into 2185550000, which somebody else may have. */
const isRounded = (value: unknown): boolean => typeof value === 'number' && value % 10_000 === 0;

/** A column of numbers with gaps in it is exported as 1717654321.0: with its last zero, somebody else may have it. */
const decimals = /(?<=^\d{7,})[.,]0{1,2}$/;

/** A value that starts with + is checked by the contract's pattern alone (*Limits*); others need a country. */
export const phoneNumber = (value: unknown, country: string): string | undefined => {
  if (isRounded(value)) return undefined;
  const text =
    typeof value === 'number' ? String(value) : typeof value === 'string' ? withoutMarks(value) : '';
  if (e164.test(text)) return text;
  if (text.startsWith('+')) {
    const number = digitsTogether(text);
    const read = text.includes(zeroWithin) ? (parsed(number)?.number ?? number) : number;
    return e164.test(read) ? read : undefined;
  }
  // The parser would find one number in these, and the rest would be lost.
  if (isJsonText(text) || hasWords(text)) return undefined;
  return text !== '' && country !== '' ? national(text.replace(decimals, ''), country) : undefined;
};

export interface PhoneRules {
  readonly country: string;
  /** The name of the number's field in the objects of a list. */
  readonly field: string;
}

/**
 * The number of an entry in E.164, undefined when the given value is not one that may be texted; `record` is the object that
 * the list held for this recipient.
 */
const entryOf = (entry: unknown, { country, field }: PhoneRules) => {
  const record = typeof entry === 'object' && isRecord(entry) ? entry : undefined;
  const given = record ? fieldOf(record, field) : entry;
  return { phone: phoneNumber(given, country), given, record };
};

/** The step from an object to its field, as Node-RED reads it in the name of a property. */
const stepTo = (name: string): string => (/^[\p{L}_$][\p{L}\d_$]*$/u.test(name) ? `.${name}` : `["${name}"]`);

/** Whether this is a page of search results or one of its contacts, which the contract shows without a number. */
const isSearchResult = (record: Readonly<Record<string, unknown>>): boolean =>
  ('pageInfo' in record || ('contactId' in record && 'fullName' in record)) &&
  !Object.keys(record).some((name) => phoneWords.test(name));

/** One number, or the entries of a list. Throws `invalid_input` when it is neither, or an empty list. */
const givenIn = (value: unknown, where: MessageValue, column: string): ReturnType<typeof oneOrList> => {
  if (typeof value === 'string' || typeof value === 'number' || Array.isArray(value))
    return oneOrList(value, where);
  if (isRecord(value) && isSearchResult(value)) throw invalidInput('phones_search');
  throw isRecord(value)
    ? invalidInput('phones_object', { where, step: stepTo(nameToChoose(value, column)) })
    : invalidInput('phones_kind', { where });
};

/** `msg.phone` without a readable number: the entry, not the list, or a flow that retries would text everybody again. */
const asGiven = ({ given }: PhoneEntry): string | number | null =>
  typeof given === 'string' || typeof given === 'number' ? given : null;

/** What to tell the user about a text that is not a number we may use. */
const wrongNumber = (text: string, country: string): ServiceError => {
  if (!/\d/.test(text)) return invalidInput('phone_none');
  const numbers = text.split(/[,;\n]/).filter((part) => digitsIn(part) >= fewestDigits);
  if (numbers.length > 1) return invalidInput('phone_several');
  if (text.trim().startsWith('+')) {
    const number = digitsTogether(text.trim()).slice(1);
    return /^\d+$/.test(number)
      ? invalidInput('phone_digits', { count: number.length })
      : invalidInput('phone_format');
  }
  if (/^\d[\d.,]*e\+?\d+$/i.test(text.trim())) return invalidInput('phone_rounded');
  if (hasWords(text)) return invalidInput('phone_words');
  if (digitsIn(text) < fewestDigits) return invalidInput('phone_short');
  if (country === '') return invalidInput('phone_country');
  const problem = isAmbiguous(parsed(text, country), text) ? 'phone_ambiguous' : 'phone_impossible';
  return invalidInput(problem, { country: { country } });
};

/** Where a value was found that is not a number we may text. */
interface Whereabouts {
  readonly where: MessageValue;
  readonly list: boolean;
  /** The position of the entry, from 1. */
  readonly row?: number;
  readonly field?: string;
}

export const notANumber = (
  given: unknown,
  country: string,
  { where, list, row = 1, field = 'phone' }: Whereabouts,
): ServiceError => {
  if (isNothing(given))
    return invalidInput(list ? 'phone_entry' : 'phone_missing', { where, row, column: field });
  if (typeof given !== 'string' && typeof given !== 'number')
    return invalidInput('phone_kind', { column: field });
  const text = String(given);
  if (isRounded(given) && digitsIn(text) >= fewestDigits) return invalidInput('phone_zeros');
  return isJsonText(text) ? invalidInput('phone_json', { where }) : wrongNumber(text, country);
};

const mostNames = 10;

export const fieldNames = (record: Readonly<Record<string, unknown>>): string => {
  const names = Object.keys(record);
  const shown = names.slice(0, mostNames).map(excerpt).join(', ');
  return hideNumbers(names.length > mostNames ? `${shown}, …` : shown);
};

const phoneWords = /phone|mobil|cell|tel|sms|handy|móvil|電話|携帯/iu;

const looksLikeNumber = (value: unknown): boolean => {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text !== 'string' || !/^[\s\d+().\p{Pd}/]+$/u.test(text)) return false;
  const digits = digitsIn(text);
  return digits >= 7 && digits <= 15;
};

/** With no word for a phone beside it, this may as well be a date or the number of a customer. */
const mayBeOther = /^(\d{1,4}([./-])\d{1,2}\2\d{1,4}|[1-9]\d*)$/;

/** The field of a recipient that probably holds its number: by name and value, else by name, else by value alone. */
const likelyField = (record: Readonly<Record<string, unknown>>): string | undefined => {
  const names = Object.keys(record);
  const withNumber = names.filter((name) => looksLikeNumber(record[name]));
  const byName = (among: readonly string[]): string | undefined =>
    among.find((name) => phoneWords.test(name));
  const alone = withNumber.filter((name) => !mayBeOther.test(String(record[name]).trim()));
  return byName(withNumber) ?? byName(names) ?? (alone.length === 1 ? alone[0] : undefined);
};

/** The field to choose in an object that is not in a list. */
const nameToChoose = (record: Readonly<Record<string, unknown>>, column: string): string => {
  const likely = column in record ? column : likelyField(record);
  return likely !== undefined && /^[\p{L}_][\p{L}\d_ -]{0,40}$/u.test(likely) ? likely : column;
};

const noNumberIn = (
  record: Readonly<Record<string, unknown>>,
  { field: column }: PhoneRules,
  { where, row = 1 }: Whereabouts,
): ServiceError => {
  const names = Object.keys(record);
  const place = { where, row, column };
  if (names.length === 0) return invalidInput('phone_entry', place);
  if (names.some((name) => sameName(name, column))) return invalidInput('phone_field_empty', place);
  // The first line of a file may tell Excel the separator.
  if (names.includes('sep=')) return invalidInput('phone_field_first_line', place);
  const fields = fieldNames(record);
  if (names.length === 1 && /[,;\t|]/.test(names.join('')))
    return invalidInput('phone_field_separator', { ...place, fields });
  if (isSearchResult(record)) return invalidInput('phones_search');
  const likely = likelyField(record);
  return likely === undefined
    ? invalidInput('phone_field_missing', { ...place, fields })
    : invalidInput('phone_field_likely', { ...place, fields, likely: hideNumbers(excerpt(likely)) });
};

const wrongEntry = ({ given, record }: PhoneEntry, rules: PhoneRules, found: Whereabouts): ServiceError =>
  record && isNothing(given)
    ? noNumberIn(record, rules, found)
    : notANumber(given, rules.country, { ...found, field: rules.field });

/**
 * The numbers that a control message (`reset`, `flush`) is for; undefined means all. Throws `invalid_input` when one of
 * them cannot be read: a message that names a number does not mean all.
 */
export const phonesOfControl = (msg: Message, rules: PhoneRules): readonly string[] | undefined => {
  if (msg.phone === undefined) return undefined;
  const where = 'msg.phone';
  const { list, items } = givenIn(msg.phone, where, rules.field);
  return items.map((each, index) => {
    const entry = entryOf(each, rules);
    if (entry.phone === undefined) throw wrongEntry(entry, rules, { where, list, row: index + 1 });
    return entry.phone;
  });
};

/** The number of entries of a list that are read before other work has its turn. */
const entriesAtOnce = 2000;

/** As `map`, also for holes. A long list is read in slices: national numbers take long, and Node-RED goes on between. */
const mapInSlices = <T, R>(
  list: readonly T[],
  map: (entry: T | undefined, index: number) => R,
): R[] | Promise<R[]> => {
  if (list.length <= entriesAtOnce) return Array.from(list, map);
  return (async () => {
    const results: R[] = [];
    for (const [index, entry] of list.entries()) {
      results.push(map(entry, index));
      if (results.length % entriesAtOnce === 0) await nextTick();
    }
    return results;
  })();
};

/** Continues with a value or a promise of one, synchronously if possible. */
export const whenRead = <T, R>(value: T | Promise<T>, goOn: (value: T) => R | Promise<R>): R | Promise<R> =>
  value instanceof Promise ? value.then(goOn) : goOn(value);

const longestName = 100;

/** The name in a recipient object or a contact; undefined when it has none. */
const nameIn = (record: unknown): string | undefined => {
  if (!isRecord(record)) return undefined;
  const [whole = '', full = '', first = '', last = ''] = ['name', 'fullName', 'firstName', 'lastName'].map(
    (field) => {
      // Spreadsheets write First Name.
      const value = fieldOf(record, field) ?? fieldOf(record, field.replace('Name', ' name'));
      return typeof value === 'string' ? value.trim() : '';
    },
  );
  return (whole || full || `${first} ${last}`.trim()).slice(0, longestName) || undefined;
};

/** Whether a record is about this number: it may be left on the message from an earlier recipient. */
const isAbout = (record: unknown, phone: string): boolean =>
  isRecord(record) &&
  Object.values(record).some((value) => {
    if (!looksLikeNumber(value)) return false;
    // The record may hold the number as it is written in its own country.
    const digits = String(value).replaceAll(/\D/g, '').replace(/^0+/, '');
    return digits.length >= fewestDigits && phone.endsWith(digits);
  });

/** A single recipient with its name from the record of the message that is about its number. */
export const withName = <T extends Recipient>(
  recipient: T,
  { recipient: record, contact, payload }: Message,
): T => {
  const { phone } = recipient;
  if (phone === undefined) return recipient;
  for (const each of [record, contact, payload]) {
    const name = nameIn(each);
    if (name !== undefined && isAbout(each, phone)) return { ...recipient, name };
  }
  return recipient;
};

/**
 * A row that comes alone is not a recipient's object: an advisor in it would be passed over without a word. Throws
 * `invalid_input` when the payload is about the number and names another advisor than the one who would text.
 */
const checkPayload = (payload: unknown, phone: string | undefined, advisor: string): void => {
  if (phone === undefined || !isAbout(payload, phone)) return;
  const fields = Object.entries(payload as Record<string, unknown>);
  const [column, value] = fields.find(([name]) => sameName(name, 'advisor')) ?? [''];
  const named = asText(value)?.trim() ?? '';
  if (named === '' || named === advisor) return;
  const where = `msg.payload${stepTo(column)}`;
  throw invalidInput('advisor_in_payload', { advisor: excerpt(named), where });
};

/** One recipient of a message, and what is used for it; or why nothing can be done. */
export interface Recipient extends ItemData {
  readonly phone?: string;
  /** What was given where no number could be read. */
  readonly given?: string | number | null;
  readonly memberId?: Id;
  readonly text?: string;
}

export type Recipients<T extends Recipient = Recipient> = Pick<
  Batch<T>,
  'items' | 'count' | 'entries' | 'list'
>;

/**
 * The recipients that a phone field names; an unreadable number fails alone. `completeRecipient` adds what else a
 * recipient has; if it throws a ServiceError, that recipient fails. A long list is read in slices. Throws
 * `invalid_input` when the value is neither a number nor a list of them.
 */
export const recipientsOf = <T extends Recipient = Recipient>(
  value: unknown,
  where: MessageValue,
  rules: PhoneRules,
  completeRecipient?: (recipient: Mutable<T>, entry: PhoneEntry) => void,
  /** For a list: leaves those out that become duplicates of others. */
  distinct = (items: readonly T[]): readonly T[] => items,
): Recipients<T> | Promise<Recipients<T>> => {
  const { list, items: given } = givenIn(value, where, rules.field);
  let isAnyRecord = false;
  const recipients = mapInSlices(given, (each, index): T => {
    const entry = entryOf(each, rules);
    const { phone } = entry;
    isAnyRecord ||= entry.record !== undefined;
    // All other fields of a recipient are optional.
    const recipient = { index } as Mutable<T>;
    if (phone === undefined) {
      recipient.wrong = wrongEntry(entry, rules, { where, list, row: index + 1 }).problem;
      recipient.given = asGiven(entry);
      return recipient;
    }
    recipient.phone = phone;
    const name = nameIn(entry.record);
    if (name !== undefined) recipient.name = name;
    try {
      completeRecipient?.(recipient, entry);
    } catch (thrown) {
      if (!(thrown instanceof ServiceError)) throw thrown;
      recipient.wrong = thrown.problem;
    }
    return recipient;
  });
  return whenRead(recipients, (read): Recipients<T> => {
    // Numbers alone in msg.phone are what each outcome writes there.
    const isNeeded = list && (where !== 'msg.phone' || isAnyRecord);
    const items = list ? distinct(read) : read;
    return { list, items, count: read.length, ...(isNeeded && { entries: given }) };
  });
};

/** `msg.dryRun`, which forms and CSV files may have as a text. */
const isDryRun = ({ dryRun }: Message): boolean => Boolean(dryRun) && dryRun !== 'false';

/**
 * The zone of a single number. A recipient of a list who needed consent comes back alone, with the zone that it had there,
 * and with none if it had none: `msg.timeZone` says nothing of a list.
 */
const zoneIn = ({ resend, phone, timeZone }: Message): unknown =>
  isRecord(resend) && resend.phone === phone ? resend.timeZone : timeZone;

/** What a message says of all its recipients, before its fields are read. */
export const sharedIn = (msg: Message, isList: boolean): Mutable<TextShared> => {
  const shared: Mutable<TextShared> = { advisor: '' };
  if (isDryRun(msg)) shared.dryRun = true;
  const timeZone = zoneIn(msg);
  if (!isList && !isNothing(timeZone)) shared.timeZone = timeZone;
  return shared;
};

export const phoneRules = ({ plain, country }: Tools): PhoneRules => ({
  country,
  field: plain.text('phoneField').trim(),
});

const asDryRun = (outcome: Outcome): Outcome => ({
  ...outcome,
  ...(outcome.port !== 1 && { payload: { ...(outcome.payload as object), dryRun: true } }),
  ...(outcome.problem && { problem: { ...outcome.problem, dryRun: true } }),
});

/** The outcome with the message fields that a texting node writes as used. */
export const usedFields = (
  outcome: Outcome,
  { data, shared, entry }: ItemOf<Recipient, TextShared>,
): Mutable<Outcome> => {
  const { phone, given, text, memberId, advisor: own, wrong } = data;
  const set: Record<string, unknown> = {};
  if (phone !== undefined) set.phone = phone;
  else if (given !== undefined) set.phone = given;
  if (text !== undefined) set.text = text;
  if (memberId !== undefined) set.memberId = memberId;
  const used = own ?? shared.advisor;
  if (used !== '') set.advisor = used;
  if (isRecord(entry)) {
    set.recipient = entry;
    const named = wrong && own === undefined ? fieldOf(entry, 'advisor') : undefined;
    // A retry of this recipient must not use the advisor of the others.
    if (!isNothing(named)) set.advisor = named;
  }
  if (outcome.set) Object.assign(set, outcome.set);
  const whole: Mutable<Outcome> = Object.assign({}, shared.dryRun ? asDryRun(outcome) : outcome);
  whole.set = set;
  return whole;
};

/** What a texting node reads of a message beside its recipients, their names and their advisors. */
interface Reading<T extends Recipient, S extends TextShared> {
  readonly source: Source;
  /** Their values are read with each message. */
  readonly others?: readonly Source[];
  /** In place of the numbers, the recipients that the source names in another way. */
  readonly recipients?: ((value: unknown) => Recipients<T>) | undefined;
  /** Adds what else a recipient has; if it throws a ServiceError, that recipient fails. */
  readonly complete?: (
    recipient: Mutable<T>,
    entry: PhoneEntry,
    msg: Message,
    values: readonly unknown[],
  ) => void;
  /** Leaves those of a list out that become duplicates of others. */
  readonly distinct?: (items: readonly T[]) => readonly T[];
  /** Adds what else the recipients share; if it throws, all fail. */
  readonly share?: ((shared: Mutable<S>, msg: Message, values: readonly unknown[]) => void) | undefined;
}

export const texting = <T extends Recipient, S extends TextShared>(
  tools: Tools,
  { source, others = [], recipients, complete, distinct, share }: Reading<T, S>,
): Required<Pick<ItemNodeOptions<T, S>, 'read' | 'fields' | 'failedFields' | 'phonesOf'>> => {
  const sources = [tools.advisorSource, source, ...others];
  const rules = phoneRules(tools);

  const recipientsIn = (
    who: unknown,
    msg: Message,
    values: readonly unknown[],
  ): Recipients<T> | Promise<Recipients<T>> => {
    if (recipients) return recipients(who);
    const completeOne = (recipient: Mutable<T>, entry: PhoneEntry): void => {
      complete?.(recipient, entry, msg, values);
      const { record } = entry;
      const advisor = record && ownAdvisor(tools.environment(), fieldOf(record, 'advisor'));
      if (advisor !== undefined) recipient.advisor = advisor;
    };
    return recipientsOf(who, source.where, rules, completeOne, distinct);
  };

  return {
    read: (msg) =>
      whenRead(readAll(sources, msg), ([advisor, who, ...values]) =>
        whenRead(recipientsIn(who, msg, values), ({ items, ...read }): Batch<T, S> => {
          // All other fields of it are optional.
          const shared = sharedIn(msg, read.list) as Mutable<S>;
          const named = read.list ? items : items.map((each) => withName(each, msg));
          const check = (): void => {
            const used = tools.advisor(advisor, msg, named, read.list);
            if (!read.list && anyAdvisor(tools.advisorSource, advisor, msg) === '')
              checkPayload(msg.payload, named[0]?.phone, used);
            // Not before: a retry of the failure would find it in the message.
            shared.advisor = used;
            share?.(shared, msg, values);
          };
          return { ...read, items: named, source, shared, check };
        }),
      ),
    fields: usedFields,
    failedFields: (failure, msg) => (isDryRun(msg) ? asDryRun(failure) : failure),
    phonesOf: (msg) => phonesOfControl(msg, rules),
  };
};
