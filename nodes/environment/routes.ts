import type { Red } from '../../lib/runtime/red';
import { forgetWhenStarted } from './absent';
import { adminRoutes } from './admin-routes';
import { openRoutes } from './open-routes';
import { servicesOf } from './services';
import { simulatorRoutes } from './simulator-routes';

/**
 * Runs at registration, before Node-RED has loaded its credentials: the secret it once made for itself is still there,
 * and the vault moves on to one that was set since.
 */
export const routes = (RED: Red): void => {
  const services = servicesOf(RED);
  simulatorRoutes(RED, services);
  openRoutes(RED, services);
  adminRoutes(RED, services);
  forgetWhenStarted(RED, services);
};
