import { isConfidential } from '../addresses';
import { prefixPattern } from '../service/prefixes';
import { isTimeZone, minutesOf } from './dates';
import { isCountry, isNothing, tried } from '../kinds';
import type { ChoiceField, Field, FlagField, NumberField, TextField, When } from './spec';

/**
 * What counts as a setting of a node. Nodes check their settings with these functions, and so do their forms, so that
 * neither refuses what the other accepts. The editor loads this file too, so it stays small.
 */
export type Values = Readonly<Record<string, unknown>>;

const variable = /^\$\{[^}]+\}$/;

/** Whether the value is a `${VARIABLE}`. The editor does not know its value; in the runtime, one that is left was not set. */
export const isVariable = (value: unknown): boolean => typeof value === 'string' && variable.test(value);

export const isMet = (when: When, values: Values): boolean =>
  Object.entries(when).every(([name, wanted]) => wanted.includes(values[name] as string | boolean));

/** Whether the fields have, or may have, the values in `when`: the value of a variable is not known. */
export const mayBeMet = (when: When, values: Values): boolean =>
  Object.entries(when).every(([name, wanted]) => {
    const value = values[name];
    return isVariable(value) || wanted.includes(value as string | boolean);
  });

export const applies = (field: Field, values: Values): boolean => mayBeMet(field.when ?? {}, values);

/** The option that a node takes as chosen: an empty value means the default. */
export const chosenIn = (field: ChoiceField, value: unknown): string => {
  const isOpen = value === undefined || value === null || (value === '' && field.variable !== true);
  return isOpen && !field.options.includes(value as string) ? field.default : String(value);
};

/** `number`: the value is not a number. The others name the limit that it exceeds. */
export type NumberFault = 'number' | 'whole' | 'min' | 'max';

/** The fault of a number, or of a text that stands for one. */
export const numberFault = (field: NumberField, value: unknown): NumberFault | undefined => {
  const isText = typeof value === 'string' && value.trim() !== '';
  const number = typeof value === 'number' || isText ? Number(value) : NaN;
  if (!Number.isFinite(number)) return 'number';
  if (field.whole && !Number.isInteger(number)) return 'whole';
  if (field.min !== undefined && number < field.min) return 'min';
  return field.max !== undefined && number > field.max ? 'max' : undefined;
};

const formats: Record<Exclude<NonNullable<TextField['format']>, 'url'>, (text: string) => boolean> = {
  country: isCountry,
  pattern: (text) => tried(() => new RegExp(text)) !== undefined,
  prefix: (text) => prefixPattern.test(text),
  proxy: (text) => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol),
  time: (text) => minutesOf(text) !== undefined,
  time_zone: isTimeZone,
};

/** Matches an address with a user or a password that is written out, instead of `${VARIABLE}`. */
export const writtenPassword = /^[a-z]+:\/\/(?!(?:\$\{[^}]+\})?(?::(?:\$\{[^}]+\})?)?@)[^/?#]*@/i;

/** What is wrong with a text that must have a format; nothing is wrong with an empty one. */
export const textFault = ({ name, format }: TextField, value: unknown) => {
  const text = typeof value === 'string' ? value.trim() : undefined;
  if (format === undefined || text === '' || isNothing(value)) return undefined;
  if (format !== 'url') return text !== undefined && formats[format](text) ? undefined : format;
  if (text === undefined || !URL.canParse(text)) return 'address';
  if (!isConfidential(new URL(text))) return 'insecure';
  if (name !== 'redirectUri') return undefined;
  // The contract: no wildcards and no fragments (*Authentication*, 5).
  if (text.includes('#')) return 'fragment';
  return text.includes('*') ? 'wildcard' : undefined;
};

const isFlag = (value: unknown): boolean =>
  [true, false, 'true', 'false'].includes(value as string | boolean);

/** A field with a value that it may not have, saved by another version or by hand. */
export type WrongSetting =
  | { readonly field: ChoiceField | FlagField; readonly value: unknown }
  | { readonly field: NumberField; readonly fault: NumberFault };

const wrongIn = (field: Field, value: unknown): WrongSetting | undefined => {
  switch (field.kind) {
    case 'choice':
      return (value === null || typeof value !== 'object') && field.options.includes(chosenIn(field, value))
        ? undefined
        : { field, value };
    case 'flag':
      return isNothing(value) || isFlag(value) ? undefined : { field, value };
    case 'number': {
      const fault = isNothing(value) ? undefined : numberFault(field, value);
      return fault && { field, fault };
    }
    default:
      return undefined;
  }
};

/** The settings as a node reads them, with defaults for those that are missing. */
export const withDefaults = (fields: readonly Field[], saved: Values): Values => {
  const values: Record<string, unknown> = { ...saved };
  for (const field of fields) {
    const { name, kind } = field;
    const value = saved[name];
    if (kind === 'choice') values[name] = chosenIn(field, value);
    else if (kind === 'flag') values[name] = isNothing(value) ? field.default : String(value) === 'true';
    else if (kind === 'number' || kind === 'text') values[name] = isNothing(value) ? field.default : value;
    else if ('default' in field) values[name] = value ?? field.default;
    if (kind === 'typed') values[`${name}Type`] ??= field.defaultType;
  }
  return values;
};

/** The first setting that applies and has a wrong value: a default never replaces it. */
export const wrongSetting = (fields: readonly Field[], saved: Values): WrongSetting | undefined => {
  const values = withDefaults(fields, saved);
  for (const field of fields) {
    const wrong = applies(field, values) ? wrongIn(field, saved[field.name]) : undefined;
    if (wrong) return wrong;
  }
  return undefined;
};
