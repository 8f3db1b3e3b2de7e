import type * as openTelemetry from '@opentelemetry/api';
import type * as simulator from '../../simulator';
import type * as client from '../service/client';
import type * as rehearsal from '../check/rehearsal';
import type * as endpoints from '../service/endpoints';
import type * as transport from '../service/transport';
import type * as removedNodes from '../outbox/removed-nodes';
import type * as store from '../state/embedded';
import type * as memoryStore from '../state/memory';
import type * as postgres from '../state/postgres';
import type * as postgresConnection from '../state/postgres-connection';
import type { NodeSpec } from './spec';

/**
 * Modules that need axios, zod, undici or lmdb, and the specs of other nodes. They are loaded on first use, so that an
 * installed but unused package costs Node-RED next to nothing at its start.
 */
export const lazy = {
  /** An optional peer: throws where it is not installed. */
  openTelemetry: () => require('@opentelemetry/api') as typeof openTelemetry,
  client: () => require('../service/client') as typeof client,
  endpoints: () => require('../service/endpoints') as typeof endpoints,
  transport: () => require('../service/transport') as typeof transport,
  rehearsal: () => require('../check/rehearsal') as typeof rehearsal,
  store: () => require('../state/embedded') as typeof store,
  postgres: () => require('../state/postgres') as typeof postgres,
  postgresConnection: () => require('../state/postgres-connection') as typeof postgresConnection,
  memoryStore: () => require('../state/memory') as typeof memoryStore,
  removedNodes: () => require('../outbox/removed-nodes') as typeof removedNodes,
  /** The spec of a node, by the name of its folder; throws where there is none. */
  spec: (name: string) => (require(`../../nodes/${name}/spec`) as { readonly spec: NodeSpec }).spec,
  simulator: () => require('../../simulator') as typeof simulator,
};
