import type { z } from 'zod';
import { endpoints } from '../endpoints';
import type { ContractRequest, Endpoint } from '../endpoints/endpoint';
import { Refusal } from '../problem';
import type { Habits } from '../profiles';
import type { Route } from './routes';
import { keptDate, nameOnWire, ownIds } from './wire';

const refuse = (what: string, error: z.ZodError, onWire = (field: string): string => field): Refusal => {
  const details = error.issues.map(({ path, message }) => ({ field: onWire(path.join('.')), message }));
  const said = details
    .map(({ field, message }) => (field === '' ? message : `${field}: ${message}`))
    .join('; ');
  return new Refusal('invalid_request', `The ${what} is not valid. ${said}`, { details });
};

const readQuery = ({ query, search }: Endpoint, text: string, habits: Habits): unknown => {
  const sent = new Map<string, string>();
  for (const [key, value] of new URLSearchParams(text)) {
    if (sent.has(key)) throw new Refusal('invalid_request', `The query parameter ${key} is given twice.`);
    sent.set(key, value);
  }
  const values: Record<string, string | number> = {};
  const renamed = new Map<string, string>();
  const rules: Readonly<Record<string, z.ZodType>> = query?.shape ?? {};
  for (const [parameter, rule] of Object.entries(rules)) {
    const onWire = nameOnWire(search, parameter, habits);
    renamed.set(parameter, onWire);
    const value = sent.get(onWire);
    sent.delete(onWire);
    if (value === undefined) continue;
    // Every value in a query is text, even that of a number.
    const isNumber = /^-?\d+(\.\d+)?$/.test(value) && rule.safeParse(1).success;
    values[parameter] = isNumber ? Number(value) : value;
  }
  if (sent.size > 0 && habits.unknownQuery === 'refused') {
    const unknown = [...sent.keys()].join(', ');
    const known = [...renamed.values()].join(', ') || 'none';
    throw new Refusal('invalid_request', `Unknown query parameter: ${unknown}. Known here: ${known}.`);
  }
  const parsed = query?.safeParse(values);
  if (parsed?.success === false) throw refuse('query', parsed.error, (field) => renamed.get(field) ?? field);
  return parsed?.data ?? {};
};

/** Ids and dates are accepted in the form in which this service returns them. */
const fieldIn =
  (habits: Habits) =>
  (name: string, value: unknown): unknown => {
    if (name === 'groupIds' && Array.isArray(value) && habits.ids !== 'numbers')
      return value.map((id: unknown) => (typeof id === 'string' && /^\d{1,15}$/.test(id) ? Number(id) : id));
    return typeof value === 'string' && (name === 'birthDate' || name === 'clientAnniversary')
      ? keptDate(value, habits)
      : value;
  };

/** Unknown fields in request bodies are stripped (contract, *Errors*, rule 1). */
const readJson = ({ body, hasIdsInBody }: Endpoint, text: string, habits: Habits): unknown => {
  if (!body) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(hasIdsInBody ? ownIds(text, habits) : text, fieldIn(habits));
  } catch {
    throw new Refusal('invalid_request', 'The body is not valid JSON.');
  }
  const parsed = body.safeParse(value);
  if (!parsed.success) throw refuse('body', parsed.error);
  return parsed.data;
};

const readId = (id: string): number => {
  if (!/^\d{1,15}$/.test(id)) throw new Refusal('invalid_request', 'The id in the path must be an integer.');
  return Number(id);
};

export const readInputs = (
  { name, params }: Route,
  query: string,
  body: string,
  habits: Habits,
): ContractRequest => {
  const endpoint = endpoints[name];
  return {
    params: Object.fromEntries(
      Object.entries(params).map(([param, id]) => [param, readId(ownIds(id, habits))]),
    ),
    query: readQuery(endpoint, ownIds(query, habits), habits),
    body: readJson(endpoint, body, habits),
  };
};
