import should from 'should';
import { Asked, ConsentLimit, type Reply } from '../../lib/consent/asked';
import { MovableClock } from '../../lib/service/clock';
import { problem } from '../../lib/service/problems';
import { createMemoryStore } from '../../lib/state/memory';
import { ann, begin, bob, hours } from './fixtures';

const daily = { every: hours(24), limit: 3 };

describe('asked-when', () => {
  let clock: MovableClock;
  let store: ReturnType<typeof createMemoryStore>;
  let sent: number;
  const asked = (environment = 'env'): Asked => new Asked({ store, clock, environment });
  const pending: Reply = { memberId: 7, consentState: 'pending', requested: true };
  const request = async (leave: () => Promise<void>): Promise<Reply> => {
    await leave();
    sent += 1;
    return pending;
  };
  const failing = (code: string) => async (leave: () => Promise<void>) => {
    await leave();
    throw problem(code, 'no');
  };

  beforeEach(() => {
    clock = new MovableClock(() => begin);
    store = createMemoryStore();
    sent = 0;
  });

  it('asks once within "every", whichever node asks, and gives the last answer instead', async () => {
    const first = await asked().ask('default', ann, daily, request);
    should(first).deepEqual({ ...pending, requestedAt: begin });
    await clock.move(hours(23.9));
    const second = await asked().ask('default', ann, daily, request);
    should(second).deepEqual({ ...pending, requested: false, requestedAt: begin });
    await clock.move(hours(0.1));
    const third = await asked().ask('default', ann, daily, request);
    should(third.requested).be.true();
    should(sent).equal(2);
  });

  it('keeps numbers, advisors and environments apart', async () => {
    await asked().ask('default', ann, daily, request);
    await asked().ask('default', bob, daily, request);
    await asked().ask('other', ann, daily, request);
    await asked('other').ask('default', ann, daily, request);
    should(sent).equal(4);
  });

  it('asks a number once when two nodes ask at the same time', async () => {
    const results = await Promise.all([1, 2, 3].map(() => asked().ask('default', ann, daily, request)));
    should(results.map(({ requested }) => requested)).deepEqual([true, false, false]);
    should(sent).equal(1);
  });

  it('counts a request whose outcome is unknown, or that a kill interrupted, as asked', async () => {
    await should(asked().ask('default', ann, daily, failing('outcome_unknown'))).be.rejected();
    should((await asked().ask('default', ann, daily, request)).requested).be.false();
    void asked().ask('default', bob, daily, async (leave) => {
      await leave();
      return new Promise<Reply>(() => undefined);
    });
    await new Promise((resolve) => setImmediate(resolve));
    const records = [];
    for await (const [, record] of store.table('asked').entries()) records.push(record);
    should(records).have.length(2);
  });

  it('does not count what was certainly not carried out', async () => {
    await should(asked().ask('default', ann, daily, failing('conflict'))).be.rejected();
    await should(asked().ask('default', ann, daily, failing('network_error'))).be.rejected();
    should((await asked().ask('default', ann, daily, request)).requested).be.true();
  });

  it('stops at the limit of unanswered requests, until an acceptance is seen', async () => {
    const always = { every: 0, limit: 3 };
    for (let n = 0; n < 3; n++) await asked().ask('default', ann, always, request);
    await should(asked().ask('default', ann, always, request)).be.rejectedWith(ConsentLimit);
    should(sent).equal(3);
    await asked().accepted('default', ann, 7);
    should((await asked().ask('default', ann, always, request)).requested).be.true();
    should((await asked().ask('default', ann, { every: 0, limit: 0 }, request)).requested).be.true();
  });

  it('takes a number that has accepted already as not asked, and answered', async () => {
    const accepted = { memberId: 7, consentState: 'accepted', requested: false };
    const result = await asked().ask('default', ann, daily, () => Promise.resolve(accepted));
    should(result).deepEqual({ ...accepted, requestedAt: null });
    should((await asked().ask('default', ann, daily, request)).requested).be.true();
  });

  it('forgets after 30 days, and has no number readable on disk', async () => {
    await asked().ask('default', ann, { every: hours(24 * 365), limit: 0 }, request);
    should((await store.table('asked').keyFrom('')) ?? '').not.match(/2025550101/);
    await clock.move(hours(24 * 30));
    await asked().ask('default', bob, daily, request);
    await new Promise((resolve) => setImmediate(resolve));
    const left = [];
    for await (const [key] of store.table('asked').entries()) left.push(key);
    should(left).have.length(1);
    should((await asked().ask('default', ann, daily, request)).requested).be.true();
  });
});
