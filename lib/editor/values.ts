import { chosenIn, isVariable, type Values } from '../runtime/settings';
import type { ChoiceField, Field, FieldRow, RowsField, ValueType, When } from '../runtime/spec';

export { applies, chosenIn, isVariable, mayHold, type Values } from '../runtime/settings';

/** Gives the string of a key in the user's language, with `__name__` filled in from `parts`. */
export type Say = (key: string, parts?: Readonly<Record<string, unknown>>) => string;

/** The environment also fills in those that are part of a text, as in `https://${HOST}/v1`. */
export const holdsVariable = (text: string): boolean => /\$\{[^}]+\}/.test(text);

/** What the choice of a variable is while nobody has named one. */
export const noVariable = '${}';

/** Whether the others have the values that are wanted of them. */
export const holds = (when: When, values: Values): boolean =>
  Object.entries(when).every(([name, wanted]) => wanted.includes(values[name] as string | boolean));

const sources: readonly string[] = [
  ...(['msg', 'flow', 'global', 'env', 'jsonata'] satisfies ValueType[]),
  ...(['str', 'num', 'bool', 'json', 'date'] satisfies ValueType[]),
  'fields',
  'off',
  'text',
];

/** Whether nodes of this version can read a value from there. */
export const isSource = (type: string): boolean => sources.includes(type);

/** The default where an older flow has nothing saved. */
export const savedOr = (value: unknown, fallback: unknown): unknown =>
  value === undefined ? fallback : value;

/** Saved by another version, or by hand: none of the options, nor a variable that will be one. */
export const isUnknown = (field: ChoiceField, value: unknown): boolean => {
  const chosen = chosenIn(field, value);
  return !field.options.includes(chosen) && !isVariable(chosen);
};

/** A node's values with its defaults filled in, as its runtime will see them. */
export const withDefaults = (fields: readonly Field[], saved: Values): Values => {
  const values: Record<string, unknown> = { ...saved };
  for (const field of fields) {
    const given = saved[field.name];
    if (field.kind === 'choice') values[field.name] = chosenIn(field, given);
    else if ('default' in field) values[field.name] = savedOr(given, field.default);
    if (field.kind === 'typed')
      values[`${field.name}Type`] = savedOr(saved[`${field.name}Type`], field.defaultType);
  }
  return values;
};

/** `16` is kept as a number; what is no number is kept as written, for the form to complain about. */
export const asNumber = (text: string): number | string => {
  const trimmed = text.trim();
  return trimmed === '' || Number.isNaN(Number(trimmed)) ? trimmed : Number(trimmed);
};

/** Ticked options in their order, then whatever else was typed in, each once. */
export const tickedAnd = (ticked: readonly string[], others: string): string[] => [
  ...new Set([...ticked, ...others.split(/[\s,]+/).filter((other) => other !== '')]),
];

/** Rows with nothing in them are left out: only what was given is sent. */
export const filledRows = (
  field: RowsField,
  read: (row: string) => { value: string; valueType: string },
): FieldRow[] =>
  Object.keys(field.rows)
    .map((row) => ({ field: row, ...read(row) }))
    .filter(({ value }) => value !== '')
    .map((row) => ({ ...row, valueType: row.valueType as ValueType }));
