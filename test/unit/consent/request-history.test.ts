import fc from 'fast-check';
import should from 'should';
import {
  ConsentLimit,
  RequestHistory,
  type MakeRequest,
  type RequestReply,
} from '../../../lib/consent/request-history';
import { Later } from '../../../lib/outbox/queue';
import { MovableClock } from '../../../simulator/movable-clock';
import { ServiceError } from '../../../lib/service/errors';
import { createMemoryStore } from '../../../lib/state/memory';
import { endOf, key, type Store } from '../../../lib/state/store';
import { nextIteration } from '../../support/event-loop';
import { gate } from '../../support/gate';
import { until } from '../../support/until';
import { ann, begin, bob, hours, observed, type ObservedStore } from '../../support/consent/world';
import { overStore } from '../../support/state/over-store';

const daily = { every: hours(24), limit: 3 };
const refused = (code: string): ServiceError =>
  new ServiceError({ message: 'no', code, retryable: false, attempts: 1 });

/** The same records, seen by another process: no memory is shared. */
const elsewhere = (store: Store): Store => overStore(store);

describe('the history of consent requests', () => {
  let clock: MovableClock;
  let store: ObservedStore;
  let sent: number;
  const history = (space = 'space/', of: Store = store): RequestHistory =>
    new RequestHistory(of, space, clock, () => clock.now() + 5);
  const known = key('known');
  const remembered = (): Promise<number> => store.count('work', known, endOf(known));
  const pending: RequestReply = { memberId: 7, consentState: 'pending', requested: true };
  const request: MakeRequest = async ({ start }) => {
    await start();
    sent += 1;
    return pending;
  };
  const failing =
    (code: string): MakeRequest =>
    async ({ start }) => {
      await start();
      throw refused(code);
    };

  beforeEach(() => {
    clock = new MovableClock(() => begin);
    store = observed(createMemoryStore({ clock }));
    sent = 0;
  });

  it('asks once within "every", whichever node asks, and otherwise returns the last answer', async () => {
    const first = await history().ask('default', ann, daily, request);
    should(first).deepEqual({ ...pending, requestedAt: begin + 5 });
    await clock.move(hours(23.9));
    const second = await history().ask('default', ann, daily, request);
    should(second).deepEqual({ ...pending, requested: false, requestedAt: begin + 5 });
    await clock.move(hours(0.1));
    const third = await history().ask('default', ann, daily, request);
    should(third.requested).be.true();
    should(sent).equal(2);
  });

  it('is searched for old entries without blocking the event loop, even if reads are answered immediately', async () => {
    const value = { of: 'x', until: begin };
    for (let number = 0; number < 1000; number++)
      await store.write([{ table: 'work', put: key('known', 'space/', number), value }]);
    let turns = 0;
    const reads = new Set<number>();
    const page: Store['page'] = store.page.bind(store);
    store.page = (table, range) => {
      reads.add(turns);
      return page(table, range);
    };
    await history().ask('default', ann, daily, request);
    for (; turns < 50; turns++) await nextIteration();
    should(reads.size).be.aboveOrEqual(10);
  });

  it('keeps numbers, advisors and environments separate', async () => {
    await history().ask('default', ann, daily, request);
    await history().ask('default', bob, daily, request);
    await history().ask('other', ann, daily, request);
    await history('other/').ask('default', ann, daily, request);
    should(sent).equal(4);
  });

  it('asks a number once when two nodes ask at the same time, and both get the answer', async () => {
    const results = await Promise.all([1, 2, 3].map(() => history().ask('default', ann, daily, request)));
    should(results.map(({ requested }) => requested)).deepEqual([true, false, false]);
    should(results.map(({ memberId }) => memberId)).deepEqual([7, 7, 7]);
    should(sent).equal(1);
  });

  it('asks a number once when two processes ask at the same time', async () => {
    const results = await Promise.all(
      [1, 2, 3].map(() => history('space/', elsewhere(store)).ask('default', ann, daily, request)),
    );
    should(results.filter(({ requested }) => requested)).have.length(1);
    should(sent).equal(1);
  });

  for (const [what, isKnown] of [
    ['', true],
    [', also when its outcome is unknown', false],
  ] as const)
    it(`counts from when the request left, however long it had waited for its turn${what}`, async () => {
      const asking = history().ask('default', ann, daily, async ({ start, permit }) => {
        await start();
        await clock.move(hours(5));
        await permit();
        if (!isKnown) throw refused('outcome_unknown');
        return pending;
      });
      if (isKnown) should((await asking).requestedAt).equal(begin + hours(5) + 5);
      else await should(asking).be.rejected();
      await clock.move(hours(23.9));
      const early = await history().ask('default', ann, daily, request);
      should(early.requested).be.false();
      should(early.requestedAt).equal(begin + hours(5) + 5);
      await clock.move(hours(0.1));
      should((await history().ask('default', ann, daily, request)).requested).be.true();
    });

  it('counts from when the request left, even if the process is killed before its answer', async () => {
    const { opened, open } = gate();
    void history().ask('default', ann, daily, async ({ start, permit }) => {
      await start();
      await clock.move(hours(5));
      await permit();
      open();
      return new Promise(() => undefined);
    });
    await opened;
    await clock.move(hours(23.9));
    const after = history('space/', elsewhere(store));
    should((await after.ask('default', ann, daily, request)).requested).be.false();
  });

  it('counts a request whose outcome is unknown, or that a kill interrupted, as asked', async () => {
    await should(history().ask('default', ann, daily, failing('outcome_unknown'))).be.rejected();
    should((await history().ask('default', ann, daily, request)).requested).be.false();
    void history().ask('default', bob, daily, async ({ start }) => {
      await start();
      return new Promise<RequestReply>(() => undefined);
    });
    await nextIteration();
    const again = await history('space/', elsewhere(store)).ask('default', bob, daily, request);
    should(again).deepEqual({
      memberId: null,
      consentState: null,
      requested: false,
      requestedAt: begin + 5,
    });
    should(sent).equal(0);
  });

  it('saves the intent before the request leaves', async () => {
    const { opened, open } = gate();
    store.gate = opened;
    const asking = history().ask('default', ann, daily, request);
    await nextIteration();
    should(sent).equal(0);
    open();
    await asking;
    should(sent).equal(1);
  });

  it('does not count what was certainly not carried out', async () => {
    await should(history().ask('default', ann, daily, failing('conflict'))).be.rejected();
    await should(history().ask('default', ann, daily, failing('network_error'))).be.rejected();
    const delayed: MakeRequest = async ({ start }) => {
      await start();
      throw new Later(begin);
    };
    await should(history().ask('default', ann, daily, delayed)).be.rejected();
    should(await remembered()).equal(0);
    should((await history().ask('default', ann, daily, request)).requested).be.true();
    await clock.move(hours(25));
    await should(history().ask('default', ann, daily, failing('network_error'))).be.rejected();
    const kept = await history().ask('default', ann, { every: hours(48), limit: 0 }, request);
    should(kept).deepEqual({ ...pending, requested: false, requestedAt: begin + 5 });
  });

  it('does not count a request that a kill interrupted while it waited to be made again', async () => {
    const { opened, open } = gate();
    const killed = history().ask('default', ann, daily, async ({ start, undo }) => {
      await start();
      await undo();
      open();
      return new Promise(() => undefined);
    });
    killed.catch(() => undefined);
    await opened;
    should(
      (await history('space/', elsewhere(store)).ask('default', ann, daily, request)).requested,
    ).be.true();
  });

  it('stops at the limit of unanswered requests, until an acceptance is seen', async () => {
    const always = { every: 0, limit: 3 };
    for (let n = 0; n < 3; n++) await history().ask('default', ann, always, request);
    await should(history().ask('default', ann, always, request)).be.rejectedWith(ConsentLimit);
    should(sent).equal(3);
    await history().accepted('default', ann, 7);
    should((await history().ask('default', ann, always, request)).requested).be.true();
    should((await history().ask('default', ann, { every: 0, limit: 0 }, request)).requested).be.true();
  });

  it('keeps an acceptance that is seen before the answer to the request', async () => {
    await history().ask('default', ann, daily, async ({ start }) => {
      await start();
      await history().accepted('default', ann, 'm-7');
      return pending;
    });
    const { memberId, consentState } = await history().ask('default', ann, daily, request);
    should([memberId, consentState]).deepEqual(['m-7', 'accepted']);
  });

  for (const [what, isNoted] of [
    ['', false],
    [', also when the acceptance is noted at once', true],
  ] as const)
    it(`treats a number that has already accepted as not asked, and answered${what}`, async () => {
      const accepted = { memberId: 7, consentState: 'accepted', requested: false };
      const result = await history().ask('default', ann, daily, async ({ start }) => {
        await start();
        if (isNoted) await history().accepted('default', ann, 7);
        return accepted;
      });
      should(result).deepEqual({ ...accepted, requestedAt: null });
      should(await remembered()).equal(0);
      should((await history().ask('default', ann, daily, request)).requested).be.true();
    });

  it('forgets after 30 days, and has no readable number in its keys', async () => {
    await history().ask('default', ann, daily, request);
    const [entry] = await store.page('work', { from: known, to: endOf(known), limit: 1 });
    should(entry?.key.toString('latin1')).not.match(/2025550101/);
    await clock.move(hours(24 * 31));
    await history().ask('default', bob, daily, request);
    await until(async () => (await remembered()) === 1);
    should((await history().ask('default', ann, daily, request)).requested).be.true();
  });

  it('keeps to "every" and the limit, also if "every" is more than 30 days', async () => {
    const yearly = { every: hours(24 * 365), limit: 2 };
    await history().ask('default', ann, yearly, request);
    await clock.move(hours(24 * 364));
    await history().ask('default', bob, daily, request);
    should((await history().ask('default', ann, yearly, request)).requested).be.false();
    await clock.move(hours(24));
    should((await history().ask('default', ann, yearly, request)).requested).be.true();
    await clock.move(hours(24 * 365));
    await should(history().ask('default', ann, yearly, request)).be.rejectedWith(ConsentLimit);
  });

  it('counts a request made while the clock was years ahead from when the clock is right again', async () => {
    const ahead = new MovableClock(() => begin + hours(24 * 365 * 10));
    const space = 'space/';
    await new RequestHistory(store, space, ahead).ask('default', ann, daily, request);
    should((await history().ask('default', ann, daily, request)).requested).be.false();
    await clock.move(hours(24));
    should((await history().ask('default', ann, daily, request)).requested).be.true();
  });

  it('never asks twice within "every", whoever asks and whatever fails', async () => {
    const step = fc.record({
      process: fc.nat({ max: 2 }),
      pass: fc.nat({ max: 20 }),
      end: fc.constantFrom('pending', 'accepted', 'outcome_unknown', 'conflict', 'network_error', 'lost'),
    });
    let again = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        const first = createMemoryStore({ clock });
        const stores = [first, elsewhere(first), elsewhere(first)];
        const rules = { every: hours(10), limit: 0 };
        /** When each request that may have reached the person left. */
        const reached: number[] = [];
        const all: Promise<unknown>[] = [];
        for (const { process, pass, end } of steps) {
          if (pass > 12) await clock.move(hours(3 * (pass - 12)));
          const asking = history('x/', stores[process] ?? first).ask(
            'default',
            ann,
            rules,
            async ({ start }) => {
              await start();
              const isReached = end !== 'conflict' && end !== 'network_error';
              if (isReached) reached.push(clock.now());
              if (end === 'lost') throw new Error('killed');
              if (end !== 'pending' && end !== 'accepted') throw refused(end);
              return { memberId: 7, consentState: end, requested: true };
            },
          );
          all.push(asking.catch(() => undefined));
          if (pass % 2 === 0) await nextIteration();
        }
        await Promise.all(all);
        const gaps = reached.slice(1).map((at, n) => at - (reached[n] ?? 0));
        gaps.filter((gap) => gap < rules.every).should.eql([]);
        again += gaps.length;
      }),
      { numRuns: 200 },
    );
    again.should.be.above(50);
  });
});
