import fc from 'fast-check';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open as openLmdb } from 'lmdb';
import should from 'should';
import { doNotTextOf, forgetLists, ownListOf, type BlockCommand } from '../../../lib/guards/do-not-text';
import { serviceError } from '../../../lib/service/errors';
import type { Message } from '../../../lib/runtime/red';
import { MovableClock } from '../../../simulator/movable-clock';
import { openEmbedded } from '../../../lib/state/embedded';
import { createMemoryStore } from '../../../lib/state/memory';
import { key, storeClosed, type Store } from '../../../lib/state/store';
import * as listRuntime from '../../../nodes/do-not-text/runtime';
import { spec as listSpec } from '../../../nodes/do-not-text/spec';
import { readBlocked } from '../../../nodes/environment/blocked';
import type { RouteRequest } from '../../../nodes/environment/form';
import { startSimulator } from '../../../simulator';
import { sealerOf } from '../../support/state/sealer';
import { alsoClose } from '../../support/closing';
import { environmentOn, type TestEnvironment } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { Flow } from '../../support/flow';
import { gate } from '../../support/gate';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf, inOrder } from '../../support/outcomes';
import { sent } from '../../support/sent';
import { startServer } from '../../support/server';
import { Started } from '../../support/guards/started';
import { simulatedForEach, startSimulated } from '../../support/simulated';
import { checkFolder, requestFolder, sendFolder } from '../../support/texting/setup';
import { peers } from '../../support/state/peers';
import { overStore } from '../../support/state/over-store';

const folders = [sendFolder, requestFolder, checkFolder, { spec: listSpec, runtime: listRuntime }];
const { consented, unasked } = numbers;
const begin = Date.UTC(2027, 0, 4, 15);

