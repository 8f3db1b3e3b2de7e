import type { Red } from '../../lib/runtime/red';
import { forgetRemoved } from './removed-data';
import { health } from './sidebar-data';
import { adminRoutes } from './admin-routes';
import { openRoutes, type OpenRoutes } from './open-routes';
import type { Mounts } from './reply';
import { servicesOf } from './services';
import { simulatorRoutes } from './simulator-routes';

/** `routes` loads this at the first request, so that an installed but unused package costs nothing. */
export const onDemand = {
  readKeys: (RED: Red): void => void servicesOf(RED),
  forgetRemoved: (RED: Red): void => forgetRemoved(RED, servicesOf(RED)),
  openRoutes: (RED: Red): OpenRoutes => openRoutes(RED, servicesOf(RED)),
  health,
  addRoutes: (RED: Red, mounts: Mounts): void => {
    const services = servicesOf(RED);
    simulatorRoutes(RED, mounts, services);
    adminRoutes(RED, mounts, services);
  },
};

export type OnDemand = typeof onDemand;
