import { rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import should from 'should';
import { freshUserDir } from '../support/installation';
import { Postgres } from '../support/postgres';
import { environmentId, numbers, Sandbox, toldOf, twoNodes } from '../support/sandbox';
import { until } from '../support/until';

describe('a Node-RED whose state moves from its user directory to PostgreSQL', function () {
  this.timeout(180_000);
  let server: Postgres;
  let on: Sandbox;
  let userDir: string;

  before(async () => {
    server = await Postgres.start();
    userDir = freshUserDir();
    symlinkSync(dirname(require.resolve('pg/package.json')), join(userDir, 'node_modules', 'pg'));
    on = await Sandbox.start({
      version: 5,
      userDir,
      simulator: { contacts: 200, settings: { consentRequired: false, rotateRefreshTokens: true } },
      env: { DATABASE: server.url() },
      flows: twoNodes({ sender: { onceKey: 'invitation', onceKeyType: 'str', onceFor: 24 } }),
    });
  });
  after(async () => {
    await on.close();
    await server.close();
    rmSync(userDir, { recursive: true, force: true });
  });

  it('finishes its texts and waits where they are, says what is left, and takes keys and authorization along', async () => {
    const { red, simulator } = on;
    const [sent = '', ...waited] = numbers(4);
    const texts = numbers(40, 20);
    const told = (port: string): Set<string> => new Set(toldOf(red, [port]).byPhone.keys());
    const state = async (): Promise<object> => {
      const { json } = await red.request('GET', `advisor-texting/${environmentId}/service`);
      const { store, left } = json as { store: unknown; left: unknown };
      return { store, left };
    };

    await red.send('send', { phone: sent, text: 'You are invited' });
    await red.until(() => told('sent').has(sent) || undefined, 'The first text', 60_000);
    await red.send('wait', { phone: waited });
    await on.received('getConsent', waited.length);
    // What follows is accepted, and cannot be sent before the deploy.
    simulator.faults.add({ endpoint: 'sendMessage', status: 429, retryAfter: 600, rate: 1 });
    await red.send('send', { phone: texts, text: 'You are invited' });
    await on.received('sendMessage', 2);

    const [environment, ...rest] = on.flows;
    const credentials = { ...(environment?.['credentials'] as object), storeUrl: '${DATABASE}' };
    const flows = [{ ...environment, store: 'postgres', credentials }, ...rest] as typeof on.flows;
    await red.deploy(flows);
    should(await state()).eql({ store: 'embedded', left: { items: texts.length, waits: waited.length } });
    simulator.faults.clear();
    for (const phone of waited) simulator.accept(phone, 'default');
    await red.until(
      () => (told('accepted').size === waited.length && told('sent').size === texts.length + 1) || undefined,
      'Every wait and every text',
      120_000,
    );
    const done = { store: 'embedded', left: { items: 0, waits: 0 } };
    await until(async () => isDeepStrictEqual(await state(), done));

    await red.deploy(flows);
    should(await state()).eql({ store: 'postgres', left: null });
    await red.send('send', { phone: sent, text: 'You are invited' });
    await red.until(
      () => red.arrived.filter(({ msg }) => msg['phone'] === sent).length === 2 || undefined,
      'The repeated text',
      60_000,
    );
    should(told('failed').size).equal(0);
    const received = on.entries('sendMessage').filter(({ processed }) => processed);
    should(received.map(({ phone }) => phone).sort()).eql([sent, ...texts].sort());
  });
});
