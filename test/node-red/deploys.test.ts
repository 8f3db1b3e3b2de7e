import should from 'should';
import { versions } from '../support/extent';
import type { DeployType, FlowNode } from '../support/node-red';
import { numbers, Sandbox, senderId, toldOf, waiterId } from '../support/sandbox';

const sends = ['sent', 'failed', 'needs consent'];
const waits = ['accepted', 'wait failed', 'not accepted'];
/** Each says what is deployed and how, with the list in progress and the waits waiting. */
const deploys: readonly (readonly [type: DeployType, name: string])[] = [
  ['full', ''],
  ['nodes', 'renamed'],
  ['flows', 'renamed again'],
  ['reload', 'renamed again'],
];

for (const version of versions) {
  describe(`deploys on Node-RED ${version.toString()}`, function () {
    this.timeout(180_000);
    let on: Sandbox;

    before(async () => {
      on = await Sandbox.start({
        version,
        simulator: { contacts: 200, settings: { consentRequired: false } },
        environment: { requestsPerSecond: 150 },
      });
    });
    after(() => on.close());

    it('of every type lose and repeat nothing of a list in progress and of waits', async () => {
      const { red, simulator } = on;
      const listed = numbers(600, 1000);
      const waiting = numbers(20);
      await red.send('wait', { phone: waiting });
      await red.send('send', { phone: listed, text: 'Hello' });
      let received = 0;
      for (const [type, name] of deploys) {
        received += 120;
        await on.received('sendMessage', received);
        const changed = on.flows.map((node): FlowNode =>
          node.id === senderId || node.id === waiterId ? { ...node, name } : node,
        );
        await red.deploy(changed, type);
        should(on.entries('sendMessage').length).be.below(600);
      }
      await red.until(
        () => toldOf(red, sends).messages.length >= 600 || undefined,
        'The last outcome',
        30_000,
      );
      for (const phone of waiting) simulator.accept(phone);
      await red.until(() => toldOf(red, waits).messages.length >= 20 || undefined, 'The last wait', 30_000);

      const list = toldOf(red, sends);
      const consent = toldOf(red, waits);
      should([...list.byPhone.keys()].sort()).deepEqual(listed);
      should([...consent.byPhone.keys()].sort()).deepEqual(waiting);
      for (const told of list.byPhone.values())
        should(told).deepEqual([{ port: 'sent', code: undefined, isRepeated: false }]);
      for (const told of consent.byPhone.values())
        should(told).deepEqual([{ port: 'accepted', code: undefined, isRepeated: false }]);
      should(
        on
          .entries('sendMessage')
          .map(({ phone }) => phone)
          .sort(),
      ).deepEqual(listed);
    });

    it('of modified nodes that remove an environment and bring it back leave its nodes working', async () => {
      const { red } = on;
      const [first, second] = numbers(2, 2000);
      const told = (phone: string | undefined) =>
        red.until(() => toldOf(red, sends).byPhone.get(String(phone))?.[0], 'An outcome', 30_000);
      await red.deploy(on.flows.slice(1), 'nodes');
      await red.send('send', { phone: first, text: 'Hello' });
      should((await told(first)).code).equal('not_configured');
      await red.deploy(on.flows, 'nodes');
      await red.send('send', { phone: second, text: 'Hello' });
      should(await told(second)).deepEqual({ port: 'sent', code: undefined, isRepeated: false });
    });
  });
}
