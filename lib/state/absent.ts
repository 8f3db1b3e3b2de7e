import type { Store, Table } from './store';

/** How long the data of a node that left the flow is kept, in case its id returns. */
const keptFor = 7 * 24 * 3600 * 1000;
const tables = ['journal', 'waits', 'homes'] as const;

/** Sorts right after the slash that ends a node's id. */
const afterSlash = '0';

const nodesIn = async (table: Table<unknown>): Promise<string[]> => {
  const ids: string[] = [];
  for (let key = await table.keyFrom(''); key !== undefined;) {
    const id = key.slice(0, key.indexOf('/'));
    ids.push(id);
    key = await table.keyFrom(id + afterSlash);
  }
  return ids;
};

/** A node inside a subflow has the id of the instance, a dash and its own: it exists while both do. */
const doesExist = (id: string, existing: ReadonlySet<string>): boolean =>
  existing.has(id) || id.split('-').every((part) => existing.has(part));

const removeAll = async (table: Table<unknown>, id: string): Promise<void> => {
  for (
    let key = await table.keyFrom(`${id}/`);
    key?.startsWith(`${id}/`);
    key = await table.keyFrom(`${id}/`)
  ) {
    await table.write([{ remove: key }]);
  }
};

/**
 * Called when flows have started, with the ids of all nodes that exist. Records of others are kept seven days from
 * when they were first missed, and are as they were if the id returns before that.
 */
export const forgetAbsent = async (
  store: Store,
  existing: ReadonlySet<string>,
  now: number,
): Promise<void> => {
  const absent = store.table<{ readonly since: number }>('absent');
  const missedSince = new Map<string, number>();
  for await (const [id, { since }] of absent.entries()) missedSince.set(id, since);

  const missing = new Set<string>();
  for (const name of tables) {
    const table = store.table(name);
    for (const id of await nodesIn(table)) {
      if (doesExist(id, existing)) continue;
      if (now - (missedSince.get(id) ?? now) > keptFor) await removeAll(table, id);
      else missing.add(id);
    }
  }
  for (const id of missing)
    if (!missedSince.has(id)) await absent.write([{ put: id, value: { since: now } }]);
  for (const id of missedSince.keys()) if (!missing.has(id)) await absent.write([{ remove: id }]);
};
