import should from 'should';
import { pagesOf, RecentIds, type Fetch } from '../../../lib/address-book/paging';
import type { ResultPage } from '../../../lib/service/endpoints';
import { oneAtATime } from '../../../lib/service/concurrency';
import { nextIteration } from '../../support/event-loop';

describe('seen records', () => {
  it('remember at least one generation, and never more than two', () => {
    const seen = new RecentIds(100);
    for (let id = 0; id < 1000; id++) {
      seen.add(id);
      const known = Array.from({ length: id + 1 }, (_, ago) => seen.has(id - ago));
      should(known.slice(0, 100).every(Boolean)).be.true();
      should(known.slice(200).some(Boolean)).be.false();
    }
  });

  it('tells long ids apart by their ends, too', () => {
    const seen = new RecentIds();
    const [one, other] = ['a', 'b'].map((end) => 'x'.repeat(500) + end) as [string, string];
    seen.add(one);
    should([seen.has(one), seen.has(other), seen.has(one.slice(0, 64))]).deepEqual([true, false, false]);
  });

  it('distinguish any two ids, however close or far', () => {
    const numbers = [
      0,
      1,
      31,
      32,
      255,
      256,
      511,
      2 ** 31,
      2 ** 32,
      2 ** 32 + 1,
      Number.MAX_SAFE_INTEGER,
      -1,
      0.5,
    ];
    const many = Array.from({ length: 1000 }, (_, at) => 1_000_003 * at + 7);
    const ids = [...numbers, ...numbers.map(String), ...many];
    const seen = new RecentIds();
    for (const id of ids) {
      should(seen.has(id)).be.false();
      seen.add(id);
      should(seen.has(id)).be.true();
    }
    should(ids.every((id) => seen.has(id))).be.true();
    should(many.some((id) => seen.has(id + 1) || seen.has(id - 1) || seen.has(id + 256))).be.false();
  });
});

describe('prefetched pages', () => {
  interface Service {
    readonly fetch: Fetch<ResultPage<number>>;
    /** Answers any request. */
    readonly answer: () => Promise<void>;
    readonly asked: () => number;
  }
  const serviceOf = (pages: number): Service => {
    const open: (() => void)[] = [];
    let asked = 0;
    return {
      fetch: (page) =>
        new Promise((resolve) => {
          asked = page;
          open.push(() => {
            resolve({ data: [page], pageInfo: { page, pageSize: 1, totalRecord: pages } });
          });
        }),
      async answer() {
        for (const each of open.splice(0)) each();
        await nextIteration();
      },
      asked: () => asked,
    };
  };

  it('are three at most', async () => {
    const service = serviceOf(100);
    const reading = pagesOf(service.fetch, { pageSize: 1 });
    for (let read = 1; read < 30; read++) {
      const reached = reading.next();
      await nextIteration();
      await service.answer();
      should((await reached).done).be.false();
      should(service.asked() - read).equal(3);
    }
    await reading.return();
  });
});

describe('one at a time', () => {
  it('runs tasks of one key in order, and others beside them', async () => {
    const events: string[] = [];
    const task = (name: string) => async (): Promise<void> => {
      events.push(`${name} begins`);
      await nextIteration();
      events.push(`${name} ends`);
    };
    await Promise.all([
      oneAtATime('a', task('a1')),
      oneAtATime('a', task('a2')),
      oneAtATime('b', task('b1')),
    ]);
    should(events.indexOf('a2 begins')).be.above(events.indexOf('a1 ends'));
    should(events.indexOf('b1 begins')).be.below(events.indexOf('a1 ends'));
  });

  it('continues after a failed task', async () => {
    const failing = oneAtATime('a', () => Promise.reject(new Error('no')));
    const next = oneAtATime('a', () => Promise.resolve('yes'));
    await should(failing).be.rejectedWith('no');
    should(await next).equal('yes');
  });
});
