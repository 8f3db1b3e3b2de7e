import helper from 'node-red-node-test-helper';
import type { NodeAPI } from 'node-red';
import should from 'should';
import type { Message, Red } from '../../../lib/runtime/red';
import { register, type NodeRuntime } from '../../../lib/runtime/register';
import { registeredOf, type NodeSpec } from '../../../lib/runtime/spec';
import type { RunningEnvironment } from '../../../nodes/environment/environment';
import * as environmentRuntime from '../../../nodes/environment/runtime';
import { servicesOf } from '../../../nodes/environment/services';
import { spec as environmentSpec } from '../../../nodes/environment/spec';
import { startSimulator, type Simulator } from '../../../simulator';
import { freshFolder, removeFolders } from '../../support/auth/setup';
import { runtimePath } from '../../support/flow';
import { numbers } from '../../support/numbers';
import { until } from '../../support/until';
import { checkFolder, requestFolder, sendFolder } from '../../support/texting/setup';

const phones = (count: number, from: number): string[] =>
  Array.from({ length: count }, (_, n) => `+131255501${String(from + n)}`);

const patience = 60_000;

const inHours = (count: number): string =>
  new Date(Date.now() + count * 3_600_000).toISOString().slice(11, 16);
/** The same in every deploy, even if a minute ends between two. */
const hours = { textFrom: inHours(2), textUntil: inHours(3) };

type Where = 'simulator' | 'sandbox' | 'production' | 'another origin' | 'nowhere yet';

const nodeIds = ['waiter', 'sender', 'holder', 'asker', 'idle'] as const;
type NodeId = (typeof nodeIds)[number];
const folders: readonly {
  readonly spec: NodeSpec;
  readonly runtime: NodeRuntime;
}[] = [{ spec: environmentSpec, runtime: environmentRuntime }, sendFolder, requestFolder, checkFolder];

