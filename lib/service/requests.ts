import { z } from 'zod';
import { type EndpointName, endpoints, type Id } from './endpoints';
import { serviceError } from './errors';
import { type Prefixes, scopeNames, usualPrefixes, wirePath, wireScope } from './prefixes';
import type { RepeatKind } from './retry';
import type { Outgoing } from './transport';

/** A request for the wire, without its credentials. */
export interface Wire {
  readonly outgoing: Outgoing;
  /** The id in the path, if there is exactly one. */
  readonly id: Id | undefined;
}

/** An endpoint, prepared once for each client, so that a call only fills it in. */
export type Plan = ReturnType<typeof planEndpoint>;

/** The common shape of all `RequestOf` types. */
export interface EndpointRequest {
  readonly params?: Readonly<Record<string, Id>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
}

/** `.` and `..` are dot segments (RFC 3986, section 3.3), and a lone surrogate cannot be encoded. */
const isPathText = (id: string): boolean => !/^\.{0,2}$/.test(id) && !/\p{Cc}|\p{Cs}/u.test(id);

const pathId = (params: EndpointRequest['params'], name: string): Id => {
  const id = params?.[name];
  const isUsable = typeof id === 'string' ? isPathText(id) : Number.isSafeInteger(id) && Number(id) >= 0;
  if (id === undefined || !isUsable) {
    throw serviceError('invalid_input', 'invalid_input', {
      field: name,
      issue: 'must be a whole number, 0 or more, or an id as the service gave it',
    });
  }
  return id;
};

/** A path with its parameters filled in, and their ids in order. */
export const fillPath = (path: string, params: EndpointRequest['params']): { path: string; ids: Id[] } => {
  const ids: Id[] = [];
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const id = pathId(params, name);
    ids.push(id);
    return encodeURIComponent(id);
  });
  return { path: filled, ids };
};

const queries = Object.values(endpoints).map(({ query, search }) => ({
  search,
  names: query instanceof z.ZodObject ? Object.keys(query.shape) : [],
}));

/** The names of all query parameters, as the setting `names` has them: for every endpoint, then for one search. */
export const queryNames: ReadonlySet<string> = new Set([
  ...queries.flatMap(({ names }) => names),
  ...queries.flatMap(({ search, names }) =>
    search === undefined ? [] : names.map((name) => `${search}.${name}`),
  ),
]);

/** The words of this service where they differ from the contract's. */
export interface Dialect {
  readonly names: ReadonlyMap<string, string>;
  readonly prefixes: Prefixes;
}

export const planEndpoint = (
  name: EndpointName,
  { names, prefixes }: Dialect = { names: new Map(), prefixes: usualPrefixes },
) => {
  const { method, repeat, response, sentences, ...parts } = endpoints[name];
  const path = wirePath(parts.path, prefixes);
  const onTheWire = (query: string): string =>
    (parts.search === undefined ? undefined : names.get(`${parts.search}.${query}`)) ??
    names.get(query) ??
    query;
  const kind: RepeatKind = method === 'GET' ? 'read' : repeat === 'safe' ? 'replace' : repeat;

  const paramsOf = (query: NonNullable<EndpointRequest['query']>): Record<string, string | number> => {
    const params: Record<string, string | number> = {};
    for (const [own, value] of Object.entries(query)) if (value !== undefined) params[onTheWire(own)] = value;
    return params;
  };

  return {
    name,
    method,
    kind,
    /** The scope in the service's words. */
    scope: wireScope(parts.scope, prefixes),
    /** Finds the name of a scope in the service's answers. */
    scopeNames: scopeNames(prefixes),
    response: response as z.ZodType,
    sentences: sentences,
    /** Throws `invalid_input` for an id that no path can have. Whoever makes a call has checked the rest. */
    wire(request: EndpointRequest): Wire {
      const { path: url, ids } = fillPath(path, request.params);
      const outgoing: Outgoing = {
        method,
        url,
        ...(request.query && { params: paramsOf(request.query) }),
        ...(request.body !== undefined && { data: request.body }),
        ...(parts.hasIdsInBody && { hasIds: true }),
      };
      return { id: ids.length === 1 ? ids[0] : undefined, outgoing };
    },
  };
};
