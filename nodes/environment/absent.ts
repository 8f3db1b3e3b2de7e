import { lazy } from '../../lib/runtime/lazy';
import type { Red } from '../../lib/runtime/red';
import { systemClock } from '../../lib/service/clock';
import { keptAfterRemoval } from '../../lib/state/store';
import type { Services } from './services';
import { isStateKept } from './state-kept';

const prefix = 'absent:';

/** Authorizations of environments that left the flow: kept seven days from when they were first missed. */
export const forgetAbsentEnvironments = async (
  { authorizations, book, vault }: Pick<Services, 'authorizations' | 'book' | 'vault'>,
  existing: ReadonlySet<string>,
  now: number,
): Promise<void> => {
  const gone = new Set<string>();
  for (const id of book.environments()) {
    const name = prefix + id;
    const since = vault.read(name);
    if (existing.has(id)) await vault.remove(name);
    else if (typeof since !== 'number') await vault.write(name, now);
    else if (now - since >= keptAfterRemoval) {
      await book.forget(id);
      await vault.remove(name);
      gone.add(id);
    }
  }
  await authorizations.sweepLinks(gone);
};

/** Waits and journal, where there are any: the database is not opened only to find it empty. */
const forgetAbsentNodes = async (
  { openStore }: Services,
  userDir: string | undefined,
  existing: ReadonlySet<string>,
): Promise<void> => {
  if (!isStateKept(userDir)) return;
  const { forgetRemovedNodes } = lazy.removedNodes();
  const store = await openStore();
  try {
    await forgetRemovedNodes(store, existing);
  } finally {
    await store.close();
  }
};

/**
 * Decided once flows have started, from the nodes that exist, disabled ones among them: a node that closes cannot tell
 * whether it was deleted or only switched off.
 */
export const forgetAbsent = (RED: Red, services: Services): void => {
  const existing = new Set<string>();
  RED.nodes.eachNode(({ id }) => existing.add(id));
  const { userDir } = RED.settings as { userDir?: string };
  Promise.all([
    forgetAbsentEnvironments(services, existing, systemClock.now()),
    forgetAbsentNodes(services, userDir, existing),
  ]).catch((fault: unknown) => {
    services.log.warn(`Data of removed nodes could not be cleared: ${String(fault)}`);
  });
};
