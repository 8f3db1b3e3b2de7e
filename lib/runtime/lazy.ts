import type { NodeSpec } from './spec';

/**
 * Modules that need axios, zod, undici or lmdb, and the specs of other nodes. They are loaded on first use, so that an
 * installed but unused package costs Node-RED next to nothing at its start.
 */
export const lazy = {
  /** An optional peer: throws where it is not installed. */
  openTelemetry: () => require('@opentelemetry/api') as typeof import('@opentelemetry/api'),
  client: () => require('../service/client') as typeof import('../service/client'),
  transport: () => require('../service/transport') as typeof import('../service/transport'),
  rehearsal: () => require('../check/rehearsal') as typeof import('../check/rehearsal'),
  store: () => require('../state/embedded') as typeof import('../state/embedded'),
  postgres: () => require('../state/postgres') as typeof import('../state/postgres'),
  postgresConnection: () =>
    require('../state/postgres-connection') as typeof import('../state/postgres-connection'),
  /** The spec of a node, by the name of its folder; throws where there is none. */
  spec: (name: string) => (require(`../../nodes/${name}/spec`) as { readonly spec: NodeSpec }).spec,
  simulator: () => require('../../simulator') as typeof import('../../simulator'),
};
