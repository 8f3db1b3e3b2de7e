import { renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { isLong, itInLongRun, versions } from '../support/extent';
import { numbers, Sandbox, toldOf, twoNodes } from '../support/sandbox';

const many = isLong ? 10_000 : 2000;
const sends = ['sent', 'failed', 'needs consent'];
const seconds = (count: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, count * 1000));

for (const version of versions) {
  describe(`restarts of Node-RED ${version.toString()}`, function () {
    this.timeout(240_000);
    let on: Sandbox;

    before(async () => {
      on = await Sandbox.start({
        version,
        flows: twoNodes({ waiter: { giveUpAfter: 10 } }),
        simulator: { contacts: 200, settings: { consentRequired: false } },
      });
    });
    after(() => on.close());

    it(`continue a list of ${many} that a restart stopped at number ${many * 0.3}`, async () => {
      const { red } = on;
      const phones = numbers(many, 1000);
      await red.send('send', { phone: phones, text: 'Hello' });
      await on.received('sendMessage', many * 0.3);
      await red.restart();
      should(on.entries('sendMessage').length).be.below(many);
      await red.until(() => red.arrived.length >= many || undefined, 'The last of them', 180_000);
      const { byPhone } = toldOf(red, sends);
      should(byPhone.size).equal(many);
      for (const told of byPhone.values())
        should(told).deepEqual([{ port: 'sent', code: undefined, isRepeated: false }]);
      should(on.entries('sendMessage')).have.length(many);
    });

    it('close nodes whose store cannot be opened, and send when it can', async () => {
      const { red } = on;
      const file = join(red.userDir, 'advisor-texting', 'store.mdb');
      await red.stop();
      renameSync(file, `${file}-kept`);
      symlinkSync('.', file);
      const from = red.lines.length;
      await red.run();
      await red.logged(/cannot be opened/, { from });
      await red.restart();
      should(red.lines.slice(from).filter((line) => line.includes('timed out'))).deepEqual([]);
      // At once: a moment without a file would be a store that was lost.
      renameSync(`${file}-kept`, file);
      const [phone = ''] = numbers(1, 100);
      await red.send('send', { phone, text: 'Hello' });
      await red.until(() => toldOf(red, ['sent']).byPhone.get(phone), 'The text', 60_000);
    });

    itInLongRun(
      'end waits that expired while the machine was off immediately, with one last poll each',
      async () => {
        const { red } = on;
        const phones = numbers(50);
        await red.send('wait', { phone: phones, topic: 'kept' });
        await on.received('getConsent', 50);
        await red.stop();
        const before = on.entries('getConsent').length;
        await seconds(11);
        await red.run();
        const told = await red.messages('not accepted', 50);
        should(on.entries('getConsent').length - before).equal(50);
        should(new Set(told.map((msg) => msg['phone']))).deepEqual(new Set(phones));
        for (const msg of told) {
          should(msg['payload']).containEql({ reason: 'expired', state: 'none' });
          should(msg).containEql({ topic: 'kept' });
          should(msg).not.have.property('repeated');
        }
        should(told).have.length(50);
      },
    );
  });
}
