import type { Connection } from '../../lib/auth/connection';
import { isStateKept } from '../../lib/auth/data-key';
import { doesExist, forgetRemovedNodes, idsUnder } from '../../lib/outbox/removed-nodes';
import type { Red } from '../../lib/runtime/red';
import { key, keptAfterRemoval, type Store } from '../../lib/state/store';
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

/** Adds the environments in subflows that are modules, which are in no flow: those that have run in a use that exists. */
const addInModules = async (store: Store, RED: Red, existing: Set<string>): Promise<void> => {
  const ran = 'module-environment';
  for (const { id, nodeId } of [...runningOf(RED)].filter((each) => !existing.has(each.id))) {
    await store.write([{ table: 'work', put: key(ran, id, nodeId), value: 0 }]);
    existing.add(id);
  }
  for (const id of await idsUnder(store, 'work', key(ran)))
    for (const use of await idsUnder(store, 'work', key(ran, id)))
      if (doesExist(use, existing)) existing.add(id);
      else await store.write([{ table: 'work', remove: key(ran, id, use) }]);
};

const forgetData = async (RED: Red, services: Services, existing: Set<string>): Promise<void> => {
  const store = await services.openStore();
  try {
    await forgetRemovedNodes(store, existing);
    await addInModules(store, RED, existing);
    await forgetRemovedEnvironments(services, existing, connectionsIn(RED));
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
  for (const environment of runningOf(RED)) environment.forgetRemovedNodes(ours);
  if (!isStateKept(RED.settings.userDir)) return;
  forgetData(RED, services, existing).catch((fault: unknown) => {
    services.log.warn(`Data of removed nodes could not be deleted: ${String(fault)}`);
  });
};
