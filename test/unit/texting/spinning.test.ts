import should from 'should';
import { minute } from '../../../lib/durations';
import { countReturn, handOver } from '../../../lib/outbox/hand-over';
import type { Message } from '../../../lib/runtime/red';
import { MovableClock } from '../../../simulator/movable-clock';
import { createMemoryStore } from '../../../lib/state/memory';
import * as activityRuntime from '../../../nodes/activity/runtime';
import { spec as activitySpec } from '../../../nodes/activity/spec';
import { folders as addressBook } from '../../support/address-book/setup';
import { folders as guarded } from '../../support/guards/setup';
import { alsoClose, closeAll } from '../../support/closing';
import { environmentOn, type EnvironmentChoices, type TestEnvironment } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { Flow, type Arrived, type FlowOptions } from '../../support/flow';
import { errorOf } from '../../support/outcomes';
import { sent } from '../../support/sent';
import { startServer, type Reply } from '../../support/server';
import { startSimulated } from '../../support/simulated';
import { checkFolder } from '../../support/texting/setup';

const begin = 1_750_000_000_000;
const phone = '+12025550123';
const refused: Reply = { body: { successes: [], failures: ['Landline'] } };
const folders = [...guarded, ...addressBook, checkFolder, { spec: activitySpec, runtime: activityRuntime }];
/** A message leaves when it arrives, and 20 more times. */
const round = 21;

