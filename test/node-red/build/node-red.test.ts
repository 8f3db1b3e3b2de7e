import should from 'should';
import { versions } from '../../support/extent';
import { adminAuth, type FlowNode, type RealRed, startRed } from '../../support/node-red';

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Ports' },
  { id: 'in', type: 'test-port', z: 'tab', name: 'in', wires: [['change']] },
  {
    id: 'change',
    type: 'change',
    z: 'tab',
    rules: [{ t: 'set', p: 'seen', pt: 'msg', to: 'true', tot: 'bool' }],
    wires: [['out']],
  },
  { id: 'out', type: 'test-port', z: 'tab', name: 'out', wires: [[]] },
];

for (const version of versions) {
  describe(`a real Node-RED ${version.toString()} for tests`, function () {
    this.timeout(120_000);
    let red: RealRed;

    before(async () => {
      red = await startRed({ version, flows, settings: { adminAuth, httpAdminRoot: '/red' } });
    });

    after(() => red.close());

    it('passes messages in and out of a flow', async () => {
      await red.send('in', { payload: 1, topic: 'one' });
      const [msg] = await red.messages('out');
      should(msg).containEql({ payload: 1, topic: 'one', seen: true });
    });

    it('protects its admin API, under its path, until somebody has logged in', async () => {
      (await red.request('GET', 'flows')).status.should.equal(401);
      await red.login('reader');
      (await red.request('GET', 'flows')).status.should.equal(200);
      (await red.request('POST', 'flows', flows)).status.should.equal(401);
      await red.login();
      (await red.flows()).length.should.equal(flows.length);
    });

    it('deploys in every way', async () => {
      const changed = flows.map((node) => (node.id === 'in' ? { ...node, name: 'entrance' } : node));
      for (const type of ['nodes', 'flows', 'full', 'reload'] as const) await red.deploy(changed, type);
      await red.send('entrance', { payload: 2 });
      (await red.messages('out', 2)).map((msg) => msg['payload']).should.eql([1, 2]);
    });

    it('recovers after a restart and after a kill -9', async () => {
      await red.restart();
      await red.send('entrance', { payload: 3 });
      await red.messages('out', 3);
      await red.kill9();
      await red.run();
      await red.send('entrance', { payload: 4 });
      (await red.messages('out', 4)).map((msg) => msg['payload']).should.eql([1, 2, 3, 4]);
    });
  });
}
