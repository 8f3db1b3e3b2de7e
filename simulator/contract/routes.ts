import type { EndpointName } from '../../lib/service/endpoints';
import { endpointNames, endpoints } from '../endpoints';
import type { Habits } from '../profiles';
import { pathsInContract } from './wire';

export interface Route {
  readonly name: EndpointName;
  /** The ids as they stand in the path, by their names in the contract. */
  readonly params: Readonly<Record<string, string>>;
}

const fixed = new Map<string, Route>();
const patterns: { readonly method: string; readonly pattern: RegExp; readonly name: EndpointName }[] = [];

for (const name of endpointNames) {
  const { method, path } = endpoints[name];
  if (path.includes('{')) {
    patterns.push({ method, name, pattern: new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`) });
  } else {
    fixed.set(`${method} ${path}`, { name, params: {} });
  }
}

const routeIn = (method: string, path: string): Route | undefined => {
  const exact = fixed.get(`${method} ${path}`);
  if (exact !== undefined) return exact;
  for (const { method: wanted, pattern, name } of patterns) {
    const match = wanted === method ? pattern.exec(path) : null;
    if (match !== null) return { name, params: match.groups ?? {} };
  }
  return undefined;
};

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
