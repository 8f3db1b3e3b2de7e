import assert from 'node:assert/strict';
import { handOver, type Claim } from '../../../lib/outbox/hand-over';
import { CommitQueue } from '../../../lib/state/commit-queue';
import { createMemoryStore, MemoryEngine } from '../../../lib/state/memory';
import { TakenOver, Store, type Engine } from '../../../lib/state/store';
import { environmentOn } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { gate } from '../../support/gate';
import { until } from '../../support/until';
import { Instance } from '../../support/instance';
import { checkFolder, sendFolder } from '../../support/texting/setup';
import {
  acceptMany,
  acceptOne,
  claimOf,
  nobodys,
  requestsOn,
  type Host,
} from '../../support/outbox/requests';
import { peers } from '../../support/state/peers';
import { overStore } from '../../support/state/over-store';

const items = [Buffer.from('item\0'), Buffer.from('item\x01')] as const;

/** A node that sends its input; `told` has its outcomes. */
const nodeOn = (
  store: Store,
  work: Host['work'] = async (item) => {
    await item.start();
    return 'sent';
  },
) => {
  const told: { outcome: string; repeated: boolean; isLast: boolean }[] = [];
  const faults: unknown[] = [];
  const emitted: ((offer: number) => void)[] = [];
  const emit: Host['emit'] = async (_job, _item, { outcome, repeated, isLast, offer = 0 }) => {
    told.push({ outcome, repeated, isLast });
    for (const each of emitted) each(offer);
    return true;
  };
  const fault: Host['fault'] = (thrown) => {
    if (!(thrown instanceof TakenOver)) faults.push(thrown);
  };
  const outbox = requestsOn(store, { work, emit, fault }, { width: 4 });
  const accept = (count: number, claim?: Claim): void => {
    acceptMany(outbox, count, claim);
  };
  return { outbox, told, faults, accept, emitted };
};

const noClaim = { conclude: () => undefined, keep: () => undefined, hold: () => undefined };

/** A store whose writes are rejected from the first on. */
const lost = (isInDoubt: boolean): Store =>
  overStore(createMemoryStore(), {
    write: () => Promise.reject(new TakenOver(isInDoubt)),
  });

describe('a message that a node accepts while another process takes its store over', () => {
  for (const count of [1, 3, 250])
    it(`leaves as not carried out if it was not saved: ${count}`, async () => {
      let sent = 0;
      const node = nodeOn(lost(false), async (item) => {
        await item.start();
        sent += 1;
        return 'sent';
      });
      await node.outbox.start();
      node.accept(count);
      await until(() => node.told.length === count);
      assert.deepEqual(new Set(node.told.map(({ outcome }) => outcome)), new Set(['refused']));
      assert.equal(node.told.filter(({ isLast }) => isLast).length, 1);
      await node.outbox.close();
      assert.equal(node.told.length, count);
      assert.equal(sent, 0);
      assert.deepEqual(node.faults, []);
    });

  for (const count of [1, 250])
    it(`leaves as not carried out if its node has gone on with another store by then: ${count}`, async () => {
      const [asked, heard] = [gate(), gate()];
      const write = async (): Promise<never> => {
        asked.open();
        await heard.opened;
        throw new TakenOver(false);
      };
      const node = nodeOn(overStore(createMemoryStore(), { write }));
      await node.outbox.start();
      node.accept(count);
      await asked.opened;
      const closed = node.outbox.close();
      heard.open();
      await closed;
      assert.deepEqual(new Set(node.told.map(({ outcome }) => outcome)), new Set(['refused']));
      assert.equal(node.told.length, count);
    });

  it('leaves as unknown if it may be saved', async () => {
    const node = nodeOn(lost(true));
    await node.outbox.start();
    node.accept(1);
    await until(() => node.told.length === 1);
    assert.equal(node.told[0]?.outcome, 'taken_over');
  });

  it('does not leave if it came from a node whose outcome the other process emits again', async () => {
    const node = nodeOn(lost(false));
    await node.outbox.start();
    node.accept(1, { ...noClaim, store: node.outbox.store });
    await node.outbox.close();
    assert.deepEqual(node.told, []);
  });
});

describe('a list that the store rejects', () => {
  it('leaves as not carried out, and what came after it is sent', async () => {
    const memory = createMemoryStore();
    const write: Store['write'] = (operations, ...more) =>
      JSON.stringify(operations).includes('unwelcome')
        ? Promise.reject(new Error('full'))
        : memory.write(operations, ...more);
    const node = nodeOn(overStore(memory, { write }));
    await node.outbox.start();
    const items = Array.from({ length: 250 }, (_, index) => ({ index }));
    const message = { payload: 'unwelcome' };
    let concluded = 0;
    const conclude = (): undefined => {
      concluded += 1;
    };
    const claim = { ...noClaim, store: node.outbox.store, conclude };
    node.outbox.accept(message, { shared: nobodys, items, count: items.length }, undefined, claim);
    node.accept(1);
    for (let turns = 0; turns < 1000 && node.told.length < 251; turns++) await nextIteration();
    const outcomes = node.told.map(({ outcome }) => outcome).sort();
    assert.deepEqual(outcomes, [...items.map(() => 'refused'), 'sent']);
    assert.equal(concluded, 1);
    assert.equal(node.faults.length, 1);
    await node.outbox.close();
  });
});

