import { mock } from 'node:test';
import helper from 'node-red-node-test-helper';
import should from 'should';
import { closeLimit, systemClock } from '../../../lib/service/clock';
import { createMemoryStore } from '../../../lib/state/memory';
import { key, storeClosed, type Store } from '../../../lib/state/store';
import { alsoClose, closeAll } from '../../support/closing';
import { environmentOn, type TestEnvironment } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { Flow, type Arrived } from '../../support/flow';
import { errorOf, inOrder } from '../../support/outcomes';
import { sent } from '../../support/sent';
import { startServer } from '../../support/server';
import { sendNode } from '../../support/texting/setup';
import { overStore } from '../../support/state/over-store';

const phones = ['+12025550141', '+12025550142', '+12025550143'];

/** A store that can be full: then writes wait, as in the embedded one. */
const limitedStore = () => {
  const kept = createMemoryStore();
  let room = Promise.resolve();
  let makeRoom = (): void => undefined;
  const disk = {
    fill(): void {
      room = new Promise((resolve) => (makeRoom = resolve));
    },
    clear: () => {
      makeRoom();
    },
  };
  const write: Store['write'] = async (...writes) => {
    await room;
    return kept.write(...writes);
  };
  const home = key('home');
  const all = { from: Buffer.alloc(0), to: Buffer.alloc(8, 0xff), limit: 1000 };
  /** The records that are left, without the one that says where the node works. */
  const left = async (): Promise<number> => {
    const found = await kept.page('work', all);
    return found.filter(({ key: at }) => !at.subarray(0, home.length).equals(home)).length;
  };
  return { disk, left, store: overStore(kept, { write }) };
};

const seen = (arrived: readonly Arrived[]): (string | number)[] =>
  inOrder(arrived).map(({ port, msg }) => (port === 1 ? errorOf(msg).code : port));

