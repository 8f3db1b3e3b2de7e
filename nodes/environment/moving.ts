import type { Connection } from '../../lib/auth/connection';
import { authorizationsChanged, movableGrants } from '../../lib/auth/vault';
import { movableBlocked } from '../../lib/guards/do-not-text';
import { itemAt, keysOf, queueKinds, records, timetable } from '../../lib/outbox/records';
import { idsUnder } from '../../lib/outbox/removed-nodes';
import { movableRemembered } from '../../lib/state/remembered';
import { isThere, moveRecords, stayHere, type Destination, type Movable } from '../../lib/state/moving';
import { endOf, key, tables, type Store } from '../../lib/state/store';

interface FirstItem {
  readonly single?: { readonly space: string };
}

/** The nodes that have work for an environment, at any service. */
const nodesOf = async (store: Store, environment: string): Promise<Set<string>> => {
  const nodes = new Set<string>();
  for (const kind of ['item', 'wait'])
    for (const node of await idsUnder(store, records, key(kind))) {
      const prefix = key(kind, node);
      const [first] = await store.page<FirstItem>(records, { from: prefix, to: endOf(prefix), limit: 1 });
      if (!first) continue;
      const list = keysOf(node).list(itemAt(first.key).arrival);
      const shared =
        first.value.single ?? (await store.get<{ readonly space: string }>(records, list))?.value;
      if (shared?.space.startsWith(`${environment}/`)) nodes.add(node);
    }
  return nodes;
};

/** All records of an environment in a store. */
const recordsOf = async (
  store: Store,
  environment: string,
  connection: Connection | undefined,
  /** Whether the do-not-text list goes with them: no other environment uses it there. */
  withList: boolean,
): Promise<Movable[]> => {
  const ofNodes = [...(await nodesOf(store, environment))].flatMap((node) =>
    tables.flatMap((table) =>
      [...queueKinds, 'event-told', 'event-first'].map((kind): Movable => ({
        table,
        prefix: key(kind, node),
        // Without it, the next start rewrites the indexes, by the hashes of the other store.
        ...(kind === 'home' && { copy: () => [] }),
      })),
    ),
  );
  const ownSpaces = Buffer.from(`${environment}/`);
  // The other store writes its own.
  const indexes = ['number', 'member', 'held'].map((kind): Movable => ({
    table: timetable,
    prefix: Buffer.concat([key(kind), ownSpaces]),
    copy: () => [],
  }));
  const all = [
    ...ofNodes,
    ...indexes,
    movableRemembered(environment) as Movable,
    ...(withList ? [movableBlocked() as Movable] : []),
    movableGrants(environment, connection) as Movable,
  ];
  const found: Movable[] = [];
  for (const movable of all) if (await isThere(store, movable)) found.push(movable);
  return found;
};

/** Moves the records of an environment to the database, exactly once. Resolves with their number. */
export const moveToDatabase = async (
  from: Store,
  to: { readonly store: Store; readonly takeIn: (id: string) => Promise<Destination> },
  environment: string,
  connection: Connection | undefined,
  withList: boolean,
): Promise<number> => {
  const movables = (): Promise<Movable[]> => recordsOf(from, environment, connection, withList);
  const count = await moveRecords(from, environment, movables, to.takeIn);
  if (count > 0) await to.store.write([authorizationsChanged()]);
  return count;
};

/** The environment uses the file again: work that has gone to a database must not be done here as well. */
export const stayInFile = (store: Store, environment: string): Promise<void> =>
  stayHere(store, environment, () => recordsOf(store, environment, undefined, false));
