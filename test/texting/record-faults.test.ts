import { setImmediate as nextTurn } from 'node:timers/promises';
import helper from 'node-red-node-test-helper';
import should from 'should';
import { createMemoryStore } from '../../lib/state/memory';
import type { Store } from '../../lib/state/store';
import { alsoClose, closeAll, startServer } from '../service/support';
import { environmentOn, type TestEnvironment } from '../support/environment';
import { Flow, type Arrived } from '../support/flow';
import { errorOf, inOrder, sendNode } from './setup';

const sent = { successes: [{ messageId: 9, memberId: 4 }], failures: [] };
const phones = ['+12025550141', '+12025550142', '+12025550143'];

/** A store that can be full: then it throws as the embedded one does, or rejects as one on another machine would. */
const limitedStore = (how: 'throws' | 'rejects') => {
  const kept = createMemoryStore();
  const disk = { isFull: false };
  const table: Store['table'] = (name) => {
    const whole = kept.table<never>(name);
    const write: typeof whole.write = (writes) => {
      if (!disk.isFull) return whole.write(writes);
      const fault = new Error('no space left');
      if (how === 'throws') throw fault;
      return Promise.reject(fault);
    };
    return { ...whole, write };
  };
  const left = async (): Promise<string[]> => {
    const keys: string[] = [];
    for await (const [key] of kept.table('journal').entries()) keys.push(key);
    return keys;
  };
  return { disk, left, store: { ...kept, table } };
};

const seen = (arrived: readonly Arrived[]): (string | number)[] =>
  inOrder(arrived).map(({ port, msg }) => (port === 1 ? errorOf(msg).code : port));

describe('send text, when something goes wrong', () => {
  afterEach(async () => {
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

  it('goes on with the list though one of it could not be told', async () => {
    const server = await startServer(() => ({ body: sent }));
    const { store } = limitedStore('throws');
    const flow = await sendNode(environment(server.url, store));
    const reported = noting();
    const fragile = {
      get part() {
        if (server.received.length === 2) throw new Error('cannot be copied');
        return 1;
      },
    };
    const arrived = await flow.ask({ phone: phones, text: 'Hi', fragile }, 2);
    should(inOrder(arrived).map(({ msg }) => msg.phone)).deepEqual([phones[0], phones[2]]);
    should(server.received).have.length(3);
    should(reported.map(String)).matchEach(/cannot be copied/);
    should(reported).have.length(1);
  });

  describe('after another version', () => {
    type Job = Record<string, unknown>;
    const change = async (store: Store, alter: (key: string, job: Job) => [key: string, value: Job]) => {
      const table = store.table<Job>('journal');
      for await (const [key, job] of table.entries()) {
        if (!('message' in job)) continue;
        const [put, value] = alter(key, job);
        await table.write([{ put, value }]);
        return key;
      }
      return '';
    };
    const twoPutOff = async (store: Store) => {
      const server = await startServer(({ index }) =>
        index === 0 ? { status: 429, headers: { 'retry-after': '300' } } : { body: sent },
      );
      const before = await sendNode(environment(server.url, store));
      for (const phone of phones.slice(0, 2)) before.send({ phone, text: 'Hi' });
      while (before.statuses.length === 0) await nextTurn();
      await Flow.unload();
      return server;
    };

    it('leaves on record a message that it cannot take up, says so, and goes on with the others', async () => {
      const { store, left } = limitedStore('throws');
      const server = await twoPutOff(store);
      const strange = await change(store, (key, job) => [
        key,
        { ...job, context: { of: 'another version' } },
      ]);

      const after = await sendNode(environment(server.url, store));
      const reported = noting();
      const [arrived] = await after.arrivals.next();
      should(arrived?.msg.phone).equal(phones[1]);
      should(server.received).have.length(2);
      should(reported).have.length(1);
      await Flow.unload();
      should(await left()).containEql(strange);
    });

    it('tells an outcome that it does not know as unknown', async () => {
      const { store, left } = limitedStore('throws');
      const server = await twoPutOff(store);
      await change(store, (key) => [
        key.replace(/a$/, 'c00000001'),
        { outcomes: [[0, { of: 'another version' }]] },
      ]);

      const after = await sendNode(environment(server.url, store));
      const arrived = await after.arrivals.next(2);
      const byPhone = new Map(
        arrived.map(({ port, msg }) => [msg.phone, port === 1 ? errorOf(msg).code : port]),
      );
      should([...byPhone].sort()).deepEqual([
        [phones[0], 'outcome_unknown'],
        [phones[1], 0],
      ]);
      should(server.received).have.length(2);
      await Flow.unload();
      should(await left()).be.empty();
    });
  });

  for (const how of ['throws', 'rejects'] as const) {
    describe(`on a full disk that ${how}`, () => {
      it('sends nothing that it could not put on record, tells why, and goes on when there is space', async () => {
        const server = await startServer(() => ({ body: sent }));
        const { disk, store, left } = limitedStore(how);
        const flow = await sendNode(environment(server.url, store));
        const reported = noting();
        await nextTurn();
        disk.isFull = true;
        const arrived = await flow.ask({ phone: phones, text: 'Hi' }, 3);
        should(seen(arrived)).deepEqual(['internal_error', 'internal_error', 'internal_error']);
        for (const { msg } of arrived) should(errorOf(msg).message).match(/no space left/);
        await flow.completed.next();
        should(server.received).be.empty();
        should(reported).have.length(1);

        disk.isFull = false;
        should(seen(await flow.ask({ phone: phones, text: 'Hi' }, 3))).deepEqual([0, 0, 0]);
        should(server.received).have.length(3);
        await Flow.unload();
        should(await left()).be.empty();
      });

      it('tells as sent what was sent, and the rest of the list as not', async () => {
        const { disk, store } = limitedStore(how);
        const server = await startServer(() => {
          disk.isFull = true;
          return { body: sent };
        });
        const flow = await sendNode(environment(server.url, store));
        const reported = noting();
        const arrived = await flow.ask({ phone: phones, text: 'Hi' }, 3);
        should(seen(arrived)).deepEqual([0, 'internal_error', 'internal_error']);
        await flow.completed.next();
        should(flow.settled).deepEqual([undefined]);
        should(server.received).have.length(1);
        should(reported).have.length(1);
        should(String(reported[0])).match(/no space left/);
      });
    });
  }
});
