import { endOf, keptAfterRemoval, key, removeUnder, tables, type Store, type Table } from '../state/store';
import { forgetMemory } from './queue-memory';
import { pendingIn } from './queue-reader';
import { indexedUnder, queueKinds, records, timetable } from './records';
import { removeIndexed } from './repairs';

const indexedAtOnce = 1000;

const absentKey = (node: string): Buffer => key('absent', node);

/**
 * A node inside a subflow has the id of the instance, a dash and its own: it exists while both do, or while `existing`
 * has the instance with its dash, which means everything inside. Ids may have dashes.
 */
export const doesExist = (id: string, existing: ReadonlySet<string>): boolean => {
  if (existing.has(id)) return true;
  for (let dash = id.indexOf('-'); dash >= 0; dash = id.indexOf('-', dash + 1)) {
    if (existing.has(id.slice(0, dash + 1))) return true;
    if (existing.has(id.slice(0, dash)) && doesExist(id.slice(dash + 1), existing)) return true;
  }
  return false;
};

/** The ids under `prefix`, which follow it as texts. */
export const idsUnder = async (store: Store, table: Table, prefix: Buffer): Promise<string[]> => {
  const ids: string[] = [];
  for (let from = prefix; ;) {
    const [first] = await store.keys(table, { from, to: endOf(prefix), limit: 1 });
    if (!first) return ids;
    const id = first.toString('utf8', prefix.length, first.indexOf(0, prefix.length));
    ids.push(id);
    from = endOf(key(prefix, id));
  }
};

/**
 * The nodes of all processes on the same store, as each has reported. Undefined while a process has not reported its
 * nodes.
 */
export const existingEverywhere = async (
  store: Store,
  existing: ReadonlySet<string>,
  processes: () => number,
): Promise<ReadonlySet<string> | undefined> => {
  const { peers } = store;
  if (!peers) return existing;
  const all = key('present');
  await store.write([{ table: 'work', put: key('present', peers.processName), value: [...existing] }]);
  const everywhere = new Set<string>();
  let living = 0;
  for (const process of await idsUnder(store, 'work', all)) {
    const at = key('present', process);
    if (await peers.isAlive(process)) {
      living += 1;
      for (const id of (await store.get<readonly string[]>('work', at))?.value ?? []) everywhere.add(id);
    } else await store.write([{ table: 'work', remove: at }]);
  }
  return living < processes() ? undefined : everywhere;
};

/** The kinds of records that are work. */
const workKinds = ['item', 'wait', 'event-first'];

/** The nodes that have records of these kinds. */
const nodesOnRecord = async (store: Store, kinds: readonly string[]): Promise<Set<string>> => {
  const nodes = new Set<string>();
  for (const table of tables)
    for (const kind of kinds) for (const id of await idsUnder(store, table, key(kind))) nodes.add(id);
  return nodes;
};

/**
 * A living process that has all nodes with records in a store, where this process lacks one of them. Undefined when
 * this process has them all, or when there is no such process.
 */
export const betterHolderOf = async (
  store: Store,
  existing: ReadonlySet<string>,
): Promise<string | undefined> => {
  const nodes = [...(await nodesOnRecord(store, workKinds))];
  if (nodes.every((id) => doesExist(id, existing))) return undefined;
  for (const process of await idsUnder(store, 'work', key('present'))) {
    if (process === store.peers?.processName || !(await store.peers?.isAlive(process))) continue;
    const there = new Set((await store.get<readonly string[]>('work', key('present', process)))?.value);
    if (nodes.every((id) => doesExist(id, there))) return process;
  }
  return undefined;
};

/**
 * Called when flows have started, with the ids of all nodes that exist, disabled ones among them. Records of others are
 * kept seven days from when they were first missed, and are as they were if the id returns before that.
 */
export const forgetRemovedNodes = async (store: Store, existing: ReadonlySet<string>): Promise<void> => {
  const now = store.now();
  const onRecord = await nodesOnRecord(store, [...workKinds, 'home']);
  const missing = new Set([...onRecord].filter((id) => !doesExist(id, existing)));

  for (const id of await idsUnder(store, 'work', key('absent'))) {
    if (missing.has(id)) continue;
    const since = (await store.get<number>('work', absentKey(id)))?.value ?? 0;
    // Other processes may still have records of the node to remove.
    const isLeftToOthers = store.peers && !doesExist(id, existing) && now - since < 2 * keptAfterRemoval;
    if (!isLeftToOthers) await store.write([{ table: 'work', remove: absentKey(id) }]);
  }

  for (const id of missing) {
    const since = await store.get<number>('work', absentKey(id));
    if (!since) await store.write([{ table: 'work', put: absentKey(id), value: now }]);
    else if (now - since.value >= keptAfterRemoval) {
      await removeIndexed(store, (item) => item.node === id);
      for (const table of tables)
        for (const kind of [...queueKinds, 'event-told', 'event-first'])
          await removeUnder(store, table, key(kind, id));
      forgetMemory(store, id);
    }
  }
};

/** How many texts have not left nodes that do not run, and how much is for environments that do not run. */
export const countPaused = async (store: Store, running: ReadonlySet<string>): Promise<number> => {
  const isRunning = (id: string): boolean => doesExist(id, running);
  let count = 0;
  for (const node of await idsUnder(store, records, key('item')))
    if (!isRunning(node)) count += (await pendingIn(store, node)).items;
  for (const kind of ['number', 'held'])
    for (const space of await idsUnder(store, timetable, key(kind))) {
      const [environment = ''] = space.split('/');
      if (isRunning(environment)) continue;
      for await (const found of indexedUnder(store, key(kind, space), indexedAtOnce))
        count += found.filter(({ node }) => kind === 'number' || isRunning(node)).length;
    }
  return count;
};
