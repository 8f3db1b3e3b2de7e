import should from 'should';
import { activityOf } from '../../../lib/runtime/activity';
import { systemClock, type Clock } from '../../../lib/service/clock';
import { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Store } from '../../../lib/state/store';
import { begin, hours, seconds } from '../../support/consent/world';
import { scripted } from '../../support/address-book/setup';
import { problemReply } from '../../support/service/setup';
import { alsoClose, closeAll } from '../../support/closing';
import { environmentOn, type TestEnvironment } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { isLong } from '../../support/extent';
import { until } from '../../support/until';
import { Flow } from '../../support/flow';
import { gate } from '../../support/gate';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf, inOrder } from '../../support/outcomes';
import { startServer } from '../../support/server';
import { simulatedForEach, startSimulated } from '../../support/simulated';
import { checkFolder, heldSendNode, sendNode } from '../../support/texting/setup';

const numbered = (n: number): string => `+1202555${String(n).padStart(4, '0')}`;
const some = { page: 1, pageSize: 50 };

describe('activity: waits', () => {
  const on = simulatedForEach(() => startSimulated({ clock: new MovableClock(() => begin) }));

  const waitNode = (): Promise<Flow> =>
    Flow.load({
      folders: [checkFolder],
      environment: on.environment,
      nodes: [{ id: 'node', type: 'advisor-check-consent', name: 'my wait', mode: 'wait' }],
    });
  const activity = () => activityOf(on.environment);

  /** Sends, and waits until all are saved. */
  const waitFor = async (flow: Flow, phones: readonly string[], advisor = 'default'): Promise<void> => {
    const { pageInfo } = await activity().waits(some);
    flow.send({ phone: phones, advisor });
    const due = (pageInfo.totalRecord ?? 0) + phones.length;
    while (((await activity().waits(some)).pageInfo.totalRecord ?? 0) < due) await nextIteration();
  };

  it('shows who waits, for whom, since when, when the next poll is and when it ends', async () => {
    const flow = await waitNode();
    await waitFor(flow, [numbers.silent]);
    const { data, pageInfo } = await activity().waits(some);
    should(pageInfo).deepEqual({ page: 1, pageSize: 50, totalRecord: 1 });
    const { id, next, ...rest } = only(data);
    should(id).match(/^w[\w-]+$/);
    should(rest).deepEqual({
      node: { id: 'node', name: 'my wait' },
      phone: numbers.silent,
      advisor: 'default',
      since: begin,
      until: begin + hours(24),
    });
    should(next).be.within(begin, begin + seconds(33));
  });

  it('lists each wait on exactly one page, in the order they started', async () => {
    const flow = await waitNode();
    const phones = Array.from({ length: 25 }, (_, n) => numbered(2000 + n));
    await waitFor(flow, phones.slice(0, 10));
    await on.simulator.clock.move(1);
    await waitFor(flow, phones.slice(10));
    const pages = await Promise.all(
      [1, 2, 3, 4].map(async (page) => (await activity().waits({ page, pageSize: 10 })).data),
    );
    should(pages.map(({ length }) => length)).deepEqual([10, 10, 5, 0]);
    const shown = pages.flat();
    should(shown.map(({ phone }) => phone).toSorted()).deepEqual(phones);
    should(shown.slice(0, 10).every(({ since }) => since === begin)).be.true();
    const streamed = [];
    for await (const { phone } of activity().allWaits()) streamed.push(phone);
    should(streamed.toSorted()).deepEqual(phones);
  });

  it('streams all waits, also if one ends while they are read', async () => {
    const flow = await waitNode();
    const phones = Array.from({ length: 250 }, (_, n) => numbered(2000 + n));
    await waitFor(flow, phones);
    const get = on.store.get.bind(on.store);
    let ended: Buffer | undefined;
    const ending: Store['get'] = (table, at) => {
      if (at.toString('latin1').startsWith('wait\0')) ended ??= at;
      return ended?.equals(at) ? Promise.resolve(undefined) : get(table, at);
    };
    Object.assign(on.store, { get: ending });
    let streamed = 0;
    for await (const _ of activity().allWaits()) streamed += 1;
    should(streamed).equal(phones.length - 1);
  });

  const many = isLong ? 20_000 : 5500;
  it(`reads and returns only one page when very many wait (${many})`, async () => {
    const flow = await waitNode();
    const page = on.store.page.bind(on.store);
    let read = 0;
    const counting: Store['page'] = async (...asked) => {
      const found = await page(...asked);
      read += found.length;
      return found as never;
    };
    Object.assign(on.store, { page: counting });
    const readFor = async (number: number): Promise<number> => {
      read = 0;
      const { data } = await activity().waits({ page: number, pageSize: 20 });
      should(data).have.length(20);
      return read;
    };
    // Above a thousand they are no longer sorted, which would need all of them.
    await waitFor(
      flow,
      Array.from({ length: 1500 }, (_, n) => `+1206${String(2_000_000 + n)}`),
    );
    const few = await readFor(1);
    for (let from = 1500; from < many; from += 4000)
      await waitFor(
        flow,
        Array.from({ length: Math.min(4000, many - from) }, (_, n) => `+1206${String(2_000_000 + from + n)}`),
      );
    should((await activity().waits(some)).pageInfo.totalRecord).equal(many);
    for (const number of [1, many / 50, many / 20]) should(await readFor(number)).be.belowOrEqual(few);
  }).timeout(120_000);

  it('finds a number for any advisor, and by some of its digits', async () => {
    const flow = await waitNode();
    await waitFor(flow, [numbered(2001), numbered(2002)]);
    await waitFor(flow, [numbered(2001)], 'anna');
    const found = async (phone: string) => (await activity().waits({ ...some, phone })).data;
    should((await found(numbered(2001))).map(({ advisor }) => advisor).toSorted()).deepEqual([
      'anna',
      'default',
    ]);
    should(await found('+1 (202) 555-2002')).have.length(1);
    should(await found('2002')).have.length(1);
    should(await found('555')).have.length(3);
    should(await found(numbered(2003))).be.empty();
    should(await found('nobody')).be.empty();
    should((await activity().waits({ ...some, advisor: 'anna' })).data).have.length(1);
  });

  it('polls one now, and cancels one, and no other', async () => {
    const flow = await waitNode();
    await waitFor(flow, [numbers.silent, numbers.unasked]);
    while (on.received('getConsent') < 2) await on.simulator.clock.move(1000);
    const { data } = await activity().waits(some);
    const [first, second] = data.map(({ id }) => id);
    should(await activity().check(first ?? '')).be.true();
    while (on.received('getConsent') < 3) await nextIteration();
    should(await activity().cancel(second ?? '')).be.true();
    const { port, msg } = only(await flow.arrivals.next());
    should(port).equal(2);
    should(msg.payload).containEql({ reason: 'cancelled' });
    should(msg.phone).equal(data[1]?.phone);
    should(await activity().cancel(second ?? '')).be.false();
    should(await activity().check(second ?? '')).be.false();
    should((await activity().waits(some)).data.map(({ id }) => id)).deepEqual([first]);
  });

  it('cancels a wait while its node does not run, and emits it when the node returns', async () => {
    const flow = await waitNode();
    await waitFor(flow, [numbers.silent, numbers.unasked]);
    const { data } = await activity().waits(some);
    const [kept, cancelled] = data;
    should(await activity().waitsOf(() => true, 1)).have.length(1);
    await Flow.unload();
    should(await activity().waitsOf(() => true, 1)).be.empty();
    const paused = await activity().waits(some);
    should(paused.data.map(({ next }) => next)).deepEqual([null, null]);
    should(await activity().check(cancelled?.id ?? '')).be.false();
    const other = activityOf({ ...on.environment, id: 'other', space: 'other/simulator' });
    should(await other.cancel(cancelled?.id ?? '')).be.false();
    const twice = [0, 1].map(() => activity().cancel(cancelled?.id ?? ''));
    should(await Promise.all(twice)).deepEqual([true, false]);
    should((await activity().waits(some)).data.map(({ phone }) => phone)).deepEqual([kept?.phone]);
    const again = await waitNode();
    const { port, msg } = only(await again.arrivals.next());
    should(port).equal(2);
    should(msg.payload).containEql({ reason: 'cancelled' });
    should(msg.phone).equal(cancelled?.phone);
    should(await activity().cancel(cancelled?.id ?? '')).be.false();
    should((await activity().waits(some)).data.map(({ phone }) => phone)).deepEqual([kept?.phone]);
  });

  it('accepts no id that it did not issue', async () => {
    const flow = await waitNode();
    await waitFor(flow, [numbers.silent]);
    const crafted = [0, 1, 12, 13, 18, 19, 20, 30, 2000].flatMap((length) =>
      [0, 1, 65, 255].map((byte) => Buffer.alloc(length, byte)),
    );
    // Existing node names with nonexistent times and places.
    for (const [length, byte] of [
      [0, 0],
      [5, 0],
      [12, 0],
      [18, 0],
      [12, 255],
      [18, 255],
      [19, 255],
    ] as const)
      crafted.push(Buffer.concat([Buffer.from('node\0'), Buffer.alloc(length, byte)]));
    const ids = crafted.flatMap((name) => ['w', 'q', 'l'].map((kind) => kind + name.toString('base64url')));
    const { data } = await activity().waits(some);
    const own = only(data).id;
    const beyond = Buffer.from(own.slice(1), 'base64url');
    beyond.writeUIntBE(2 ** 48 - 1, beyond.length - 6, 6);
    ids.push(`w${beyond.toString('base64url')}`, `q${own.slice(1)}`, `l${own.slice(1, -8)}`, `${own}A`);
    for (const id of ['', 'w', 'x', 'w!!!!', '../..', 'w\0', '__proto__', ...ids]) {
      should(await activity().cancel(id)).be.false();
      should(await activity().check(id)).be.false();
    }
    should((await activity().waits(some)).data).have.length(1);
  });

  it('shows the name that the message gives, finds people by it, and names nobody else', async () => {
    const flow = await waitNode();
    const people = [
      { phone: '+12025550101', firstName: 'Åsa', lastName: 'Öberg' },
      { Phone: '+12025550102', NAME: ' Bo ' },
      { phone: '+12025550103', firstName: 7 },
    ];
    flow.send({ phone: people });
    flow.send({ phone: '+12025550104', recipient: { phone: '(202) 555-0104', fullName: 'Cy' } });
    flow.send({ phone: '+12025550105', contact: { phone: '+12025550105', name: 'Di' } });
    // Left on the message from somebody else.
    flow.send({ phone: '+12025550106', recipient: { phone: '+12025550107', zip: '0000000', name: 'Wrong' } });
    // The number is in another column.
    flow.send({ phone: '+12025550108', contact: { Mobile: '202-555-0108', 'First Name': 'Ed' } });
    flow.send({ phone: '+12025550109', payload: { phone: '+12025550109', firstName: 'Flo' } });
    while ((await activity().waits(some)).pageInfo.totalRecord !== 8) await nextIteration();
    const { data } = await activity().waits(some);
    const names = data.map(({ phone, name }) => `${phone?.slice(-2) ?? ''} ${name ?? 'nobody'}`);
    should(names.toSorted()).deepEqual([
      '01 Åsa Öberg',
      '02 Bo',
      '03 nobody',
      '04 Cy',
      '05 Di',
      '06 nobody',
      '08 Ed',
      '09 Flo',
    ]);
    const found = async (phone: string) =>
      (await activity().waits({ ...some, phone })).data.map((item) => item.name);
    should(await found('asa ob')).deepEqual(['Åsa Öberg']);
    should(await found('WRONG')).be.empty();
  });
});

