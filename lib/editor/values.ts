import type { Field, FieldRow, RowsField, ValueType } from '../runtime/spec';

export type Values = Readonly<Record<string, unknown>>;

/** Gives the string of a key in the user's language, with `__name__` filled in from `parts`. */
export type Say = (key: string, parts?: Readonly<Record<string, unknown>>) => string;

const variable = /^\$\{[^}]+\}$/;

/** A `${VARIABLE}` is only known where the flow runs. */
export const isVariable = (value: unknown): boolean => typeof value === 'string' && variable.test(value);

/** Whether a field applies, given the others. */
export const applies = (field: Field, values: Values): boolean =>
  Object.entries(field.when ?? {}).every(([name, wanted]) => {
    const value = values[name];
    return isVariable(value) || wanted.includes(value as string | boolean);
  });

/** The default where an older flow has nothing saved. */
export const savedOr = (value: unknown, fallback: unknown): unknown =>
  value === undefined ? fallback : value;

/** A node's values with its defaults filled in, as its runtime will see them. */
export const withDefaults = (fields: readonly Field[], saved: Values): Values => {
  const values: Record<string, unknown> = { ...saved };
  for (const field of fields) {
    if ('default' in field) values[field.name] = savedOr(saved[field.name], field.default);
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
