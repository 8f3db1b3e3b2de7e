import type { Field, NumberField, TextField, TypedField } from '../runtime/spec';
import { applies, isVariable, type Say, type Values } from './values';

/** What the checks must ask the editor about. */
export interface Surroundings {
  readonly now: number;
  readonly say: Say;
  /** Undefined if there is none; `country` is the region it reads national numbers by. */
  readonly environment: (
    id: unknown,
  ) => { readonly country: string; readonly isComplete: boolean } | undefined;
  readonly propertyExpression: (text: string) => boolean;
  readonly jsonata: (text: string) => boolean;
}

const e164 = /^\+[1-9]\d{7,14}$/;
const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/;

const succeeds = (attempt: () => unknown): boolean => {
  try {
    attempt();
    return true;
  } catch {
    return false;
  }
};

const phoneProblem = (
  text: string,
  values: Values,
  { say, environment }: Surroundings,
): string | undefined => {
  if (!/\d/.test(text)) return say('invalid.noPhone');
  if (text.startsWith('+'))
    return e164.test(text.replace(/[\s().-]/g, '')) ? undefined : say('invalid.phone');
  return environment(values['environment'])?.country === '' ? say('invalid.phoneCountry') : undefined;
};

const dateProblem = (text: string, type: unknown, { say, now }: Surroundings): string | undefined => {
  const time = type === 'num' ? Number(text) : Date.parse(text);
  if (Number.isNaN(time)) return say('invalid.date');
  return time < now ? say('invalid.past') : undefined;
};

const typedProblem = (
  field: TypedField,
  value: unknown,
  values: Values,
  around: Surroundings,
): string | undefined => {
  const { say } = around;
  const text = typeof value === 'string' || typeof value === 'number' ? String(value) : '';
  const type = values[`${field.name}Type`] ?? field.defaultType;
  if (type === 'fields' || isVariable(text)) return undefined;
  if (text.trim() === '') {
    return field.required ? say('invalid.required', { label: say(`label.${field.name}`) }) : undefined;
  }
  if (type === 'msg' || type === 'flow' || type === 'global') {
    return around.propertyExpression(text) ? undefined : say('invalid.property');
  }
  if (type === 'num' && Number.isNaN(Number(text))) return say('invalid.number');
  if (type === 'json' && !succeeds(() => JSON.parse(text))) return say('invalid.json');
  if (type === 'jsonata' && !around.jsonata(text)) return say('invalid.jsonata');
  if (field.literal === 'phone' && type === 'str') return phoneProblem(text, values, around);
  if (field.literal === 'date' && (type === 'str' || type === 'num')) return dateProblem(text, type, around);
  if (field.longest !== undefined && type === 'str' && text.length > field.longest) {
    return say('invalid.long', { longest: field.longest });
  }
  return undefined;
};

const numberProblem = (field: NumberField, value: unknown, { say }: Surroundings): string | undefined => {
  if (isVariable(value)) return undefined;
  const number = typeof value === 'string' && value.trim() === '' ? NaN : Number(value);
  if (!Number.isFinite(number)) return say('invalid.number');
  if (field.whole && !Number.isInteger(number)) return say('invalid.whole');
  if (field.min !== undefined && number < field.min) return say('invalid.min', { min: field.min });
  if (field.max !== undefined && number > field.max) return say('invalid.max', { max: field.max });
  return undefined;
};

const urlProblem = (field: TextField, text: string, say: Say): string | undefined => {
  if (!succeeds(() => new URL(text))) return say('invalid.url');
  const url = new URL(text);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && loopback.test(url.hostname))) {
    return say('invalid.https');
  }
  return field.name === 'redirectUri' && text.includes('#') ? say('invalid.fragment') : undefined;
};

const textProblem = (field: TextField, value: unknown, { say }: Surroundings): string | undefined => {
  const text = typeof value === 'string' ? value.trim() : '';
  if (isVariable(text)) return undefined;
  if (text === '')
    return field.required ? say('invalid.empty', { label: say(`label.${field.name}`) }) : undefined;
  if (field.format === 'url') return urlProblem(field, text, say);
  if (field.format === 'country' && !/^[a-z]{2}$/i.test(text)) return say('invalid.country');
  if (field.format === 'pattern' && !succeeds(() => new RegExp(text))) return say('invalid.pattern');
  return undefined;
};

const environmentProblem = (value: unknown, { say, environment }: Surroundings): string | undefined => {
  if (isVariable(value)) return undefined;
  const found = environment(value);
  if (!found) return say('invalid.environment');
  return found.isComplete ? undefined : say('invalid.environmentIncomplete');
};

/** The sentence that says what to fix in a field, or undefined: the form and the red triangle both ask here. */
export const problemOf = (
  field: Field,
  value: unknown,
  values: Values,
  around: Surroundings,
): string | undefined => {
  if (!applies(field, values)) return undefined;
  switch (field.kind) {
    case 'typed':
      return typedProblem(field, value, values, around);
    case 'number':
      return numberProblem(field, value, around);
    case 'text':
      return textProblem(field, value, around);
    case 'environment':
      return environmentProblem(value, around);
    case 'json':
      return typeof value === 'object' && value !== null ? undefined : around.say('invalid.json');
    case 'credential':
      return field.required && (value === '' || value === undefined)
        ? around.say('invalid.empty', { label: around.say(`label.${field.name}`) })
        : undefined;
    default:
      return undefined;
  }
};
