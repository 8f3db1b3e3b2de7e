import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { forgetRemovedNodes } from '../../../lib/outbox/removed-nodes';
import { recommended } from '../../../lib/consent/pace';
import { createMemoryStore } from '../../../lib/state/memory';
import { endOf, key, keptAfterRemoval, type Store } from '../../../lib/state/store';
import type { Red } from '../../../lib/runtime/red';
import type { RunningEnvironment } from '../../../nodes/environment/environment';
import { forgetRemoved } from '../../../nodes/environment/removed-data';
import { runningOf } from '../../../nodes/environment/running';
import type { Services } from '../../../nodes/environment/services';
import { until } from '../../support/until';
import { requestsOn } from '../../support/outbox/requests';
import { overStore } from '../../support/state/over-store';

describe('the records of deleted nodes', () => {
  let now: number;
  let store: Store;
  beforeEach(async () => {
    now = Date.UTC(2027, 0, 4);
    store = createMemoryStore({ clock: { now: () => now } });
    const put = (...parts: readonly string[]) => ({ table: 'work', put: key(...parts), value: 0 }) as const;
    await store.write([
      put('item', 'send', 'one'),
      put('due', 'send', 'one'),
      put('home', 'idle'),
      put('event-first', 'events'),
      put('event-told', 'events', 'ann'),
      put('event-first', 'other'),
      put('event-told', 'other', 'ann'),
    ]);
  });

  const left = async (kind: string, node: string): Promise<number> => {
    const of = key(kind, node);
    return store.count('work', of, endOf(of));
  };
  const gone = new Set(['other']);

  it('are kept for seven days, then removed: queued texts, and what an events node has reported', async () => {
    await forgetRemovedNodes(store, gone);
    now += keptAfterRemoval - 1;
    await forgetRemovedNodes(store, gone);
    for (const [kind, node] of [
      ['due', 'send'],
      ['event-told', 'events'],
      ['home', 'idle'],
    ] as const)
      should(await left(kind, node)).equal(1);
    now += 1;
    await forgetRemovedNodes(store, gone);
    for (const kind of ['item', 'due']) should(await left(kind, 'send')).equal(0);
    should(await left('home', 'idle')).equal(0);
    for (const kind of ['event-first', 'event-told']) {
      should(await left(kind, 'events')).equal(0);
      should(await left(kind, 'other')).equal(1);
    }
  });

  it('include what finds their waits by number, of single messages and of lists', async () => {
    const queue = requestsOn(
      store,
      { work: () => Promise.reject(new Error('none starts')), emit: async () => true },
      { node: 'check' },
    );
    const people = [101, 102].map((n, index) => ({ index, phone: `+12025550${String(n)}` }));
    for (const items of [people, people.slice(0, 1)])
      queue.accept({}, { shared: { advisor: 'default', pace: recommended }, items, count: items.length });
    await queue.close();
    const found = (): Promise<number> => store.count('wait', key('number'), endOf(key('number')));
    should(await found()).equal(3);
    await forgetRemovedNodes(store, gone);
    now += keptAfterRemoval;
    await forgetRemovedNodes(store, gone);
    should(await found()).equal(0);
    should(await left('wait', 'check')).equal(0);
  });

  it('are kept while the node exists, also inside a subflow and with dashes in its id', async () => {
    const ids = ['use-inside', 'a-use-b-inside', 'use-gone'];
    await store.write(ids.map((id) => ({ table: 'work', put: key('item', id, 'one'), value: 0 })));
    const existing = new Set(['other', 'events', 'send', 'use', 'inside', 'a-use', 'b-inside']);
    await forgetRemovedNodes(store, existing);
    now += keptAfterRemoval;
    await forgetRemovedNodes(store, existing);
    should(await Promise.all(ids.map((id) => left('item', id)))).deepEqual([1, 1, 0]);
  });

  describe('of a subflow that is a module, which no flow has', () => {
    let userDir: string;
    let inFlow: object[];
    let running: Partial<RunningEnvironment>[];
    let forgotten: ReadonlySet<string>[];
    const reported: ReadonlySet<string>[] = [];
    const forgetRemovedNodes = (existing: ReadonlySet<string>) => reported.push(existing);
    before(() => {
      userDir = mkdtempSync(join(tmpdir(), 'advisor-texting-removed-'));
      mkdirSync(join(userDir, 'advisor-texting'));
      writeFileSync(join(userDir, 'advisor-texting', 'store.mdb'), '');
    });
    after(() => {
      rmSync(userDir, { recursive: true });
    });
    beforeEach(() => {
      inFlow = [
        { id: 'use', type: 'compliance', d: true },
        { id: 'e', type: 'advisor-environment' },
      ];
      running = [{ id: 'e', nodeId: 'e' }];
      forgotten = [];
      reported.splice(0);
    });

    /** What happens when flows have started. */
    const look = (): void => {
      const eachNode = (see: (node: object) => void): void => inFlow.forEach(see);
      const RED = { nodes: { eachNode }, settings: { userDir } } as unknown as Red;
      for (const each of running)
        runningOf(RED).add({ ...each, forgetRemovedNodes } as unknown as RunningEnvironment);
      const vault = {
        use: async (task: () => Promise<void>) => task(),
        forgetMissing: async (existing: ReadonlySet<string>) => forgotten.push(new Set(existing)),
      };
      const openStore = async (): Promise<Store> => overStore(store, { close: () => Promise.resolve() });
      const log = { warn: console.error };
      forgetRemoved(RED, { vault, openStore, log } as unknown as Services);
    };

    it('are kept for its nodes, even if it is disabled', async () => {
      await store.write([{ table: 'work', put: key('item', 'use-inside', 'one'), value: 0 }]);
      look();
      await until(async () => (await left('absent', 'events')) === 1);
      now += keptAfterRemoval;
      look();
      await until(async () => (await left('event-told', 'events')) === 0);
      should(await left('item', 'use-inside')).equal(1);
      should(await left('item', 'send')).equal(0);
      for (const existing of reported) should([...existing].sort()).deepEqual(['e', 'use-']);
    });

    it('are kept for its environment while a use of it is in the flow, even if that is disabled', async () => {
      const lookFor = async (): Promise<boolean> => {
        const before = forgotten.length;
        look();
        await until(() => forgotten.length > before);
        return forgotten.at(-1)?.has('inside') === true;
      };
      running.push({ id: 'inside', nodeId: 'use-inside' }, { id: 'inside', nodeId: 'second-inside' });
      inFlow.push({ id: 'second', type: 'compliance' });
      should(await lookFor()).be.true();
      // Both are disabled, then one is deleted, then the other.
      running.splice(1);
      should(await lookFor()).be.true();
      inFlow.shift();
      should(await lookFor()).be.true();
      inFlow.pop();
      should(await lookFor()).be.false();
    });
  });

  it('are kept unchanged if the node returns', async () => {
    await forgetRemovedNodes(store, gone);
    now += keptAfterRemoval - 1;
    await forgetRemovedNodes(store, new Set(['other', 'events', 'send']));
    now += 1;
    await forgetRemovedNodes(store, gone);
    should(await left('event-told', 'events')).equal(1);
    should(await left('item', 'send')).equal(1);
  });
});
