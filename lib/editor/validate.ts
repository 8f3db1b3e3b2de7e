import { e164 } from '../contract-values';
import { epochOf, minutesOf } from '../runtime/dates';
import {
  anyId,
  digitsTogether,
  fieldOf,
  fitting,
  hasBrokenPlaceholder,
  isJsonText,
  isLeftOut,
  isNothing,
  isRecord,
  tried,
  wholeId,
  withoutMarks,
} from '../kinds';
import {
  applies,
  isMet,
  isVariable,
  mayBeMet,
  numberFault,
  textFault,
  writtenPassword,
  type Values,
} from '../runtime/settings';
import type {
  ChoiceField,
  Field,
  NumberField,
  RowsField,
  TextField,
  TypedField,
  ValueType,
} from '../runtime/spec';
import { holdsVariable, isSource, isUnknown, noVariable, type Say } from './values';

interface EnvironmentSeen {
  /** The region of its national numbers. */
  readonly country: string;
  /** The zone of its dates without a zone. */
  readonly timeZone: string;
  readonly isComplete: boolean;
  readonly isDisabled: boolean;
  /** The label of a node that seeks consent here, but uses another service. */
  readonly senderApart?: () => string | undefined;
}

/** What is around a field. */
export interface ValidationContext {
  readonly now: number;
  readonly say: Say;
  /** Of all fields of the form. */
  readonly values: Values;
  /** The chosen one; undefined if there is none. */
  readonly environment: EnvironmentSeen | undefined;
  readonly propertyExpression: (text: string) => boolean;
  readonly jsonata: (text: string) => boolean;
}

type Check = (value: unknown) => string | undefined;

/** With fewer digits, even the longest country code does not make a number. */
const fewestDigits = 5;

const phoneNumberProblem = (
  given: string | number,
  { say, environment }: ValidationContext,
): string | undefined => {
  const text = withoutMarks(String(given));
  const digits = text.match(/\p{Nd}/gu)?.length ?? 0;
  if (digits === 0 || isJsonText(text)) return say('invalid.noPhone');
  if (text.startsWith('+')) return e164.test(digitsTogether(text)) ? undefined : say('invalid.phone');
  if (environment?.country === '')
    return say(digits > fewestDigits ? 'invalid.phoneCountry' : 'invalid.phone');
  return digits < fewestDigits ? say('invalid.phone') : undefined;
};

const phoneProblem =
  (around: ValidationContext, inList: boolean): Check =>
  (value) => {
    const { phoneField: named } = around.values;
    const column = (typeof named === 'string' && named.trim()) || 'phone';
    const phone = inList && isRecord(value) ? fieldOf(value, column) : value;
    return typeof phone === 'string' || typeof phone === 'number'
      ? phoneNumberProblem(phone, around)
      : around.say('invalid.phones');
  };

const dateProblem = (value: unknown, { say, now, environment }: ValidationContext): string | undefined => {
  const time = epochOf(value, environment?.timeZone);
  if (Number.isNaN(time)) return say('invalid.date');
  return time <= now ? say('invalid.past') : undefined;
};

const groupProblem =
  (field: TypedField, { values, say }: ValidationContext): Check =>
  (value) => {
    if (wholeId(value) !== undefined) return undefined;
    const isNamed = typeof value === 'string' && value.trim() !== '';
    if (!isNamed) return say('invalid.group');
    // Only the service knows whether a word without a digit is an id.
    const isLikeId = anyId(value) !== undefined && /\d/.test(value);
    return !isLikeId && field.idOnly && isMet(field.idOnly, values) ? say('invalid.deleteById') : undefined;
  };

const recordProblem =
  ({ record = {}, isNameEnough }: TypedField, say: Say): Check =>
  (value) => {
    const names = Object.keys(record);
    const given = isNameEnough && typeof value === 'string' ? { name: value.trim() } : value;
    if (!isRecord(given)) return say('invalid.record', { field: names[0] });
    const filled = Object.entries(record).filter(([name, kind]) => !isLeftOut(given[name], kind));
    const wrong = filled.find(([name, kind]) => fitting(given[name], kind) === undefined);
    if (wrong) {
      const [field, kind] = wrong;
      return kind === 'num' ? say('invalid.recordNumber', { field }) : say('invalid.recordText', { field });
    }
    const counting = isNameEnough ? filled.filter(([name]) => given[name] !== '') : filled;
    return counting.length === 0 ? say('invalid.recordEmpty', { fields: names.join(', ') }) : undefined;
  };

/** Checks the value itself, or each entry of a list. */
const each = (value: unknown, say: Say, one: Check, entry = one): string | undefined => {
  if (!Array.isArray(value)) return one(value);
  if (value.length === 0) return say('invalid.list');
  const index = value.findIndex((item) => entry(item) !== undefined);
  return index < 0 ? undefined : say('invalid.entry', { entry: index + 1, problem: entry(value[index]) });
};