/** Two parts of one database, and the parts that each of its commits changed. */
const twoParts = () => {
  const commits: ReadonlySet<number>[] = [];
  const engines = [new MemoryEngine(), new MemoryEngine()];
  const queue = new CommitQueue({
    apply: async (batch) => {
      const changes = batch.begin(() => undefined);
      commits.push(new Set(changes.map(({ key }) => key[0] ?? 0)));
      for (const [part, { commits, fence }] of engines.entries()) {
        const own = changes.filter(({ key }) => key[0] === part);
        const bare = own.map((change) => ({ ...change, key: change.key.subarray(1) }));
        await commits.add({ fences: [fence], changes: bare, conditions: [] });
      }
      return true;
    },
  });
  const [left, own] = engines.map((engine, part) => {
    const fullKey = (key: Buffer): Buffer => Buffer.concat([Buffer.of(part), key]);
    const over = Object.assign(Object.create(engine) as MemoryEngine, {
      commits: queue,
      peers: peers(),
      fence: { isLost: false },
      fullKey,
    });
    return new Store(over);
  });
  if (!left || !own) throw new Error('two parts');
  return { left, own, commits };
};

describe('what a stopped process has left', () => {
  it('leaves as unknown when commits were lost, whatever the record says', async () => {
    const memory = createMemoryStore();
    const never = new Promise<string>(() => undefined);
    const before = nodeOn(memory, () => never);
    await before.outbox.start();
    before.accept(1);
    before.accept(3);
    while ((await memory.count('work', ...items)) < 4) await nextIteration();
    const store: Store = overStore(memory, { peers: peers({ isInDoubt: () => true }) });
    const after = nodeOn(store);
    await after.outbox.start();
    await until(() => after.told.length === 4);
    assert.deepEqual(new Set(after.told.map(({ outcome }) => outcome)), new Set(['unknown']));
    assert.ok(after.told.every(({ repeated }) => repeated));
  });

  it('is emitted there in one commit with its acceptance by the next node here', async () => {
    const { left, own, commits } = twoParts();
    const first = nodeOn(left);
    const second = nodeOn(own);
    await Promise.all([first.outbox.start(), second.outbox.start()]);
    // A start saves where its node works.
    await Promise.all([left.flush(), own.flush()]);
    await until(() => left.engine.commits.unwritten === 0);
    commits.length = 0;
    first.emitted.push((offer) => {
      const msg = {};
      handOver.mark(msg, msg, { id: 'node' }, offer);
      second.accept(1, claimOf(msg));
    });
    first.accept(1);
    await until(() => second.told.length === 1);
    assert.equal(commits.filter((parts) => parts.size === 2).length, 1);
    assert.equal(await left.count('work', ...items), 0);
    await Promise.all([first.outbox.close(), second.outbox.close()]);
  });

  it('is not sent here if its emission could not be saved, and what was saved with it goes on', async () => {
    const { left, own } = twoParts();
    let sent = 0;
    const first = nodeOn(left);
    const second = nodeOn(own, async (item) => {
      await item.start();
      sent += 1;
      return 'sent';
    });
    await Promise.all([first.outbox.start(), second.outbox.start()]);
    await Promise.all([left.flush(), own.flush()]);
    await until(() => left.engine.commits.unwritten === 0);
    first.emitted.push((offer) => {
      const msg = {};
      handOver.mark(msg, msg, { id: 'node' }, offer);
      Object.assign(left.engine.fence, { isLost: true });
      second.accept(1, claimOf(msg));
      second.accept(2);
    });
    first.accept(1);
    await until(() => second.told.length >= 2);
    await second.outbox.close();
    assert.deepEqual(
      [sent, second.told.map(({ outcome }) => outcome), second.faults],
      [2, ['sent', 'sent'], []],
    );
    await first.outbox.close();
  });
});

