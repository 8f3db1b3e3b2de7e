import { e164 } from '../contract-values';
import { epochOf } from '../runtime/dates';
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
  wholeId,
  withoutMarks,
} from '../runtime/kinds';
import type { TypedField } from '../runtime/spec';
import { isMet, mayBeMet, type Say, type Values } from './values';

/** An environment as the editor knows it. */
export interface EnvironmentSeen {
  /** The region of its national numbers. */
  readonly country: string;
  /** The zone of its dates without a zone. */
  readonly timeZone: string;
  readonly isComplete: boolean;
}

/** What the checks need from the editor. */
export interface ValidationContext {
  readonly now: number;
  readonly say: Say;
  /** Undefined if there is no such environment. */
  readonly environment: (id: unknown) => EnvironmentSeen | undefined;
  readonly propertyExpression: (text: string) => boolean;
  readonly jsonata: (text: string) => boolean;
}

type Check = (value: unknown) => string | undefined;

/** With fewer digits, even the longest country code does not make a number. */
const fewestDigits = 5;

const numberProblem = (
  given: string | number,
  values: Values,
  { say, environment }: ValidationContext,
): string | undefined => {
  const text = withoutMarks(String(given));
  const digits = text.match(/\p{Nd}/gu)?.length ?? 0;
  if (digits === 0 || isJsonText(text)) return say('invalid.noPhone');
  if (text.startsWith('+')) return e164.test(digitsTogether(text)) ? undefined : say('invalid.phone');
  if (environment(values['environment'])?.country === '')
    return say(digits > fewestDigits ? 'invalid.phoneCountry' : 'invalid.phone');
  return digits < fewestDigits ? say('invalid.phone') : undefined;
};

const phoneProblem =
  (values: Values, around: ValidationContext, inList: boolean): Check =>
  (value) => {
    const { phoneField: named } = values;
    const column = (typeof named === 'string' && named.trim()) || 'phone';
    const phone = inList && isRecord(value) ? fieldOf(value, column) : value;
    return typeof phone === 'string' || typeof phone === 'number'
      ? numberProblem(phone, values, around)
      : around.say('invalid.phones');
  };

const dateProblem = (
  value: unknown,
  values: Values,
  { say, now, environment }: ValidationContext,
): string | undefined => {
  const time = epochOf(value, environment(values['environment'])?.timeZone);
  if (Number.isNaN(time)) return say('invalid.date');
  return time <= now ? say('invalid.past') : undefined;
};

const groupProblem =
  (field: TypedField, values: Values, say: Say): Check =>
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
export const literalProblem = (
  field: TypedField,
  value: unknown,
  values: Values,
  around: ValidationContext,
): string | undefined => {
  const { say } = around;
  switch (field.literal) {
    case 'phone':
      return each(value, say, phoneProblem(values, around, false), phoneProblem(values, around, true));
    case 'template':
      return hasBrokenPlaceholder(String(value)) ? say('invalid.placeholder') : undefined;
    case 'date':
      return dateProblem(value, values, around);
    case 'whole':
      return Number.isSafeInteger(value) ? undefined : say('invalid.whole');
    case 'id':
      return each(value, say, (id) => (anyId(id) === undefined ? say('invalid.id') : undefined));
    case 'group': {
      const isNone = field.several === true && Array.isArray(value) && value.length === 0;
      const mayBeNothing = field.optional !== undefined && mayBeMet(field.optional, values);
      return isNone || (mayBeNothing && isNothing(value))
        ? undefined
        : each(value, say, groupProblem(field, values, say));
    }
    case 'record':
      return each(value, say, recordProblem(field, say));
    case undefined:
      return undefined;
  }
};
