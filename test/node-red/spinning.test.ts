import should from 'should';
import { describeInLongRun, versions } from '../support/extent';
import type { FlowNode } from '../support/node-red';
import { numbers as documented } from '../support/numbers';
import { environmentId, Sandbox, senderId, twoNodes, waiterId } from '../support/sandbox';

const requesterId = 'c0c0c0c0c0c0c0c0';
const circleId = 'd0d0d0d0d0d0d0d0';
const tab = 'f0f0f0f0f0f0f0f0';

/** The canonical loop, and a send node whose failures lead back to it. */
const loops: FlowNode[] = [
  ...twoNodes({
    sender: { wires: [['sent'], ['failed'], ['needs consent', requesterId]] },
    waiter: { wires: [['accepted', senderId], ['wait failed'], ['not accepted']] },
  }),
  {
    id: requesterId,
    type: 'advisor-request-consent',
    z: tab,
    environment: environmentId,
    wires: [[waiterId], ['failed']],
  },
  {
    id: circleId,
    type: 'advisor-send-text',
    z: tab,
    name: 'in a circle',
    environment: environmentId,
    wires: [['sent'], ['circle', circleId], []],
  },
  { id: 'circle', type: 'test-port', z: tab, name: 'circle', wires: [[]] },
  { id: 'to circle', type: 'test-port', z: tab, name: 'to circle', wires: [[circleId]] },
];

for (const version of versions) {
  describeInLongRun(`a flow that would spin, on Node-RED ${version.toString()}`, function () {
    this.timeout(180_000);
    let on: Sandbox;

    before(async () => {
      on = await Sandbox.start({ version, flows: loops });
    });
    after(() => on.close());

    const sends = (): number => on.entries('sendMessage').length;
    /** Resolves when the only text in the queue is held. */
    const held = async (): Promise<void> => {
      for (let state: string | undefined; state !== 'held';) {
        const { json } = await on.red.request('GET', `advisor-texting/${environmentId}/queue`);
        state = (json as { data: { state: string }[] }).data[0]?.state;
      }
    };

    it('holds a text whose consent the service ignores, over kill -9, and asks nobody twice', async () => {
      const { red } = on;
      await red.send('send', { phone: documented.disbelieved, text: 'Hello' });
      await on.received('sendMessage', 2);
      await held();
      await red.kill9();
      await red.run();
      await held();
      should(sends()).equal(2);
      should(on.entries('requestConsent')).have.length(1);
      await red.send('send', { reset: true });
      const [cancelled] = await red.messages('failed', 1);
      should(cancelled?.['error']).containEql({ code: 'cancelled' });
    });

    it('delays a message that its failure leads back to its node, and loses it in no kill', async () => {
      const { red } = on;
      const before = sends();
      const from = red.lines.length;
      await red.send('to circle', { phone: documented.landline, text: 'Hello', topic: 'kept' });
      await red.logged(/in a circle.*20/, { from });
      should(sends() - before).equal(21);
      await red.kill9();
      await red.run();
      const told = await red.messages('circle', 22);
      should(told.at(-1)).containEql({ topic: 'kept', repeated: true });
      should(sends() - before).equal(21);
    });
  });
}
