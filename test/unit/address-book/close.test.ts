import { mock } from 'node:test';
import should from 'should';
import { Searches } from '../../../lib/runtime/searches';
import type { Tools } from '../../../lib/runtime/flow-node';
import type { Job } from '../../../lib/runtime/delivery';
import type { Problem } from '../../../lib/service/errors';
import { closeLimit } from '../../../lib/service/clock';

describe('a search that waits for an unavailable store', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('is given up when its node closes, with one failure', async () => {
    const told: unknown[] = [];
    const closing = new AbortController();
    const tools = { closed: closing.signal } as Tools;
    const never = (): Promise<void> => new Promise(() => undefined);
    const breakOff = (_job: Job, why: Problem): unknown => told.push(why.code);
    const searches = new Searches(tools, async () => never, breakOff);
    void searches.run({ isSettled: false } as Job);
    await Promise.resolve();
    closing.abort();
    const closed = searches.close();
    mock.timers.tick(closeLimit);
    await closed;
    should(told).deepEqual(['cancelled']);
  });
});
