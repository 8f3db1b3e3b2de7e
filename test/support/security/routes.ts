import type { Red } from '../../../lib/runtime/red';
import { onDemand } from '../../../nodes/environment/on-demand';
import type { Mounts } from '../../../nodes/environment/reply';
import { routes } from '../../../nodes/environment/routes';

export interface MountedRoute {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  /** The middleware in front of it, if any. */
  readonly permission: string | undefined;
}

/** Every route on the admin root, recorded when it is added: nobody has to remember to list a new one. */
export const mountedRoutes = (): MountedRoute[] => {
  const found: MountedRoute[] = [];
  const guards = new Map<unknown, string>();
  const take =
    (method: MountedRoute['method']) =>
    (path: string, ...handlers: unknown[]): void => {
      found.push({ method, path, permission: guards.get(handlers[0]) });
    };
  const quiet = (): void => undefined;
  const RED = {
    httpAdmin: { get: take('GET'), post: take('POST'), delete: take('DELETE'), use: take('GET') },
    httpNode: { get: quiet },
    auth: {
      needsPermission: (permission: string) => {
        const guard = (): void => undefined;
        guards.set(guard, permission);
        return guard;
      },
    },
    events: { on: quiet, off: quiet },
    log: { info: quiet, warn: quiet, error: quiet },
    settings: { available: () => false },
  } as unknown as Red;
  routes(RED, () => onDemand);
  onDemand.addRoutes(RED, RED.httpAdmin as Mounts);
  // The one that adds the others when the first request comes.
  return found.filter(({ path }) => path !== '/advisor-texting');
};

/** For people without a login here, and for monitoring. */
export const openPaths = [
  '/advisor-texting/callback',
  '/advisor-texting/link/:token',
  '/advisor-texting/health',
];

/** Checks its own key before it asks for the permission. */
export const keyedPath = '/advisor-texting/simulator';
