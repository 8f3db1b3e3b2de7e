import should from 'should';
import { handOver, type Claim } from '../../../lib/outbox/hand-over';
import { createMemoryStore, MemoryEngine } from '../../../lib/state/memory';
import { Store } from '../../../lib/state/store';
import { nextIteration } from '../../support/event-loop';
import { overStore } from '../../support/state/over-store';
import {
  acceptMany,
  acceptOne,
  claimOf,
  requestsOn,
  type Host,
  type Requests,
} from '../../support/outbox/requests';

const pass = async (turns: number): Promise<void> => {
  for (; turns > 0; turns--) await nextIteration();
};

describe('an outcome on its way to another of our nodes', () => {
  const { setTimeout: real } = globalThis;
  const timers: { readonly task: () => void; readonly ms: number }[] = [];
  /** The next timer goes off, however late; returns the time that it was set to. */
  const tick = (): number => {
    const timer = timers.shift();
    timer?.task();
    return timer?.ms ?? 0;
  };
  beforeEach(() => {
    handOver.concludeAll();
    timers.length = 0;
    globalThis.setTimeout = ((task: () => void, ms: number) => {
      timers.push({ task, ms });
      return { unref: () => timers.length };
    }) as unknown as typeof setTimeout;
  });
  afterEach(() => {
    globalThis.setTimeout = real;
  });

  it('has 100 milliseconds to reach it, hardly less if the process stands still meanwhile, and as long as others', () => {
    const emitted: number[] = [];
    const leave = (nth: number): object => {
      const store = createMemoryStore();
      const nothing = (): void => undefined;
      const offer = handOver.offer(
        { store, emitted: () => emitted.push(nth), taken: nothing, keep: nothing, hold: nothing },
        [],
      );
      const msg = {};
      handOver.mark(msg, msg, { id: 'node' }, offer, 1);
      handOver.arrived(offer);
      return msg;
    };
    leave(1);
    const ticks = [tick()];
    const second = leave(2);
    while (emitted.length === 0) ticks.push(tick());
    should(emitted).eql([1]);
    const sum = (some: readonly number[]): number => some.reduce((all, ms) => all + ms, 0);
    // The first timer may be due at once.
    should(sum(ticks.slice(1))).be.aboveOrEqual(100);
    // Of those that are due while the process stands still, it meets one.
    should(sum(ticks.slice(2))).be.aboveOrEqual(75);
    claimOf(second)?.conclude();
    should(emitted).eql([1, 2]);
    leave(3);
    handOver.concludeAll();
    should(emitted).eql([1, 2, 3]);
  });
});

