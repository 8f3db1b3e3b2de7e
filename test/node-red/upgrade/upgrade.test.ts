import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { freshUserDir } from '../../support/installation';
import { type RealRed, startRed } from '../../support/node-red';
import { blocked, held, texted, waiting } from './flow';

const versions = readdirSync(__dirname).flatMap((name) => /^(.+)\.tgz$/.exec(name)?.[1] ?? []);

describe('user directories of released versions', () => {
  it('include at least one', () => {
    should(versions).not.be.empty();
  });
});

for (const version of versions) {
  describe(`a user directory of version ${version}`, function () {
    this.timeout(120_000);
    let red: RealRed;

    before(async () => {
      const userDir = freshUserDir();
      execFileSync('tar', ['-xzf', join(__dirname, `${version}.tgz`), '-C', userDir]);
      red = await startRed({ version: 5, userDir });
    });

    after(async () => {
      await red.close();
    });

    it('starts without a warning or error of ours', () => {
      should(red.lines.filter((line) => /\[(warn|error)\]/.test(line) && /advisor/i.test(line))).eql([]);
    });

    it('still waits for a consent, and ends when it is given', async () => {
      const check = (): Promise<void> => red.send('wait-in', { flush: true });
      await check();
      // If the saved wait had not been checked yet, the first check says pending.
      const [outcome] = await red.messages('waited', 1, 1000).catch(async () => {
        await check();
        return red.messages('waited');
      });
      should(outcome).containEql({ phone: waiting, outcome: 'accepted' });
    });

    it('still holds a text, which can be cancelled', async () => {
      await red.send('hold-in', { reset: true });
      const [outcome] = await red.messages('released');
      should(outcome).containEql({ phone: held });
    });

    it('still sends a text with a key once', async () => {
      await red.send('send-in', { phone: texted, text: 'Hello' });
      const [outcome] = await red.messages('sent');
      should(outcome).have.propertyByPath('payload', 'alreadySent').eql(true);
    });

    it('still texts nobody who is blocked', async () => {
      await red.send('send-in', { phone: blocked, text: 'Hello' });
      const outcome = (await red.messages('sent', 2))[1];
      should(outcome).have.propertyByPath('error', 'code').eql('blocked');
    });
  });
}
