import { chosenIn, isVariable, type Values } from '../runtime/settings';
import {
  valueTypes,
  type ChoiceField,
  type FieldRow,
  type RowsField,
  type TypedField,
  type ValueType,
} from '../runtime/spec';

/** Returns the string of a key in the user's language, with each `__name__` filled in from `parts`. */
export type Say = (key: string, parts?: Readonly<Record<string, unknown>>) => string;

/** Whether a text has a variable anywhere: the environment also resolves `https://${HOST}/v1`. */
export const holdsVariable = (text: string): boolean => /\$\{[^}]+\}/.test(text);

/** The value of a choice by variable until the variable is named. */
export const noVariable = '${}';

/** Whether nodes of this version can read values of this type. */
export const isSource = (type: string): boolean => ['fields', ...valueTypes].includes(type);

/** Whether a value of the field is the id of a record, whose name is saved beside it for the node's label. */
export const isNamed = ({ lookup, several }: TypedField): boolean =>
  lookup !== undefined && lookup !== 'content' && several !== true;

/** The saved value, or its default if an older flow has none. */
export const savedOr = (value: unknown, fallback: unknown): unknown =>
  value === undefined ? fallback : value;

/** Whether a saved choice, from another version or edited by hand, is neither an option nor a variable. */
export const isUnknown = (field: ChoiceField, value: unknown): boolean => {
  const chosen = chosenIn(field, value);
  return !field.options.includes(chosen) && !isVariable(chosen);
};

/** `16` is saved as a number; a text that is not a number is saved as written, and the form shows the problem. */
export const savedNumber = (text: string): number | string => {
  const trimmed = text.trim();
  return trimmed === '' || Number.isNaN(Number(trimmed)) ? trimmed : Number(trimmed);
};

/** The ticked options in their order, then the others that were typed in, each once. */
export const tickedAnd = (ticked: readonly string[], others: string): string[] => [
  ...new Set([...ticked, ...others.split(/[\s,]+/).filter((other) => other !== '')]),
];

/** Empty rows are left out: only given values are sent. */
export const filledRows = ({ rows }: RowsField, values: Values): FieldRow[] =>
  Object.keys(rows)
    .map((field) => ({
      field,
      value: (values[field] ?? '') as string,
      valueType: values[`${field}Type`] as ValueType,
    }))
    .filter(({ value }) => value !== '');