describe('send text, when something goes wrong', () => {
  afterEach(async () => {
    mock.restoreAll();
    await Flow.unload();
    await closeAll();
  });

  const environment = (url: string, store: Store): TestEnvironment =>
    alsoClose(
      environmentOn(
        { baseUrl: `${url}/v1`, apiKey: 'key', token: () => 'token' },
        { store, settings: { journal: true, maxConcurrent: 1 } },
      ),
    );
  const noting = (): unknown[] => {
    const reported: unknown[] = [];
    helper.getNode('send')?.on('call:error', (call: { args: unknown[] }) => reported.push(call.args[0]));
    return reported;
  };

  it('loses nothing that waits for a store in trouble when a deploy closes its node, and sends it to no other service', async () => {
    const server = await startServer(() => ({ body: { successes: [{ messageId: 1 }], failures: [] } }));
    const away = (): TestEnvironment => ({
      ...environment(server.url, createMemoryStore()),
      trouble: 'The database is away.',
      store: () => new Promise(() => undefined),
    });
    const stuck = await sendNode(away());
    for (const phone of phones) stuck.send({ phone, text: 'Hi' });
    await Flow.unload();
    await sendNode(away());
    await Flow.unload();
    const flow = await sendNode(environment(server.url, createMemoryStore()));
    should((await flow.arrivals.next(phones.length)).map(({ port }) => port)).deepEqual([0, 0, 0]);
    should(server.received).have.length(phones.length);
    await Flow.unload();

    (await sendNode(away())).send({ phone: phones[0], text: 'Hi' });
    await Flow.unload();
    const elsewhere = await startServer(() => ({ body: { successes: [{ messageId: 1 }], failures: [] } }));
    const moved = await sendNode(environment(elsewhere.url, createMemoryStore()));
    should((await moved.arrivals.next(1)).map(({ msg }) => errorOf(msg).code)).deepEqual(['cancelled']);
    should(elsewhere.received).be.empty();
    await Flow.unload();

    (await sendNode(away())).send({ phone: phones[0], text: 'Hi' });
    await Flow.unload();
    const again = environment(server.url, createMemoryStore());
    const late = await sendNode({ ...again, settings: { ...again.settings, resumeWithin: -1 } });
    should((await late.arrivals.next(1)).map(({ msg }) => errorOf(msg).code)).deepEqual(['stale']);
  });

  it('reports no closed store as a fault: the next start finds what a deploy did not wait for', async () => {
    const kept = createMemoryStore();
    let isClosed = false;
    const write: Store['write'] = (...writes) =>
      isClosed ? Promise.reject(storeClosed()) : kept.write(...writes);
    const server = await startServer(() => {
      isClosed = true;
      return { body: sent };
    });
    const store = overStore(kept, { write });
    const flow = await sendNode(environment(server.url, store));
    const reported = noting();
    flow.send({ phone: phones[0], text: 'Hi' });
    while (!isClosed) await nextIteration();
    for (let turns = 0; turns < 100; turns++) await nextIteration();
    should(reported).deepEqual([]);
  });

  it('continues with the list if one outcome could not be emitted', async () => {
    const server = await startServer(() => ({ body: sent }));
    const { store } = limitedStore();
    const flow = await sendNode(environment(server.url, store));
    const reported = noting();
    await flow.ask({ phone: phones[0], text: 'Hi' });
    let reads = 0;
    const fragile = {
      // Read once to be saved, then for each emitted message.
      get part() {
        reads += 1;
        if (reads === 3) throw new Error('cannot be copied');
        return 1;
      },
    };
    const arrived = await flow.ask({ phone: phones, text: 'Hi', fragile }, 2);
    should(inOrder(arrived).map(({ msg }) => msg.phone)).deepEqual([phones[0], phones[2]]);
    should(server.received).have.length(4);
    should(reported).have.length(1);
    should(String(reported[0])).match(/cannot be copied/);
  });

  describe('on a full disk', () => {
    it('warns of messages that a close could not wait for: they are lost if Node-RED stops', async () => {
      const server = await startServer(() => ({ body: sent }));
      const { disk, store } = limitedStore();
      const flow = await sendNode(environment(server.url, store));
      await flow.ask({ phone: phones[0], text: 'Hi' });
      disk.fill();
      for (const phone of phones) flow.send({ phone, text: 'Hi' });
      for (let turn = 0; turn < 50; turn++) await nextIteration();
      const warned: unknown[] = [];
      Object.assign(helper.getNode('send') ?? {}, { warn: (text: unknown) => warned.push(text) });
      const { after } = systemClock;
      mock.method(systemClock, 'after', (ms: number, task: () => void) =>
        after(ms === closeLimit ? 0 : ms, task),
      );
      await Flow.unload();
      disk.clear();
      should(warned).deepEqual([
        'Messages that could not be saved: 3. Nothing was sent for them, and they are lost if Node-RED stops now.',
      ]);
      should(server.received).have.length(1);
    });

    it('sends nothing that is not saved, and resumes by itself when there is space', async () => {
      const server = await startServer(() => ({ body: sent }));
      const { disk, store, left } = limitedStore();
      const flow = await sendNode(environment(server.url, store));
      await flow.ask({ phone: phones[0], text: 'Hi' });
      disk.fill();
      const coming = flow.arrivals.next(3);
      flow.send({ phone: phones, text: 'Hi' });
      for (let turn = 0; turn < 50; turn++) await nextIteration();
      should(server.received).have.length(1);

      disk.clear();
      should(seen(await coming)).deepEqual([0, 0, 0]);
      should(server.received).have.length(4);
      await Flow.unload();
      should(await left()).equal(0);
    });

    it('emits outcomes once they are saved', async () => {
      const { disk, store } = limitedStore();
      const server = await startServer(() => {
        disk.fill();
        return { body: sent };
      });
      const flow = await sendNode(environment(server.url, store));
      flow.send({ phone: phones[0], text: 'Hi' });
      while (server.received.length === 0) await nextIteration();
      for (let turn = 0; turn < 50; turn++) await nextIteration();
      should(flow.arrivals.all).be.empty();
      disk.clear();
      const [arrived] = await flow.arrivals.next();
      should(arrived?.port).equal(0);
    });

    it('rejects new messages when too many wait for space, and says so', async () => {
      const server = await startServer(() => ({ body: sent }));
      const { store } = limitedStore();
      store.engine.commits.unwritten = 64 * 1024 * 1024;
      const flow = await sendNode(environment(server.url, store));
      const [arrived] = await flow.ask({ phone: phones[0], text: 'Hi' });
      should(arrived?.port).equal(1);
      should(errorOf(arrived?.msg ?? {}).code).equal('queue_full');
      should(server.received).be.empty();
    });
  });
});
