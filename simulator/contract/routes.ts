import type { EndpointName } from '../../lib/service/endpoints';
import { endpoints } from '../endpoints';
import type { Endpoint } from '../endpoints/endpoint';
import type { Habits } from '../profiles';
import { pathsInContract } from './wire';

export interface Route<Name = EndpointName> {
  readonly name: Name;
  /** The ids as written in the path, by their names in the contract. */
  readonly params: Readonly<Record<string, string>>;
}

/** Finds the endpoint of a method and a path of the contract. A path without parameters takes precedence. */
export const routesOf = <Name extends string>(
  table: Readonly<Record<Name, Pick<Endpoint, 'method' | 'path'>>>,
): ((method: string, path: string) => Route<Name> | undefined) => {
  const fixed = new Map<string, Route<Name>>();
  const patterns: { readonly method: string; readonly pattern: RegExp; readonly name: Name }[] = [];
  for (const name of Object.keys(table) as Name[]) {
    const { method, path } = table[name];
    if (path.includes('{')) {
      patterns.push({ method, name, pattern: new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`) });
    } else {
      fixed.set(`${method} ${path}`, { name, params: {} });
    }
  }
  return (method, path) => {
    const exact = fixed.get(`${method} ${path}`);
    if (exact !== undefined) return exact;
    for (const { method: wanted, pattern, name } of patterns) {
      const match = wanted === method ? pattern.exec(path) : null;
      if (match !== null) return { name, params: match.groups ?? {} };
    }
    return undefined;
  };
};

const routeIn = routesOf(endpoints);

/** The endpoint for this method and path, or undefined. `path` is as on the wire, relative to the base address. */
export const findRoute = (method: string, path: string, habits: Habits): Route | undefined => {
  for (const inContract of pathsInContract(path, habits)) {
    const route = routeIn(method, inContract);
    if (route !== undefined) return route;
  }
  return undefined;
};

export const allowedMethods = (path: string, habits: Habits): string[] =>
  ['GET', 'POST', 'PUT', 'DELETE'].filter((method) => findRoute(method, path, habits) !== undefined);
