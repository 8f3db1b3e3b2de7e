import { setTimeout as pause } from 'node:timers/promises';
import should from 'should';
import { Phones } from '../support/examples/setup';
import { versions } from '../support/extent';
import { startRed, type FlowNode, type Message, type RealRed } from '../support/node-red';
import { numbers } from '../support/numbers';
import { environmentId, twoNodes, waiterId } from '../support/sandbox';

const day = 86_400;
const { silent } = numbers;
/** Contacts of the simulator who have not consented, and answer nothing by themselves. */
const phone = '+12145550104';
const other = '+12155550105';
const asRecommended = { pollEvery: 30, pollFor: 300, thenEvery: 300, giveUpAfter: day };
const simulators: FlowNode[] = [environmentId, 'another'].map((id) => ({
  id,
  type: 'advisor-environment',
  name: `Simulator ${id}`,
  service: 'simulator',
}));
const flows = [...simulators, ...twoNodes({ waiter: asRecommended })];
const changed = (id: string, changes: object): FlowNode[] =>
  flows.map((node) => (node.id === id ? { ...node, ...changes } : node));
const tab = 'f0f0f0f0f0f0f0f0';

for (const version of versions) {
  describe(`waits of a node that is moved, on Node-RED ${version.toString()}`, function () {
    this.timeout(180_000);
    let red: RealRed;
    let phones: Phones;

    before(async () => {
      red = await startRed({ version, flows });
      phones = await Phones.open(red);
    });
    after(() => red.close());
    beforeEach(async () => {
      await red.deploy(flows);
      await phones.control('POST', 'reset');
      red.arrived.length = 0;
    });

    const polls = async (): Promise<number> => (await phones.ledger('getConsent')).length;
    const waits = async (): Promise<number | null> => {
      const { json } = await red.request('GET', `advisor-texting/${environmentId}/waits?pageSize=1`);
      return (json as { pageInfo: { totalRecord: number | null } }).pageInfo.totalRecord;
    };
    /** Time moves once the wait is accepted: it would otherwise start later, and be polled less often. */
    const begin = async (whom: string, port = 'wait'): Promise<void> => {
      const [before, had] = [await polls(), await waits()];
      await red.send(port, { phone: whom, topic: 'kept' });
      while ((await waits()) === had) await pause(10);
      while ((await polls()) === before) await phones.advance(5);
    };

    /** After a start each wait is polled within its interval: time is moved until they have been. */
    const movedUntil = async (port: string): Promise<Message[]> => {
      while (!red.arrived.some((one) => one.port === port)) await phones.advance(30);
      return red.messages(port);
    };

    it('are polled 298 times in a day of silence, and then expire', async () => {
      await begin(silent);
      await phones.advance(day + 60);
      const [msg] = await red.messages('not accepted');
      should(msg?.['payload']).containEql({ reason: 'expired' });
      should(await polls()).equal(298);
    });

    it('are kept with their start in a disabled tab: those that expired meanwhile get one last poll', async () => {
      await begin(silent);
      await phones.advance(60);
      await red.deploy(changed(tab, { disabled: true }), 'flows');
      const before = await polls();
      await phones.advance(3 * day);
      should(await polls()).equal(before);
      await red.deploy(flows, 'flows');
      const [msg] = await movedUntil('not accepted');
      should(msg).containEql({ topic: 'kept' });
      should(msg?.['payload']).containEql({ reason: 'expired' });
      should(await polls()).equal(before + 1);
    });

    it('continue when the node is moved to another tab', async () => {
      await begin(phone);
      const elsewhere = changed(waiterId, { z: 'elsewhere' }).map((node) =>
        ['accepted', 'wait failed', 'not accepted', 'wait'].includes(node.id)
          ? { ...node, z: 'elsewhere' }
          : node,
      );
      await red.deploy([...elsewhere, { id: 'elsewhere', type: 'tab', label: 'Elsewhere' }], 'nodes');
      await phones.accept(phone);
      const [msg] = await movedUntil('accepted');
      should(msg).containEql({ phone, topic: 'kept' });
      should(msg).not.have.property('repeated');
    });

    it('are not shared with a copy of the node', async () => {
      await begin(phone);
      const original = flows.find(({ id }) => id === waiterId);
      const copy: FlowNode = { ...original, id: 'copy', type: 'advisor-check-consent' };
      await red.deploy([...flows, copy], 'nodes');
      await phones.accept(phone);
      await movedUntil('accepted');
      await phones.advance(600);
      await red.deploy(flows);
      should(red.arrived.map(({ port }) => port)).deepEqual(['accepted']);
    });

    it('are cancelled when the node gets another environment, which is not asked', async () => {
      await begin(phone);
      const before = await polls();
      await red.deploy(changed(waiterId, { environment: 'another' }), 'nodes');
      const [msg] = await red.messages('not accepted');
      should(msg).containEql({ phone, topic: 'kept' });
      should(msg?.['payload']).containEql({ reason: 'cancelled' });
      await phones.advance(3600);
      should(await polls()).equal(before);
    });

    it('continue after a restart in each instance of a subflow', async () => {
      const inner: FlowNode = {
        ...flows.find(({ id }) => id === waiterId),
        id: 'inner',
        type: 'advisor-check-consent',
        z: 'sub',
        wires: [[], [], []],
      };
      const instance = (id: string): FlowNode[] => [
        { id, type: 'subflow:sub', z: tab, wires: [[`out ${id}`]] },
        { id: `in ${id}`, type: 'test-port', z: tab, name: `in ${id}`, wires: [[id]] },
        { id: `out ${id}`, type: 'test-port', z: tab, name: `out ${id}`, wires: [] },
      ];
      const subflow: FlowNode = {
        id: 'sub',
        type: 'subflow',
        name: 'waiting',
        in: [{ x: 40, y: 40, wires: [{ id: 'inner' }] }],
        out: [{ x: 300, y: 40, wires: [{ id: 'inner', port: 0 }] }],
      };
      await red.deploy([...flows, subflow, inner, ...instance('first'), ...instance('second')]);
      await begin(phone, 'in first');
      await begin(other, 'in second');
      await red.restart();
      phones = await Phones.open(red);
      await phones.accept(phone);
      await phones.accept(other);
      should((await movedUntil('out first')).map((msg) => msg['phone'])).deepEqual([phone]);
      should((await movedUntil('out second')).map((msg) => msg['phone'])).deepEqual([other]);
    });

    it('continue after a restart if they started when the clock had been moved ahead', async () => {
      await phones.advance(5 * day);
      await begin(phone);
      await red.restart();
      phones = await Phones.open(red);
      const before = await polls();
      while ((await polls()) === before) await phones.advance(30);
      should(red.arrived).deepEqual([]);
      await phones.accept(phone);
      should((await movedUntil('accepted')).map((msg) => msg['phone'])).deepEqual([phone]);
    });
  });
}
