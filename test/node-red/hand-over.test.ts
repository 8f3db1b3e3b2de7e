import should from 'should';
import { startSimulator } from '../../simulator';
import { isLong, versions } from '../support/extent';
import type { FlowNode } from '../support/node-red';
import {
  environmentId,
  numbers,
  randomFrom,
  Sandbox,
  senderId,
  toldOf,
  twoNodes,
  waiterId,
} from '../support/sandbox';

const sends = ['sent', 'failed', 'needs consent'];
const [pauseId, secondId] = ['c0c0c0c0c0c0c0c0', 'd0d0d0d0d0d0d0d0'];
const seconds = ['second sent', 'second failed', 'second needs consent'];
const milliseconds = (count: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, count));

/** People who accept are texted immediately. */
const waitThenSend = (): FlowNode[] =>
  twoNodes().map((node) =>
    node.id === waiterId ? { ...node, wires: [[senderId], ['wait failed'], ['not accepted']] } : node,
  );

/** The same, and after a pause each of them gets a second text from another node. */
const waitThenSendTwice = (): FlowNode[] => {
  const nodes = waitThenSend();
  const [sender, port] = [nodes.find(({ id }) => id === senderId), nodes.find(({ id }) => id === 'sent')];
  if (!sender || !port) throw new Error('no sender');
  return [
    ...nodes.map((node) =>
      node.id === waiterId
        ? { ...node, wires: [[senderId, pauseId], ['wait failed'], ['not accepted']] }
        : node,
    ),
    {
      id: pauseId,
      type: 'delay',
      z: sender.z,
      pauseType: 'delay',
      timeout: '40',
      timeoutUnits: 'milliseconds',
      wires: [[secondId]],
    },
    {
      ...sender,
      id: secondId,
      text: 'Another',
      textType: 'str',
      wires: seconds.map((name) => [name]),
    },
    ...seconds.map((name) => ({ ...port, id: name, name })),
  ];
};

/** Each number has had this text once, or its outcome is unknown. */
const checkTexts = (on: Sandbox, phones: readonly string[], text: string, ports: readonly string[]): void => {
  const texts = new Map<string, number>();
  for (const { phone, processed, text: sent } of on.entries('sendMessage'))
    if (processed && sent === text) texts.set(String(phone), (texts.get(String(phone)) ?? 0) + 1);
  should([...texts].filter(([, times]) => times > 1)).deepEqual([]);
  const { byPhone } = toldOf(on.red, ports);
  for (const phone of phones) {
    const told = byPhone.get(phone) ?? [];
    const codes = new Set(told.map(({ port, code }) => (port === ports[0] ? 'sent' : code)));
    should(codes.size).equal(1);
    if (codes.has('sent')) should(texts.get(phone)).equal(1);
    else should([...codes]).deepEqual(['outcome_unknown']);
  }
};

for (const version of versions) {
  describe(`between two nodes, on Node-RED ${version.toString()}`, function () {
    this.timeout(240_000);
    let on: Sandbox;

    before(async () => {
      on = await Sandbox.start({ version, flows: waitThenSend(), simulator: { contacts: 100 } });
    });
    after(() => on.close());

    it('a text after a wait is sent once, even if the process is killed as the service accepts it', async () => {
      const { red, simulator } = on;
      const random = randomFrom(7000 + version);
      const phones = numbers(60);
      await red.send('wait', { phone: phones, text: 'You agreed' });
      await on.received('getConsent', phones.length);
      for (let from = 0; from < phones.length; from += 15) {
        const before = on.entries('sendMessage').length;
        for (const phone of phones.slice(from, from + 15)) simulator.accept(phone);
        await on.received('sendMessage', before + 1 + random(8));
        await milliseconds(random(6));
        await red.kill9();
        await red.run();
      }
      await red.until(
        () => toldOf(red, sends).byPhone.size === phones.length || undefined,
        'The last text',
        60_000,
      );
      checkTexts(on, phones, 'You agreed', sends);
    });

    it('two nodes that get the outcome of a wait, one of them after a pause, text once each, even if the process is killed', async () => {
      const { red, simulator } = on;
      await red.deploy([...on.flows.slice(0, 1), ...waitThenSendTwice()]);
      const random = randomFrom(8000 + version);
      const phones = numbers(isLong ? 80 : 40, 1000);
      const before = on.entries('getConsent').length;
      await red.send('wait', { phone: phones, text: 'You agreed too' });
      await on.received('getConsent', before + phones.length);
      for (let from = 0; from < phones.length; from += 20) {
        const sent = on.entries('sendMessage').length;
        for (const phone of phones.slice(from, from + 20)) simulator.accept(phone);
        await on.received('sendMessage', sent + 1 + random(30));
        await milliseconds(random(20));
        await red.kill9();
        await red.run();
      }
      await red.until(
        () =>
          [sends, seconds].every((ports) => phones.every((phone) => toldOf(red, ports).byPhone.has(phone))) ||
          undefined,
        'The last text',
        60_000,
      );
      checkTexts(on, phones, 'You agreed too', sends);
      checkTexts(on, phones, 'Another', seconds);
    });

    it('a message accepted for one service reaches no other that the environment is pointed to', async () => {
      const { red } = on;
      const other = await startSimulator({ contacts: 100, settings: { consentRequired: false } });
      try {
        const waiting = numbers(20, 70);
        await red.send('wait', { phone: waiting, text: 'Only for the sandbox' });
        const before = on.entries('getConsent').length;
        await on.received('getConsent', before + 1);
        const elsewhere = on.flows.map((node) =>
          node.id === environmentId
            ? {
                ...node,
                baseUrl: other.baseUrl,
                authUrl: other.authUrl,
                tokenUrl: other.tokenUrl,
                grant: 'client_credentials',
                credentials: other.credentials,
              }
            : node,
        );
        await red.deploy(elsewhere);
        const told = await red.messages('not accepted', waiting.length);
        should(new Set(told.map((msg) => msg['phone']))).deepEqual(new Set(waiting));
        for (const msg of told) should(msg['payload']).containEql({ reason: 'cancelled' });
        await milliseconds(1500);
        should(other.ledger.entries().filter(({ endpoint }) => endpoint !== null)).deepEqual([]);
      } finally {
        await other.close();
      }
    });
  });
}
