import type { Express, NextFunction, Request, Response } from 'express';
import { areKeysKept, isStateKept, type RuntimeSettings } from '../../lib/auth/data-keys';
import type { Red } from '../../lib/runtime/red';
import type { OpenRoutes } from './open-routes';
import type { OnDemand } from './on-demand';
import { runningOf } from './running';

const listeners = new WeakMap<Red['events'], () => void>();

/**
 * Runs at registration, in every Node-RED that has the package installed: it loads the rest when there is a request, or
 * something stored, to deal with.
 */
export const routes = (RED: Red, onDemand: () => OnDemand): void => {
  const settings: RuntimeSettings = RED.settings;
  // Before Node-RED has loaded its credentials: the secret it once made for itself is still there, and the data keys
  // move on to one that was set since.
  if (areKeysKept(settings)) onDemand().readKeys(RED);

  let areAdded = false;
  const addAll = (_request: Request, _response: Response, next: NextFunction): void => {
    if (!areAdded) onDemand().addRoutes(RED);
    areAdded = true;
    next();
  };
  // Added now, ahead of what flows listen to: an HTTP node may listen to everything.
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
