import { setTimeout as pause } from 'node:timers/promises';
import should from 'should';
import { startSimulator, type Simulator } from '../../../simulator';
import { freshFolder, removeFolders } from '../../support/auth/setup';
import { ask, consented, unasked } from '../../support/guards/setup';
import { Started } from '../../support/guards/started';

describe('a first start in 1970', function () {
  this.timeout(60_000);
  const { now } = Date;
  let simulator: Simulator;

  beforeEach(async () => {
    simulator = await startSimulator();
  });
  afterEach(async () => {
    Date.now = now;
    await simulator.close();
  });
  after(removeFolders);

  it('accepts nothing before the clock is right and says so; then nobody is texted or asked twice', async () => {
    const userDir = freshFolder();
    const text = { phone: consented, text: 'Hi', order: 7 };
    const nodes = { onceKey: 'order', onceKeyType: 'msg' };
    Date.now = () => 1000 + performance.now();
    const first = Started.prepare(simulator, userDir);
    await first.load(nodes);
    await first.until(() => first.environment.trouble !== undefined);
    should(first.environment.trouble).match(/clock of this machine shows 1970-01-01/);
    first.flow.send(text, 'send');
    first.flow.send({ phone: unasked }, 'request');
    await pause(100);
    should(first.outcomes()).be.empty();

    Date.now = now;
    await first.until(() => first.outcomes().length === 2);
    should(first.outcomes().map(({ port }) => port)).eql([0, 0]);
    should(first.environment.trouble).be.undefined();
    await first.stop();

    const second = Started.prepare(simulator, userDir);
    await second.load(nodes);
    should((await ask(second.flow, text, 'send')).msg.payload).containEql({ alreadySent: true });
    should((await ask(second.flow, { phone: unasked }, 'request')).msg.payload).containEql({
      requested: false,
    });
    await second.stop();
  });
});