describe('the do-not-text list', () => {
  const on = simulatedForEach(() => startSimulated({ clock: new MovableClock(() => begin) }));

  const load = (...nodes: { id: string; type: string; [property: string]: unknown }[]): Promise<Flow> =>
    Flow.load({ folders, environment: on.environment, nodes });
  const blockNode = { id: 'block', type: 'advisor-do-not-text' };
  const sendNode = { id: 'send', type: 'advisor-send-text' };

  const ask = async (flow: Flow, msg: Message, to: string, count = 1) => {
    const coming = flow.arrivals.next(count);
    flow.send(msg, to);
    return coming;
  };

  it('says who was added, since when and why', async () => {
    const flow = await load(
      { ...blockNode, reason: 'said stop' },
      { ...blockNode, id: 'n-check', operation: 'check' },
    );
    const phone = [{ phone: consented, reason: 'by mail' }, unasked, 'nobody'];
    const arrived = inOrder(await ask(flow, { phone }, 'block', 3));
    should(arrived.map(({ port, msg }) => [port, msg.outcome])).deepEqual([
      [0, 'done'],
      [0, 'done'],
      [1, 'failed'],
    ]);
    should(arrived[0]?.msg.payload).deepEqual({
      phone: consented,
      blocked: true,
      since: begin,
      reason: 'by mail',
    });
    should(arrived[1]?.msg.payload).containEql({ reason: 'said stop' });
    const { port, msg } = only(await ask(flow, { phone: consented }, 'n-check'));
    should([port, msg.outcome]).deepEqual([2, 'blocked']);
    should(msg.payload).deepEqual({ phone: consented, blocked: true, since: begin, reason: 'by mail' });
    const other = only(await ask(flow, { phone: '+12025550100' }, 'n-check'));
    should(other.port).equal(0);
    should(other.msg.payload).deepEqual({ phone: '+12025550100', blocked: false, since: null, reason: null });
  });

  it('takes every number that can be texted, also one that is too long or too short for its country', async () => {
    const flow = await load(blockNode, sendNode);
    const phone = ['+1 213 555 01033', '+213 555 0103', '+99912345678'];
    const arrived = inOrder(await ask(flow, { phone }, 'block', 3));
    should(arrived.map(({ port, msg }) => [port, msg.phone])).deepEqual([
      [0, '+121355501033'],
      [0, '+2135550103'],
      [0, '+99912345678'],
    ]);
    const sent = await ask(flow, { phone, text: 'Hi' }, 'send', 3);
    should(sent.map(({ msg }) => errorOf(msg).code)).deepEqual(['blocked', 'blocked', 'blocked']);
  });

  it('tells which number could not be read, wherever it was', async () => {
    const flow = await load({ ...blockNode, phone: 'payload.phone' });
    const { port, msg } = only(await ask(flow, { phone: consented, payload: { phone: '0800 12' } }, 'block'));
    should([port, msg.phone]).deepEqual([1, '0800 12']);
  });

  it('keeps entries and their dates until they are removed', async () => {
    const flow = await load(blockNode, { ...blockNode, id: 'n-unblock', operation: 'unblock' }, sendNode);
    await ask(flow, { phone: consented }, 'block');
    await on.simulator.clock.move(1000);
    const again = only(await ask(flow, { phone: consented, reason: 'again' }, 'block'));
    should(again.msg.payload).containEql({ since: begin });
    const refused = only(await ask(flow, { phone: consented, text: 'Hi' }, 'send'));
    should(errorOf(refused.msg).code).equal('blocked');
    const off = only(await ask(flow, { phone: consented }, 'n-unblock'));
    should(off.msg.payload).deepEqual({ phone: consented, blocked: false, since: null, reason: null });
    should(only(await ask(flow, { phone: consented, text: 'Hi' }, 'send')).port).equal(0);
  });

  it('has the new reason of a number that is blocked again, and the old one if none is given', async () => {
    const flow = await load(blockNode);
    for (const [reason, kept] of [
      ['by mail', 'by mail'],
      ['said stop', 'said stop'],
      [undefined, 'said stop'],
    ]) {
      const { msg } = only(await ask(flow, { phone: [{ phone: consented, reason }] }, 'block'));
      should(msg.payload).containEql({ reason: kept });
    }
  });

  it('is read in pages, or as one message each', async () => {
    const list = { ...blockNode, operation: 'list', pageSize: 2 };
    const flow = await load(
      blockNode,
      { ...list, id: 'page' },
      { ...list, id: 'all', all: true, emit: 'item' },
    );
    const phone = ['+12025550101', '+12025550102', '+12025550103'];
    await ask(flow, { phone }, 'block', 3);
    const { msg } = only(await ask(flow, {}, 'page'));
    const { data, pageInfo } = msg.payload as { data: unknown[]; pageInfo: object };
    should(data).have.length(2);
    should(pageInfo).deepEqual({ page: 1, pageSize: 2, totalRecord: 3 });
    const items = await ask(flow, {}, 'all', 3);
    should(items.map((each) => each.msg.phone).sort()).deepEqual(phone);
    should(items.every((each) => (each.msg.parts as { count: number }).count === 3)).be.true();
  });

  it('is read whole, even if the flow unblocks each number that it gets', async () => {
    const nodes = [
      { ...blockNode, operation: 'list', all: true, emit: 'item', pageSize: 2 },
      { ...blockNode, id: 'off', operation: 'unblock' },
    ];
    const { environment } = on;
    const flow = await Flow.load({ folders, environment, nodes, wires: [['block', 0, 'off']] });
    const list = await doNotTextOf(environment);
    for (let n = 0; n < 20; n++) await list.block(`+120255501${String(n).padStart(2, '0')}`, null, begin);
    const arrived = await ask(flow, {}, 'block', 40);
    should(arrived.filter(({ from }) => from === 'off')).have.length(20);
    should((await list.page(0, 1)).total).equal(0);
  });

  it('is searched without holding up other work', async () => {
    const list = await doNotTextOf(on.environment);
    for (let n = 0; n < 2_500; n++) await list.block(`+1202555${String(n).padStart(4, '0')}`, null, 0);
    let turn = 0;
    const turns: number[] = [];
    const page: Store['page'] = on.store.page.bind(on.store);
    on.store.page = (table, range) => {
      turns.push(turn);
      setImmediate(() => (turn += 1));
      return page(table, range);
    };
    const asked = {
      request: { query: { phone: 'mail' } },
      mayWrite: true,
      form: { running: on.environment },
    };
    should((await readBlocked(asked as unknown as RouteRequest)).pageInfo.totalRecord).equal(0);
    should(turns.length).be.above(2);
    should(turns).deepEqual([...turns.keys()]);
  });

  it('is searched whole, even if others unblock numbers meanwhile', async () => {
    const list = await doNotTextOf(on.environment);
    const phones = Array.from({ length: 1_200 }, (_, n) => `+1202555${String(n).padStart(4, '0')}`);
    for (const phone of phones) await list.block(phone, 'by mail', 0);
    const page: Store['page'] = on.store.page.bind(on.store);
    const first: string[] = [];
    on.store.page = async <T>(...asked: Parameters<Store['page']>) => {
      const found = await page<T>(...asked);
      if (first.length > 0) return found;
      first.push(...found.map(({ value }) => (value as { phone: string }).phone));
      for (const phone of first) await list.unblock(phone);
      return found;
    };
    const asked = {
      request: { query: { phone: 'mail' } },
      mayWrite: true,
      form: { running: on.environment },
    };
    const { pageInfo } = await readBlocked(asked as unknown as RouteRequest);
    should(first.length).be.above(1);
    should(pageInfo.totalRecord).equal(phones.length);
  });

  it('blocks texts and consent requests, one by one, in a list, as a resend and in a dry run', async () => {
    const flow = await load(blockNode, sendNode, { id: 'ask', type: 'advisor-request-consent' });
    await ask(flow, { phone: consented }, 'block');
    const texts = inOrder(await ask(flow, { phone: [consented, '+12025550199'], text: 'Hi' }, 'send', 2));
    should(errorOf(texts[0]?.msg ?? {}).code).equal('blocked');
    should(texts[1]?.port).equal(2);
    const resend = { node: 'send', phone: consented, text: 'Hi', advisor: 'default' };
    should(errorOf(only(await ask(flow, { resend }, 'send')).msg).code).equal('blocked');
    const dry = only(await ask(flow, { phone: consented, text: 'Hi', dryRun: true }, 'send'));
    should(errorOf(dry.msg)).containEql({ code: 'blocked', dryRun: true });
    should(errorOf(only(await ask(flow, { phone: consented }, 'ask')).msg).code).equal('blocked');
    should(on.received('sendMessage')).equal(1);
    should(on.received('requestConsent')).equal(0);
  });

  it('ends waits for people who are added, and waits that start later', async () => {
    const flow = await load(blockNode, { id: 'n-wait', type: 'advisor-check-consent', mode: 'wait' });
    flow.send({ phone: unasked }, 'n-wait');
    await on.simulator.clock.move(60_000);
    const left = await ask(flow, { phone: unasked }, 'block', 2);
    const waited = left.find(({ from }) => from === 'n-wait');
    should(waited?.port).equal(2);
    should(waited?.msg.payload).containEql({ reason: 'cancelled' });
    const later = only(await ask(flow, { phone: unasked }, 'n-wait'));
    should(later.msg.payload).containEql({ reason: 'cancelled' });
  });

  it('fails no saved wait when it cannot be read', async () => {
    const flow = await load({ id: 'n-wait', type: 'advisor-check-consent', mode: 'wait' });
    const list = await doNotTextOf(on.environment);
    const reads: string[] = [];
    Object.assign(list, {
      getOwn: async (phone: string) => {
        reads.push(phone);
        throw new Error('away');
      },
    });
    flow.send({ phone: unasked }, 'n-wait');
    await on.simulator.clock.move(60_000);
    should(reads).containEql(unasked);
    const { port, msg } = only(await ask(flow, { reset: true }, 'n-wait'));
    should(port).equal(2);
    should(msg.payload).containEql({ reason: 'cancelled' });
  });

  it('ends waits for people who were added while their node was gone, at their next poll', async () => {
    const wait = { id: 'n-wait', type: 'advisor-check-consent', mode: 'wait' };
    const before = await load(wait);
    before.send({ phone: unasked }, 'n-wait');
    await on.simulator.clock.move(600_000);
    await Flow.unload();
    await (await doNotTextOf(on.environment)).block(unasked, null, begin);
    const looks = on.received('getConsent');
    const flow = await load(wait);
    const left = flow.arrivals.next();
    await on.simulator.clock.move(600_000);
    const { port, msg } = only(await left);
    should(port).equal(2);
    should(msg.payload).containEql({ reason: 'cancelled' });
    should(on.received('getConsent')).equal(looks);
  });

  it('ends waits for people whom another process adds, when they accept', async () => {
    const flow = await load({ id: 'n-wait', type: 'advisor-check-consent', mode: 'wait' });
    flow.send({ phone: unasked }, 'n-wait');
    await on.simulator.clock.move(3_600_000);
    const ofAnother = overStore(on.store);
    const elsewhere = await doNotTextOf({ service: 'simulator', store: () => ofAnother });
    await elsewhere.block(unasked, null, begin);
    on.simulator.accept(unasked);
    const left = flow.arrivals.next();
    await on.simulator.clock.move(600_000);
    const { port, msg } = only(await left);
    should(port).equal(2);
    should(msg.payload).containEql({ reason: 'cancelled' });
  });

  it('is read again before a request if others share it, because word of a block may be on its way', async () => {
    const shared = (): Store => overStore(on.store, { peers: peers() });
    const here = await doNotTextOf({ service: 'simulator', store: shared });
    should(await here.check(unasked)).be.undefined();
    await (await doNotTextOf({ service: 'simulator', store: shared })).block(unasked, null, begin);
    should(await here.begin(unasked, here.version)).have.property('phone', unasked);
  });

  it('is not taken for empty by a check during which somebody is added', async () => {
    const [reached, held] = [gate(), gate()];
    const store = createMemoryStore();
    const keys = store.keys.bind(store);
    store.keys = async (...asked) => {
      const found = await keys(...asked);
      reached.open();
      await held.opened;
      return found;
    };
    const list = await doNotTextOf({ service: 'simulator', store: () => store });
    const checking = list.check(consented);
    await reached.opened;
    await list.block(unasked, null, begin);
    held.open();
    await checking;
    should(await list.check(unasked)).have.property('phone', unasked);
  });

  it('is not taken for empty any more when another process has had the store meanwhile', async () => {
    const store = createMemoryStore();
    const engine = { losses: 0 };
    const here = overStore(store, {}, engine);
    const list = await doNotTextOf({ service: 'simulator', store: () => here });
    should(await list.check(unasked)).be.undefined();
    await (await doNotTextOf({ service: 'simulator', store: () => store })).block(unasked, null, begin);
    Object.assign(here.engine, { losses: 1 });
    should(await list.check(unasked)).have.property('phone', unasked);
  });

  it('is changed at once after it has stopped a text: what never left is not waited for', async () => {
    const list = await doNotTextOf(on.environment);
    await list.block(unasked, null, begin);
    should(await list.begin(unasked)).have.property('phone', unasked);
    should(await list.block(unasked, 'by mail', begin)).containEql({ reason: 'by mail' });
  });

  it('ends waits for people on it even if another wait sees that they accepted', async () => {
    const flow = await load(
      { id: 'n-wait', type: 'advisor-check-consent', mode: 'wait' },
      { id: 'n-look', type: 'advisor-check-consent', mode: 'once' },
    );
    flow.send({ phone: unasked }, 'n-wait');
    await on.simulator.clock.move(1000);
    const ofAnother = overStore(on.store);
    await (await doNotTextOf({ service: 'simulator', store: () => ofAnother })).block(unasked, null, begin);
    on.simulator.accept(unasked);
    const left = await ask(flow, { phone: unasked }, 'n-look', 2);
    const waited = left.find(({ from }) => from === 'n-wait');
    should(waited?.msg.payload).containEql({ reason: 'cancelled', state: 'accepted' });
  });

  describe('needs few reads', () => {
    let reads: number;
    let hashed: string[];
    let environment: TestEnvironment;

    beforeEach(() => {
      reads = 0;
      hashed = [];
      const blocked = key('blocked', 'simulator');
      const count = (at: Buffer): void => {
        if (at.subarray(0, blocked.length).equals(blocked)) reads += 1;
      };
      const counting = overStore(on.store, {
        get: (...asked: Parameters<Store['get']>) => {
          count(asked[1]);
          return on.store.get(...asked);
        },
        keys: (...asked: Parameters<Store['keys']>) => {
          count(asked[1].from);
          return on.store.keys(...asked);
        },
        hash: (phone: string) => {
          hashed.push(phone);
          return on.store.hash(phone);
        },
      });
      const { baseUrl, credentials, clock } = on.simulator;
      const token = (advisor: string): string => on.simulator.accessToken(advisor);
      const service = { baseUrl, apiKey: credentials.apiKey, token };
      environment = alsoClose(environmentOn(service, { service: 'simulator', clock, store: counting }));
    });

    it('one for all consent requests while the list is empty', async () => {
      const nodes = [{ id: 'n-ask', type: 'advisor-request-consent' }];
      const flow = await Flow.load({ folders, environment, nodes });
      should(only(await flow.ask({ phone: unasked })).port).equal(0);
      should(only(await flow.ask({ phone: unasked })).msg.payload).containEql({ requested: false });
      should(reads).equal(1);
    });

    it('one for all texts, and no hash of a number while the list is empty', async () => {
      const flow = await Flow.load({ folders, environment, nodes: [sendNode] });
      for (const text of ['Hi', 'Hi again'])
        should(only(await flow.ask({ phone: consented, text })).port).equal(0);
      should({ reads, hashed }).deepEqual({ reads: 1, hashed: [] });
      const list = await doNotTextOf(environment);
      await list.block(consented, null, begin);
      should(errorOf(only(await flow.ask({ phone: consented, text: 'Hi' })).msg).code).equal('blocked');
      await list.unblock(consented);
      hashed = [];
      should(only(await flow.ask({ phone: consented, text: 'Hi' })).port).equal(0);
      should(hashed).deepEqual([]);
    });

    it('a handful for the 298 polls of a silent day', async () => {
      const nodes = [{ id: 'n-wait', type: 'advisor-check-consent', mode: 'wait' }];
      const flow = await Flow.load({ folders, environment, nodes });
      const left = flow.arrivals.next();
      flow.send({ phone: unasked }, 'n-wait');
      await on.simulator.clock.move(86_400_000 + 60_000);
      should(only(await left).msg.payload).containEql({ reason: 'expired' });
      should(reads).be.belowOrEqual(10);
    });
  });

  it('emits one failure when a close ends its listing, once the flows have started again', async () => {
    const [reached, held] = [gate(), gate()];
    const blocked = key('blocked', 'service');
    const slow = overStore(on.store, {
      page: async (...asked: Parameters<Store['page']>) => {
        const { from } = asked[1];
        const isSecond = from.length > blocked.length && from.subarray(0, blocked.length).equals(blocked);
        if (isSecond) {
          reached.open();
          await held.opened;
        }
        return on.store.page(...asked);
      },
    });
    const service = { baseUrl: on.simulator.baseUrl, apiKey: 'key', token: () => 'token' };
    const environment = alsoClose(environmentOn(service, { store: slow }));
    const list = await doNotTextOf(environment);
    for (let n = 0; n < 250; n++) await list.block(`+1202555${String(n).padStart(4, '0')}`, null, begin);
    const nodes = [{ ...blockNode, operation: 'list', all: true, emit: 'item', pageSize: 2 }];
    const flow = await Flow.load({ folders, environment, nodes });
    flow.send({ campaign: 'autumn' });
    await flow.arrivals.next(2);
    await reached.opened;
    const unloading = Flow.unload();
    held.open();
    await unloading;
    should(flow.settled).be.empty();
    const next = await Flow.load({ folders, environment, nodes });
    const { port, msg } = only(await next.arrivals.next());
    should([port, msg.campaign, errorOf(msg).code]).deepEqual([1, 'autumn', 'cancelled']);
  });

  it('is kept and read before the service is configured', async () => {
    const lacking = (): never => {
      throw serviceError('not_configured', 'no_environment');
    };
    const unready = alsoClose(
      environmentOn(
        { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'key', token: () => 'token' },
        { store: on.store },
      ),
    );
    Object.assign(unready, { client: lacking, advisors: lacking, advisorState: lacking });
    Object.defineProperty(unready, 'space', { get: lacking });
    const flow = await Flow.load({
      folders,
      environment: unready,
      nodes: [
        blockNode,
        { ...blockNode, id: 'n-check', operation: 'check' },
        { ...blockNode, id: 'n-list', operation: 'list' },
        sendNode,
      ],
    });
    should(only(await ask(flow, { phone: consented }, 'block')).port).equal(0);
    should(only(await ask(flow, { phone: consented }, 'n-check')).port).equal(2);
    const listed = only(await ask(flow, {}, 'n-list'));
    should((listed.msg.payload as { data: unknown[] }).data).have.length(1);
    const unreadable = only(await ask(flow, { phone: 'nobody' }, 'block'));
    should(errorOf(unreadable.msg).code).equal('invalid_input');
    const unsent = only(await ask(flow, { phone: unasked, text: 'Hi' }, 'send'));
    should(errorOf(unsent.msg).code).equal('not_configured');
  });

  it('is shared by all simulators and separately by all real services, in any environment', async () => {
    const service = { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'key', token: () => 'token' };
    const on2 = (kind: 'simulator' | 'sandbox' | 'production', id: string) =>
      doNotTextOf(alsoClose(environmentOn(service, { store: on.store, service: kind, id })));
    const flow = await load(blockNode);
    await ask(flow, { phone: consented }, 'block');
    should((await (await on2('simulator', 'another example')).get(consented))?.since).equal(begin);
    const sandbox = await on2('sandbox', 'real');
    should(await sandbox.get(consented)).be.undefined();
    await sandbox.block(unasked, null, begin);
    should(await (await on2('production', 'other')).get(unasked)).have.property('phone', unasked);
    should(await (await doNotTextOf(on.environment)).get(unasked)).be.undefined();
  });

  it('of the real services is not changed by what a node accepted on the simulator', async () => {
    const simulator = await startSimulator();
    const userDir = mkdtempSync(join(tmpdir(), 'advisor-list-'));
    const phone = Array.from({ length: 100 }, (_, n) => `+1312555${String(1000 + n)}`);
    const tried = await Started.on(simulator, userDir, { service: 'simulator' });
    tried.flow.send({ phone }, 'block');
    await tried.stop();
    const real = await Started.on(simulator, userDir);
    const left = phone.length - tried.flow.arrivals.all.length;
    await real.until(() => real.flow.arrivals.all.length === left);
    should(real.flow.arrivals.all.map(({ msg }) => errorOf(msg).code)).eql(Array(left).fill('cancelled'));
    should((await (await doNotTextOf(real.environment)).page(0, 1)).total).equal(0);
    await real.stop();
    await simulator.close();
    rmSync(userDir, { recursive: true });
  });

  it('gets the numbers of a message that its node accepted before it was changed to unblock', async () => {
    const environment = alsoClose(
      environmentOn(
        { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'key', token: () => 'token' },
        { store: on.store, settings: { journal: true } },
      ),
    );
    const phone = Array.from({ length: 100 }, (_, n) => `+1312555${String(1000 + n)}`);
    const before = await Flow.load({ folders, environment, nodes: [blockNode] });
    before.send({ phone });
    await Flow.unload();
    const left = phone.length - before.arrivals.all.length;
    should(left).be.above(0);
    const after = await Flow.load({ folders, environment, nodes: [{ ...blockNode, operation: 'unblock' }] });
    await after.arrivals.next(left);
    should((await (await doNotTextOf(environment)).page(0, 1)).total).equal(phone.length);
  });

  it('blocks texts and waits of other environments, and waits for their requests', async () => {
    const [reached, held] = [gate(), gate()];
    const server = await startServer(async ({ url }) => {
      if (url.includes('/consents')) return { body: { memberId: 1, state: 'pending', lastChanged: 0 } };
      reached.open();
      await held.opened;
      return { body: sent };
    });
    const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' };
    const environment = alsoClose(environmentOn(service, { store: on.store, id: 'texting' }));
    const wait = { id: 'n-wait', type: 'advisor-check-consent', mode: 'wait' };
    const flow = await Flow.load({ folders, environment, nodes: [sendNode, wait] });
    const elsewhere = await doNotTextOf(
      alsoClose(environmentOn(service, { store: on.store, id: 'stop form' })),
    );
    const left = flow.arrivals.next(2);
    flow.send({ phone: consented, text: 'Hi' }, 'send');
    flow.send({ phone: consented }, 'n-wait');
    await reached.opened;
    let isBlocked = false;
    const blocking = elsewhere.block(consented, null, begin).then(() => (isBlocked = true));
    for (let turn = 0; turn < 50; turn++) await nextIteration();
    should(isBlocked).be.false();
    held.open();
    await blocking;
    const outcomes = new Map((await left).map(({ from, msg }) => [from, msg]));
    should(outcomes.get('n-wait')?.payload).containEql({ reason: 'cancelled' });
    should(outcomes.get('send')?.outcome).equal('sent');
    const { msg } = only(await ask(flow, { phone: consented, text: 'Hi' }, 'send'));
    should(errorOf(msg).code).equal('blocked');
  });

  describe('of environments with different stores', () => {
    /** Two environments that know each other's store, as in one Node-RED. */
    const pair = () => {
      const stores = [createMemoryStore(), createMemoryStore()] as const;
      const [file, database] = stores;
      const one = { service: 'sandbox' as const, store: () => file, otherListStores: async () => [database] };
      const other = {
        service: 'production' as const,
        store: () => database,
        otherListStores: async () => [file],
      };
      const ofAnother = overStore(database);
      return { one, other, alone: { service: 'production' as const, store: () => ofAnother } };
    };

    it('applies to both, and is in both stores', async () => {
      const { one, other, alone } = pair();
      const [here, there, elsewhere] = await Promise.all([one, other, alone].map(doNotTextOf));
      await here?.block(consented, 'asked', begin);
      should(await there?.get(consented)).containEql({ since: begin, reason: 'asked' });
      should(await elsewhere?.get(consented)).containEql({ since: begin });
      await elsewhere?.block(unasked, null, begin);
      should(await here?.check(unasked)).have.property('phone', unasked);
      should(await here?.begin(unasked)).have.property('phone', unasked);
      const { data, total } = (await here?.page(0, 10)) ?? { data: [], total: 0 };
      should([data.map(({ phone }) => phone).toSorted(), total]).eql([[unasked, consented].toSorted(), 2]);
      should((await here?.page(1, 1))?.data).have.length(1);
      await there?.unblock(consented);
      should(await Promise.all([here?.get(consented), elsewhere?.get(consented)])).eql([
        undefined,
        undefined,
      ]);
    });

    it('is complete in each of them, should the other leave', async () => {
      const { one, alone } = pair();
      const before = await doNotTextOf({ service: 'sandbox', store: one.store });
      await before.block(consented, 'asked', begin);
      await doNotTextOf(one);
      const rest = await doNotTextOf(alone);
      while (!(await rest.get(consented))) await nextIteration();
      should(await rest.get(consented)).containEql({ since: begin, reason: 'asked' });
    });

    it('is not taken for empty once it is complete, even if it was found empty before', async () => {
      const { one, other } = pair();
      const rest = await ownListOf(other);
      should(await rest.check(consented)).be.undefined();
      await (await doNotTextOf({ service: 'sandbox', store: one.store })).block(consented, 'asked', begin);
      await (await doNotTextOf(one)).check(unasked);
      should(await rest.check(consented)).containEql({ reason: 'asked' });
    });

    it('is not taken for empty by a check while it is being completed', async () => {
      const { one, other } = pair();
      const rest = await ownListOf(other);
      await (await doNotTextOf({ service: 'sandbox', store: one.store })).block(consented, 'asked', begin);
      const [reached, held] = [gate(), gate()];
      const store = other.store();
      const write = store.write.bind(store);
      store.write = async (...args) => {
        reached.open();
        await held.opened;
        return write(...args);
      };
      await doNotTextOf(other);
      await reached.opened;
      const checking = rest.check(consented);
      held.open();
      should(await checking).containEql({ reason: 'asked' });
    });

    /** An environment on its own service, whose list is also kept in the stores named by `others`. */
    const texting = async (
      others: () => readonly Store[] | Promise<readonly Store[]>,
      own = createMemoryStore(),
    ) => {
      const server = await startServer(async () => ({ body: sent }));
      const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' };
      const environment = alsoClose(environmentOn(service, { store: own }));
      Object.assign(environment, { otherListStores: async () => others() });
      const flow = await Flow.load({ folders, environment, nodes: [sendNode] });
      return { flow, environment, own, received: () => server.received.length };
    };

    it('is checked as it is when the request is about to leave, though the other store closed meanwhile', async () => {
      const [before, after] = [createMemoryStore(), createMemoryStore()];
      const [reached, held] = [gate(), gate()];
      let others: Store[] = [
        Object.assign(before, {
          keys: async () => {
            reached.open();
            await held.opened;
            throw storeClosed();
          },
        }),
      ];
      const { flow, received } = await texting(() => others);
      const left = flow.arrivals.next();
      flow.send({ phone: consented, text: 'Hi' });
      await reached.opened;
      await (await doNotTextOf({ service: 'sandbox', store: () => after })).block(unasked, null, begin);
      others = [after];
      held.open();
      should(only(await left).msg.outcome).equal('sent');
      should(errorOf(only(await flow.ask({ phone: unasked, text: 'Hi' })).msg).code).equal('blocked');
      should(received()).equal(1);
    });

    it('is read again where another store came while it was being found', async () => {
      const [reached, held] = [gate(), gate()];
      const database = createMemoryStore();
      await (await doNotTextOf({ service: 'sandbox', store: () => database })).block(unasked, null, begin);
      let others: readonly Store[] = [];
      const { flow, received } = await texting(async () => {
        const found = others;
        reached.open();
        await held.opened;
        return found;
      });
      await reached.opened;
      others = [database];
      forgetLists();
      held.open();
      await nextIteration();
      should(errorOf(only(await flow.ask({ phone: unasked, text: 'Hi' })).msg).code).equal('blocked');
      should(received()).equal(0);
    });

    it('stops a text whose number is blocked right after its turn has read the list', async () => {
      const [reached, held] = [gate(), gate()];
      const own = createMemoryStore();
      const get = own.get.bind(own);
      let isArmed = false;
      Object.assign(own, {
        get: async (...asked: Parameters<Store['get']>) => {
          const found = await get(...asked);
          if (!isArmed) return found;
          isArmed = false;
          reached.open();
          await held.opened;
          return found;
        },
      });
      const { flow, environment, received } = await texting(() => [], own);
      const list = await doNotTextOf(environment);
      await list.block(consented, null, begin);
      const left = flow.arrivals.next();
      isArmed = true;
      flow.send({ phone: unasked, text: 'Hi' });
      await reached.opened;
      await list.block(unasked, null, begin);
      held.open();
      should(errorOf(only(await left).msg).code).equal('blocked');
      should(received()).equal(0);
    });

    it('ends a wait when a number is blocked, and lets it look, while the other store cannot be reached', async () => {
      const looked = gate();
      const server = await startServer(async () => {
        looked.open();
        return { body: { state: 'pending' } };
      });
      const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' };
      const environment = alsoClose(environmentOn(service, { store: createMemoryStore() }));
      Object.assign(environment, { otherListStores: () => new Promise(() => undefined) });
      const waitNode = { id: 'waiting', type: 'advisor-check-consent', mode: 'wait' };
      const flow = await Flow.load({ folders, environment, nodes: [waitNode] });
      const left = flow.arrivals.next();
      flow.send({ phone: consented }, 'waiting');
      await looked.opened;
      await (
        await doNotTextOf({ service: 'sandbox', store: () => environment.store() })
      ).block(consented, null, begin);
      should(only(await left).msg.payload).containEql({ reason: 'cancelled' });
    });

    it('includes people blocked by a process with only one of the stores, and keeps them when that one leaves', async () => {
      const database = createMemoryStore();
      const ofAnother = overStore(database);
      let others: Store[] = [database];
      const { flow, environment, own, received } = await texting(() => others);
      should(only(await flow.ask({ phone: '+12025550107', text: 'Hi' })).msg.outcome).equal('sent');
      const inDatabase = {
        service: 'production' as const,
        store: () => database,
        otherListStores: async () => [own],
      };
      should(await (await doNotTextOf(inDatabase)).check(consented)).be.undefined();
      Object.assign(ofAnother, {
        peers: peers({
          tellOthers: async (command) =>
            (await doNotTextOf(inDatabase)).onRemoteBlock(command as BlockCommand),
        }),
      });
      const elsewhere = await doNotTextOf({ service: 'production', store: () => ofAnother });
      await elsewhere.block(consented, 'stop', begin);
      others = [];
      const { msg } = only(await flow.ask({ phone: consented, text: 'Hi' }));
      should(errorOf(msg).code).equal('blocked');
      should(await (await doNotTextOf(environment)).get(consented)).containEql({ reason: 'stop' });
      should(received()).equal(1);
    });

    it('lets nobody be texted until it is complete', async () => {
      let isAway = true;
      const database = createMemoryStore();
      const page = database.page.bind(database);
      await (await doNotTextOf({ service: 'sandbox', store: () => database })).block(unasked, null, begin);
      Object.assign(database, {
        page: async (...asked: Parameters<Store['page']>) => {
          if (isAway) throw new Error('away');
          return page(...asked);
        },
      });
      let others: Store[] = [database];
      const { flow, received } = await texting(() => others);
      should(only(await flow.ask({ phone: consented, text: 'Hi' })).msg.outcome).equal('failed');
      should(received()).equal(0);
      isAway = false;
      should(only(await flow.ask({ phone: consented, text: 'Hi' })).msg.outcome).equal('sent');
      others = [];
      should(errorOf(only(await flow.ask({ phone: unasked, text: 'Hi' })).msg).code).equal('blocked');
      should(received()).equal(1);
    });

    it('waits for the requests of both', async () => {
      const { one, other } = pair();
      const [here, there] = await Promise.all([one, other].map(doNotTextOf));
      const end = await here?.begin(consented);
      let isBlocked = false;
      const heard = new Promise<string>((resolve) => here?.onBlock(resolve));
      const blocking = there?.block(consented, null, begin).then(() => (isBlocked = true));
      await heard;
      should(isBlocked).be.false();
      (end as () => void)();
      await blocking;
    });
  });

  it('blocks only numbers whose entry cannot be read, until they are blocked again or unblocked', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'advisor-list-'));
    const options = { directory, sealer: sealerOf('test'), warn: () => undefined };
    const before = await openEmbedded(options);
    await (await doNotTextOf({ service: 'sandbox', store: () => before })).block(consented, null, begin);
    const entry = key(key('blocked', 'service'), before.hash(consented));
    await before.close();
    const root = openLmdb<Buffer, Buffer>(join(directory, 'store.mdb'), {
      encoding: 'binary',
      keyEncoding: 'binary',
      overlappingSync: false,
      maxDbs: 8,
    });
    const records = root.openDB<Buffer, Buffer>('work', { encoding: 'binary', keyEncoding: 'binary' });
    const bytes = Buffer.from(records.get(entry) ?? []);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    records.putSync(entry, bytes);
    await root.close();
    const store = await openEmbedded(options);
    const server = await startServer(async () => ({ body: sent }));
    const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' };
    const environment = alsoClose(environmentOn(service, { store }));
    alsoClose({ close: async () => rmSync(directory, { recursive: true }) });
    alsoClose(store);
    const nodes = [
      sendNode,
      blockNode,
      { ...blockNode, id: 'n-check', operation: 'check' },
      { ...blockNode, id: 'n-unblock', operation: 'unblock' },
    ];
    const flow = await Flow.load({ folders, environment, nodes });
    const send = async (phone: string) => only(await ask(flow, { phone, text: 'Hi' }, 'send')).msg;
    for (const _ of ['once', 'again']) {
      const { code, message } = errorOf(await send(consented));
      should(code).equal('blocked');
      should(message).match(/entry of this number .* cannot be read/);
    }
    should((await send(unasked)).outcome).equal('sent');
    const checked = only(await ask(flow, { phone: consented }, 'n-check'));
    should([checked.port, checked.msg.payload]).deepEqual([
      2,
      { phone: consented, blocked: true, since: null, reason: null },
    ]);
    await ask(flow, { phone: consented }, 'n-unblock');
    should((await send(consented)).outcome).equal('sent');
    await ask(flow, { phone: consented }, 'block');
    should(errorOf(await send(consented)).message).match(/is on the do-not-text list/);
    should(server.received).have.length(2);
  });

  it('blocks everybody when it is unknown who was on it', async () => {
    const damaged: Store = overStore(on.store, {}, { hasLostKeys: true });
    const service = {
      baseUrl: on.simulator.baseUrl,
      apiKey: on.simulator.credentials.apiKey,
      token: () => 'x',
    };
    const environment = alsoClose(environmentOn(service, { store: damaged }));
    const flow = await Flow.load({ folders, environment, nodes: [sendNode] });
    const { msg } = only(await flow.ask({ phone: consented, text: 'Hi' }));
    should(errorOf(msg).code).equal('blocked');
    should(errorOf(msg).message).match(/^Nobody is texted: .* cannot be read/);
    should(on.received('sendMessage')).equal(0);
  });

  describe('while a request is in flight', () => {
    const answering = async (answer: () => Promise<object>) => {
      const server = await startServer(async () => answer());
      const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' };
      const environment = alsoClose(environmentOn(service, { store: on.store, client: { random: () => 0 } }));
      const flow = await Flow.load({ folders, environment, nodes: [sendNode, blockNode] });
      return { flow, received: () => server.received.length };
    };

    it('answers when that has finished', async () => {
      const [reached, held] = [gate(), gate()];
      const { flow } = await answering(async () => {
        reached.open();
        await held.opened;
        return { body: sent };
      });
      const left = flow.arrivals.next(2);
      flow.send({ phone: consented, text: 'Hi' }, 'send');
      await reached.opened;
      const hasLeft: string[] = [];
      void left.then((all) => hasLeft.push(...all.map(({ from }) => from)));
      const list = await doNotTextOf({ service: 'sandbox', store: () => on.store });
      let isBlocked = false;
      const blocking = list.block(consented, null, begin).then(() => {
        isBlocked = true;
      });
      flow.send({ phone: consented }, 'block');
      for (let turn = 0; turn < 50; turn++) await nextIteration();
      should(isBlocked).be.false();
      should(hasLeft).deepEqual([]);
      held.open();
      await blocking;
      should((await left).map(({ from }) => from).sort()).deepEqual(['block', 'send']);
    });

    it('answers when that has finished even in another instance of the subflow that contains the environment', async () => {
      const directory = mkdtempSync(join(tmpdir(), 'advisor-list-'));
      const options = { directory, sealer: sealerOf('test'), warn: () => undefined };
      const stores = await Promise.all([openEmbedded(options), openEmbedded(options)]);
      alsoClose({ close: async () => rmSync(directory, { recursive: true }) });
      for (const each of stores) alsoClose(each);
      const [one, other] = await Promise.all(
        stores.map((store) => doNotTextOf({ service: 'sandbox', store: () => store })),
      );
      const ended = await one?.begin('+12025550100');
      let isDone = false;
      const heard = new Promise<string>((resolve) => one?.onBlock(resolve));
      const blocking = other?.block('+12025550100', null, 0).then(() => (isDone = true));
      await Promise.race([heard, blocking]);
      isDone.should.be.false();
      if (typeof ended === 'function') ended();
      await blocking;
    });

    it('prevents further retries', async () => {
      const [reached, held] = [gate(), gate()];
      const problem = { code: 'internal_error', retryable: true, status: 500, title: 'x', detail: 'y' };
      const { flow, received } = await answering(async () => {
        reached.open();
        await held.opened;
        return { status: 500, headers: { 'content-type': 'application/problem+json' }, body: problem };
      });
      const left = flow.arrivals.next(2);
      flow.send({ phone: consented, text: 'Hi' }, 'send');
      await reached.opened;
      flow.send({ phone: consented }, 'block');
      held.open();
      await left;
      should(received()).equal(1);
    });
  });

  it('is respected, whenever somebody is added while lists are being processed', async function () {
    this.timeout(120_000);
    const flow = await load(sendNode);
    const list = await doNotTextOf(on.environment);
    let number = 1000;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), fc.nat(40), fc.nat(12), async (count, at, turns) => {
        const phone = Array.from({ length: count }, () => `+1202556${(number++).toString()}`);
        const victim = phone[at % count] ?? '';
        const received = (): number =>
          on.simulator.ledger.entries().filter(({ phone: to }) => to === victim).length;
        const left = flow.arrivals.next(count);
        flow.send({ phone, text: 'Hi' });
        for (let turn = 0; turn < turns; turn++) await nextIteration();
        await list.block(victim, null, begin);
        const then = received();
        await left;
        const after = only(await flow.ask({ phone: victim, text: 'Hi' }));
        should(errorOf(after.msg).code).equal('blocked');
        should(received()).equal(then);
      }),
      { numRuns: 60 },
    );
  });
});
