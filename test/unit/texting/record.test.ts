import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { openEmbedded } from '../../../lib/state/embedded';
import type { Store } from '../../../lib/state/store';
import { sealerOf } from '../../support/state/sealer';
import { alsoClose, closeAll } from '../../support/closing';
import { environmentOn, type TestEnvironment } from '../../support/environment';
import type { Message } from '../../../lib/runtime/red';
import { nextIteration } from '../../support/event-loop';
import { type Arrived, Flow } from '../../support/flow';
import { errorOf, inOrder } from '../../support/outcomes';
import { sent } from '../../support/sent';
import { startServer } from '../../support/server';
import { sendNode } from '../../support/texting/setup';
import * as runtime from '../../../nodes/contact/runtime';
import { spec } from '../../../nodes/contact/spec';
import { gate } from '../../support/gate';
import { overStore } from '../../support/state/over-store';

/** Keys of saved records, without the one that says where the node is at home. */
/** All but the one that says where a node works. */
const recordsIn = async (store: Store): Promise<string[]> => {
  const all = { from: Buffer.alloc(0), to: Buffer.alloc(8, 0xff), limit: 1000 };
  const pages = await Promise.all([store.page('work', all), store.page('wait', all)]);
  const keys = pages.flat().map(({ key }) => key.toString('latin1'));
  return keys.filter((key) => !key.startsWith('home\0'));
};

const wrapped = (store: Store, changes: Partial<Store>): Store => overStore(store, changes);

const phones = (count: number): string[] =>
  Array.from({ length: count }, (_, n) => `+1202555${String(100 + n).padStart(4, '0')}`);

/** A service that answers when the test says so. */
const heldService = async (body: object = sent) => {
  const held: (() => void)[] = [];
  const server = await startServer(async () => {
    await new Promise<void>((resolve) => held.push(resolve));
    return { body };
  });
  return {
    server,
    /** Answers the next request, once it has arrived. */
    async answer(): Promise<void> {
      while (held.length === 0) await nextIteration();
      held.shift()?.();
    },
    texted: () => server.received.map(({ body }) => (JSON.parse(body) as { phone: string }).phone),
  };
};

/** A deploy while the second text is in flight; the first outcome was emitted, and the rest is left. */
const deployedAmid = async (
  before: Flow,
  service: Awaited<ReturnType<typeof heldService>>,
  msg: Message,
): Promise<Arrived | undefined> => {
  before.send(msg);
  await service.answer();
  const [first] = await before.arrivals.next();
  const closed = Flow.unload();
  await service.answer();
  await closed;
  return first;
};

