import { endpoints, type EndpointName } from '../lib/service/endpoints';

export interface Route {
  readonly name: EndpointName;
  readonly params: Readonly<Record<string, string>>;
}

const names = Object.keys(endpoints) as EndpointName[];

const fixed = new Map<string, Route>();
const patterns: { readonly method: string; readonly pattern: RegExp; readonly name: EndpointName }[] = [];

for (const name of names) {
  const { method, path } = endpoints[name];
  if (path.includes('{')) {
    patterns.push({ method, name, pattern: new RegExp(`^${path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`) });
  } else {
    fixed.set(`${method} ${path}`, { name, params: {} });
  }
}

/** The endpoint of the table that answers this, or undefined. `path` is relative to the base address. */
export const findRoute = (method: string, path: string): Route | undefined => {
  const exact = fixed.get(`${method} ${path}`);
  if (exact !== undefined) return exact;
  for (const { method: wanted, pattern, name } of patterns) {
    const match = wanted === method ? pattern.exec(path) : null;
    if (match !== null) return { name, params: { ...match.groups } };
  }
  return undefined;
};

export const allowedMethods = (path: string): string[] =>
  ['GET', 'POST', 'PUT', 'DELETE'].filter((method) => findRoute(method, path) !== undefined);
