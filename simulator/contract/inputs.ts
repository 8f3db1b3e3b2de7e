import { z } from 'zod';
import { Refusal } from '../problem';
import { contract, none, operationNames, type Asked, type OperationName } from './declaration';
import type { Route } from './routes';

/** A query carries text: those of its parameters that are numbers in the contract are read as such. */
const numericIn = (query: z.ZodType): ReadonlySet<string> =>
  new Set(
    query instanceof z.ZodObject
      ? Object.entries(query.shape as Record<string, z.ZodType>)
          .filter(([, parameter]) => parameter.safeParse(1).success)
          .map(([name]) => name)
      : [],
  );

const numeric = Object.fromEntries(
  operationNames.map((name) => [name, numericIn(contract[name].query)]),
) as Readonly<Record<OperationName, ReadonlySet<string>>>;

const refuse = (what: string, error: z.ZodError): Refusal => {
  const details = error.issues.map(({ path, message }) => ({ field: path.join('.'), message }));
  const said = details
    .map(({ field, message }) => (field === '' ? message : `${field}: ${message}`))
    .join('; ');
  return new Refusal('invalid_request', `The ${what} is not valid. ${said}`, { details });
};

const readQuery = (name: OperationName, text: string): unknown => {
  const values: Record<string, string | number> = {};
  for (const [key, value] of new URLSearchParams(text)) {
    if (Object.hasOwn(values, key))
      throw new Refusal('invalid_request', `The query parameter ${key} is given twice.`);
    values[key] = numeric[name].has(key) && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
  }
  const parsed = contract[name].query.safeParse(values);
  if (!parsed.success) throw refuse('query', parsed.error);
  return parsed.data;
};

export const wantsBody = (name: OperationName): boolean => contract[name].body !== none;

/** Errors, rule 1: unknown fields in request bodies are stripped. */
const readJson = (name: OperationName, text: string): unknown => {
  if (!wantsBody(name)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Refusal('invalid_request', 'The body is not valid JSON.');
  }
  const parsed = contract[name].body.safeParse(value);
  if (!parsed.success) throw refuse('body', parsed.error);
  return parsed.data;
};

const readId = (id: string | undefined): number => {
  if (id !== undefined && !/^\d{1,15}$/.test(id))
    throw new Refusal('invalid_request', 'The id in the path must be an integer.');
  return Number(id ?? 0);
};

export const readInputs = ({ name, id }: Route, query: string, body: string): Asked =>
  ({ id: readId(id), query: readQuery(name, query), body: readJson(name, body) }) as Asked;
