import type { Habits } from '../profiles';
import { contract, operationNames, type OperationName } from './declaration';
import { pathsInContract } from './wire';

export interface Route {
  readonly name: OperationName;
  /** The id as it stands in the path. */
  readonly id: string | undefined;
}

const fixed = new Map<string, Route>();
const patterns: { readonly method: string; readonly pattern: RegExp; readonly name: OperationName }[] = [];

for (const name of operationNames) {
  const { method, path } = contract[name];
  if (path.includes('{')) {
    patterns.push({ method, name, pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '([^/]+)')}$`) });
  } else {
    fixed.set(`${method} ${path}`, { name, id: undefined });
  }
}

const routeIn = (method: string, path: string): Route | undefined => {
  const exact = fixed.get(`${method} ${path}`);
  if (exact !== undefined) return exact;
  for (const { method: wanted, pattern, name } of patterns) {
    const match = wanted === method ? pattern.exec(path) : null;
    if (match !== null) return { name, id: match[1] };
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
