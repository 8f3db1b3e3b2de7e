import { isConfidential } from '../addresses';
import { isTimeZone, minutesOf } from '../runtime/dates';
import { isCountry } from '../runtime/kinds';
import { numberFault } from '../runtime/settings';
import type {
  ChoiceField,
  Field,
  NumberField,
  RowsField,
  TextField,
  TypedField,
  ValueType,
} from '../runtime/spec';
import { prefixPattern } from '../service/prefixes';
import { literalProblem, type ValidationContext } from './literals';
import {
  applies,
  holdsVariable,
  isSource,
  isUnknown,
  isVariable,
  mayBeMet,
  noVariable,
  type Say,
  type Values,
} from './values';

export type { ValidationContext } from './literals';

const succeeds = (attempt: () => unknown): boolean => {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
};

/** Undefined when the text is not JSON. */
const parsed = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
};

/** Spaces alone are an empty literal, but they are neither a name nor JSON. */
const isBlank = (text: string, type: string): boolean =>
  (['str', 'num', 'env'].includes(type) ? text.trim() : text) === '';

const mayBeEmpty = ({ required, optional }: TypedField, type: string, values: Values): boolean =>
  !required || (type !== 'json' && optional !== undefined && mayBeMet(optional, values));

const typedProblem = (
  field: TypedField,
  value: unknown,
  values: Values,
  around: ValidationContext,
): string | undefined => {
  const { say } = around;
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  const type = (values[`${field.name}Type`] ?? field.defaultType) as ValueType | 'fields';
  if (!isSource(type)) return say('invalid.source');
  if (['fields', 'off', 'text'].includes(type) || isVariable(text)) return undefined;
  if (isBlank(text, type)) {
    if (mayBeEmpty(field, type, values)) return undefined;
    return say('invalid.required', { label: say(`label.${field.name}`) });
  }
  switch (type) {
    case 'msg':
    case 'flow':
    case 'global':
      return around.propertyExpression(text) ? undefined : say('invalid.property');
    case 'jsonata':
      return around.jsonata(text) ? undefined : say('invalid.jsonata');
    case 'num':
      return Number.isFinite(Number(text))
        ? literalProblem(field, Number(text), values, around)
        : say('invalid.numberTyped');
    case 'json': {
      const json = parsed(text);
      return json ? literalProblem(field, json.value, values, around) : say('invalid.json');
    }
    case 'str':
      return field.longest !== undefined && text.trim().length > field.longest
        ? say('invalid.long', { longest: field.longest })
        : literalProblem(field, text, values, around);
    default:
      return undefined;
  }
};

/** A row as another version, or a person by hand, may have saved it. */
export interface SavedRow {
  readonly field: string;
  readonly value?: unknown;
  readonly valueType?: ValueType;
}

/** The problem of one row of a field. */
export const rowProblem = (
  field: RowsField,
  { field: name, value, valueType }: SavedRow,
  around: ValidationContext,
): string | undefined => {
  const literal = field.rows[name];
  // The service has no such field: the node leaves the value out, and says so.
  if (literal === undefined) return undefined;
  const row: TypedField = { kind: 'typed', name, types: [], default: '', defaultType: valueType ?? literal };
  return typedProblem(row, value, {}, around);
};

const isFilled = (field: RowsField, { field: name, value, valueType }: SavedRow): boolean =>
  Object.hasOwn(field.rows, name) && (valueType !== 'num' || String(value).trim() !== '');

const rowsProblem = (
  field: RowsField,
  rows: readonly SavedRow[],
  around: ValidationContext,
): string | undefined => {
  const { say } = around;
  if (!rows.some((row) => isFilled(field, row))) return say('invalid.noFields');
  const problems = rows.flatMap((row) => {
    const problem = rowProblem(field, row, around);
    return problem === undefined ? [] : [`${say(`row.${row.field}`)}: ${problem}`];
  });
  return problems.length === 0 ? undefined : problems.join(' ');
};

