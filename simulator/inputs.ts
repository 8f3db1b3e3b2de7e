import { z } from 'zod';
import { endpoints, type EndpointName } from '../lib/service/endpoints';
import { Refusal } from './problem';
import type { Route } from './routes';

/** What a request asks for, checked against the table: path parameters, query, body. */
export interface Inputs {
  readonly params: Record<string, number>;
  readonly query: unknown;
  readonly body: unknown;
}

/** A query carries text: those of its parameters that are numbers in the schema are read as such. */
const numericKeys = (schema: z.ZodType | undefined): ReadonlySet<string> =>
  schema instanceof z.ZodObject
    ? new Set(
        Object.entries(schema.shape as Record<string, z.ZodType>)
          .filter(([, field]) => field.safeParse(1).success)
          .map(([key]) => key),
      )
    : new Set();

interface Shapes {
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
}

const shapes = Object.fromEntries(
  (Object.keys(endpoints) as EndpointName[]).map((name) => {
    const shape: Shapes = endpoints[name];
    return [name, { ...shape, numeric: numericKeys(shape.query) }];
  }),
) as Readonly<Record<EndpointName, Shapes & { readonly numeric: ReadonlySet<string> }>>;

const refuse = (what: string, error: z.ZodError): Refusal => {
  const details = error.issues.map(({ path, message }) => ({ field: path.join('.'), message }));
  const said = details
    .map(({ field, message }) => (field === '' ? message : `${field}: ${message}`))
    .join('; ');
  return new Refusal('invalid_request', `The ${what} is not valid. ${said}`, { details });
};

const readQuery = (name: EndpointName, text: string): unknown => {
  const { query: schema, numeric } = shapes[name];
  if (schema === undefined) return {};
  const values: Record<string, string | number> = {};
  if (text !== '') {
    for (const [key, value] of new URLSearchParams(text)) {
      if (Object.hasOwn(values, key))
        throw new Refusal('invalid_request', `The query parameter ${key} is given twice.`);
      values[key] = numeric.has(key) && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value;
    }
  }
  const parsed = schema.safeParse(values);
  if (!parsed.success) throw refuse('query', parsed.error);
  return parsed.data;
};

export const wantsBody = (name: EndpointName): boolean => shapes[name].body !== undefined;

/** Fields the schema does not know are stripped, as the contract says. */
const readJson = (name: EndpointName, text: string): unknown => {
  const schema = shapes[name].body;
  if (schema === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Refusal('invalid_request', 'The body is not valid JSON.');
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw refuse('body', parsed.error);
  return parsed.data;
};

const readParams = (params: Route['params']): Record<string, number> => {
  const numbers: Record<string, number> = {};
  for (const key in params) {
    const value = params[key] ?? '';
    if (!/^\d{1,15}$/.test(value))
      throw new Refusal('invalid_request', `${key} in the path must be an integer.`);
    numbers[key] = Number(value);
  }
  return numbers;
};

export const readInputs = ({ name, params }: Route, query: string, body: string): Inputs => ({
  params: readParams(params),
  query: readQuery(name, query),
  body: readJson(name, body),
});
