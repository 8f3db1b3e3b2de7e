import { endOf, key, type Operation, type Store } from '../state/store';
import { after, layout, type JobRecord, type recordKinds } from './layout';

type Kind = (typeof recordKinds)[number];

/** The job comes last: a start that is broken off leaves it, and the next one goes on. */
const moved: readonly Kind[] = ['message', 'items', 'steps', 'list', 'job'];
const dropped: readonly Kind[] = ['ended', 'reset', 'home', 'open'];
const movedAtOnce = 20;

/**
 * Moves waits to the table of requests when another type of node has accepted them under this id: nobody else would
 * find them. Their polls find nothing and go by themselves.
 */
export const moveRetypedWaits = async (store: Store, node: string, type: string): Promise<void> => {
  const range = { ...after(layout(node).jobs, undefined), limit: 1 };
  const [first] = await store.page<JobRecord<unknown, unknown>>('wait', range);
  if (!first || first.value.type === type) return;
  for (const kind of [...dropped, ...moved]) {
    const prefix = key(kind, node);
    for (;;) {
      const page = await store.page('wait', { from: prefix, to: endOf(prefix), limit: movedAtOnce });
      if (page.length === 0) break;
      await store.write(
        page.flatMap(({ key: at, value }): Operation[] => [
          { table: 'wait', remove: at },
          ...(moved.includes(kind) ? [{ table: 'work' as const, put: at, value }] : []),
        ]),
      );
    }
  }
};