const choiceProblem = (field: ChoiceField, value: unknown, say: Say): string | undefined => {
  if (field.variable && value === noVariable) return say('invalid.variable');
  return isUnknown(field, value) ? say('invalid.choice') : undefined;
};

const numberProblem = (
  field: NumberField,
  value: unknown,
  { say }: ValidationContext,
): string | undefined => {
  if (isVariable(value)) return undefined;
  switch (numberFault(field, value)) {
    case 'number':
      return say('invalid.number');
    case 'whole':
      return say('invalid.whole');
    case 'min':
      return say('invalid.min', { min: field.min });
    case 'max':
      return say('invalid.max', { max: field.max });
    case undefined:
      return undefined;
  }
};

const urlProblem = (field: TextField, text: string, say: Say): string | undefined => {
  if (!succeeds(() => new URL(text))) return say('invalid.url');
  const url = new URL(text);
  if (!isConfidential(url)) return say('invalid.https');
  if (field.name === 'baseUrl' && !/\/v1\/*$/.test(url.pathname)) return say('invalid.version');
  if (field.name !== 'redirectUri') return undefined;
  if (text.includes('#')) return say('invalid.fragment');
  return text.includes('*') ? say('invalid.wildcard') : undefined;
};

/** A flow is readable, so a user and a password must come from variables. */
const proxyProblem = (text: string, say: Say): string | undefined => {
  if (!succeeds(() => new URL(text))) return say('invalid.proxy');
  const { protocol, username, password } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:') return say('invalid.proxy');
  return username + password === '' ? undefined : say('invalid.proxyPassword');
};

const textProblem = (field: TextField, value: unknown, { say }: ValidationContext): string | undefined => {
  const text = typeof value === 'string' ? value.trim() : '';
  if (holdsVariable(text)) return undefined;
  if (text === '')
    return field.required ? say('invalid.empty', { label: say(`label.${field.name}`) }) : undefined;
  if (field.format === 'url') return urlProblem(field, text, say);
  if (field.format === 'prefix' && !prefixPattern.test(text)) return say('invalid.prefix');
  if (field.format === 'proxy') return proxyProblem(text, say);
  if (field.format === 'country' && !isCountry(text)) return say('invalid.country');
  if (field.format === 'time' && minutesOf(text) === undefined) return say('invalid.time');
  if (field.format === 'timeZone' && !isTimeZone(text)) return say('invalid.timeZone');
  if (field.format === 'pattern' && !succeeds(() => new RegExp(text))) return say('invalid.pattern');
  return undefined;
};

const environmentProblem = (value: unknown, { say, environment }: ValidationContext): string | undefined => {
  if (isVariable(value)) return undefined;
  const found = environment(value);
  if (!found) return say('invalid.environment');
  return found.isComplete ? undefined : say('invalid.environmentIncomplete');
};

/** The sentence that says what to correct in a field, or undefined; for both the form and the red triangle. */
export const fieldProblem = (
  field: Field,
  value: unknown,
  values: Values,
  around: ValidationContext,
): string | undefined => {
  if (!applies(field, values)) return undefined;
  switch (field.kind) {
    case 'typed':
      return typedProblem(field, value, values, around);
    case 'number':
      return numberProblem(field, value, around);
    case 'text':
      return textProblem(field, value, around);
    case 'choice':
      return choiceProblem(field, value, around.say);
    case 'ticks':
      return (value as readonly unknown[]).length > 0 ? undefined : around.say('invalid.noTicks');
    case 'rows':
      return rowsProblem(field, (Array.isArray(value) ? value : []) as readonly SavedRow[], around);
    case 'environment':
      return environmentProblem(value, around);
    case 'json':
      return typeof value === 'object' && value !== null ? undefined : around.say('invalid.json');
    case 'credential':
      return field.required && (value === '' || value === undefined)
        ? around.say('invalid.empty', { label: around.say(`label.${field.name}`) })
        : undefined;
    case 'flag':
      return undefined;
  }
};
