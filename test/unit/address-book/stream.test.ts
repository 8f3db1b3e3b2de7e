import should from 'should';
import { alsoClose, closeAll } from '../../support/closing';
import { nextIteration } from '../../support/event-loop';
import { Flow } from '../../support/flow';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { startSimulated, type Simulated } from '../../support/simulated';
import { problemReply } from '../../support/service/setup';
import {
  after,
  gate,
  idsOf,
  paging,
  partsOf,
  upTo,
  type Item,
  type ItemPage,
} from '../../support/address-book/paging-service';
import type { Environment } from '../../../lib/runtime/environment';
import { contactNode, scripted } from '../../support/address-book/setup';

/** The flow of a node that has emitted all contacts. */
const readAll = async (environment: Environment): Promise<Flow> => {
  const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item', pageSize: 10 });
  flow.send({});
  await flow.completed.next();
  return flow;
};

const idIn = (summary: unknown): unknown => (summary as { readonly id: string }).id;

describe('a search of all pages', () => {
  const simulated = async (contacts: number): Promise<Simulated> =>
    alsoClose(await startSimulated({ contacts }));

  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  it('streams every record once, in order, with the total of the first page as count', async () => {
    const { environment, received } = await simulated(1234);
    const flow = await contactNode(environment, {
      operation: 'search',
      all: true,
      emit: 'item',
      sortBy: 'dateTimeCreated',
      page: 9,
    });
    const outer = { id: 'outer', type: 'array', index: 0, count: 1 };
    const arrived = await flow.ask({ parts: outer }, 1234);
    should(idsOf(arrived)).deepEqual(upTo(1234).map((index) => 1001 + index));
    should(partsOf(arrived).map(({ index }) => index)).deepEqual(upTo(1234));
    should(partsOf(arrived).every(({ count }) => count === 1234)).be.true();
    should(arrived[0]?.msg.parts).have.property('parts', outer);
    await flow.completed.next();
    should(received('searchContacts')).equal(25);
    should(flow.statuses.at(-1)?.text).match(/1,234/);
  });

  it('emits page by page, counted in pages', async () => {
    const { environment } = await simulated(120);
    const flow = await contactNode(environment, { operation: 'search', all: true });
    const arrived = await flow.ask({}, 3);
    should(arrived.map(({ msg }) => (msg.payload as ItemPage).data.length)).deepEqual([50, 50, 20]);
    should(partsOf(arrived).map(({ index, count }) => [index, count])).deepEqual([
      [0, 3],
      [1, 3],
      [2, 3],
    ]);
    await flow.completed.next();
  });

  for (const [config, total] of [
    [{ all: true, emit: 'item' }, 30],
    [{ all: true, emit: 'page' }, 3],
    [{ all: true, emit: 'item', filter: 'nobody' }, 0],
    [{ emit: 'item' }, 10],
  ] as const)
    it(`ends with a summary, like any list: ${JSON.stringify(config)}`, async () => {
      const { environment } = await scripted(paging(() => upTo(30)));
      const flow = await contactNode(environment, { operation: 'search', pageSize: 10, ...config });
      flow.send({});
      const done = only(await flow.completed.next());
      const arrived = flow.arrivals.all;
      should(arrived).have.length(total);
      should(done['summary']).containEql({ total, done: total, failed: 0, byCode: {} });
      should(arrived.at(-1)?.msg.summary).eql(total === 0 ? undefined : done['summary']);
      should(arrived.slice(0, -1).every(({ msg }) => msg.summary === undefined)).be.true();
      should(partsOf(arrived).every(({ id }) => id === idIn(done['summary']))).be.true();
    });

  it('prefetches a few pages and no more, and shows its progress', async () => {
    const hold = gate();
    const answer = paging(() => upTo(1000));
    const { environment, requests } = await scripted(async (request) => {
      if (request.query.page !== '1') await hold.pass();
      return answer(request);
    });
    const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
    await flow.ask({}, 50);
    while (hold.waiting() < 3) await nextIteration();
    should(requests().map(({ query }) => query.page)).deepEqual(['1', '2', '3', '4']);
    should(flow.statuses.at(-1)).deepEqual({ fill: 'blue', shape: 'dot', text: '50 / 1,000' });
    flow.send({ reset: true });
    await flow.completed.next();
    should(flow.arrivals.all).have.length(50);
  });

  it('keeps the order when a later page is answered first', async () => {
    const hold = gate();
    const answer = paging(() => upTo(200));
    const { environment } = await scripted(async (request) => {
      if (request.query.page === '2') await hold.pass();
      if (request.query.page === '4') await hold.open();
      return answer(request);
    });
    const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
    should(idsOf(await flow.ask({}, 200))).deepEqual(upTo(200));
  });

  for (const emit of ['item', 'page'] as const) {
    it(`does not emit a record twice that moved to the next page meanwhile (${emit})`, async () => {
      let book = upTo(30);
      const { environment } = await scripted((request) => {
        const reply = paging(() => book)(request);
        // Somebody new sorts before all others each time a page has been read.
        book = [1000 + book.length, ...book];
        return reply;
      });
      const flow = await contactNode(environment, { operation: 'search', all: true, emit, pageSize: 10 });
      flow.send({});
      await flow.completed.next();
      const ids = flow.arrivals.all.flatMap(({ msg }) =>
        emit === 'item' ? [msg.payload as Item] : (msg.payload as ItemPage).data,
      );
      should(ids.map(({ contactId }) => contactId)).deepEqual(upTo(30));
      const indexes = partsOf(flow.arrivals.all).map(({ index }) => index);
      should(indexes).deepEqual(upTo(indexes.length));
    });
  }

  it('reads to the end when the service returns no totals, or smaller pages than requested', async () => {
    for (const pageInfo of [null, undefined, { pageSize: 7 }, { pageSize: 7, totalRecord: 30 }]) {
      const { environment } = await scripted((request) =>
        paging(
          () => upTo(30),
          () => ({ pageInfo }),
        )({
          ...request,
          query: { ...request.query, pageSize: pageInfo ? '7' : '10' },
        }),
      );
      const flow = await readAll(environment);
      should(idsOf(flow.arrivals.all)).deepEqual(upTo(30));
      should(partsOf(flow.arrivals.all)[0]?.count).equal(pageInfo?.totalRecord);
      await Flow.unload();
    }
  });

  it('reads to the end when the total counts the records of a page, or nothing', async () => {
    for (const totalRecord of [10, 0]) {
      const { environment } = await scripted((request) =>
        paging(
          () => upTo(30),
          () => ({ pageInfo: { page: Number(request.query.page), pageSize: 10, totalRecord } }),
        )(request),
      );
      const flow = await readAll(environment);
      should(idsOf(flow.arrivals.all)).deepEqual(upTo(30));
      const { count } = partsOf(flow.arrivals.all).at(-1) ?? {};
      should(count).equal(totalRecord || 30);
      await Flow.unload();
    }
  });

  it('reads over an empty page whose total promises more, and ends after two', async () => {
    for (const [gap, expected] of [
      [[2], [...upTo(10), ...upTo(30).slice(20)]],
      [[2, 3], upTo(10)],
    ] as const) {
      const answer = paging(() => upTo(30));
      const { environment } = await scripted((request) => {
        const page = Number(request.query.page);
        if (!gap.some((each) => each === page)) return answer(request);
        return page > 3
          ? problemReply('invalid_request')
          : { body: { data: [], pageInfo: { page, pageSize: 10, totalRecord: 30 } } };
      });
      const flow = await readAll(environment);
      should(idsOf(flow.arrivals.all)).deepEqual(expected);
      await Flow.unload();
    }
  });

  it('ends with one failure when a page fails, after the records before it', async () => {
    const answer = paging(() => upTo(500));
    const { environment } = await scripted((request) =>
      request.query.page === '3' ? problemReply('forbidden') : answer(request),
    );
    const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
    const arrived = await flow.ask({ payload: 'as it was' }, 101);
    const failed = after(arrived, 100);
    should(idsOf(arrived.slice(0, 100))).deepEqual(upTo(100));
    should(failed.port).equal(1);
    should(failed.msg.payload).equal('as it was');
    should(errorOf(failed.msg).code).equal('forbidden');
    const done = only(await flow.completed.next());
    const id = partsOf(arrived.slice(0, 100))[0]?.id;
    should(done['summary']).deepEqual({ id, total: 101, done: 100, failed: 1, byCode: { forbidden: 1 } });
    should(failed.msg.summary).deepEqual(done['summary']);
    should(flow.arrivals.all).have.length(101);
    should(flow.completed.all).have.length(1);
  });

  it('raises that failure when nothing is wired to it', async () => {
    const { environment } = await scripted(() => problemReply('forbidden'));
    const flow = await contactNode(environment, { operation: 'search', all: true }, { unwired: [1] });
    flow.send({});
    should(only(await flow.errors.next()).error).containEql({ code: 'forbidden' });
    should(flow.completed.all).be.empty();
  });

  it('fails rather than read the first page forever from a service with other query names', async () => {
    const { environment, requests } = await scripted((request) =>
      paging(() => upTo(100))({ ...request, query: { ...request.query, page: '1' } }),
    );
    const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
    const arrived = await flow.ask({}, 51);
    const failed = after(arrived, 50);
    should(errorOf(failed.msg).code).equal('invalid_response');
    should(errorOf(failed.msg).message).match(/names/);
    should(requests().length).be.below(6);
  });

  it('is stopped by msg.reset: nothing more is emitted, and the input is done, once', async () => {
    const hold = gate();
    const answer = paging(() => upTo(1000));
    const { environment } = await scripted(async (request) => {
      if (Number(request.query.page) > 2) await hold.pass();
      return answer(request);
    });
    const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
    await flow.ask({ topic: 'search' }, 100);
    flow.send({ topic: 'stop', reset: true });
    const completed = await flow.completed.next(2);
    should(completed.map(({ topic }) => topic).sort()).deepEqual(['search', 'stop']);
    await hold.open();
    await nextIteration();
    should(flow.arrivals.all).have.length(100);
    should(flow.completed.all).have.length(2);
  });

  it('is cancelled by a msg.reset that comes right behind it', async () => {
    const { environment, requests } = await scripted(paging(() => upTo(1000)));
    const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
    flow.send({});
    flow.send({ reset: true });
    const { msg } = only(await flow.arrivals.next());
    should(errorOf(msg).code).equal('cancelled');
    await flow.completed.next();
    should(requests()).be.empty();
  });

  for (const [what, pageInfo] of [
    ['with another number', { page: 1, totalRecord: 200 }],
    ['that claims to be the requested one and repeats the previous one', undefined],
    ['without a number that repeats the previous one', null],
    ['that repeats the previous one in another order', null],
  ] as const) {
    it(`ends with one failure at a page ${what}`, async () => {
      const { environment } = await scripted(({ query }) => {
        const data = upTo(50).map((contactId) => ({ contactId }));
        if (what.endsWith('order') && query.page === '2') data.reverse();
        return { body: { data, pageInfo: pageInfo === undefined ? { page: Number(query.page) } : pageInfo } };
      });
      const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
      const arrived = await flow.ask({}, 51);
      should(idsOf(arrived.slice(0, 50))).deepEqual(upTo(50));
      const failed = after(arrived, 50);
      should(failed.port).equal(1);
      should(errorOf(failed.msg).code).equal('invalid_response');
      should(errorOf(failed.msg).message).match(/page 2. It probably has another name for the page number/);
      await flow.completed.next();
      should(flow.arrivals.all).have.length(51);
    });
  }

  it('fails when the service returns a page other than the requested one', async () => {
    const { environment } = await scripted(() => ({
      body: { data: [{ contactId: 1 }], pageInfo: { page: 1 } },
    }));
    const flow = await contactNode(environment, { operation: 'search', page: 3 });
    const failed = only(await flow.ask({}));
    should(errorOf(failed.msg)).containEql({ code: 'invalid_response', attempts: 1 });
    should(errorOf(failed.msg).message).match(/^The service returned page 1 instead of page 3/);
  });

  it('fails when the service returns another, empty page, but not if there is nothing at all', async () => {
    let pageInfo: object = { page: 1, totalRecord: 120 };
    const { environment } = await scripted(() => ({ body: { data: [], pageInfo } }));
    const flow = await contactNode(environment, { operation: 'search', page: 3 });
    should(errorOf(only(await flow.ask({})).msg).code).equal('invalid_response');
    pageInfo = { page: 0, totalRecord: 0 };
    should(only(await flow.ask({})).port).equal(0);
  });

  it('fails when a service that does not number pages returns the first page again', async () => {
    let isHeeded = false;
    const { environment } = await scripted(({ query }) => {
      const from = isHeeded ? Number(query.page) * 50 : 0;
      return { body: { data: upTo(50).map((at) => ({ contactId: from + at })) } };
    });
    const flow = await contactNode(environment, { operation: 'search', page: 3 });
    const failed = only(await flow.ask({}));
    should(errorOf(failed.msg).code).equal('invalid_response');
    should(errorOf(failed.msg).message).match(/page 3. It probably has another name for the page number/);
    isHeeded = true;
    should(only(await flow.ask({})).port).equal(0);
  });

  it('settles nothing when a close interrupts it, and reports it once the flows have started again', async () => {
    const hold = gate();
    const answer = paging(() => upTo(1000));
    const { environment } = await scripted(async (request) => {
      if (Number(request.query.page) > 1) await hold.pass();
      return answer(request);
    });
    const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
    await flow.ask({}, 50);
    await Flow.unload();
    should(flow.settled).be.empty();
    should(flow.arrivals.all).have.length(50);
    const next = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
    const { code, message } = errorOf(only(await next.arrivals.next()).msg);
    should(code).equal('cancelled');
    should(message).match(/deploy/);
    should(message).not.match(/reset/);
  });
});
