import { inspect } from 'node:util';
import should from 'should';
import { alsoClose, closeAll } from '../../support/closing';
import { environmentOn } from '../../support/environment';
import { Flow } from '../../support/flow';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { startServer } from '../../support/server';
import { sendNode } from '../../support/texting/setup';

const scheduled = { successes: [{ messageId: null, memberId: 4 }], failures: [] };
const phone = '+12025550101';

describe('a scheduled text', () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  const serving = async (settings = {}, first: object = scheduled) => {
    const server = await startServer(({ index }) => ({ body: index === 0 ? first : scheduled }));
    const service = { baseUrl: `${server.url}/v1`, apiKey: 'key', token: () => 'token' };
    const bodies = (): unknown[] => server.received.map(({ body }) => JSON.parse(body) as unknown);
    return { environment: alsoClose(environmentOn(service, { settings })), bodies };
  };

  for (const [deliveryDateUnit, unit, at] of [
    ['ms', 1, '13:00:00.600Z'],
    ['s', 1000, '13:00:01Z'],
  ] as const) {
    it(`without a zone is in that of the environment, and its payload says when the service sends it, in ms (${deliveryDateUnit})`, async () => {
      const { environment, bodies } = await serving({ deliveryDateUnit, timeZone: 'America/New_York' });
      const flow = await sendNode(environment, { schedule: 'at' });
      const given = { phone, text: 'Hi', deliveryDate: '2034-04-03T09:00:00.600' };
      const { port, msg } = only(await flow.ask(given));
      should(port).equal(0);
      const deliveryDate = Date.parse(`2034-04-03T${at}`);
      should(msg.payload).containEql({ scheduled: true, deliveryDate });
      should(bodies()).deepEqual([
        { phone, text: 'Hi', scheduleDelivery: true, deliveryDate: deliveryDate / unit },
      ]);
    });
  }

  it('returns with consent for its original time and recurrence, whatever the message says by then', async () => {
    const { environment, bodies } = await serving({}, { successes: [], failures: ['No consent'] });
    const flow = await sendNode(environment, { schedule: 'at' });
    const deliveryDate = Date.now() + 86_400_000;
    const asked = only(await flow.ask({ phone, text: 'Hi', deliveryDate, frequency: 7 }));
    should(asked.port).equal(2);
    const resend = { node: 'send', phone, text: 'Hi', advisor: 'default', deliveryDate, frequency: 7 };
    should(asked.msg.resend).deepEqual(resend);
    const back = only(await flow.ask({ ...asked.msg, deliveryDate: 'lost', frequency: 'lost', text: '' }));
    should(back.port).equal(0);
    should(back.msg.payload).containEql({ scheduled: true, deliveryDate });
    const body = { phone, text: 'Hi', scheduleDelivery: true, deliveryDate, frequency: 7 };
    should(bodies()).deepEqual([body, body]);
  });

  for (const deliveryDate of [Date.UTC(2040, 0, 31) + 0.5, 1e300, 8.64e15 + 2, 'next week', true]) {
    it(`is rejected for ${inspect(deliveryDate)}`, async () => {
      const { environment, bodies } = await serving();
      const flow = await sendNode(environment, { schedule: 'at' });
      const { port, msg } = only(await flow.ask({ phone, text: 'Hi', deliveryDate }));
      should(port).equal(1);
      should(errorOf(msg).code).equal('invalid_input');
      should(errorOf(msg).message).match(/^The delivery date cannot be read/);
      should(bodies()).be.empty();
    });
  }

  for (const frequency of [true, false, [1], 1.5, 'weekly', '1.5', {}, NaN, 2 ** 53]) {
    it(`is rejected with the frequency ${inspect(frequency)}`, async () => {
      const { environment, bodies } = await serving();
      const flow = await sendNode(environment, { schedule: 'at' });
      const given = { phone, text: 'Hi', deliveryDate: Date.now() + 1e9, frequency };
      const { port, msg } = only(await flow.ask(given));
      should(port).equal(1);
      should(errorOf(msg).code).equal('invalid_input');
      should(errorOf(msg).message).match(/^The recurrence must be a whole number/);
      should(bodies()).be.empty();
    });
  }

  for (const [frequency, sent] of [
    [0, 0],
    [-1, -1],
    [' 7 ', 7],
    ['', undefined],
  ] as const) {
    it(`accepts the frequency ${inspect(frequency)}`, async () => {
      const { environment, bodies } = await serving();
      const flow = await sendNode(environment, { schedule: 'at' });
      await flow.ask({ phone, text: 'Hi', deliveryDate: Date.now() + 1e9, frequency });
      should((bodies()[0] as { frequency?: number }).frequency).equal(sent);
    });
  }
});
