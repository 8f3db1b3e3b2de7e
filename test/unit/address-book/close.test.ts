import { mock } from 'node:test';
import should from 'should';
import { Searches } from '../../../lib/address-book/operation';
import type { Tools } from '../../../lib/runtime/flow-node';
import type { Job } from '../../../lib/runtime/delivery';
import { closeLimit } from '../../../lib/service/clock';

describe('a search that waits for an unavailable store', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('is given up when its node closes, with one failure', async () => {
    const told: unknown[] = [];
    const tools = {} as Tools;
    const never = (): Promise<void> => new Promise(() => undefined);
    const searches = new Searches(tools, async () => undefined, never);
    void searches.run({}, { isSettled: false } as Job, (why) => told.push(why.code));
    await Promise.resolve();
    const closed = searches.close();
    mock.timers.tick(closeLimit);
    await closed;
    should(told).deepEqual(['cancelled']);
  });
});