describe('saved texts of send text', () => {
  let directory: string;
  let store: Store;

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'record-'));
    store = await openEmbedded({ directory, sealer: sealerOf('word'), warn: () => undefined });
  });
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
    await store.close();
    rmSync(directory, { recursive: true });
  });

  const environment = (url: string, settings = {}, id = 'home'): TestEnvironment =>
    alsoClose(
      environmentOn(
        { baseUrl: `${url}/v1`, apiKey: 'key', token: () => 'token' },
        {
          id,
          store,
          client: { maxConcurrent: 1 },
          settings: { journal: true, maxConcurrent: 2, ...settings },
        },
      ),
    );

  const wrappedEnvironment = (on: TestEnvironment, slow: Store): TestEnvironment =>
    Object.assign(Object.create(on) as TestEnvironment, { store: () => slow });

  const contacts = { id: 'contact', type: 'advisor-contact', operation: 'delete' };
  for (const journal of [true, false])
    for (const node of ['send', 'contact'])
      it(`continue after a deploy that turns the journal ${journal ? 'off' : 'on'}, also at a ${node} node`, async () => {
        const service = await heldService();
        const load = (isOn: boolean): Promise<Flow> => {
          const on = environment(service.server.url, { journal: isOn });
          if (node === 'send') return sendNode(on);
          return Flow.load({ folders: [{ spec, runtime }], environment: on, nodes: [contacts] });
        };
        await deployedAmid(await load(journal), service, {
          phone: phones(4),
          text: 'Hi',
          contactId: [1, 2, 3, 4],
        });
        const after = await load(!journal);
        const rest = after.arrivals.next(3);
        for (let left = 2; left > 0; left--) await service.answer();
        const indexes = inOrder(await rest).map(({ msg }) => (msg.parts as { index: number }).index);
        should(indexes).deepEqual([1, 2, 3]);
      });

  for (const journal of [true, false]) {
    it(`continue after a deploy, ${journal ? 'with' : 'without'} the journal`, async () => {
      const service = await heldService();
      const on = environment(service.server.url, { journal });
      const before = await sendNode(on);
      await deployedAmid(before, service, { phone: phones(5), text: 'Hi', keep: 'me' });
      should(before.arrivals.all).have.length(1);
      should(before.completed.all).be.empty();

      const after = await sendNode(on);
      const rest = after.arrivals.next(4);
      for (let left = 3; left > 0; left--) await service.answer();
      const arrived = inOrder(await rest);
      should(arrived.map(({ port }) => port)).deepEqual([0, 0, 0, 0]);
      should(arrived.map(({ msg }) => (msg.parts as { index: number }).index)).deepEqual([1, 2, 3, 4]);
      for (const { msg } of arrived) {
        should(msg).containEql({ keep: 'me' }).and.not.have.property('repeated');
        should(msg.parts).containEql({ count: 5 });
      }
      should(service.texted().sort()).deepEqual(phones(5));
    });
  }

  for (const journal of [true, false]) {
    it(`are sent after a deploy if the service had delayed them, ${journal ? 'with' : 'without'} the journal`, async () => {
      const server = await startServer(({ index }) =>
        index === 0 ? { status: 429, headers: { 'retry-after': '300' } } : { body: sent },
      );
      const paused = environment(server.url, { journal });
      const before = await sendNode(paused);
      before.send({ phone: phones(1)[0], text: 'Hi' });
      while (before.statuses.length === 0) await nextIteration();
      await Flow.unload();

      const after = await sendNode(environment(server.url, { journal }));
      const [arrived] = await after.arrivals.next();
      should(arrived).containEql({ port: 0 });
      should(arrived?.msg).not.have.property('repeated');
      should(server.received).have.length(2);
    });
  }

  it('keep their delivery date when a deploy changes the unit in which the service takes it', async () => {
    const server = await startServer(({ index }) =>
      index === 0 ? { status: 429, headers: { 'retry-after': '300' } } : { body: sent },
    );
    const load = (deliveryDateUnit: 'ms' | 's'): Promise<Flow> =>
      sendNode(environment(server.url, { deliveryDateUnit }), { schedule: 'at' });
    const deliveryDate = Date.UTC(2090, 0, 31);
    const before = await load('s');
    before.send({ phone: phones(1)[0], text: 'Hi', deliveryDate });
    while (before.statuses.length === 0) await nextIteration();
    await Flow.unload();

    const after = await load('ms');
    const [arrived] = await after.arrivals.next();
    should(arrived?.msg.payload).containEql({ deliveryDate });
    const dates = server.received.map(({ body }) => (JSON.parse(body) as Message)['deliveryDate']);
    should(dates).deepEqual([deliveryDate / 1000, deliveryDate]);
  });

  it('are marked as repeated if they are emitted again after a kill, even if a deploy came in between', async () => {
    const service = await heldService();
    const on = environment(service.server.url);
    await deployedAmid(await sendNode(on), service, { phone: phones(2), text: 'Hi' });

    // Like a kill: nothing is written any more.
    let isKilled = false;
    const killedSoon = wrapped(store, {
      write: (...writes) => (isKilled ? Promise.resolve(true) : store.write(...writes)),
    });
    const between = await sendNode({ ...on, store: () => Promise.resolve(killedSoon) });
    const [first] = await between.arrivals.next();
    isKilled = true;
    should(first?.msg.parts).containEql({ index: 1 });
    should(first?.msg).not.have.property('repeated');
    await Flow.unload();

    const after = await sendNode(on);
    const told = inOrder(await after.arrivals.next());
    should(told.map(({ msg }) => msg.repeated)).deepEqual([true]);
    should(service.texted()).deepEqual(phones(2));
  });

  it('are not sent when the node gets another environment', async () => {
    const service = await heldService();
    const before = await sendNode(environment(service.server.url));
    await deployedAmid(before, service, { phone: phones(3), text: 'Hi' });

    const elsewhere = await heldService();
    const after = await sendNode(environment(elsewhere.server.url, {}, 'elsewhere'));
    const rest = inOrder(await after.arrivals.next(2));
    should(rest.map(({ port }) => port)).deepEqual([0, 1]);
    should(errorOf(rest[1]?.msg ?? {}).code).equal('cancelled');
    should(elsewhere.texted()).be.empty();
  });

  it('do not crash Node-RED if the outcomes of the rest cannot be saved', async () => {
    const service = await heldService();
    const on = environment(service.server.url);
    await deployedAmid(await sendNode(on), service, { phone: phones(3), text: 'Hi' });
    let refused = 0;
    const full = wrapped(store, {
      write: () => {
        refused += 1;
        return Promise.reject(new Error('the store is closed'));
      },
    });
    const escaped: unknown[] = [];
    const note = (fault: unknown): number => escaped.push(fault);
    process.on('unhandledRejection', note);
    await sendNode({ ...on, id: 'elsewhere', store: () => Promise.resolve(full) });
    for (let turn = 0; turn < 30; turn++) await nextIteration();
    process.off('unhandledRejection', note);
    should(refused).be.above(0);
    should(escaped).be.empty();
  });

  it('are waited for at a close while they are being written: nothing is emitted twice', async () => {
    const service = await heldService();
    const on = environment(service.server.url);
    const { opened, open } = gate();
    const { opened: onItsWay, open: leave } = gate();
    let isSlow = false;
    const slow = wrapped(store, {
      write: async (operations, conditions) => {
        if (isSlow) {
          leave();
          await opened;
        }
        return store.write(operations, conditions);
      },
    });
    const before = await sendNode(wrappedEnvironment(on, slow));
    before.send({ phone: phones(1)[0], text: 'Hi' });
    await service.answer();
    await before.arrivals.next();
    isSlow = true;
    await onItsWay;
    let isClosed = false;
    const closed = Flow.unload().then(() => (isClosed = true));
    for (let turns = 0; turns < 20; turns++) await nextIteration();
    should(isClosed).be.false();
    open();
    await closed;
    should(await recordsIn(store)).be.empty();
  });

  it('are stale when they waited longer than allowed', async () => {
    const service = await heldService();
    const before = await sendNode(environment(service.server.url));
    await deployedAmid(before, service, { phone: phones(3), text: 'Hi' });

    const after = await sendNode(environment(service.server.url, { resumeWithin: -1 }));
    const rest = inOrder(await after.arrivals.next(2));
    should(rest.map(({ port }) => port)).deepEqual([0, 1]);
    should(errorOf(rest[1]?.msg ?? {}).code).equal('stale');
    should(service.texted()).have.length(2);
  });

  it('are cancelled by a msg.reset that comes before they are read, and later ones are not', async () => {
    const service = await heldService();
    const on = environment(service.server.url);
    const before = await sendNode(on);
    await deployedAmid(before, service, { phone: phones(5), text: 'Hi' });

    const { opened, open } = gate();
    // What is written a moment after the test goes to its own store, and not to that of the next.
    const own = store;
    const after = await sendNode({ ...on, store: () => opened.then(() => own) });
    after.send({ phone: '+12025550171', text: 'too early' });
    after.send({ reset: true });
    after.send({ phone: '+12025550172', text: 'wanted' });
    open();
    const arrived = after.arrivals.next(6);
    await service.answer();
    const codes = (await arrived).map(({ port, msg }) => (port === 0 ? 'sent' : errorOf(msg).code));
    should(codes.sort()).deepEqual(['cancelled', 'cancelled', 'cancelled', 'cancelled', 'sent', 'sent']);
    should(service.texted()).deepEqual([...phones(2), '+12025550172']);
  });

  it('are not sent when a deploy comes right after msg.reset', async () => {
    const service = await heldService();
    const on = environment(service.server.url);
    const before = await sendNode(on);
    before.send({ phone: phones(60), text: 'Hi' });
    await service.answer();
    await before.arrivals.next();
    before.send({ reset: true });
    const closed = Flow.unload();
    await service.answer();
    await closed;
    const texted = service.texted().length;

    const after = await sendNode(on);
    const rest = await after.arrivals.next(60 - before.arrivals.all.length);
    should(new Set(rest.map(({ port, msg }) => (port === 1 ? errorOf(msg).code : port)))).deepEqual(
      new Set([0, 'cancelled']),
    );
    for (const { msg } of rest) should(msg).not.have.property('repeated');
    should(service.texted()).have.length(texted);
  });

  it('are emitted in the current language', async () => {
    const service = await heldService({ successes: [], failures: ['The recipient has opted out'] });
    const on = environment(service.server.url);
    const before = await sendNode(on);
    const first = await deployedAmid(before, service, { phone: phones(3), text: 'Hi' });
    should(errorOf(first?.msg ?? {}).message).match(/^The service refused this recipient/);

    const { LC_ALL } = process.env;
    process.env['LC_ALL'] = 'de_DE.UTF-8';
    try {
      const after = await sendNode(on);
      const rest = after.arrivals.next(2);
      await service.answer();
      const said = inOrder(await rest).map(({ msg }) => errorOf(msg));
      should(said.map(({ message }) => message.split(':')[0])).deepEqual([
        'Der Dienst hat diesen Empfänger abgelehnt',
        'Der Dienst hat diesen Empfänger abgelehnt',
      ]);
      for (const error of said) should(error).not.have.property('wording');
    } finally {
      if (LC_ALL === undefined) delete process.env['LC_ALL'];
      else process.env['LC_ALL'] = LC_ALL;
    }
  });

  it('are read completely before the node closes, because the store is closed after it', async () => {
    const server = await startServer(() => ({ body: sent }));
    const reading = gate();
    const started = gate();
    const slow = wrapped(store, {
      page: async <V>(...args: Parameters<Store['page']>) => {
        started.open();
        await reading.opened;
        return store.page<V>(...args);
      },
    });
    const on = environment(server.url);
    await sendNode(wrappedEnvironment(on, slow));
    await started.opened;
    let isClosed = false;
    const closed = Flow.unload().then(() => {
      isClosed = true;
    });
    for (let turns = 0; turns < 20; turns++) await nextIteration();
    should(isClosed).be.false();
    reading.open();
    await closed;
  });

  it('are deleted once everything is emitted', async () => {
    const server = await startServer(() => ({ body: sent }));
    const flow = await sendNode(environment(server.url));
    await flow.ask({ phone: phones(3), text: 'Hi' }, 3);
    await flow.completed.next();
    await Flow.unload();
    await store.close();
    store = await openEmbedded({ directory, sealer: sealerOf('word'), warn: () => undefined });
    const left = await recordsIn(store);
    should(left).be.empty();
  });
});
