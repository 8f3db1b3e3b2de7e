import type { Express, RequestHandler } from 'express';
import { isKeyKept, isStateKept, type RuntimeSettings } from '../../lib/auth/data-key';
import { processMemory } from '../../lib/process-memory';
import type { Red } from '../../lib/runtime/red';
import { visible } from '../../lib/visible';
import type { OpenRoutes } from './open-routes';
import type { OnDemand } from './on-demand';
import type { Mounts } from './reply';

/** What takes the listeners of the installed package off the runtime's events. */
const installed = processMemory('listeners', new WeakMap<Red['events'], () => void>());

const packageName = '@advisor-texting/node-red';

/** What Node-RED emits when a module was removed from the palette: what it had registered, by module. */
interface RuntimeEvent {
  readonly id: string;
  readonly payload?: unknown;
}

const isOurRemoval = ({ id, payload }: RuntimeEvent): boolean =>
  id === 'node/removed' &&
  Array.isArray(payload) &&
  payload.some((set: { module?: unknown } | undefined) => set?.module === packageName);

/** While npm updates or removes the package, its files are missing: uncaught, that would end Node-RED at a deploy. */
const isDone = ({ log }: Red, work: () => void): boolean => {
  try {
    work();
    return true;
  } catch (fault) {
    log.error(
      `[advisor-texting] The package could not be loaded (${visible(String(fault))}): restart Node-RED.`,
    );
    return false;
  }
};

/**
 * Runs at registration, in every Node-RED that has the package installed. It loads the rest only for a request, or for
 * stored keys.
 */
export const routes = (RED: Red, onDemand: () => OnDemand): void => {
  const settings: RuntimeSettings = RED.settings;
  // This runs before Node-RED has loaded its credentials: the secret that Node-RED once generated is still there, so
  // that data keys can be wrapped again by a secret that was set since.
  if (isKeyKept(settings)) onDemand().readKeys(RED);

  const { events, httpAdmin } = RED;
  /** Node-RED cannot unmount a route: once the package was removed, also to be installed again, requests pass by its own. */
  const whileInstalled =
    (handle: RequestHandler): RequestHandler =>
    (request, response, next) => {
      if (installed.get(events) !== unlisten) next();
      else if (!isDone(RED, () => handle(request, response, next))) response.sendStatus(503);
    };
  const mounts: Mounts = {
    get: (path, ...handlers) => httpAdmin.get(path, ...handlers.map(whileInstalled)),
    post: (path, ...handlers) => httpAdmin.post(path, ...handlers.map(whileInstalled)),
    delete: (path, ...handlers) => httpAdmin.delete(path, ...handlers.map(whileInstalled)),
    use: (path, ...handlers) => httpAdmin.use(path, ...handlers.map(whileInstalled)),
  };
  let areAdded = false;
  const addAll: RequestHandler = (_request, _response, next) => {
    if (!areAdded) onDemand().addRoutes(RED, mounts);
    areAdded = true;
    next();
  };
  // The routes are added now, before those of HTTP nodes, which may match every path.
  const open =
    (name: keyof OpenRoutes): RequestHandler =>
    (request, response) =>
      onDemand().openRoutes(RED)[name](request, response);
  const health: RequestHandler = (_request, response) => onDemand().health(RED, response);
  for (const app of [RED.httpAdmin, RED.httpNode] as (Express | undefined)[]) {
    app?.get('/advisor-texting/callback', whileInstalled(open('callback')));
    app?.get('/advisor-texting/link/:token', whileInstalled(open('link')));
    app?.get('/advisor-texting/health', whileInstalled(health));
  }
  mounts.use('/advisor-texting', addAll);

  // The running environments cannot be asked: this file is bundled, and would have its own, empty set of them.
  const isInDatabase = (): boolean => {
    let isFound = false;
    RED.nodes.eachNode((node) => {
      const { type, store = 'embedded' } = node as { type: string; store?: unknown };
      isFound ||= type === 'advisor-environment' && store !== 'embedded';
    });
    return isFound;
  };
  const onStarted = (): void => {
    if (isInDatabase() || isStateKept(settings.userDir)) isDone(RED, () => onDemand().forgetRemoved(RED));
  };
  const onRuntimeEvent = (event: RuntimeEvent): void => {
    if (isOurRemoval(event)) unlisten();
  };
  const unlisten = (): void => {
    events.off('flows:started', onStarted);
    events.off('runtime-event', onRuntimeEvent);
    installed.delete(events);
  };
  installed.get(events)?.();
  installed.set(events, unlisten);
  events.on('flows:started', onStarted);
  events.on('runtime-event', onRuntimeEvent);
};
