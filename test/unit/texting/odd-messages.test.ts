import should from 'should';
import { storable, UnreadableProperty } from '../../../lib/outbox/storable-message';
import { oneOrList } from '../../../lib/runtime/inputs';
import { TooLarge } from '../../../lib/state/store';
import { phonesOfControl, recipientsOf } from '../../../lib/texting/recipients';
import { alsoClose, closeAll } from '../../support/closing';
import { environmentOn, type TestEnvironment } from '../../support/environment';
import { Flow } from '../../support/flow';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { sent } from '../../support/sent';
import { type Scripted, startServer } from '../../support/server';
import { sendNode } from '../../support/texting/setup';

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

  it('lets other work continue while a long list is read, and a reset after it applies to that list', async () => {
    const flow = await sendNode(environment);
    const list = Array.from({ length: 20_000 }, () => ({ nobody: true }));
    let ticks = 0;
    const watch = setInterval(() => (ticks += 1), 0);
    const coming = flow.arrivals.next(list.length + 1);
    flow.send({ phone: [...list, phone], text: 'Hi' });
    flow.send({ reset: true });
    const codes = new Set((await coming).map(({ msg }) => errorOf(msg).code));
    clearInterval(watch);
    should(ticks).be.above(5);
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
