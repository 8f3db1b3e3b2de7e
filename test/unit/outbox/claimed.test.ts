import should from 'should';
import { handOver } from '../../../lib/outbox/hand-over';
import { createMemoryStore } from '../../../lib/state/memory';
import type { Store } from '../../../lib/state/store';
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

  it('is removed only when a node with another store has saved it', async () => {
    const kept = createMemoryStore();
    let unlock = (): void => undefined;
    const isFree = new Promise<void>((resolve) => (unlock = resolve));
    const away: Store = Object.assign(Object.create(kept) as Store, {
      write: (...writes: Parameters<Store['write']>) => isFree.then(() => kept.write(...writes)),
    });
    const next = requestsOn(away, { work: async () => undefined, emit: async () => true });
    const store = createMemoryStore();
    const emit: Host['emit'] = async (_message, _data, { offer = 0 }) => {
      const msg = {};
      handOver.mark(msg, msg, 'node', offer);
      acceptMany(next, 1, handOver.claim(msg));
      return true;
    };
    const queue = requestsOn(store, { work: async () => 'sent', emit });
    await queue.start();
    acceptMany(queue, 2);
    await pass(20);
    should(await queue.reader.count()).equal(2);
    unlock();
    await pass(20);
    should(await queue.reader.count()).equal(0);
    should(await next.reader.count()).equal(2);
    should(await store.count('work', Buffer.from('counts'), Buffer.from('countt'))).equal(0);
    await queue.close();
    await next.close();
  });
});