describe('an outcome that another of our nodes has received and not saved yet', () => {
  const start = async (store = createMemoryStore()) => {
    const emitted: string[] = [];
    const claims: Claim[] = [];
    const emit: Host['emit'] = async (_message, { phone = '' }, { outcome, repeated, offer = 0 }) => {
      emitted.push(`${phone} ${outcome}${repeated ? ' repeated' : ''}`);
      const msg = {};
      handOver.mark(msg, msg, { id: 'node' }, offer);
      const claim = claimOf(msg);
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
    for (const claim of claims) claim.conclude();
    await pass(20);
    should(await after.queue.reader.count()).equal(0);
    await after.queue.close();
    should(after.emitted).be.empty();
  });

  it('goes to it once more if it could not be saved there', async () => {
    const { queue, store, emitted, claims } = await start();
    acceptMany(queue, 2);
    while (emitted.length < 2) await nextIteration();
    claims[0]?.keep();
    claims[1]?.conclude();
    while (emitted.length < 3) await nextIteration();
    should(emitted[2]).equal(`${emitted[0] ?? ''} repeated`);
    claims[2]?.conclude();
    await pass(20);
    should(await queue.reader.count()).equal(0);
    should(await store.count('work', Buffer.from('counts'), Buffer.from('countt'))).equal(0);
    await queue.close();
    should(emitted).have.length(3);
  });

  it('counts as emitted in its list, whose others the next start emits', async () => {
    const { queue, store, emitted, claims } = await start();
    acceptMany(queue, 2);
    while (emitted.length < 2) await nextIteration();
    claims[0]?.conclude();
    await queue.close();
    const after = await start(store);
    claims[1]?.conclude();
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
      handOver.mark(msg, msg, { id: 'node' }, offer);
      acceptMany(next, 1, claimOf(msg));
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

  it('is removed although a message goes the other way in the same tick', async () => {
    const emitted: string[] = [];
    const nodeOn = (name: string, next: () => Requests) => {
      const emit: Host['emit'] = async (_message, { phone = '' }, { offer = 0 }) => {
        emitted.push(`${name} ${phone}`);
        if (phone === '') return true;
        const msg = {};
        handOver.mark(msg, msg, { id: 'node' }, offer);
        acceptMany(next(), 1, claimOf(msg));
        return true;
      };
      return requestsOn(createMemoryStore(), { work: async () => 'sent', emit });
    };
    const one: Requests = nodeOn('one', () => two);
    const two: Requests = nodeOn('two', () => one);
    await Promise.all([one.start(), two.start()]);
    acceptOne(one, '+12025550101');
    acceptOne(two, '+12025550102');
    await pass(40);
    should(emitted.slice(2)).eql(['two ', 'one ']);
    should(await one.reader.count()).equal(0);
    should(await two.reader.count()).equal(0);
    await Promise.all([one.close(), two.close()]);
  });

  it('is removed in one commit with its acceptance by a node of another environment with the same file', async () => {
    const store = createMemoryStore();
    const commits: number[] = [];
    const apply = MemoryEngine.prototype.apply;
    (store.engine as MemoryEngine).apply = function (this: MemoryEngine, batch) {
      commits.push(batch.writes.length);
      return apply.call(this, batch);
    };
    const next = requestsOn(
      new Store(store.engine),
      { work: async () => undefined, emit: async () => true },
      { node: 'next' },
    );
    const emit: Host['emit'] = async (_message, _data, { offer = 0 }) => {
      const msg = {};
      handOver.mark(msg, msg, { id: 'node' }, offer);
      commits.length = 0;
      acceptMany(next, 1, claimOf(msg));
      return true;
    };
    const queue = requestsOn(store, { work: async () => 'sent', emit });
    await Promise.all([queue.start(), next.start()]);
    acceptMany(queue, 1);
    await pass(20);
    should(await queue.reader.count()).equal(0);
    should(await next.reader.count()).equal(1);
    should(commits).have.length(1);
    await Promise.all([queue.close(), next.close()]);
  });

  it('is removed only when the last of two nodes has saved it, also where that has another store', async () => {
    const slow = createMemoryStore();
    let unlock = (): void => undefined;
    const isFree = new Promise<void>((resolve) => (unlock = resolve));
    const apply = MemoryEngine.prototype.apply;
    (slow.engine as MemoryEngine).apply = function (this: MemoryEngine, batch) {
      return isFree.then(() => apply.call(this, batch));
    };
    const store = createMemoryStore();
    const idle = { work: async () => undefined, emit: async () => true };
    const nodes = [requestsOn(store, idle, { node: 'second' }), requestsOn(slow, idle)];
    const emit: Host['emit'] = async (_message, _data, { offer = 0 }) => {
      const msg = {};
      handOver.mark(msg, msg, { id: 'node' }, offer, nodes.length);
      // Each receives its copy when the one before it has accepted its own.
      for (const node of nodes) acceptMany(node, 1, claimOf({ ...msg }));
      return true;
    };
    const queue = requestsOn(store, { work: async () => 'sent', emit });
    await queue.start();
    acceptMany(queue, 1);
    await pass(20);
    should(await queue.reader.count()).equal(1);
    unlock();
    await pass(20);
    should(await queue.reader.count()).equal(0);
    await Promise.all([queue, ...nodes].map((each) => each.close()));
  });

  for (const end of ['when the process was killed', 'because their store was taken over'])
    it(`goes again only to those that had not saved it ${end}`, () => goesAgain(end.startsWith('because')));

  const goesAgain = async (isKept: boolean): Promise<void> => {
    const store = createMemoryStore();
    const received: (string | undefined)[] = [];
    const fast = requestsOn(store, { work: async () => undefined, emit: async () => true }, { node: 'fast' });
    const nodeOn = (on: Store, receive: (msg: object) => void): Requests => {
      const emit: Host['emit'] = async (_message, _data, { offer = 0 }) => {
        const msg = {};
        handOver.mark(msg, msg, { id: 'node' }, offer, 2);
        receive(msg);
        return true;
      };
      return requestsOn(on, { work: async () => 'sent', emit });
    };
    const before = nodeOn(store, (msg) => {
      const [fastClaim, slowClaim] = [claimOf({ ...msg }, 'fast'), claimOf({ ...msg }, 'slow')];
      if (isKept) slowClaim?.keep();
      acceptMany(fast, 1, fastClaim);
    });
    await Promise.all([before.start(), fast.start()]);
    acceptMany(before, 1);
    await pass(20);
    should(await fast.reader.count()).equal(1);

    const after = nodeOn(overStore(store), (msg) => {
      for (const node of ['fast', 'slow']) {
        const claim = handOver.claim({ ...msg }, node);
        received.push(claim === 'taken' ? 'taken' : node);
        if (claim !== 'taken') claim?.conclude();
      }
    });
    await after.start();
    await pass(20);
    should(received).eql(['taken', 'slow']);
    should(await after.reader.count()).equal(0);
    await Promise.all([after.close(), fast.close()]);
  };
});
