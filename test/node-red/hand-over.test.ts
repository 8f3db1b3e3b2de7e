import should from 'should';
import { startSimulator } from '../../simulator';
import { versions } from '../support/extent';
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
const milliseconds = (count: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, count));

/** People who accept are texted immediately. */
const waitThenSend = (): FlowNode[] =>
  twoNodes().map((node) =>
    node.id === waiterId ? { ...node, wires: [[senderId], ['wait failed'], ['not accepted']] } : node,
  );

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
      const texts = new Map<string, number>();
      for (const { phone, processed } of on.entries('sendMessage'))
        if (processed) texts.set(String(phone), (texts.get(String(phone)) ?? 0) + 1);
      should([...texts].filter(([, times]) => times > 1)).deepEqual([]);
      const { byPhone } = toldOf(red, sends);
      for (const phone of phones) {
        const told = byPhone.get(phone) ?? [];
        const codes = new Set(told.map(({ port, code }) => (port === 'sent' ? port : code)));
        should(codes.size).equal(1);
        if (codes.has('sent')) should(texts.get(phone)).equal(1);
        else should([...codes]).deepEqual(['outcome_unknown']);
      }
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
