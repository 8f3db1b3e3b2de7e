import should from 'should';
import { handOver } from '../../../lib/outbox/hand-over';
import { createMemoryStore } from '../../../lib/state/memory';
import { nextIteration } from '../../support/event-loop';
import { acceptMany, acceptOne, requestsOn, type Host } from '../../support/outbox/requests';

const pass = async (turns: number): Promise<void> => {
  for (; turns > 0; turns--) await nextIteration();
};

describe('an outcome that another of our nodes has received and not saved yet', () => {
  const start = async (store = createMemoryStore()) => {
    const emitted: string[] = [];
    const claims: (() => void)[] = [];
    const emit: Host['emit'] = async (_message, { phone = '' }, { outcome, repeated, offer = 0 }) => {
      emitted.push(`${phone} ${outcome}${repeated ? ' repeated' : ''}`);
      const msg = {};
      handOver.mark(msg, msg, 'node', offer);
      const claim = handOver.claim(msg);
      if (claim) claims.push(claim);
      return true;
    };
    const queue = requestsOn(store, { work: async () => 'sent', emit });
    await queue.start();
    await pass(20);
    return { queue, store, emitted, claims };
  };

  it('is not emitted again by a deploy of only its own node', async () => {
    const { queue, store, emitted, claims } = await start();
    acceptOne(queue, '+12025550101');
    while (emitted.length < 1) await nextIteration();
    await queue.close();
    const after = await start(store);
    should(after.emitted).be.empty();
    for (const claim of claims) claim();
    await pass(20);
    should(await after.queue.reader.count()).equal(0);
    await after.queue.close();
    should(after.emitted).be.empty();
  });

  it('counts as emitted in its list, whose others the next start emits', async () => {
    const { queue, store, emitted, claims } = await start();
    acceptMany(queue, 2);
    while (emitted.length < 2) await nextIteration();
    claims[0]?.();
    await queue.close();
    const after = await start(store);
    claims[1]?.();
    await pass(20);
    should(after.emitted).be.empty();
    const left = await store.count('work', Buffer.from('counts'), Buffer.from('countt'));
    should(left).equal(0);
    await after.queue.close();
  });
});