describe('an environment that is pointed to another service', function () {
  this.timeout(2 * patience);
  let red: Red;
  let outside: Simulator;
  let elsewhere: Simulator;
  let told: { from: NodeId; port: number; msg: Message }[];
  let warnings: { id: string; text: string }[];
  let statuses: Map<string, string>;

  const environment = (where: Where): object => {
    const simulator = where === 'another origin' ? elsewhere : outside;
    const { baseUrl, authUrl, tokenUrl } = simulator;
    const general = {
      id: 'env',
      type: 'advisor-environment',
      timeZone: 'UTC',
      outsideHours: 'hold',
      ...hours,
    };
    const service = where === 'production' || where === 'simulator' ? where : 'sandbox';
    return where === 'simulator' || where === 'nowhere yet'
      ? { ...general, service }
      : { ...general, service, baseUrl, authUrl, tokenUrl, grant: 'client_credentials' };
  };

  const flows = (where: Where): object[] => {
    const node = (id: NodeId, type: string, outputs: number, more: object = {}) => ({
      id,
      type,
      z: 'tab',
      environment: 'env',
      wires: Array.from({ length: outputs }, (_, port) => [`${id}-${String(port)}`]),
      ...more,
    });
    const nodes = [
      node('waiter', 'advisor-check-consent', 3, { mode: 'wait', pollEvery: 1, pollFor: 300 }),
      node('sender', 'advisor-send-text', 3, { hours: 'any' }),
      node('holder', 'advisor-send-text', 3),
      node('asker', 'advisor-request-consent', 2),
      node('idle', 'advisor-send-text', 3, { hours: 'any' }),
    ];
    const outs = nodes
      .flatMap(({ wires }) => wires.flat())
      .map((id) => ({ id, type: 'helper', z: 'tab', wires: [] }));
    return [{ id: 'tab', type: 'tab' }, environment(where), ...nodes, ...outs];
  };

  const heard = new WeakSet<object>();
  const listen = (): void => {
    for (const id of nodeIds) {
      helper.getNode(id)?.on('call:warn', ({ args: [text] }: { args: [string] }) => {
        warnings.push({ id, text });
      });
      for (const port of [0, 1, 2]) {
        const out = helper.getNode(`${id}-${String(port)}`);
        // A deploy of changed nodes leaves the others as they are.
        if (!out || heard.has(out)) continue;
        heard.add(out);
        out.on('input', (msg: Message) => {
          told.push({ from: id, port, msg });
        });
      }
    }
  };

  const running = (): RunningEnvironment => {
    const node = helper.getNode('env') as unknown as { environment: RunningEnvironment };
    return node.environment;
  };

  /** The intended service, and the requests it received. */
  const at = async (where: Where): Promise<Simulator> =>
    where === 'simulator'
      ? servicesOf(red).simulator.start()
      : where === 'another origin'
        ? elsewhere
        : outside;
  const requests = (simulator: Simulator) =>
    simulator.ledger.entries().filter(({ endpoint }) => endpoint !== null && endpoint !== 'token');

  /** Calls back when everything has closed. */
  const deploy = async (where: Where, type: 'full' | 'nodes', closed: () => void): Promise<void> => {
    red.events.once('flows:stopped', closed);
    const started = new Promise<void>((resolve) => {
      red.events.once('flows:started', () => {
        listen();
        resolve();
      });
    });
    // Its own wait for the start is as short as 300 ms.
    helper.setFlows(flows(where), type, { env: outside.credentials }).catch(() => undefined);
    await started;
  };

  const send = (to: NodeId, msg: object): void => {
    helper.getNode(to)?.receive({ timeZone: 'UTC', ...msg });
  };

  beforeEach(async () => {
    told = [];
    warnings = [];
    statuses = new Map();
    outside = await startSimulator({ settings: { consentRequired: false } });
    elsewhere = await startSimulator({ settings: { consentRequired: false } });
    helper.init(runtimePath);
    helper.settings({ userDir: freshFolder() });
  });
  afterEach(async () => {
    await helper.unload();
    helper.init(runtimePath);
    await outside.close();
    await elsewhere.close();
  });
  after(removeFolders);

  const noteStatus = ({ id, status }: { id: string; status: { text?: string } }): void => {
    statuses.set(id, status.text ?? '');
  };
  const begin = async (where: Where): Promise<void> => {
    await helper.load(
      [
        (RED: NodeAPI) => {
          red = RED;
          RED.events.off('node-status', noteStatus).on('node-status', noteStatus);
        },
        ...folders.map(({ spec, runtime }) => (RED: NodeAPI) => {
          register(RED, registeredOf(spec), () => runtime);
        }),
      ],
      flows(where),
      { env: outside.credentials },
    );
    listen();
  };

  /** One wait, texts queued behind a rate limit, and others held for their hours. */
  const work = async (where: Where): Promise<void> => {
    const simulator = await at(where);
    send('idle', { phone: numbers.consented, text: 'A test' });
    await until(() => (told.length > 0 ? true : undefined), 'The first text');
    should(told.splice(0).map(({ msg }) => msg.outcome)).deepEqual(['sent']);
    simulator.faults.add({ endpoint: 'sendMessage', code: 'rate_limited', retryAfter: 1, rate: 1 });
    send('waiter', { phone: phones(3, 20), text: 'A test' });
    send('sender', { phone: phones(5, 30), text: 'A test' });
    send('holder', { phone: phones(4, 40), text: 'A test' });
    send('asker', { phone: phones(2, 50) });
    await until(
      () => requests(simulator).some(({ outcome }) => outcome === 'rate_limited') || undefined,
      'The limit on the rate',
    );
    await until(
      () => [...nodeIds].every((id) => (statuses.get(id) ?? '') !== '') || undefined,
      'The statuses of all nodes',
    );
    await until(async () => {
      const { items, waits } = await running().pending();
      return items === 11 && waits === 3;
    }, 'The work saved');
    should(told).deepEqual([]);
  };

  const switches: readonly [from: Where, to: Where, type: 'full' | 'nodes'][] = [
    ['simulator', 'sandbox', 'full'],
    ['simulator', 'production', 'nodes'],
    ['sandbox', 'simulator', 'full'],
    ['sandbox', 'production', 'nodes'],
    ['production', 'sandbox', 'full'],
    ['sandbox', 'another origin', 'full'],
  ];
  for (const [from, to, type] of switches)
    it(`from ${from} to ${to} takes nothing along: everything is cancelled, and a warning counts it`, async () => {
      await begin(from);
      await work(from);
      const first = await at(from);
      let before = 0;
      const isSame = first === (await at(to));
      should(
        [...statuses.values()].every((text) => text.startsWith('sim ') === (from === 'simulator')),
      ).be.true();

      await deploy(to, type, () => {
        before = requests(first).length;
      });
      await until(() => (told.length >= 14 ? true : undefined), 'The outcomes');
      await until(() => (warnings.length >= 4 ? true : undefined), 'The warnings');
      const outcomes = (id: NodeId) =>
        told.filter((each) => each.from === id).map(({ port, msg }): [number, Message] => [port, msg]);
      should(
        outcomes('waiter').map(([port, { payload }]) => [port, (payload as { reason: string }).reason]),
      ).deepEqual(Array.from({ length: 3 }, () => [2, 'cancelled']));
      for (const [id, count] of [
        ['sender', 5],
        ['holder', 4],
        ['asker', 2],
      ] as const)
        should(outcomes(id).map(([port, { error }]) => [port, (error as { code: string }).code])).deepEqual(
          Array.from({ length: count }, () => [1, 'cancelled']),
        );
      should(told.length).equal(14);
      should(new Set(warnings.map(({ id, text }) => `${id} ${/\d+/.exec(text)?.[0] ?? ''}`))).deepEqual(
        new Set(['waiter 3', 'sender 5', 'holder 4', 'asker 2']),
      );
      for (const { text } of warnings) should(text).match(/now uses another environment or service/);
      should(statuses.get('idle')).equal('');
      for (const [id, text] of statuses)
        if (id !== 'env')
          should([id, text.startsWith('sim ')]).deepEqual([id, to === 'simulator' && text !== '']);

      should(await running().pending()).deepEqual({ items: 0, waits: 0 });
      const second = await at(to);
      if (to === 'simulator') await second.clock.move(2 * 86_400_000);
      should(requests(second).length).equal(isSame ? before : 0);
    });

  it('does not count what the other service has sent', async () => {
    await begin('simulator');
    const inHoursNow = { phone: numbers.consented, timeZone: 'Etc/GMT-2' };
    send('holder', { phone: [inHoursNow, ...phones(2, 40).map((phone) => ({ phone }))], text: 'A test' });
    await until(() => (told.length === 1 ? true : undefined), 'The text that is sent at once');
    await deploy('production', 'full', () => undefined);
    await until(() => statuses.get('holder') === '2 failed: cancelled' || undefined, 'The status');
    should(told.map(({ msg }) => msg.outcome)).deepEqual(['sent', 'failed', 'failed']);
  });

  it('texts nobody who has consented on the simulator alone: a text that comes back from there is cancelled', async () => {
    await begin('simulator');
    send('idle', { phone: numbers.unasked, text: 'A test' });
    await until(() => (told.length === 1 ? true : undefined), 'The text that needs consent');
    const [{ msg: back } = { msg: {} }] = told.splice(0);
    should(back).containEql({ outcome: 'needsConsent' });
    await deploy('production', 'full', () => undefined);
    send('idle', back);
    await until(() => (told.length === 1 ? true : undefined), 'Its outcome');
    should(told.splice(0).map(({ port, msg }) => [port, (msg.error as { code: string }).code])).eql([
      [1, 'cancelled'],
    ]);
    should(requests(outside)).eql([]);
    send('idle', { phone: numbers.consented, text: 'A test' });
    await until(() => (told.length === 1 ? true : undefined), 'A new text');
    should(told.map(({ msg }) => msg.outcome)).eql(['sent']);
  });

  it('cancels a text that comes back from the simulator, even by a wait that was saved over a restart', async () => {
    await begin('simulator');
    send('idle', { phone: numbers.unasked, text: 'A test' });
    await until(() => told.length === 1, 'The text that needs consent');
    send('waiter', told.splice(0)[0]?.msg ?? {});
    await until(async () => (await running().pending()).waits === 1, 'The wait saved');
    await helper.unload();
    await begin('production');
    await until(() => told.length === 1, 'The end of the wait');
    send('idle', told.splice(0)[0]?.msg ?? {});
    await until(() => told.length === 1, 'Its outcome');
    should(told.map(({ port, msg }) => [port, (msg.error as { code: string }).code])).eql([[1, 'cancelled']]);
    should(requests(outside)).eql([]);
  });

  it('says so while that is not filled in, and cancels when it is', async () => {
    await begin('simulator');
    await work('simulator');
    await deploy('nowhere yet', 'full', () => undefined);
    await until(
      () => nodeIds.every((id) => !(statuses.get(id) ?? '').startsWith('sim ')) || undefined,
      'The end of what the simulator showed',
    );
    should(told).deepEqual([]);
    await deploy('sandbox', 'full', () => undefined);
    await until(() => (told.length >= 14 ? true : undefined), 'The outcomes');
    should(new Set(told.map(({ msg }) => msg.outcome))).deepEqual(new Set(['failed', 'notAccepted']));
    should(requests(outside)).deepEqual([]);
  });
});
