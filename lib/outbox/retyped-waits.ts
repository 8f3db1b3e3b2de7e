import type { Operation, Store } from '../state/store';
import { after, arrivalIn, layout, type JobRecord } from './layout';
import { OpenJob, type OutboxItem } from './open-job';
import { keysOf, records, timetable, type ListRecord } from './records';

/** Moves waits into the queue when another type of node has accepted them under this id: nobody else would find them. */
export const moveRetypedWaits = async (store: Store, node: string, type: string): Promise<void> => {
  const [old, keys] = [layout(node), keysOf(node)];
  for (;;) {
    const range = { ...after(old.jobs, undefined), limit: 1 };
    const [first] = await store.page<JobRecord<OutboxItem, unknown>>('wait', range);
    if (!first || first.value.type === type) return;
    const arrival = arrivalIn(first.key);
    const job = OpenJob.found<OutboxItem, unknown, unknown>('wait', old, arrival, first.value);
    const operations: Operation[] = [];
    for (let number = 0; number < job.pageCount; number++) {
      const page = await job.page(store, number);
      for (const item of page.items) {
        if (page.told.has(item.index)) continue;
        operations.push(
          { table: records, put: keys.item(arrival, item.index), value: { state: 'accepted', item } },
          { table: timetable, put: keys.due(1, 0, arrival, item.index), value: 0 },
        );
      }
      operations.push({ table: 'wait', remove: old.steps(arrival, number) });
    }
    const { single: _, told, ...shared } = first.value;
    const list: ListRecord<unknown> = { ...shared, isComplete: true };
    await store.write([
      ...operations,
      { table: records, put: keys.list(arrival), value: list },
      { table: records, put: keys.message(arrival), value: job.message },
      { table: records, put: keys.counts(arrival), value: told },
      ...[old.message(arrival), old.list(arrival), old.open].map((remove): Operation => ({
        table: 'wait',
        remove,
      })),
      { table: 'wait', remove: first.key },
    ]);
  }
};
