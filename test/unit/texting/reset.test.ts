import should from 'should';
import { closeAll } from '../../support/closing';
import { nextIteration } from '../../support/event-loop';
import { Flow } from '../../support/flow';
import { only } from '../../support/only';
import { errorOf, inOrder } from '../../support/outcomes';
import { heldSendNode } from '../../support/texting/setup';

describe('msg.reset with msg.phone', () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  const held = async () => {
    const { flow, open, server } = await heldSendNode({
      client: { maxConcurrent: 1 },
      settings: { maxConcurrent: 2 },
    });
    const phone = ['+12025550101', '+12025550102', '+12025550103', '+12025550104'];
    flow.send({ phone, text: 'Hi' });
    while (server.received.length < 1) await nextIteration();
    return { flow, open };
  };

  it('cancels only for msg.phone, however it is written, and lets the others go out', async () => {
    const { flow, open } = await held();
    // The second waits in the client, the fourth for its turn.
    flow.send({ reset: true, phone: ['+1 (202) 555-0102', { phone: '+12025550104' }] });
    await flow.completed.next();
    open();
    const arrived = inOrder(await flow.arrivals.next(4));
    should(arrived.map(({ port }) => port)).deepEqual([0, 1, 0, 1]);
    should(errorOf(arrived[1]?.msg ?? {}).code).equal('cancelled');
    should(errorOf(arrived[3]?.msg ?? {}).code).equal('cancelled');
  });

  for (const phone of ['', null, [], 'grace', '5550102', ['+12025550102', 'grace'], {}]) {
    it(`cancels nothing when msg.phone is ${JSON.stringify(phone)}, and says so`, async () => {
      const { flow, open } = await held();
      const { port, msg } = only(await flow.ask({ reset: true, phone }));
      should(port).equal(1);
      should(errorOf(msg).code).equal('invalid_input');
      open();
      should((await flow.arrivals.next(4)).map((each) => each.port)).deepEqual([0, 0, 0, 0]);
    });
  }
});
