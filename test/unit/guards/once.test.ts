import { getEventListeners } from 'node:events';
import { mock } from 'node:test';
import fc from 'fast-check';
import should from 'should';
import { day, hour, second } from '../../../lib/durations';
import { doNotTextOf } from '../../../lib/guards/do-not-text';
import { Once, sendOnce } from '../../../lib/guards/once';
import type { Item } from '../../../lib/outbox/item';
import type { Environment, EnvironmentSettings } from '../../../lib/runtime/environment';
import { systemClock } from '../../../lib/service/clock';
import { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import { endOf, key, under, type Store } from '../../../lib/state/store';
import { startSimulator, type Simulator } from '../../../simulator';
import { alsoClose, closeAll } from '../../support/closing';
import { nextIteration } from '../../support/event-loop';
import { Flow } from '../../support/flow';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf, inOrder } from '../../support/outcomes';
import { environmentOn } from '../../support/environment';
import { gate } from '../../support/gate';
import { sent } from '../../support/sent';
import { startServer } from '../../support/server';
import { sendFolder, sendNode } from '../../support/texting/setup';
import { environmentAt } from '../../support/guards/setup';
import { overStore } from '../../support/state/over-store';
import { until } from '../../support/until';

const folders = [sendFolder];
const { consented, unasked } = numbers;

