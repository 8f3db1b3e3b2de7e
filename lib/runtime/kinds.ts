/**
 * What counts as a value of each kind. Nodes judge by this when a message comes, and their forms while one types, so
 * that neither refuses what the other takes. It imports nothing: the editor loads it too.
 */

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isNothing = (value: unknown): boolean => value === undefined || value === null || value === '';

/** The contract's pattern; here as well as in the schemas, because those load zod. */
export const e164 = /^\+[1-9]\d{7,14}$/;

/** A number that starts with +, less the spaces, dashes, dots and parentheses that people write between its digits. */
export const digitsTogether = (number: string): string => number.replace(/(?<=\d)[\s\p{Pd}.()]+(?=\d)/gu, '');

/** The regions whose numbers can be read: a test holds this equal to what the library for them knows, which is too large to load. */
const countryCodes =
  /^(A[CDEFGILMORSTUWXZ]|B[ABDEFGHIJLMNOQRSTWYZ]|C[ACDFGHIKLMNORUVWXYZ]|D[EJKMOZ]|E[CEGHRST]|F[IJKMOR]|G[ABDEFGHILMNPQRTUWY]|H[KNRTU]|I[DELMNOQRST]|J[EMOP]|K[EGHIMNPRWYZ]|L[ABCIKRSTUVY]|M[ACDEFGHKLMNOPQRSTUVWXYZ]|N[ACEFGILOPRUZ]|OM|P[AEFGHKLMRSTWY]|QA|R[EOSUW]|S[ABCDEGHIJKLMNORSTVXYZ]|T[ACDGHJKLMNORTVWZ]|U[AGSYZ]|V[ACEGINU]|W[FS]|XK|Y[ET]|Z[AMW])$/;

export const isCountry = (code: string): boolean => countryCodes.test(code.toUpperCase());

/** The field of a record: of this name, else of the first that differs only in upper and lower case. */
export const fieldOf = (record: Readonly<Record<string, unknown>>, name: string): unknown => {
  if (Object.hasOwn(record, name)) return record[name];
  const wanted = name.toLowerCase();
  const found = Object.keys(record).find((each) => each.toLowerCase() === wanted);
  return found === undefined ? undefined : record[found];
};

/** A text that was meant as a list or an object; `[206] 555 0142` is a number all the same. */
export const isJsonText = (text: string): boolean => /^(?:\{|\[.*(?:["'{,]|\]$))/s.test(text.trim());

/** A field's name in double braces, in a text typed in. */
export const placeholder = /\{\{\s*([^{}]+?)\s*\}\}/g;

/** Whether a text has double braces that hold no field's name: it would be sent as it stands. */
export const hasBrokenPlaceholder = (text: string): boolean => text.replace(placeholder, '').includes('{{');

/**
 * A whole number of 0 or more, or a string of digits, which stays a string where the number would be written otherwise;
 * undefined for anything else.
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

/** What a service may use for ids in place of numbers: one word, which is neither a path nor a number that no id can be. */
const idText = /^(?![+-]?\d*\.?\d+$)(?=-*[\p{L}\p{N}_{])[^\s/\\\p{C}]{1,200}$/u;

/** The same, or a text as a service gives it for an id. */
export const anyId = (value: unknown): number | string | undefined => {
  const text = typeof value === 'string' && idText.test(value.trim()) ? value.trim() : undefined;
  return wholeId(value) ?? text;
};

/** The fields of a resource that the service takes, each with the kind of value it has. */
export type FieldKinds = Readonly<Record<string, 'str' | 'num'>>;

const asText = (value: unknown): string | undefined => {
  if (typeof value === 'number' && Number.isFinite(value)) return String(value);
  return typeof value === 'string' ? value : undefined;
};

const asNumber = (value: unknown): number | undefined => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
};

/** The value as the service wants it; undefined if it cannot be had. */
export const fitting = (value: unknown, kind: 'str' | 'num'): string | number | undefined =>
  kind === 'num' ? asNumber(value) : asText(value);

/** An empty text is a value; null says that there is none. */
export const isLeftOut = (value: unknown, kind: 'str' | 'num'): boolean =>
  value === undefined || value === null || (kind === 'num' && value === '');

/** Whether no half of a surrogate pair stands alone (`String.prototype.isWellFormed` of ES2024). */
export const isWellFormed = (text: string): boolean => !/\p{Surrogate}/u.test(text);
