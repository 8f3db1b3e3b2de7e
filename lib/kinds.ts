/**
 * What counts as a value of each kind. Nodes check messages with these functions and forms check typed values with
 * them, so that neither refuses what the other accepts. The editor loads this file too, so it stays small.
 */

/** Whether a value is an object with fields: neither an array nor bytes, each of which would count as a field. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);

/** What is made; undefined where that throws. */
export const tried = <T>(make: () => T): T | undefined => {
  try {
    return make();
  } catch {
    return undefined;
  }
};

export const isNothing = (value: unknown): boolean => value === undefined || value === null || value === '';

export const isBlank = (value: unknown): boolean =>
  isNothing(typeof value === 'string' ? value.trim() : value);

/** A number without invisible marks, which are often copied along with it from a list of contacts. */
export const withoutMarks = (number: string): string => number.replaceAll(/\p{Cf}/gu, '').trim();

/** A number that starts with +, without the spaces, dashes, dots and parentheses that people write between its digits. */
export const digitsTogether = (number: string): string => number.replace(/(?<=\d)[\s\p{Pd}.()]+(?=\d)/gu, '');

/**
 * The regions whose numbers can be read. A test keeps them equal to those of the phone number library, which is too
 * large to load here.
 */
const countryCodes =
  /^(A[CDEFGILMORSTUWXZ]|B[ABDEFGHIJLMNOQRSTWYZ]|C[ACDFGHIKLMNORUVWXYZ]|D[EJKMOZ]|E[CEGHRST]|F[IJKMOR]|G[ABDEFGHILMNPQRTUWY]|H[KNRTU]|I[DELMNOQRST]|J[EMOP]|K[EGHIMNPRWYZ]|L[ABCIKRSTUVY]|M[ACDEFGHKLMNOPQRSTUVWXYZ]|N[ACEFGILOPRUZ]|OM|P[AEFGHKLMRSTWY]|QA|R[EOSUW]|S[ABCDEGHIJKLMNORSTVXYZ]|T[ACDGHJKLMNORTVWZ]|U[AGSYZ]|V[ACEGINU]|W[FS]|XK|Y[ET]|Z[AMW])$/;

export const isCountry = (code: string): boolean => countryCodes.test(code.toUpperCase());

/**
 * Field names are compared without case and surrounding spaces; `trim` also removes the byte-order mark that Excel puts
 * before the first column of a CSV file.
 */
export const sameName = (one: string, other: string): boolean =>
  one.trim().toLowerCase() === other.trim().toLowerCase();

/** The field of this name in a record, else the first that has the same name. */
export const fieldOf = (record: Readonly<Record<string, unknown>>, name: string): unknown => {
  if (Object.hasOwn(record, name)) return record[name];
  const found = Object.keys(record).find((each) => sameName(each, name));
  return found === undefined ? undefined : record[found];
};

/** The text without case and accents, for searches. */
export const folded = (text: string): string => text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();

/** Whether a text is meant as a list or an object in JSON; `[206] 555 0142` is a number. */
export const isJsonText = (text: string): boolean => /^(?:\{|\[.*(?:["'{,]|\]$))/s.test(text.trim());

/** The name of a field in double braces, in a typed text. No two parts of it can match the same spaces, so it is fast. */
export const placeholder = /\{\{(\s*[^\s{}][^{}]*)\}\}/g;

export const hasBraces = (text: string): boolean => /\{\{|\}\}/.test(text);

/** Whether a text has braces that would be sent as they are: double ones without a field's name between them, or more. */
export const hasBrokenPlaceholder = (text: string): boolean =>
  hasBraces(text.replace(placeholder, '')) || /\{{3}|\}{3}/.test(text);

/**
 * A whole number of 0 or more, or a string of digits; undefined for anything else. The string is kept where the number
 * would be written differently.
 */
export const wholeId = (value: unknown): number | string | undefined => {
  if (typeof value === 'string') {
    const digits = value.trim();
    if (!/^\d+$/.test(digits)) return undefined;
    return String(Number(digits)) === digits && Number.isSafeInteger(Number(digits))
      ? Number(digits)
      : digits;
  }
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
};

/** An id that is not a number: one word, which is neither a path nor a number that no id can be. */
const idText = /^(?![+-]?\d*\.?\d+$)(?=-*[\p{L}\p{N}_{])[^\s/\\\p{C}]{1,200}$/u;

/** As `wholeId`, or a text that a service may use as an id. */
export const anyId = (value: unknown): number | string | undefined => {
  const text = typeof value === 'string' && idText.test(value.trim()) ? value.trim() : undefined;
  return wholeId(value) ?? text;
};

/** The fields that the service takes for a resource, each with the type of its value. */
export type FieldKinds = Readonly<Record<string, 'str' | 'num'>>;

/** Undefined for what is neither a text nor a number. */
export const asText = (value: unknown): string | undefined => {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  return typeof value === 'string' ? value : undefined;
};

const asNumber = (value: unknown): number | undefined => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
};

/** The value in the type that the service wants; undefined if it cannot be converted. */
export const fitting = (value: unknown, kind: 'str' | 'num'): string | number | undefined =>
  kind === 'num' ? asNumber(value) : asText(value);

/** An empty text is a value; null means that there is none. */
export const isLeftOut = (value: unknown, kind: 'str' | 'num'): boolean =>
  value === undefined || value === null || (kind === 'num' && value === '');

/** Whether the text has no lone surrogate (`String.prototype.isWellFormed` of ES2024). */
export const isWellFormed = (text: string): boolean => !/\p{Surrogate}/u.test(text);
