import type { Connection } from '../../lib/auth/connection';
import { authorizationsChanged, movableGrants } from '../../lib/auth/vault';
import { movableBlocked } from '../../lib/guards/do-not-text';
import { pendingIn, sumOfPending, type Pending } from '../../lib/outbox/queue-reader';
import { itemAt, keysOf, records, type ItemRecord, type SharedRecord } from '../../lib/outbox/records';
import { idsUnder } from '../../lib/outbox/removed-nodes';
import { moveRecords, type Movable } from '../../lib/state/moving';
import { movableRemembered } from '../../lib/state/remembered';
import { key, under, type Store } from '../../lib/state/store';

const kinds = ['item', 'wait'];

/** Whether a node works for an environment: the last of its items tells. One whose environment is unknown counts, too. */
const worksFor = async (store: Store, node: string, environment: string): Promise<boolean> => {
  const ours = `${environment}/`;
  for (const kind of kinds) {
    const prefix = key(kind, node);
    const [last] = await store.page<ItemRecord>(records, { ...under(prefix), limit: 1, reverse: true });
    if (!last) continue;
    const list = keysOf(node).list(itemAt(last.key).arrival);
    const shared = last.value.single ?? (await store.get<SharedRecord>(records, list))?.value;
    if ((shared?.space ?? ours).startsWith(ours)) return true;
  }
  return false;
};

/** What an environment has accepted in a store, at any service, and not finished. */
export const unfinishedIn = async (store: Store, environment: string): Promise<Pending> => {
  const ids = await Promise.all(kinds.map((kind) => idsUnder(store, records, key(kind))));
  const counts: Pending[] = [];
  for (const node of new Set(ids.flat()))
    if (await worksFor(store, node, environment)) counts.push(await pendingIn(store, node));
  return sumOfPending(counts);
};

/** Moves what all instances of an environment share to the database; resolves with the number of records. */
export const moveToDatabase = async (
  from: Store,
  to: Store,
  environment: string,
  connection: Connection | undefined,
  /** Whether the do-not-text list goes with them: no other environment uses it there. */
  withList: boolean,
): Promise<number> => {
  const count = await moveRecords(from, to, [
    movableGrants(environment, connection) as Movable,
    ...(movableRemembered(environment) as Movable[]),
    ...(withList ? [movableBlocked() as Movable] : []),
  ]);
  if (count > 0) await to.write(authorizationsChanged(to));
  return count;
};
