import type { Connection } from '../../lib/auth/connection';
import { isStateKept } from '../../lib/auth/data-key';
import { lazy } from '../../lib/runtime/lazy';
import type { Red } from '../../lib/runtime/red';
import { keptAfterRemoval } from '../../lib/state/store';
import { connectionIn } from './config';
import { runningOf } from './running';
import type { Services } from './services';

/** Forgets the authorizations of environments that have been out of the flow for seven days. */
export const forgetRemovedEnvironments = (
  { vault }: Pick<Services, 'vault'>,
  existing: ReadonlySet<string>,
  connections: readonly Connection[] = [],
): Promise<void> => vault.use(() => vault.forgetMissing(existing, keptAfterRemoval, connections));

const connectionsIn = (RED: Red): Connection[] =>
  [...runningOf(RED)].flatMap(({ id, values }) => connectionIn(id, values) ?? []);

const forgetNodes = async ({ openStore }: Services, existing: ReadonlySet<string>): Promise<void> => {
  const { forgetRemovedNodes } = lazy.removedNodes();
  const store = await openStore();
  try {
    await forgetRemovedNodes(store, existing);
  } finally {
    await store.close();
  }
};

/**
 * Called when the flows have started, because only then it is known which nodes exist, disabled ones included: a node
 * that closes cannot tell whether it was deleted or disabled.
 */
export const forgetRemoved = (RED: Red, services: Services): void => {
  const existing = new Set<string>();
  const ours = new Set<string>();
  RED.nodes.eachNode(({ id, type }) => {
    existing.add(id);
    if (/^(advisor-|subflow:)/.test(type)) {
      ours.add(id);
      return;
    }
    // It may use a subflow that was installed as a module, whose nodes are in no flow.
    const allInside = `${id}-`;
    existing.add(allInside);
    ours.add(allInside);
  });
  for (const { id } of runningOf(RED)) existing.add(id);
  for (const environment of runningOf(RED)) environment.forgetRemovedNodes(ours);
  if (!isStateKept(RED.settings.userDir)) return;
  Promise.all([
    forgetRemovedEnvironments(services, existing, connectionsIn(RED)),
    forgetNodes(services, existing),
  ]).catch((fault: unknown) => {
    services.log.warn(`Data of removed nodes could not be deleted: ${String(fault)}`);
  });
};