describe('activity: queue and failures', () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  /** A send node whose first request is in flight; the others wait for it. */
  const held = async (store = createMemoryStore(), clock: Clock = systemClock) => {
    const { environment, ...node } = await heldSendNode({
      clock,
      client: { maxConcurrent: 1 },
      settings: { maxConcurrent: 1, journal: true },
      store,
    });
    return { ...node, activity: activityOf(environment) };
  };

  it('shows what is queued and what is being sent, with its list, and no text', async () => {
    const { flow, open, server, activity } = await held();
    flow.send({ phone: numbered(1), text: 'secret one' });
    await until(() => server.received.length === 1);
    flow.send({ phone: [numbered(2), numbered(3), numbered(4)], text: 'secret list' });
    flow.send({ phone: numbered(5), text: 'secret two' });
    await until(async () => (await activity.queue(some)).pageInfo.totalRecord === 5);
    const { data } = await activity.queue(some);
    should(data.map(({ phone }) => phone)).deepEqual([1, 2, 3, 4, 5].map(numbered));
    const [first] = data;
    should(first).containEql({
      node: { id: 'send', name: 'my send' },
      advisor: 'default',
      state: 'sending',
      notBefore: null,
      list: null,
    });
    should(data.at(-1)?.state).equal('queued');
    should(JSON.stringify(data)).not.match(/secret/);
    const list = only((await activity.lists(some)).data);
    should(list).containEql({ total: 3, done: 0, advisor: 'default' });
    should(data.map((item) => item.list === list.id)).deepEqual([false, true, true, true, false]);
    for (const [page, expected] of [[1, 2], [3, 4], [5]].entries()) {
      const part = await activity.queue({ page: page + 1, pageSize: 2 });
      should(part.data.map(({ phone }) => phone)).deepEqual(expected.map(numbered));
    }
    should((await activity.queue({ ...some, phone: numbered(4) })).data).have.length(1);
    open();
    await flow.arrivals.next(5);
    await until(async () => (await activity.queue(some)).pageInfo.totalRecord === 0);
    should((await activity.lists(some)).data).be.empty();
  });

  it('shows since when by the clock of the environment, as for waits', async () => {
    const tomorrow: Clock = { ...systemClock, now: () => systemClock.now() + hours(24) };
    const { flow, open, activity } = await held(createMemoryStore(), tomorrow);
    const from = tomorrow.now();
    flow.send({ phone: [numbered(1), numbered(2)], text: 'Hello' });
    await until(async () => (await activity.lists(some)).data.length === 1);
    const { since } = only((await activity.lists(some)).data);
    should(since).be.within(from, tomorrow.now());
    should((await activity.queue(some)).data.map((item) => item.since)).deepEqual([since, since]);
    open();
    await flow.arrivals.next(2);
  });

  it('cancels one recipient, and stops a list, of what has not started', async () => {
    const { flow, open, server, activity } = await held();
    flow.send({ phone: numbered(1), text: 'first' });
    await until(() => server.received.length === 1);
    flow.send({ phone: [numbered(2), numbered(3), numbered(4)], text: 'list' });
    flow.send({ phone: [numbered(5), numbered(6)], text: 'other' });
    await until(async () => (await activity.queue(some)).pageInfo.totalRecord === 6);
    const { data } = await activity.queue(some);
    should(await activity.cancel(data[2]?.id ?? '')).be.true();
    should(await activity.cancel(data[4]?.list ?? '')).be.true();
    await until(async () => (await activity.queue(some)).data.length === 3);
    const left = (await activity.queue(some)).data.map(({ phone }) => phone);
    should(left).deepEqual([1, 2, 4].map(numbered));
    open();
    const arrived = await flow.arrivals.next(6);
    const failed = arrived.filter(({ port }) => port === 1);
    should(failed.map(({ msg }) => msg.phone).toSorted()).deepEqual([3, 5, 6].map(numbered));
    should(failed.every(({ msg }) => errorOf(msg).code === 'cancelled')).be.true();
    should(server.received).have.length(3);
    await until(async () => (await activity.queue(some)).pageInfo.totalRecord === 0);
    should(await activity.cancel(data[0]?.id ?? '')).be.false();
  });

  const failingServer = () =>
    startServer(() => problemReply('invalid_request', { detail: 'about a secret text', traceId: 'trace-1' }));

  const failing = async (
    store: Store,
    given?: Awaited<ReturnType<typeof failingServer>>,
  ): Promise<{ flow: Flow; environment: TestEnvironment }> => {
    const server = given ?? (await failingServer());
    const environment = alsoClose(
      environmentOn(
        { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' },
        { settings: { journal: true }, store, id: 'failing' },
      ),
    );
    return { flow: await sendNode(environment), environment };
  };

  it('keeps failures, the latest first, with what the service said and no text', async () => {
    const store = createMemoryStore();
    const server = await failingServer();
    const { flow, environment } = await failing(store, server);
    await flow.ask({ phone: numbered(1), text: 'plain', advisor: 'default' });
    await flow.ask({ phone: numbered(2), text: 'secret text', advisor: 'default' });
    await flow.ask({ phone: 12345, text: 'x' });
    const { data, pageInfo } = await activityOf(environment).failures(some);
    should(pageInfo.totalRecord).equal(3);
    const [last, second, first] = data;
    should(last).containEql({ phone: '12345', code: 'invalid_input', detail: null, traceId: null });
    should(second).containEql({ phone: numbered(2), code: 'invalid_request', detail: null });
    const { at, problem: _, ...rest } = first ?? { at: 0 };
    should(Math.abs(at - Date.now())).be.below(60_000);
    should(rest).deepEqual({
      node: { id: 'send', name: 'my send' },
      phone: numbered(1),
      advisor: 'default',
      code: 'invalid_request',
      detail: 'about a secret text',
      traceId: 'trace-1',
    });
    const records = (await activityOf(environment).failures(some)).data;
    should(records.map(({ problem }) => problem?.message.includes('secret text'))).deepEqual([
      false,
      undefined,
      true,
    ]);
    await Flow.unload();
    const again = await failing(store, server);
    should((await activityOf(again.environment).failures(some)).pageInfo.totalRecord).equal(3);
  });

  it('keeps the failures of a list in its order', async () => {
    const { flow, environment } = await failing(createMemoryStore(), await failingServer());
    const phone = Array.from({ length: 12 }, (_, n) => String(n + 1));
    await flow.ask({ phone, text: 'x' }, phone.length);
    const { data } = await activityOf(environment).failures(some);
    should(data.map((failure) => failure.phone)).deepEqual(phone.toReversed());
  });

  it('counts what was cancelled or came too late together as one failure where failures are gathered', async () => {
    const { environment } = await failing(createMemoryStore(), await failingServer());
    const activity = activityOf(environment);
    const fail = (code: string, id = 'send'): void =>
      activity.failed({
        node: { id, name: '' },
        problem: { code, message: code, retryable: false, attempts: 0 },
        msg: {},
      });
    fail('outcome_unknown');
    for (let n = 0; n < 3; n++) fail('cancelled');
    fail('cancelled', 'other');
    for (let n = 0; n < 4; n++) fail('stale', 'other');
    for (let n = 0; n < 2; n++) fail('rejected');
    const { data, pageInfo } = await activity.failures(some, true);
    should(data.map(({ code, count }) => [code, count])).deepEqual([
      ['rejected', 1],
      ['rejected', 1],
      ['stale', 4],
      ['cancelled', 1],
      ['cancelled', 3],
      ['outcome_unknown', 1],
    ]);
    should(pageInfo.totalRecord).equal(6);
    should((await activity.failures(some)).pageInfo.totalRecord).equal(11);
  });

  it('shows the failures of the service that the environment points to, and of no other', async () => {
    const store = createMemoryStore();
    const before = await failing(store);
    await before.flow.ask({ phone: numbered(1), text: 'plain', advisor: 'default' });
    await activityOf(before.environment).flush();
    await Flow.unload();
    const { environment } = await failing(store);
    const problem = { code: 'not_configured', message: 'Fill it in.', retryable: false, attempts: 0 };
    const codes = async (of: TestEnvironment): Promise<string[]> =>
      (await activityOf(of).failures(some)).data.map(({ code }) => code);
    const incomplete: TestEnvironment = Object.create(environment, {
      space: {
        get: () => {
          throw new Error('not_configured');
        },
      },
    }) as TestEnvironment;
    should(await codes(incomplete)).be.empty();
    activityOf(incomplete).failed({ node: { id: 'send', name: '' }, problem, msg: {} });
    should(await codes(incomplete)).deepEqual(['not_configured']);
    // What reached no service is shown under any.
    should(await codes(environment)).deepEqual(['not_configured']);
    should(await codes(before.environment)).deepEqual(['not_configured', 'invalid_request']);
  });

  it('shows what is saved while the store cannot be written', async () => {
    const store = createMemoryStore();
    const { flow, environment } = await failing(store);
    await flow.ask({ phone: numbered(1), text: 'plain', advisor: 'default' });
    should((await activityOf(environment).failures(some)).data).have.length(1);
    const write = store.write.bind(store);
    const writable = gate();
    store.write = async (...operations) => {
      await writable.opened;
      return write(...operations);
    };
    const problem = { code: 'rejected', message: 'No.', retryable: false, attempts: 1 };
    activityOf(environment).failed({ node: { id: 'send', name: '' }, problem, msg: {} });
    should((await activityOf(environment).failures(some)).data).have.length(1);
    writable.open();
    should((await activityOf(environment).failures(some)).data).have.length(2);
  });

  it('keeps the beginning of what the service said when that is very long', async () => {
    const { environment } = await scripted(() => ({ body: { failures: ['x'.repeat(4_000_000)] } }));
    const flow = await sendNode(environment);
    await flow.ask({ phone: numbered(1), text: 'Hi', advisor: 'default' });
    const { data } = await activityOf(environment).failures(some);
    should(JSON.stringify((await activityOf(environment).failures(some)).data).length).be.below(5000);
    should(data[0]?.detail).startWith('xxx').and.endWith('…');
  });

  it('keeps the latest thousand failures even after a long store outage, and no more in memory', async () => {
    const store = createMemoryStore();
    const { environment } = await failing(store);
    const write = store.write.bind(store);
    const writable = gate();
    let written = 0;
    store.write = async (...args) => {
      await writable.opened;
      written += args[0].filter(
        (each) => 'put' in each && each.put.toString('latin1').startsWith('failure'),
      ).length;
      return write(...args);
    };
    const problem = { code: 'queue_full', message: 'No.', retryable: true, attempts: 0 };
    const activity = activityOf(environment);
    for (let n = 0; n < 5000; n++) {
      activity.failed({ node: { id: 'send', name: '' }, problem, msg: { phone: numbered(n) } });
      if (n % 500 === 0) void activity.flush();
    }
    writable.open();
    const { data, pageInfo } = await activity.failures({ page: 1, pageSize: 1000 });
    should(pageInfo.totalRecord).equal(1000);
    should(new Set(data.map(({ phone }) => phone)).has(numbered(4999))).be.true();
    should(written).be.within(1000, 1001);
  });

  it('keeps nothing of a dry run', async () => {
    const { flow, environment } = await failing(createMemoryStore());
    await flow.ask({ phone: 'nobody', text: 'x', dryRun: true });
    await flow.ask({ phone: numbered(1), text: 'x', dryRun: true });
    should((await activityOf(environment).failures(some)).data).be.empty();
  });

  it('keeps the last thousand', async () => {
    const store = createMemoryStore();
    const { flow, environment } = await failing(store);
    const phones = Array.from({ length: 1100 }, (_, n) => numbered(n));
    inOrder(await flow.ask({ phone: phones, text: 'x' }, phones.length));
    const { pageInfo } = await activityOf(environment).failures(some);
    should(pageInfo.totalRecord).equal(1000);
    await flow.ask({ phone: numbered(5000), text: 'x' });
    const after = await activityOf(environment).failures(some);
    should(after.pageInfo.totalRecord).equal(1000);
    should(after.data[0]?.phone).equal(numbered(5000));
  });

  it('forgets failures older than thirty days', async () => {
    const store = createMemoryStore();
    const { simulator, environment, close } = await startSimulated(
      { clock: new MovableClock(() => begin) },
      { store },
    );
    try {
      const flow = await sendNode(environment);
      await flow.ask({ phone: 'nobody', text: 'x' });
      should((await activityOf(environment).failures(some)).data).have.length(1);
      await simulator.clock.move(hours(24 * 31));
      should((await activityOf(environment).failures(some)).data).be.empty();
    } finally {
      await close();
    }
  });
});