describe('a node whose store', () => {
  /** The outcome of a text, and what the node has reported by then. */
  const outcomeWith = async (
    store: Promise<Store>,
    folder: ConstructorParameters<typeof Instance>[0] = sendFolder,
    config = {},
  ): Promise<readonly [code: unknown, errors: number]> => {
    const service = { baseUrl: 'http://127.0.0.1:9/v1', apiKey: 'key', token: () => 'token' };
    const environment = environmentOn(service, { settings: { journal: true } });
    const node = new Instance(folder, { ...environment, store: () => store }, config);
    const [left] = await node.ask({ phone: '+12025550101', text: 'Hello' });
    await node.close();
    return [(left?.msg.error as { code?: unknown } | undefined)?.code, node.errors.length];
  };

  it('belongs to another process now says that nothing was sent, and may be later', async () => {
    assert.deepEqual(await outcomeWith(Promise.resolve(lost(false))), ['network_error', 0]);
  });

  it('was taken over as it was opened says the same, and reports no error', async () => {
    assert.deepEqual(await outcomeWith(Promise.reject(new TakenOver(false))), ['network_error', 0]);
  });

  it('was taken over as it was opened says the same for a wait', async () => {
    const store = Promise.reject(new TakenOver(false));
    assert.deepEqual(await outcomeWith(store, checkFolder, { mode: 'wait' }), ['network_error', 0]);
  });

  it('cannot be opened reports that', async () => {
    assert.deepEqual(await outcomeWith(Promise.reject(new Error('broken'))), ['internal_error', 1]);
  });
});

/** The store of process *one*: while *two* has it, writes are refused, and reads are answered once that has ended. */
const storeThatIsTaken = () => {
  const base = createMemoryStore();
  const shared = { owner: 'one' as 'one' | 'two' | 'one again', ended: gate() };
  const reading = async (): Promise<void> => (shared.owner === 'two' ? shared.ended.opened : undefined);
  const engine: Partial<Engine> = {
    get losses() {
      return shared.owner === 'one' ? 0 : 1;
    },
  };
  const changes: Partial<Store> = {
    write: (...args) => (shared.owner === 'two' ? Promise.reject(new TakenOver(false)) : base.write(...args)),
    get: (...args) => reading().then(() => base.get(...args)),
    keys: (...args) => reading().then(() => base.keys(...args)),
  };
  return { base, own: overStore(base, changes, engine), shared };
};

describe('a process that another one took for dead', () => {
  it('sends nothing that the other has sent, and the rest once that one has ended', async () => {
    const { base, own, shared } = storeThatIsTaken();
    const sent: string[] = [];
    const answer = gate();
    const one = requestsOn(
      own,
      {
        work: async (item) => {
          await item.start();
          sent.push(`one ${String(item.data.phone)}`);
          await answer.opened;
          return 'sent';
        },
        emit: async () => true,
        fault: () => undefined,
      },
      { width: 1 },
    );
    await one.start();
    for (const phone of ['a', 'b', 'c', 'd', 'e', 'f']) acceptOne(one, phone);
    await until(() => sent.length === 2);
    for (let turns = 0; turns < 5; turns++) await nextIteration();
    shared.owner = 'two';
    const two = requestsOn(overStore(base), {
      work: async (item) => {
        if (item.data.phone === 'f') return undefined;
        await item.start();
        sent.push(`two ${String(item.data.phone)}`);
        return 'sent';
      },
      emit: async () => true,
    });
    await two.start();
    await until(() => sent.length === 5);
    await two.close();
    shared.owner = 'one again';
    shared.ended.open();
    answer.open();
    await until(() => sent.length > 5);
    for (let turns = 0; turns < 20; turns++) await nextIteration();
    assert.deepEqual(sent, ['one a', 'one b', 'two c', 'two d', 'two e', 'one f']);
    await one.close();
  });

  it('counts what the other has emitted of a list, so that its records go', async () => {
    const { base, own, shared } = storeThatIsTaken();
    const [slow, quick] = [gate(), gate()];
    let isLastSeen = false;
    let started = 0;
    const one = requestsOn(
      own,
      {
        work: async (item) => {
          await item.start();
          started += 1;
          if (shared.owner === 'one') await (item.data.index === 0 ? slow : quick).opened;
          return 'sent';
        },
        emit: async (_job, _item, { isLast }) => {
          isLastSeen ||= isLast;
          return true;
        },
        fault: () => undefined,
      },
      { width: 1 },
    );
    await one.start();
    acceptMany(one, 4);
    await until(() => started === 2);
    for (let turns = 0; turns < 5; turns++) await nextIteration();
    shared.owner = 'two';
    let told = 0;
    const two = requestsOn(overStore(base), {
      work: async (item) => (item.data.index === 3 ? undefined : 'sent'),
      emit: async () => {
        told += 1;
        return true;
      },
    });
    await two.start();
    await until(() => told === 3);
    await two.close();
    shared.owner = 'one again';
    shared.ended.open();
    // The first request is still in flight.
    quick.open();
    const left = (): Promise<number> => base.count('work', Buffer.from('item'), Buffer.from('list\x01'));
    await until(async () => (await left()) === 0);
    assert.ok(isLastSeen);
    slow.open();
    await one.close();
  });
});
