import type { Express, NextFunction, Request, Response } from 'express';
import { areKeysKept, isStateKept, type RuntimeSettings } from '../../lib/auth/data-keys';
import { processMemory } from '../../lib/process-memory';
import type { Red } from '../../lib/runtime/red';
import type { OpenRoutes } from './open-routes';
import type { OnDemand } from './on-demand';
import { runningOf } from './running';

const listeners = processMemory('listeners', new WeakMap<Red['events'], () => void>());

/**
 * Runs at registration, in every Node-RED that has the package installed. It loads the rest only for a request, or for
 * stored keys.
 */
export const routes = (RED: Red, onDemand: () => OnDemand): void => {
  const settings: RuntimeSettings = RED.settings;
  // This runs before Node-RED has loaded its credentials: the secret that Node-RED once generated is still there, so
  // that data keys can be wrapped anew by a secret that was set since.
  if (areKeysKept(settings)) onDemand().readKeys(RED);

  let areAdded = false;
  const addAll = (_request: Request, _response: Response, next: NextFunction): void => {
    if (!areAdded) onDemand().addRoutes(RED);
    areAdded = true;
    next();
  };
  // The routes are added now, before those of HTTP nodes, which may match every path.
  const open =
    (name: keyof OpenRoutes) =>
    (request: Request, response: Response): void => {
      onDemand().openRoutes(RED)[name](request, response);
    };
  for (const app of [RED.httpAdmin, RED.httpNode] as (Express | undefined)[]) {
    app?.get('/advisor-texting/callback', open('callback'));
    app?.get('/advisor-texting/link/:token', open('link'));
    app?.get('/advisor-texting/health', (_request: Request, response: Response) => {
      onDemand().health(RED, response);
    });
  }
  RED.httpAdmin.use('/advisor-texting', addAll);

  const onStarted = (): void => {
    const isInDatabase = [...runningOf(RED)].some((environment) => environment.isInDatabase);
    if (isInDatabase || isStateKept(settings.userDir)) onDemand().forgetRemoved(RED);
  };
  const before = listeners.get(RED.events);
  if (before) RED.events.off('flows:started', before);
  listeners.set(RED.events, onStarted);
  RED.events.on('flows:started', onStarted);
};
