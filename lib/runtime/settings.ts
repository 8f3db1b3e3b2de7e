import type { ChoiceField, Field, FlagField, NumberField, When } from './spec';

/**
 * What counts as a setting of a node. Nodes judge by this when a message comes, and their forms while one types, so that
 * neither refuses what the other takes. It imports types alone: the editor loads it too.
 */
export type Values = Readonly<Record<string, unknown>>;

const variable = /^\$\{[^}]+\}$/;

/** A `${VARIABLE}` is only known where the flow runs; there, one that is left was not set. */
export const isVariable = (value: unknown): boolean => typeof value === 'string' && variable.test(value);

/** Whether other fields may have the values that are wanted of them: that of a variable is not known. */
export const mayHold = (when: When, values: Values): boolean =>
  Object.entries(when).every(([name, wanted]) => {
    const value = values[name];
    return isVariable(value) || wanted.includes(value as string | boolean);
  });

/** Whether a field applies, given the others. */
export const applies = (field: Field, values: Values): boolean => mayHold(field.when ?? {}, values);

/** What a node takes as chosen: nothing at all means the default. */
export const chosenIn = (field: ChoiceField, value: unknown): string => {
  const isOpen = value === undefined || value === null || (value === '' && field.variable !== true);
  return isOpen && !field.options.includes(value as string) ? field.default : String(value);
};

/** `number`: none at all. The others name the limit it exceeds. */
export type NumberFault = 'number' | 'whole' | 'min' | 'max';

/** What is wrong with a number, or a text of one. */
export const numberFault = (field: NumberField, value: unknown): NumberFault | undefined => {
  const isText = typeof value === 'string' && value.trim() !== '';
  const number = typeof value === 'number' || isText ? Number(value) : NaN;
  if (!Number.isFinite(number)) return 'number';
  if (field.whole && !Number.isInteger(number)) return 'whole';
  if (field.min !== undefined && number < field.min) return 'min';
  return field.max !== undefined && number > field.max ? 'max' : undefined;
};

const isNone = (value: unknown): boolean => value === undefined || value === null || value === '';

const isFlag = (value: unknown): boolean =>
  [true, false, 'true', 'false'].includes(value as string | boolean);

/** A field whose value was saved by another version, or by hand, and is none that it may have. */
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
      return isNone(value) || isFlag(value) ? undefined : { field, value };
    case 'number': {
      const fault = isNone(value) ? undefined : numberFault(field, value);
      return fault && { field, fault };
    }
    default:
      return undefined;
  }
};

/** As a node reads them: what is not there has its default. */
const read = (fields: readonly Field[], saved: Values): Values =>
  Object.fromEntries(
    fields.map((field) => {
      const value = saved[field.name];
      if (field.kind === 'choice') return [field.name, chosenIn(field, value)];
      if (field.kind === 'flag')
        return [field.name, isNone(value) ? field.default : String(value) === 'true'];
      return [field.name, value];
    }),
  );

/** The first setting that applies and cannot be what was meant: never a default in its place. */
export const wrongSetting = (fields: readonly Field[], saved: Values): WrongSetting | undefined => {
  const values = read(fields, saved);
  for (const field of fields) {
    const wrong = applies(field, values) ? wrongIn(field, saved[field.name]) : undefined;
    if (wrong) return wrong;
  }
  return undefined;
};
