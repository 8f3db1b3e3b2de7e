import type { z } from 'zod';
import { endpoints } from './endpoints';
import type { EndpointName } from './endpoints';
import { failure } from './messages';
import type { Kind } from './retry';
import { quickLook, type Fit } from './shape';

/** What a request is on the wire, less its headers. */
export interface Wire {
  readonly path: string;
  readonly body: string | null;
  /** The id in its path, if it has one. */
  readonly id: number | undefined;
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
  readonly params?: Readonly<Record<string, number>>;
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

const pathId = (params: Request['params'], name: string): number => {
  const id = params?.[name];
  if (id === undefined || !Number.isSafeInteger(id) || id < 0) {
    throw failure('invalid_input', 'invalid_input', {
      field: name,
      issue: 'must be a whole number, 0 or more',
    });
  }
  return id;
};

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

  return {
    name,
    method,
    kind,
    scope,
    response,
    looksRight: quickLook(response),
    wire(request) {
      const id = parameter === undefined ? undefined : pathId(request.params, parameter);
      const filled = basePath + before + (id === undefined ? '' : String(id)) + after;
      return {
        id,
        path: query
          ? filled + queryString(check(query, 'query', request.query ?? {}) as object, names)
          : filled,
        body: body ? JSON.stringify(check(body, 'body', request.body)) : null,
      };
    },
  };
};