describe('a message that keeps returning to a node', () => {
  let clock: MovableClock;
  let environment: TestEnvironment;
  let answer: (path: string) => Reply;
  let requests: number;

  const environmentWith = async (choices: EnvironmentChoices = {}): Promise<TestEnvironment> => {
    const { url } = await startServer(({ url: path }) => {
      requests += 1;
      return answer(path);
    });
    return alsoClose(
      environmentOn({ baseUrl: `${url}/v1`, apiKey: 'key', token: () => 'token' }, { clock, ...choices }),
    );
  };

  beforeEach(async () => {
    clock = new MovableClock(() => begin);
    answer = () => refused;
    requests = 0;
    environment = await environmentWith({ settings: { journal: true }, store: createMemoryStore() });
  });
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  const load = (
    config: { readonly type: string } & Readonly<Record<string, unknown>>,
    more: Partial<FlowOptions> = {},
  ): Promise<Flow> =>
    Flow.load({
      folders,
      environment,
      nodes: [{ id: 'node', name: 'my node', ...config }],
      wires: [['node', 1, 'node']],
      ...more,
    });
  const sendNode = { type: 'advisor-send-text' };
  const warned = async (flow: Flow): Promise<void> => {
    while (flow.warnings.length === 0) {
      should(flow.arrivals.all.length).be.below(100, 'the flow spins');
      await nextIteration();
    }
  };
  const left = async (flow: Flow, count: number): Promise<readonly Arrived[]> => {
    while (flow.arrivals.all.length < count) await nextIteration();
    return flow.arrivals.all;
  };

  it('is delayed after 20 times until a minute has passed, with one warning that names the node', async () => {
    const flow = await load(sendNode);
    flow.send({ phone, text: 'Hi' });
    await warned(flow);
    await clock.move(minute - 1);
    should(requests).equal(round);
    while (!flow.statuses.some(({ text }) => /1 in a loop, next \d/.test(text))) await nextIteration();
    await clock.move(1);
    await left(flow, round + 20);
    await clock.move(minute - 1);
    should(requests).equal(round + 20);
    should(flow.warnings).have.length(1);
    should(flow.warnings[0]).match(/my node/);
    should(flow.warnings[0]).match(/20/);
  });

  it('is not warned of by an id when the node has no name', async () => {
    const flow = await load({ ...sendNode, name: '' });
    flow.send({ phone, text: 'Hi' });
    await warned(flow);
    should(flow.warnings[0]).match(/^A message came back to this node more than 20 times/);
  });

  const nodes: readonly [type: string, config: object, msg: Message][] = [
    ['advisor-send-text', {}, { text: 'Hi' }],
    ['advisor-request-consent', {}, {}],
    ['advisor-check-consent', { mode: 'once' }, {}],
    ['advisor-check-consent', { mode: 'wait' }, {}],
    ['advisor-contact', { operation: 'get' }, {}],
    ['advisor-group', { operation: 'delete' }, {}],
    ['advisor-content', {}, { payload: {} }],
    ['advisor-do-not-text', {}, {}],
    ['advisor-activity', { operation: 'check' }, { payload: {} }],
  ];
  for (const [type, config, msg] of nodes)
    it(`is delayed when ${type} ${JSON.stringify(config)} rejects it as invalid`, async () => {
      const flow = await load({ type, ...config });
      flow.send({ ...msg });
      await warned(flow);
      await clock.move(minute - 1);
      should(flow.arrivals.all).have.length(round);
      should(new Set(flow.arrivals.all.map((each) => errorOf(each.msg).code))).eql(
        new Set(['invalid_input']),
      );
      await clock.move(1);
      await left(flow, round + 1);
    });

  it('is delayed even if it was stored and read again on the way', async () => {
    answer = () => ({ body: { memberId: 1, state: 'accepted' } });
    const flow = await load(
      { type: 'advisor-check-consent', mode: 'wait', pollEvery: 0.5 },
      { wires: [['node', 0, 'node']] },
    );
    flow.send({ phone });
    while (flow.warnings.length === 0) {
      should(flow.arrivals.all.length).be.below(100, 'the flow spins');
      await clock.move(5);
      for (let iteration = 0; iteration < 20; iteration++) await nextIteration();
      // A minute must not pass while an answer is on its way, however slow the machine is.
      while (requests > flow.arrivals.all.length) await nextIteration();
    }
    await left(flow, round);
  });

  it('is delayed even if a Catch or a Complete node leads it back', async () => {
    for (const type of ['errors', 'completed'] as const) {
      const isCaught = type === 'errors';
      answer = () => (isCaught ? refused : { body: sent });
      const flow = await load(sendNode, { wires: [], unwired: [1] });
      let msg: Message = { phone: isCaught ? phone : [phone], text: 'Hi' };
      for (let count = 0; count < round; count++) {
        flow.send(msg);
        [msg = {}] = await flow[type].next();
        // Node-RED itself ends a loop through a Catch node after nine times, unless the flow removes the error.
        delete msg.error;
      }
      should(flow.warnings).be.empty();
      flow.send(msg);
      await warned(flow);
      await Flow.unload();
    }
  });

  it('does not delay others: many messages, and a list whose entries each return', async () => {
    const flow = await load(sendNode, { wires: [] });
    for (let count = 0; count < 100; count++) flow.send({ phone, text: `Hi ${String(count)}` });
    await left(flow, 100);
    flow.arrivals.forget();
    flow.send({
      phone: Array.from({ length: 50 }, (_, index) => `+120255501${String(index + 10)}`),
      text: 'Hi',
    });
    const first = await flow.arrivals.next(50);
    for (const { msg } of first) flow.send(msg);
    await flow.arrivals.next(50);
    should(flow.warnings).be.empty();
  });

  it('is delayed, with all that it becomes, where each round makes many of one, and closes in time', async () => {
    const on = alsoClose(await startSimulated({ clock }));
    const members = { type: 'advisor-group', operation: 'members', groupId: 'Clients', groupIdType: 'str' };
    const flow = await load(members, { environment: on.environment, wires: [['node', 0, 'node']] });
    flow.send({});
    await warned(flow);
    const size = 6;
    await left(flow, round * size);
    await clock.move(minute - 1);
    should(flow.arrivals.all).have.length(round * size);
    await clock.move(1);
    await left(flow, (round + 20) * size);
    const before = on.received('getContact');
    flow.send({ reset: true });
    const cancelled = (await left(flow, 2 * (round + 20) * size - 40)).slice((round + 20) * size);
    should(new Set(cancelled.map(({ msg }) => errorOf(msg).code))).eql(new Set(['cancelled']));
    await Flow.unload();
    should(on.received('getContact')).equal(before);
  });

  it('is cancelled, with all that it becomes, when such a node closes, which the next start emits', async () => {
    const on = alsoClose(await startSimulated({ clock }));
    const members = { type: 'advisor-group', operation: 'members', groupId: 'Clients', groupIdType: 'str' };
    const flow = await load(members, { environment: on.environment, wires: [['node', 0, 'node']] });
    flow.send({});
    await warned(flow);
    const size = 6;
    await left(flow, round * size);
    const before = on.received('getContact');
    await Flow.unload();
    const next = await load(members, { environment: on.environment, wires: [] });
    const cancelled = await left(next, round * size - 20);
    should(new Set(cancelled.map(({ msg }) => errorOf(msg).code))).eql(new Set(['cancelled']));
    should(on.received('getContact')).equal(before);
  });

  it('is recognized after a restart', async () => {
    answer = () => ({ body: { memberId: 1, state: 'accepted' } });
    const check = { type: 'advisor-check-consent', pollEvery: 1 };
    const before = await load({ ...check, mode: 'once' }, { wires: [] });
    let msg: Message = { phone };
    for (let count = 0; count < round - 1; count++) [{ msg } = { msg }] = await before.ask(msg);
    await Flow.unload();

    answer = () => ({ body: { memberId: 1, state: 'pending' } });
    const wires = [['node', 0, 'node']] as const;
    const waiting = await load({ ...check, mode: 'wait' }, { wires });
    waiting.send(msg);
    const asked = requests;
    while (requests === asked) await nextIteration();
    await Flow.unload();
    should(waiting.warnings).be.empty();

    answer = () => ({ body: { memberId: 1, state: 'accepted' } });
    const after = await load({ ...check, mode: 'wait' }, { wires });
    // The next look is due then, and the minute is not over.
    await clock.move(minute / 2);
    await warned(after);
    should(after.arrivals.all.length).equal(1);
  });

  it('is accepted when its node closes, and continued by the next', async () => {
    const flow = await load(sendNode);
    flow.send({ phone, text: 'Hi' });
    await warned(flow);
    await Flow.unload();
    should(requests).equal(round);
    answer = () => ({ body: sent });
    const next = await load(sendNode);
    should((await left(next, 1)).map(({ port }) => port)).eql([0]);
    should(requests).equal(round + 1);
    should(flow.settled).have.length(round);
  });

  it('is cancelled by a reset', async () => {
    const flow = await load(sendNode);
    flow.send({ phone, text: 'Hi' });
    await warned(flow);
    flow.send({ reset: true });
    const all = await left(flow, round + 1);
    should(errorOf(all.at(-1)?.msg ?? {}).code).equal('cancelled');
    should(requests).equal(round);
  });

  it('has no property that a flow can see', async () => {
    const flow = await load(sendNode, { wires: [] });
    const [{ msg } = { msg: {} }] = await flow.ask({ phone, text: 'Hi', topic: 'a' });
    should(Object.keys(msg).sort()).eql(['_msgid', 'advisor', 'error', 'outcome', 'phone', 'text', 'topic']);
  });

  it('is counted from zero when the clock was set back, and not delayed until it is as late again', () => {
    const msg = {};
    handOver.mark(msg, msg, { id: 'node' });
    for (const [now, count] of [
      [begin, 1],
      [begin + 1, 2],
      [begin - minute, 1],
    ] as const)
      should(countReturn(msg, 'node', { now: () => now }, minute)?.count).equal(count);
  });

  it('is not delayed by a forged mark', () => {
    const mark = Symbol.for('advisor-texting.visits');
    const forged = [NaN, 'x', 5n, {}].map((value) => new Map([['node', { count: value, since: value }]]));
    for (const visits of [...forged, new Proxy(forged[0] ?? {}, {}), 5, null]) {
      const msg = { [mark]: visits };
      handOver.mark(msg, msg, { id: 'node' });
      should(countReturn(msg, 'node', { now: () => begin }, minute)).eql({ count: 1, since: begin });
    }
  });
});