/** The problem of a typed value, which is passed as the node will read it. */
const literalProblem = (field: TypedField, value: unknown, around: ValidationContext): string | undefined => {
  const { say, values } = around;
  switch (field.literal) {
    case 'phone':
      return each(value, say, phoneProblem(around, false), phoneProblem(around, true));
    case 'template':
      return hasBrokenPlaceholder(String(value)) ? say('invalid.placeholder') : undefined;
    case 'date':
      return dateProblem(value, around);
    case 'whole':
      return Number.isSafeInteger(value) ? undefined : say('invalid.whole');
    case 'id':
      return each(value, say, (id) => (anyId(id) === undefined ? say('invalid.id') : undefined));
    case 'group': {
      const isNone = field.several === true && Array.isArray(value) && value.length === 0;
      const mayBeNothing = field.optional !== undefined && mayBeMet(field.optional, values);
      return isNone || (mayBeNothing && isNothing(value))
        ? undefined
        : each(value, say, groupProblem(field, around));
    }
    case 'record':
      return each(value, say, recordProblem(field, say));
    case undefined:
      return undefined;
  }
};

/** Spaces alone are an empty literal, but they are neither a name nor JSON. */
const isBlank = (text: string, type: string): boolean =>
  (['str', 'num', 'env'].includes(type) ? text.trim() : text) === '';

const mayBeEmpty = ({ required, optional }: TypedField, type: string, values: Values): boolean =>
  !required || (type !== 'json' && optional !== undefined && mayBeMet(optional, values));

const typedProblem = (field: TypedField, value: unknown, around: ValidationContext): string | undefined => {
  const { say, values } = around;
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
        ? literalProblem(field, Number(text), around)
        : say('invalid.numberTyped');
    case 'json': {
      const parsed = tried(() => ({ value: JSON.parse(text) as unknown }));
      return parsed ? literalProblem(field, parsed.value, around) : say('invalid.json');
    }
    case 'str':
      return field.longest !== undefined && text.trim().length > field.longest
        ? say('invalid.long', { longest: field.longest })
        : literalProblem(field, text, around);
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

export const rowProblem = (
  field: RowsField,
  { field: name, value, valueType }: SavedRow,
  around: ValidationContext,
): string | undefined => {
  const literal = field.rows[name];
  // The service has no such field: the node leaves the value out, and says so.
  if (literal === undefined) return undefined;
  const row: TypedField = { kind: 'typed', name, types: [], default: '', defaultType: valueType ?? literal };
  return typedProblem(row, value, { ...around, values: {} });
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

const numberProblem = (field: NumberField, value: unknown, say: Say): string | undefined => {
  const fault = isVariable(value) ? undefined : numberFault(field, value);
  return fault && say(`invalid.${fault}`, { min: field.min, max: field.max });
};

/** Whether only one of two times is set, or both are the same. */
const isNoSpan = (from: unknown, until: string): boolean => {
  const [start, end] = [minutesOf(String(from)), minutesOf(until)];
  return start === undefined || end === undefined ? (from === '') !== (until === '') : start === end;
};

const textProblem = (
  field: TextField,
  value: unknown,
  { say, values }: ValidationContext,
): string | undefined => {
  const text = typeof value === 'string' ? value.trim() : '';
  // A flow is readable, so a user and a password must come from variables.
  if (field.format === 'proxy' && writtenPassword.test(text)) return say('invalid.proxyPassword');
  if (holdsVariable(text)) return undefined;
  if (text === '' && field.required) return say('invalid.empty', { label: say(`label.${field.name}`) });
  const fault = textFault(field, text);
  if (fault) return say(`invalid.${fault}`);
  if (field.endOf !== undefined && isNoSpan(values[field.endOf], text)) return say('invalid.hours');
  const isUnversioned = field.name === 'baseUrl' && !/\/v1\/*$/.test(new URL(text).pathname);
  return isUnversioned ? say('invalid.version') : undefined;
};

const environmentProblem = (value: unknown, { say, environment }: ValidationContext): string | undefined => {
  if (isVariable(value)) return undefined;
  if (!environment) return say('invalid.environment');
  if (environment.isDisabled) return say('invalid.environmentDisabled');
  if (!environment.isComplete) return say('invalid.environmentIncomplete');
  const node = environment.senderApart?.();
  return node === undefined ? undefined : say('invalid.environmentApart', { node });
};

/** The sentence that says what to correct in a field, or undefined; for both the form and the red triangle. */
export const fieldProblem = (field: Field, value: unknown, around: ValidationContext): string | undefined => {
  if (!applies(field, around.values)) return undefined;
  switch (field.kind) {
    case 'typed':
      return typedProblem(field, value, around);
    case 'number':
      return numberProblem(field, value, around.say);
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
