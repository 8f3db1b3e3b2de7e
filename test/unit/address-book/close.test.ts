import { mock } from 'node:test';
import should from 'should';
import { Stream, Streams } from '../../../lib/address-book/operation';
import type { Tools } from '../../../lib/runtime/flow-node';
import type { Job } from '../../../lib/runtime/job';
import { closeLimit } from '../../../lib/service/clock';

describe('a search that waits for an unavailable store', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('is given up when its node closes, with one failure', async () => {
    const told: unknown[] = [];
    const tools = {} as Tools;
    const streams = new Streams<undefined>(tools, (_stream, why) => told.push(why.code));
    const stream = new Stream(tools, {}, { isSettled: false } as Job, undefined);
    void streams.run(stream, () => new Promise(() => undefined));
    const closed = streams.close();
    mock.timers.tick(closeLimit);
    await closed;
    should(told).deepEqual(['cancelled']);
  });
});
