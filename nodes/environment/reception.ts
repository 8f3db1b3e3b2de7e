import type { Red } from '../../lib/runtime/red';
import { forgetAbsent } from './absent';
import { health } from './activity';
import { adminRoutes } from './admin-routes';
import { openRoutes, type OpenRoutes } from './open-routes';
import { servicesOf } from './services';
import { simulatorRoutes } from './simulator-routes';

/** What `routes` loads when there is something to do. */
export const reception = {
  readKeys: (RED: Red): void => {
    servicesOf(RED);
  },
  forgetAbsent: (RED: Red): void => {
    forgetAbsent(RED, servicesOf(RED));
  },
  openRoutes: (RED: Red): OpenRoutes => openRoutes(RED, servicesOf(RED)),
  health,
  addRoutes: (RED: Red): void => {
    const services = servicesOf(RED);
    simulatorRoutes(RED, services);
    adminRoutes(RED, services);
  },
};

export type Reception = typeof reception;
