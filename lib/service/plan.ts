import type { z } from 'zod';
import { endpoints } from './endpoints';
import type { EndpointName, Id } from './endpoints';
import { failure } from './messages';
import type { Kind } from './retry';
import { quickLook, type Fit } from './shape';

/** What a request is on the wire, less its headers. */
export interface Wire {
  readonly path: string;
  readonly body: string | null;
  /** The id in its path, if it has one. */
  readonly id: Id | undefined;
}

/** An endpoint, prepared once per client so that a call only fills it in. */
export interface Plan {
  readonly name: EndpointName;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly kind: Kind;
  readonly scope: string;
  readonly response: z.ZodType;
  /** Whether an answer is plainly as `response` would have it; when in doubt, false. */
  readonly looksRight: Fit;
  /** Throws `invalid_input` before anything is sent. */
  wire(request: Request): Wire;
}

/** The shape all of RequestOf share. */
export interface Request {
  readonly params?: Readonly<Record<string, Id>>;
  readonly query?: unknown;
  readonly body?: unknown;
}

const check = (schema: z.ZodType, part: string, value: unknown): unknown => {
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  const issue = checked.error.issues[0];
  throw failure('invalid_input', 'invalid_input', {
    field: [part, ...(issue?.path ?? [])].map(String).join('.'),
    issue: issue?.message ?? 'not valid',
  });
};

/** `.` and `..` are steps in a path, and a lone surrogate cannot be encoded. */
const isPathText = (id: string): boolean => !/^\.{0,2}$/.test(id) && !/\p{Cc}|\p{Cs}/u.test(id);

const pathId = (params: Request['params'], name: string): Id => {
  const id = params?.[name];
  const isUsable = typeof id === 'string' ? isPathText(id) : Number.isSafeInteger(id) && Number(id) >= 0;
  if (id === undefined || !isUsable) {
    throw failure('invalid_input', 'invalid_input', {
      field: name,
      issue: 'must be a whole number, 0 or more, or an id as the service gave it',
    });
  }
  return id;
};

/** Ids in a body are integers in the contract: those that are strings here only because of their length go as such. */
const withLongIntegers = (body: string): string =>
  body.replace(/"(\d{16,})"/g, (quoted, digits: string) =>
    Number.isSafeInteger(Number(digits)) ? quoted : digits,
  );

const queryString = (query: object, names: ReadonlyMap<string, string>): string => {
  let written = '';
  for (const [name, value] of Object.entries(query) as [string, string | number | undefined][]) {
    if (value === undefined) continue;
    const onTheWire = encodeURIComponent(names.get(name) ?? name);
    written += `${written === '' ? '?' : '&'}${onTheWire}=${encodeURIComponent(value)}`;
  }
  return written;
};

export const planEndpoint = (
  name: EndpointName,
  basePath: string,
  names: ReadonlyMap<string, string>,
): Plan => {
  const { method, path, repeat, scope, response, ...parts } = endpoints[name];
  const query = 'query' in parts ? parts.query : undefined;
  const body = 'body' in parts ? parts.body : undefined;
  const [, before = path, parameter, after = ''] = /^(.*)\{(\w+)\}(.*)$/.exec(path) ?? [];
  const kind = method === 'GET' ? 'read' : repeat === 'safe' ? 'replace' : repeat;

  const write = (value: unknown): string =>
    name === 'setContactGroups' ? withLongIntegers(JSON.stringify(value)) : JSON.stringify(value);

  return {
    name,
    method,
    kind,
    scope,
    response,
    looksRight: quickLook(response),
    wire(request) {
      const id = parameter === undefined ? undefined : pathId(request.params, parameter);
      const filled = basePath + before + (id === undefined ? '' : encodeURIComponent(id)) + after;
      return {
        id,
        path: query
          ? filled + queryString(check(query, 'query', request.query ?? {}) as object, names)
          : filled,
        body: body ? write(check(body, 'body', request.body)) : null,
      };
    },
  };
};
