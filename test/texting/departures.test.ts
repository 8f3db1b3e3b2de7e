import { EventEmitter } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import should from 'should';
import { Departures } from '../../lib/runtime/departures';
import type { Tools } from '../../lib/runtime/flow-node';
import type { Job } from '../../lib/runtime/job';
import type { Kept } from '../../lib/runtime/kept';
import { Journal } from '../../lib/state/journal';
import { createMemoryStore } from '../../lib/state/memory';

describe('an outcome that comes while the flows stop', () => {
  const day = 24 * 3_600_000;
  let events: EventEmitter;
  let isFull: boolean;
  let departed: string[];
  let left: () => Promise<string[]>;
  let depart: () => Promise<void>;

  beforeEach(async () => {
    events = new EventEmitter();
    isFull = false;
    departed = [];
    const store = createMemoryStore();
    const table = store.table('journal');
    const write: typeof table.write = (writes) =>
      isFull ? Promise.reject(new Error('no space')) : table.write(writes);
    // What is to be written soon is lost, as in a kill.
    const killedSoon = { ...table, write, writeSoon: () => Promise.resolve() };
    const journal = new Journal<string, Kept>(
      { ...store, table: () => killedSoon as never },
      'node',
      Date.now,
    );
    const entry = journal.accept({ message: {}, recipients: ['a'] });
    await entry.begin(0);
    left = async () => {
      const resumed = await new Journal<string, Kept>(store, 'node', Date.now).resume(day);
      return resumed.flatMap(({ open }) =>
        open.map((todo) => (todo.what === 'tell' ? (todo.outcome.untold ? 'untold' : 'told') : todo.what)),
      );
    };
    const tools = { RED: { events, nodes: { getNode: () => undefined } }, node: { wires: [] } };
    const departures = new Departures(
      tools as unknown as Tools,
      () => false,
      () => departed.push('a fault'),
    );
    const job = { leave: () => departed.push('the outcome') };
    depart = async () => {
      departures.leave(job as unknown as Job, entry, 0, { port: 0, payload: {} });
      await nextTurn();
      await nextTurn();
    };
    // Somebody listens from here on.
    await depart();
    departed.length = 0;
  });

  it('waits for the next start, on record as not told until it leaves', async () => {
    events.emit('flows:stopping');
    await depart();
    should(departed).be.empty();
    should(await left()).deepEqual(['untold']);
    events.emit('flows:started');
    await nextTurn();
    await nextTurn();
    should(departed).deepEqual(['the outcome']);
    should(await left()).deepEqual(['told']);
  });

  it('leaves though the disk is full by then', async () => {
    events.emit('flows:stopping');
    await depart();
    isFull = true;
    events.emit('flows:started');
    await nextTurn();
    await nextTurn();
    should(departed).deepEqual(['a fault', 'the outcome']);
  });
});