describe('a text with a key', () => {
  let simulator: Simulator;
  let store: Store;
  /** Ten in the evening in New York. */
  const night = Date.UTC(2027, 0, 5, 3);

  beforeEach(async () => {
    simulator = alsoClose(await startSimulator({ clock: new MovableClock(() => night) }));
    store = createMemoryStore();
  });
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  const load = (
    config: Readonly<Record<string, unknown>> = {},
    settings: Partial<EnvironmentSettings> = {},
    client = {},
    id = 'simulator',
    service: Environment['service'] = 'simulator',
  ): Promise<Flow> => {
    const environment = environmentAt(simulator, { id, service, store, settings, client });
    const byOrder = { onceKey: 'order', onceKeyType: 'msg' };
    const nodes = [{ id: 'send', type: 'advisor-send-text', ...byOrder, ...config }];
    return Flow.load({ folders, environment, nodes });
  };
  const texts = () => simulator.ledger.entries().filter(({ endpoint }) => endpoint === 'sendMessage');

  it('is sent once, and a repeat leaves with the outcome of the first', async () => {
    const flow = await load();
    const first = only(await flow.ask({ phone: consented, text: 'Hi', order: 7 }));
    const again = only(await flow.ask({ phone: consented, text: 'Hi again', order: 7 }));
    should(again.port).equal(0);
    should(again.msg.payload).deepEqual({ ...(first.msg.payload as object), alreadySent: true });
    should(texts().length).equal(1);
    await flow.ask({ phone: consented, text: 'Hi', order: 8 });
    await flow.ask({ phone: consented, text: 'Hi', order: 7, advisor: 'another' });
    should(texts().length).equal(3);
  });

  it('is blocked, rather than a repeat, once its number is on the do-not-text list', async () => {
    const flow = await load();
    await flow.ask({ phone: consented, text: 'Hi', order: 7 });
    const list = await doNotTextOf({ service: 'simulator', store: () => store });
    await list.block(consented, null, night);
    const { msg } = only(await flow.ask({ phone: consented, text: 'Hi', order: 7 }));
    should(errorOf(msg).code).equal('blocked');
  });

  it('is sent once over a restart, and whichever of two simultaneous ones comes first', async () => {
    const flow = await load();
    const both = flow.arrivals.next(2);
    flow.send({ phone: consented, text: 'Hi', order: 7 });
    flow.send({ phone: consented, text: 'Hi', order: 7 });
    const payloads = (await both).map(({ msg }) => msg.payload as { alreadySent?: boolean });
    should(payloads.filter(({ alreadySent }) => alreadySent).length).equal(1);
    await Flow.unload();
    const next = await load();
    should(only(await next.ask({ phone: consented, text: 'Hi', order: 7 })).msg.payload).containEql({
      alreadySent: true,
    });
    await next.completed.next();
    should(next.statuses.at(-1)?.text).match(/ already sent \d{1,2}:\d\d/);
    should(texts().length).equal(1);
  });

  it('is not sent again once the node uses another environment of the same service', async () => {
    for (const id of ['one', 'two']) {
      const flow = await load({}, {}, {}, id);
      const { msg } = only(await flow.ask({ phone: consented, text: 'Hi', order: 7 }));
      should((msg.payload as { alreadySent?: true }).alreadySent).equal(id === 'one' ? undefined : true);
      await Flow.unload();
    }
    should(texts()).have.length(1);
  });

  it('is sent again once the node uses another service: production never got what the simulator accepted', async () => {
    const flow = await load();
    await flow.ask({ phone: consented, text: 'Hi', order: 7 });
    await Flow.unload();
    const elsewhere = await load({}, {}, {}, 'production', 'production');
    const { msg } = only(await elsewhere.ask({ phone: consented, text: 'Hi', order: 7 }));
    should(msg.payload).not.have.property('alreadySent');
    should(texts().length).equal(2);
  });

  it('may be the number, text and date; a missing key is invalid_input', async () => {
    const flow = await load({ onceKeyType: 'text' });
    await flow.ask({ phone: consented, text: 'Hi' });
    should(only(await flow.ask({ phone: consented, text: 'Hi' })).msg.payload).containEql({
      alreadySent: true,
    });
    await flow.ask({ phone: consented, text: 'Hi there' });
    should(texts().length).equal(2);
    await Flow.unload();
    const dated = await load({ onceKeyType: 'text', schedule: 'at' });
    for (const deliveryDate of [4e12, 4e12 + 1])
      await dated.ask({ phone: consented, text: 'Hi', deliveryDate });
    should(texts().length).equal(4);
    await Flow.unload();
    const byKey = await load();
    should(errorOf(only(await byKey.ask({ phone: consented, text: 'Hi' })).msg).code).equal('invalid_input');
    await Flow.unload();
    const off = await load({ onceKey: 'order', onceKeyType: 'off' });
    await off.ask({ phone: consented, text: 'Hi' });
    should(texts().length).equal(5);
  });

  it('accepts any string or number as a key, however long, and nothing else', async () => {
    const flow = await load();
    const keys = [0, -1, 'x'.repeat(100_000), 'a\u0000b', '\ud800', 7];
    for (const order of keys) await flow.ask({ phone: consented, text: 'Hi', order });
    should(texts().length).equal(keys.length);
    should(only(await flow.ask({ phone: consented, text: 'Hi', order: '7' })).msg.payload).containEql({
      alreadySent: true,
    });
    for (const order of ['', ' ', {}, ['a'], true, NaN, null]) {
      const { msg } = only(await flow.ask({ phone: consented, text: 'Hi', order }));
      should(errorOf(msg).code).equal('invalid_input');
      should(errorOf(msg).message).match(/neither text nor a number/);
    }
    should(texts().length).equal(keys.length);
  });

  for (const [onceFor, count] of [
    [0, 2],
    [0.5, 1],
    [1e300, 1],
    [-1, 0],
    ['soon', 0],
  ] as const)
    it(`counts for ${String(onceFor)} hours: two at once are ${String(count)}`, async () => {
      const flow = await load({ onceFor });
      const arrived = [1, 2].map(() => flow.ask({ phone: consented, text: 'Hi', order: 7 }));
      for (const { port, msg } of (await Promise.all(arrived)).flat())
        should(port === 0 ? 'sent' : errorOf(msg).code).equal(count === 0 ? 'invalid_input' : 'sent');
      should(texts().length).equal(count);
    });

  it('takes its key from a field of the recipient, and the summary of a list counts repeats', async () => {
    const flow = await load({ onceKey: '{{id}}', onceKeyType: 'str' });
    const phone = [
      { phone: consented, id: 'a', text: 'One' },
      { phone: consented, id: 'a', text: 'Two' },
      { phone: consented, text: 'Three' },
    ];
    const arrived = inOrder(await flow.ask({ phone }, 3));
    should(arrived.map(({ port }) => port)).deepEqual([0, 0, 1]);
    const summary = arrived.flatMap(({ msg }) => msg.summary ?? [])[0];
    should(summary).containEql({ total: 3, sent: 2, alreadySent: 1, failed: 1 });
    should(texts().length).equal(1);
  });

  it('keeps its key round the consent loop, which releases it', async () => {
    const flow = await load();
    const asked = only(await flow.ask({ phone: unasked, text: 'Hi', order: 7 }));
    should(asked.port).equal(2);
    should(asked.msg.resend).containEql({ onceKey: '7' });
    should(only(await flow.ask(asked.msg)).port).equal(2);
    should(texts().length).equal(2);
  });

  it("is sent again after the lifetime of its key, by the store's clock", async () => {
    let now = night;
    const aged: Store = overStore(store, { now: () => now });
    store = aged;
    const flow = await load({ onceFor: 1 }, {}, {}, 'sandbox', 'sandbox');
    await flow.ask({ phone: consented, text: 'Hi', order: 7 });
    // That clock may be set.
    await simulator.clock.move(2 * hour);
    now += hour - 1;
    await flow.ask({ phone: consented, text: 'Hi', order: 7 });
    should(texts().length).equal(1);
    now += 1;
    await flow.ask({ phone: consented, text: 'Hi', order: 7 });
    should(texts().length).equal(2);
  });

  it('on the simulator, is sent again once its clock was moved that far', async () => {
    const flow = await load({ onceFor: 1 });
    await flow.ask({ phone: consented, text: 'Hi', order: 7 });
    await simulator.clock.move(hour - 1);
    const again = only(await flow.ask({ phone: consented, text: 'Hi', order: 7, dryRun: true }));
    should(again.msg.payload).containEql({ alreadySent: true });
    await flow.ask({ phone: consented, text: 'Hi', order: 7 });
    should(texts().length).equal(1);
    await simulator.clock.move(1);
    await flow.ask({ phone: consented, text: 'Hi', order: 7 });
    should(texts().length).equal(2);
  });

  it('waits while the first is held, and is cancelled with it', async () => {
    const flow = await load({}, { textHours: { from: 480, until: 1260, outside: 'hold' } });
    flow.send({ phone: consented, text: 'Hi', order: 7 });
    flow.send({ phone: consented, text: 'Hi', order: 7 });
    flow.send({ phone: consented, text: 'Hi', order: 8 });
    await simulator.clock.move(hour);
    should(flow.arrivals.all.length).equal(0);
    const cancelled = flow.arrivals.next(3);
    flow.send({ reset: true });
    should((await cancelled).map(({ msg }) => errorOf(msg).code)).deepEqual(Array(3).fill('cancelled'));
    flow.send({ phone: consented, text: 'Hi', order: 7 });
    flow.send({ phone: consented, text: 'Hi', order: 7 });
    await simulator.clock.move(hour);
    const sent = flow.arrivals.next(2);
    await simulator.clock.move(10 * hour);
    const payloads = (await sent).map(({ msg }) => msg.payload as { alreadySent?: boolean });
    should(payloads.filter(({ alreadySent }) => alreadySent).length).equal(1);
    should(texts().length).equal(1);
  });

  it('is cancelled while it waits for the service to answer the first', async () => {
    const { opened, open } = gate();
    const server = await startServer(async () => {
      await opened;
      return { body: sent };
    });
    let reads = 0;
    const counting = overStore(store, {
      get: (...[table, at]: Parameters<Store['get']>) => {
        if (at.toString('latin1').startsWith('known\0')) reads += 1;
        return store.get(table, at);
      },
    });
    const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' };
    const environment = alsoClose(environmentOn(service, { store: counting }));
    const flow = await sendNode(environment, { onceKey: 'order', onceKeyType: 'msg' });
    flow.send({ phone: consented, text: 'Hi', order: 7, topic: 'first' });
    await until(() => server.received.length === 1, 'The request');
    const before = reads;
    flow.send({ phone: consented, text: 'Hi', order: 7, topic: 'repeat' });
    await until(() => reads > before, 'The repeat');
    flow.send({ reset: true });
    const { msg } = only(await flow.arrivals.next());
    should([msg.topic, errorOf(msg).code]).deepEqual(['repeat', 'cancelled']);
    open();
    should(only(await flow.arrivals.next()).msg).containEql({ topic: 'first', outcome: 'sent' });
  });

  it('is sent after one with its key was cancelled, even if the store is ahead of the clock', async () => {
    const { opened, open } = gate();
    const server = await startServer(async () => {
      await opened;
      return { body: sent };
    });
    const ahead = createMemoryStore({ clock: { now: () => Date.now() + day } });
    const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' };
    const environment = environmentOn(service, { store: ahead, client: { maxConcurrent: 1 } });
    const flow = await sendNode(alsoClose(environment), { onceKeyType: 'text' });
    const first = flow.arrivals.next(2);
    flow.send({ phone: '+12025550101', text: 'Hi' });
    flow.send({ phone: '+12025550102', text: 'Hi' });
    while ((await ahead.count('work', key('known'), endOf(key('known')))) < 2) await nextIteration();
    flow.send({ phone: '+12025550102', reset: true });
    open();
    should((await first).map(({ port }) => port).sort()).eql([0, 1]);
    const again = only(await flow.ask({ phone: '+12025550102', text: 'Hi' }));
    should(again.port).equal(0);
  });

  it('keeps its key when it is unknown whether it was sent, and releases it when it was not', async () => {
    const flow = await load({}, {}, { retries: 0 });
    simulator.faults.add({ endpoint: 'sendMessage', kind: 'cut-after', rate: 1 });
    const lost = only(await flow.ask({ phone: consented, text: 'Hi', order: 7 }));
    simulator.faults.clear();
    should(errorOf(lost.msg).code).equal('outcome_unknown');
    const again = only(await flow.ask({ phone: consented, text: 'Hi', order: 7 }));
    should(errorOf(again.msg).code).equal('outcome_unknown');
    simulator.faults.add({ endpoint: 'sendMessage', code: 'invalid_request', rate: 1 });
    const refused = only(await flow.ask({ phone: consented, text: 'Hi', order: 8 }));
    simulator.faults.clear();
    should(errorOf(refused.msg).code).equal('invalid_request');
    should(only(await flow.ask({ phone: consented, text: 'Hi', order: 8 })).port).equal(0);
  });

  for (const [what, body] of [
    ['that cannot be read', '<html>'],
    ['that names neither a success nor a failure', { successes: [], failures: [] }],
  ] as const)
    it(`keeps its key after an answer ${what}: it was probably sent`, async () => {
      const server = await startServer(() => ({ body }));
      const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' };
      const environment = alsoClose(environmentOn(service));
      const flow = await sendNode(environment, { onceKey: 'order', onceKeyType: 'msg' });
      for (const code of ['invalid_response', 'outcome_unknown']) {
        const { port, msg } = only(await flow.ask({ phone: consented, text: 'Hi', order: 7 }));
        should(port).equal(1);
        should(errorOf(msg).code).equal(code);
      }
      should(server.received).have.length(1);
    });

  it('claims nothing in a dry run', async () => {
    const flow = await load();
    await flow.ask({ phone: consented, text: 'Hi', order: 7, dryRun: true });
    const { msg } = only(await flow.ask({ phone: consented, text: 'Hi', order: 7 }));
    should(msg.payload).not.have.property('alreadySent');
    const foreseen = only(await flow.ask({ phone: consented, text: 'Hi', order: 7, dryRun: true }));
    should(foreseen.msg.payload).containEql({ alreadySent: true, dryRun: true });
  });

  it('is predicted for two in one list by a dry run', async () => {
    const flow = await load();
    const phone = [
      { phone: consented, text: 'One' },
      { phone: consented, text: 'Two' },
    ];
    const repeats = async (dryRun: boolean): Promise<unknown[]> =>
      (await flow.ask({ phone, order: 7, dryRun }, 2)).flatMap(({ msg }) => {
        const { alreadySent } = msg.payload as { alreadySent?: boolean };
        return alreadySent ?? [];
      });
    should(await repeats(true)).deepEqual([true]);
    should(await repeats(false)).deepEqual([true]);
  });

  it('leaves no expired key behind', async () => {
    let now = night;
    const aged = createMemoryStore({ clock: { now: () => now } });
    const environment = { service: 'simulator' as const, clock: { ...systemClock, now: () => now } };
    const onceAt = (at: number, within: number): Once => {
      const of = { space: 'here', node: 'send', advisor: 'default', phone: consented, key: String(at) };
      return new Once(aged, of, within, environment);
    };
    const claim = async (at: number, within: number): Promise<void> => {
      const once = onceAt(at, within);
      const verdict = await once.claim(`item ${String(at)}`, now);
      if (verdict.kind !== 'own') throw new Error(verdict.kind);
      await aged.write([once.step(once.ended(verdict.claim, { state: 'sent', payload: at }))]);
      once.release(verdict.claim.item);
    };
    for (let at = 0; at < 250; at++) await claim(at, hour);
    now += day;
    await claim(250, 2 * day);
    await nextIteration();
    const all = key('known');
    const count = (): Promise<number> => aged.count('work', all, endOf(all));
    should(await count()).equal(251);
    now += day;
    await claim(251, hour);
    while ((await count()) > 2) await nextIteration();
    should((await onceAt(250, 2 * day).foresee())?.kind).equal('sent');
  });

  const directly = (name = 'k'): Once => {
    const of = { space: 'here', node: 'send', advisor: 'default', phone: consented, key: name };
    const clock = { ...systemClock, now: () => night };
    return new Once(store, of, hour, { service: 'simulator', clock });
  };

  it('is not sent again after the process of the first was killed while that was in flight', async () => {
    const once = directly();
    const claimed = await once.claim('first', 0);
    if (claimed.kind !== 'own') throw new Error(claimed.kind);
    await store.write([once.step({ ...claimed.claim, holder: 'killed', state: 'started' })]);
    await once.end('another', { state: 'none' });
    should(await once.claim('second', 0)).eql({ kind: 'unknown' });
    once.release('first');
  });

  it('keeps its key, or not, by the reason for which it ends without its turn', async () => {
    const environment = environmentAt(simulator, { store });
    const tools = { environment, node: 'send', recheck: () => undefined };
    for (const [reason, kind] of [
      ['unknown', 'unknown'],
      ['crashes', 'unknown'],
      ['stale', 'own'],
      ['moved', 'own'],
    ] as const) {
      const once = directly(reason);
      await once.claim('first', 0);
      const item = {
        ...{ id: 'first', advisor: 'default', data: { index: 0, phone: consented }, shared: {} },
        ...{ message: { record: { space: 'here' } }, savedIn: () => store },
      } as unknown as Item;
      await sendOnce(tools, () => ({ key: reason, within: hour })).endsWithout?.(item, reason);
      should((await once.claim('second', 1)).kind).equal(kind);
      once.release('second');
    }
  });

  it('does not look started while its request waits to be made again', async () => {
    simulator.faults.add({ endpoint: 'sendMessage', status: 429, retryAfter: 3600 });
    const flow = await load();
    flow.send({ phone: consented, text: 'Hi', order: 7 });
    const stateOf = async (): Promise<unknown> =>
      (await store.page<{ state: string }>('work', { ...under(key('known')), limit: 1 }))[0]?.value.state;
    await until(
      async () => texts().length === 1 && (await stateOf()) === 'open',
      'A claim that is open again',
    );
  });

  it('is looked at again after a moment: another process may have released its key', async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      const changed = directly().changed(new AbortController().signal);
      mock.timers.tick(second);
      await changed;
    } finally {
      mock.timers.reset();
    }
  });

  it('leaves nothing in memory while a repeat waits', async () => {
    const waiting = new AbortController();
    const once = directly();
    const claimed = await once.claim('first', 0);
    if (claimed.kind !== 'own') throw new Error(claimed.kind);
    for (let times = 0; times < 20; times++) {
      const changed = once.changed(waiting.signal);
      once.release('first');
      await changed;
    }
    should(getEventListeners(waiting.signal, 'abort').length).be.belowOrEqual(1);
  });

  it('is received once, however often and whenever the node is stopped', async function () {
    this.timeout(120_000);
    let order = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(6), { minLength: 1, maxLength: 4 }), async (stops) => {
        order += 1;
        const before = texts().length;
        for (const turns of stops) {
          const flow = await load();
          flow.send({ phone: consented, text: 'Hi', order });
          for (let turn = 0; turn < turns; turn++) await nextIteration();
          await Flow.unload();
        }
        const last = await load();
        const { port } = only(
          await last
            .ask({ phone: consented, text: 'Hi', order, last: true }, 1)
            .then((all) => all.slice(0, 1)),
        );
        should(port).equal(0);
        await Flow.unload();
        should(texts().length - before).equal(1);
      }),
      { numRuns: 15 },
    );
  });
});
