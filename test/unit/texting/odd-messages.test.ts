import helper from 'node-red-node-test-helper';
import should from 'should';
import { storable, UnreadableProperty } from '../../../lib/outbox/storable-message';
import { oneOrList } from '../../../lib/runtime/inputs';
import { TooLarge } from '../../../lib/state/store';
import { phonesOfControl, recipientsOf } from '../../../lib/texting/recipients';
import { alsoClose, closeAll } from '../../support/closing';
import { environmentOn, type TestEnvironment } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { Flow } from '../../support/flow';
import { gate } from '../../support/gate';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { sent } from '../../support/sent';
import { type Scripted, startServer } from '../../support/server';
import { folders as bookFolders } from '../../support/address-book/setup';
import { checkFolder, requestFolder, sendFolder, sendNode } from '../../support/texting/setup';

const phone = '+12025550123';

describe('a message that no flow should create', () => {
  let server: Scripted;
  let environment: TestEnvironment;

  beforeEach(async () => {
    server = await startServer(() => ({ body: sent }));
    environment = alsoClose(
      environmentOn({ baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' }),
    );
  });
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  const ofFlow = { text: 'text', textType: 'flow' };

  /** Reads of the flow's context wait until the result is called; `reads` counts them. */
  const readingTheFlow = (reads = { count: 0 }): (() => void) => {
    const { opened, open } = gate();
    const get = (_key: string, _store: unknown, give: (error: null, text: string) => void): void => {
      reads.count += 1;
      void opened.then(() => {
        give(null, 'Hi');
      });
    };
    Object.assign(helper.getNode('send') as object, { context: () => ({ flow: { get } }) });
    return open;
  };

  /** The only failure emitted; afterwards the node still sends a valid message. */
  const failureOf = async (message: object): Promise<ReturnType<typeof errorOf>> => {
    const flow = await sendNode(environment);
    const { port, msg } = only(await flow.ask(message as Record<string, unknown>));
    should(port).equal(1);
    should(only(await flow.ask({ phone, text: 'Hi' })).port).equal(0);
    should(flow.settled).have.length(2);
    should(server.received.map(({ body }) => JSON.parse(body) as unknown)).deepEqual([{ phone, text: 'Hi' }]);
    return errorOf(msg);
  };

  it('is rejected with the limit when it is too large to be saved', async () => {
    for (const payload of [Buffer.alloc(65 * 2 ** 20), 'x'.repeat(65 * 2 ** 20)]) {
      const { code, message } = await failureOf({ phone, text: 'Hi', payload });
      should(code).equal('invalid_input');
      should(message).match(/Nothing was sent.*64 MB/);
      server.received.length = 0;
      await Flow.unload();
    }
  });

  it('is rejected when a list in it has billions of empty entries', () => {
    // Node-RED itself cannot copy such a message, as it does for Complete nodes.
    const sparse = new Array<unknown>(4e9);
    const rules = { country: '', field: 'phone' };
    should(() => storable({ message: { payload: sparse } })).throw(TooLarge);
    for (const read of [
      () => recipientsOf(sparse, 'msg.phone', rules),
      () => phonesOfControl({ phone: sparse } as never, rules),
      () => oneOrList(sparse, 'msg.contactId'),
    ])
      should(read).throw(/Nothing was sent.* has 4000000000 entries/);
  });

  it('is rejected when reading a part of it throws', () => {
    const throwing = {
      get part(): never {
        throw new Error('secret');
      },
    };
    for (const payload of [throwing, [throwing], { deep: throwing }])
      should(() => storable({ message: { payload } })).throw(UnreadableProperty, { message: 'part' });
  });

  it('lets other work continue while a long list is read', async () => {
    let turns = 0;
    const count = (): void => {
      turns += 1;
      next = setImmediate(count);
    };
    let next = setImmediate(count);
    const list = Array.from({ length: 5000 }, () => 'nobody');
    const { items } = await recipientsOf(list, 'msg.phone', { country: '', field: 'phone' });
    clearImmediate(next);
    should(items).have.length(list.length);
    should(turns).be.aboveOrEqual(2);
  });

  it('is cancelled by a reset that comes while its long list is read', async () => {
    const flow = await sendNode(environment);
    const list = Array.from({ length: 5000 }, () => ({ nobody: true }));
    const coming = flow.arrivals.next(list.length + 1);
    flow.send({ phone: [...list, phone], text: 'Hi' });
    flow.send({ reset: true });
    const codes = new Set((await coming).map(({ msg }) => errorOf(msg).code));
    should(codes).deepEqual(new Set(['cancelled']));
    should(server.received).be.empty();
  }).timeout(60_000);

  for (const property of [
    'phone',
    'text',
    'advisor',
    'resend',
    'parts',
    'summary',
    'reset',
    'dryRun',
    'topic',
  ])
    it(`emits one failure when msg.${property} throws`, async () => {
      const message = { phone, text: 'Hi' };
      Object.defineProperty(message, property, {
        enumerable: true,
        configurable: true,
        get() {
          throw new Error('secret');
        },
      });
      const { code, message: said } = await failureOf(message);
      should(code).equal('invalid_input');
      should(said).containEql(`"${property}" of the message throws`).and.not.containEql('secret');
    });

  const boom = (): never => {
    throw new Error('secret');
  };
  const hostile = new Proxy({ phone }, { get: boom, has: boom, ownKeys: boom, getPrototypeOf: boom });
  const revoked = (): unknown => {
    const { proxy, revoke } = Proxy.revocable([phone], {});
    revoke();
    return proxy;
  };
  const nested = (levels: number): unknown => {
    let whole: unknown = phone;
    for (let level = 0; level < levels; level++) whole = { whole };
    return whole;
  };
  const odd: Readonly<Record<string, () => unknown>> = {
    'a list that throws': () => new Proxy([phone], { get: boom, has: boom, ownKeys: boom }),
    'a list that was revoked': revoked,
    'a list with an object that throws': () => [hostile],
    'a list with a list that was revoked': () => [revoked()],
    'twenty thousand levels': () => nested(20_000),
    'a promise that never ends': () => ({ then: () => undefined }),
  };
  const askedFor: Readonly<Record<string, readonly [property: string, config: object]>> = {
    'advisor-send-text': ['phone', {}],
    'advisor-request-consent': ['phone', {}],
    'advisor-check-consent': ['memberId', { by: 'memberId' }],
    'advisor-contact': ['contactId', { operation: 'get' }],
    'advisor-group': ['groupIds', { operation: 'setGroups' }],
  };
  for (const [type, [property, config]] of Object.entries(askedFor))
    for (const [what, make] of Object.entries(odd))
      it(`is rejected by ${type} where msg.${property} is ${what}`, async () => {
        const flow = await Flow.load({
          folders: [sendFolder, requestFolder, checkFolder, ...bookFolders],
          environment,
          nodes: [{ id: 'node', type, ...config }],
        });
        const { port, msg } = only(await flow.ask({ text: 'Hi', contactId: 5, [property]: make() }));
        should(port).equal(1);
        should(errorOf(msg)).containEql({ code: 'invalid_input' });
        should(JSON.stringify(msg.error)).not.containEql('secret');
        await flow.completed.next();
        should(server.received).be.empty();
      });

  it('is rejected with the limit, and completes, where another part of it has too many levels or throws', async () => {
    for (const [payload, said] of [
      [nested(20_000), /more than 1000 levels/],
      [{ part: [hostile] }, /"\[0\]" of the message throws/],
    ] as const) {
      const flow = await sendNode(environment);
      const { port, msg } = only(await flow.ask({ phone, text: 'Hi', payload }));
      should(port).equal(1);
      should(errorOf(msg).code).equal('invalid_input');
      should(errorOf(msg).message).match(said);
      await flow.completed.next();
      await Flow.unload();
    }
    should(server.received).be.empty();
  });

  it('completes once where Node-RED cannot copy it, as a failure, an error or a reset', async () => {
    const payload = { part: [hostile] };
    const flow = await sendNode(environment);
    should(only(await flow.ask({ phone: '', text: 'Hi', payload })).port).equal(1);
    await flow.completed.next();
    flow.send({ reset: true, payload });
    await flow.completed.next();
    should(flow.settled).deepEqual([undefined, undefined]);
    await Flow.unload();
    const unwired = await sendNode(environment, {}, { unwired: [1] });
    unwired.send({ phone: '', text: 'Hi', payload });
    await unwired.errors.next();
    should(unwired.settled).have.length(1);
  });

  it('leaves once where Node-RED cannot copy a set in it', async () => {
    const topic = new Set();
    topic.add(topic);
    const flow = await sendNode(environment);
    should(only(await flow.ask({ phone, text: 'Hi', topic })).port).equal(0);
    await nextIteration();
    await Flow.unload();
    const again = await sendNode(environment);
    should(only(await again.ask({ phone, text: 'Hello' })).msg).containEql({ text: 'Hello' });
  });

  it('is sent where it has many levels, or was frozen, and fails as any other', async () => {
    const flow = await sendNode(environment);
    should(only(await flow.ask({ phone, text: 'Hi', payload: nested(900) })).port).equal(0);
    should(only(await flow.ask(Object.freeze({ phone, text: 'Hi' }))).port).equal(0);
    const { port, msg } = only(await flow.ask(Object.freeze({ phone, text: '' })));
    should([port, errorOf(msg).code]).eql([1, 'invalid_input']);
  });

  const fixed: Readonly<Record<string, PropertyDescriptor>> = {
    'has a getter': { get: () => phone },
    'has a setter that throws': { get: () => phone, set: boom, configurable: true },
    'cannot be written': { value: phone },
    'cannot be deleted': { value: phone, writable: true },
    'is hidden, and has a getter': { get: () => phone, enumerable: false },
  };
  for (const [what, descriptor] of Object.entries(fixed))
    it(`is sent, and leaves, where a property that an outcome writes ${what}`, async () => {
      const flow = await sendNode(environment);
      for (const property of ['phone', 'text', 'payload', 'outcome', 'error', 'parts', 'summary'])
        for (const given of [phone, [phone]]) {
          const message = { phone: given, text: 'Hi' };
          const isTold = descriptor.enumerable !== false || !['phone', 'text'].includes(property);
          Object.defineProperty(message, property, { enumerable: true, ...descriptor });
          const { port, msg } = only(await flow.ask(message));
          should([property, port]).eql([property, isTold ? 0 : 1]);
          should(msg.outcome).equal(isTold ? 'sent' : 'failed');
        }
    });

  it('leaves where its class has a getter for what an outcome writes', async () => {
    const flow = await sendNode(environment);
    for (const property of ['payload', 'outcome', 'error', 'parts', 'summary', 'repeated', 'advisor']) {
      const inherited = Object.defineProperty({}, property, { get: () => undefined });
      const message = Object.assign(Object.create(inherited) as object, { phone, text: 'Hi' });
      const { port, msg } = only(await flow.ask(message as Record<string, unknown>));
      should([property, port, msg.outcome]).eql([property, 0, 'sent']);
    }
  });

  it('leaves after the next deploy when it cannot be emitted', async () => {
    const flow = await sendNode(environment);
    const { opened: failed, open: fail } = gate();
    const send = (): never => {
      fail();
      throw new Error('a hook is broken');
    };
    Object.assign(helper.getNode('send') as object, { send });
    flow.send({ phone: [phone], text: 'Hi' });
    await failed;
    await Flow.unload();
    const again = await sendNode(environment);
    const { port, msg } = only(await again.arrivals.next());
    should([port, msg.phone, msg.repeated]).eql([0, phone, true]);
    should(msg.summary).containEql({ total: 1, sent: 1 });
    should(server.received).have.length(1);
  });

  it('is accepted before its node closes where a field of it is read asynchronously', async () => {
    const flow = await sendNode(environment, ofFlow);
    const open = readingTheFlow();
    flow.send({ phone });
    let isClosed = false;
    const closed = Flow.unload().then(() => {
      isClosed = true;
    });
    for (let turns = 0; turns < 50; turns++) await nextIteration();
    should(isClosed).be.false();
    open();
    await closed;
    const [text] = await (await sendNode(environment)).arrivals.next();
    should(text?.port).equal(0);
  });

  it('is read beside others whose fields are read asynchronously, and a reset behind them cancels them all', async () => {
    const flow = await sendNode(environment, ofFlow);
    const reads = { count: 0 };
    const open = readingTheFlow(reads);
    for (let count = 0; count < 3; count++) flow.send({ phone });
    flow.send({ reset: true });
    flow.send({ phone, topic: 'after' });
    while (reads.count < 4) await nextIteration();
    open();
    const arrived = await flow.arrivals.next(4);
    const codes = arrived.map(({ port, msg }) => (port === 0 ? msg.topic : errorOf(msg).code));
    should(codes.sort()).eql(['after', 'cancelled', 'cancelled', 'cancelled']);
  });

  it('keeps no text from the next start while it is read, and the environment is already closed', async () => {
    const service = { baseUrl: `${server.url}/v1`, apiKey: 'key' };
    const { opened, open: askedForToken } = gate();
    const closing = environmentOn({
      ...service,
      token: () => {
        askedForToken();
        return new Promise(() => undefined);
      },
    });
    const flow = await sendNode(closing, ofFlow);
    readingTheFlow()();
    flow.send({ phone });
    await opened;
    const open = readingTheFlow();
    flow.send({ phone });
    const closed = Flow.unload();
    await closing.close();
    for (let turns = 0; turns < 50; turns++) await nextIteration();
    open();
    await closed;
    should(flow.arrivals.all).be.empty();
    const after = await sendNode(environment);
    for (const { port } of await after.arrivals.next(2)) should(port).equal(0);
  });

  for (const [what, forged] of Object.entries({
    'no text': { text: '' },
    'a blank text': { text: ' \n' },
    'a text that is not a string': { text: 7 },
    'half a character': { text: 'a\ud800' },
    'no number': { phone: undefined },
    'a number in another format': { phone: '(202) 555-0123' },
    'no advisor': { advisor: '' },
    'an invalid advisor': { advisor: ['default'] },
    'an invalid key': { onceKey: 7 },
    'an invalid date': { deliveryDate: 'soon' },
    'a date in the past': { deliveryDate: 1 },
  }))
    it(`is validated as msg.resend, with ${what}`, async () => {
      const resend = { node: 'send', phone, text: 'Forged', advisor: 'default', ...forged };
      const { code } = await failureOf({ phone, text: 'Other', resend });
      should(code).equal('invalid_input');
    });
});
