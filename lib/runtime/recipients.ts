import type { CountryCode, parsePhoneNumberFromString as parse } from 'libphonenumber-js';
import { isRecord } from './red';

/** The contract's pattern; here as well as in the schemas, because those load zod. */
const e164 = /^\+[1-9]\d{7,14}$/;

export interface Recipient {
  /** E.164; undefined when what was given is not a number we may text. */
  readonly phone: string | undefined;
  /** What was given, as given. */
  readonly given: unknown;
  /** The object a list held for this recipient, whole. */
  readonly record: Record<string, unknown> | undefined;
}

let parsePhoneNumber: typeof parse | undefined;

const national = (number: string, country: string): string | undefined => {
  // Its tables are a hundred kilobytes: loaded when the first number without a plus comes by.
  parsePhoneNumber ??= (require('libphonenumber-js') as { parsePhoneNumberFromString: typeof parse })
    .parsePhoneNumberFromString;
  const found = parsePhoneNumber(number, country as CountryCode);
  return found?.isPossible() && e164.test(found.number) ? found.number : undefined;
};

/** A value that starts with + is judged by the contract's pattern alone; others need a country. */
export const phoneNumber = (value: unknown, country: string): string | undefined => {
  const text = typeof value === 'number' ? String(value) : typeof value === 'string' ? value.trim() : '';
  if (text.startsWith('+')) return e164.test(text) ? text : undefined;
  return text !== '' && country !== '' ? national(text, country) : undefined;
};

const recipient = (given: unknown, country: string): Recipient =>
  isRecord(given)
    ? { phone: phoneNumber(given.phone, country), given: given.phone, record: given }
    : { phone: phoneNumber(given, country), given, record: undefined };

/** One number gives one recipient, a list one each; undefined when it is neither, or an empty list. */
export const recipientsOf = (
  value: unknown,
  country: string,
): { readonly list: boolean; readonly recipients: readonly Recipient[] } | undefined => {
  if (Array.isArray(value)) {
    if (value.length === 0) return undefined;
    return { list: true, recipients: value.map((item) => recipient(item, country)) };
  }
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  return { list: false, recipients: [recipient(value, country)] };
};

/** What to tell the user about a value that is not a number we may text. */
export const notANumber = (given: unknown, country: string): string => {
  if (given === undefined || given === null || given === '')
    return 'There is no phone number: put one there.';
  if (typeof given !== 'string' && typeof given !== 'number') {
    return 'A phone number must be a text such as +12025550123; a list may hold numbers or objects with a phone.';
  }
  if (String(given).trim().startsWith('+')) {
    return 'The phone number is not in E.164 format: write a plus sign and 8 to 15 digits, without spaces.';
  }
  return country === ''
    ? 'Write the phone number with + and its country code, or set the country in the environment.'
    : `The phone number is not a possible number in ${country}: write it with + and its country code.`;
};
