import should from 'should';
import { Flow, type Arrived } from '../support/flow';
import { startSimulated, type Simulated } from '../support/simulated';
import { closeAll, problemReply, type Reply } from '../service/support';
import { contactNode, errorOf, first, scripted, type Request } from './setup';

interface Item {
  readonly contactId: number;
}
interface ItemPage {
  readonly data: Item[];
}

const idsOf = (arrived: readonly Arrived[]): number[] =>
  arrived.map(({ msg }) => (msg.payload as Item).contactId);
const partsOf = (arrived: readonly Arrived[]): { index: number; count?: number; id: string }[] =>
  arrived.map(({ msg }) => msg.parts as { index: number; count?: number; id: string });
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** A service whose address book is what `book` says at the moment of asking. */
const paging =
  (book: () => readonly number[], more: (request: Request) => object = () => ({})) =>
  (request: Request): Reply => {
    const page = Number(request.query.page);
    const pageSize = Number(request.query.pageSize);
    const all = book();
    const data = all.slice((page - 1) * pageSize, page * pageSize).map((contactId) => ({ contactId }));
    return { body: { data, pageInfo: { page, pageSize, totalRecord: all.length }, ...more(request) } };
  };

/** Lets go of requests one by one, so that a test decides what happens between two pages. */
const gate = () => {
  const waiting: (() => void)[] = [];
  return {
    pass: () => new Promise<void>((resolve) => waiting.push(resolve)),
    async open(): Promise<void> {
      while (waiting.length === 0) await new Promise(setImmediate);
      waiting.shift()?.();
    },
    waiting: () => waiting.length,
  };
};

describe('search', () => {
  let on: Simulated | undefined;
  const simulated = async (contacts: number): Promise<Simulated> => (on = await startSimulated({ contacts }));

  afterEach(async () => {
    await Flow.unload();
    await on?.close();
    on = undefined;
    await closeAll();
  });

  describe('one page', () => {
    it('emits the page as it is and leaves parts alone', async () => {
      const { environment } = await simulated(120);
      const flow = await contactNode(environment, { operation: 'search', page: 3 });
      const parts = { id: 'outer', type: 'array', index: 0, count: 1 };
      const { port, msg } = first(await flow.ask({ payload: 'x', parts }));
      should(port).equal(0);
      should((msg.payload as ItemPage).data).have.length(20);
      should(msg.payload).have.property('pageInfo').containEql({ page: 3, pageSize: 50, totalRecord: 120 });
      should(msg.parts).deepEqual(parts);
      await flow.completed.next();
    });

    it('emits each item as a sequence, and names its contactId for the next node', async () => {
      const { environment } = await simulated(120);
      const flow = await contactNode(environment, { operation: 'search', emit: 'item', page: 3 });
      const arrived = await flow.ask({ payload: { big: 'input' }, topic: 'kept' }, 20);
      should(partsOf(arrived).map(({ index }) => index)).deepEqual(upTo(20));
      should(new Set(partsOf(arrived).map(({ count }) => count))).deepEqual(new Set([20]));
      should(new Set(partsOf(arrived).map(({ id }) => id)).size).equal(1);
      should(arrived.map(({ msg }) => msg.contactId)).deepEqual(idsOf(arrived));
      should(arrived.every(({ msg }) => msg.topic === 'kept')).be.true();
      await flow.completed.next();
    });

    it('sends what the node says, and no order when it says none', async () => {
      const { environment, requests } = await scripted(paging(() => []));
      const flow = await contactNode(environment, {
        operation: 'search',
        sortBy: 'fullName',
        sortDirection: 'desc',
        pageSize: '20',
      });
      await flow.ask({});
      await Flow.unload();
      await (await contactNode(environment, { operation: 'search' })).ask({});
      should(requests().map(({ query }) => query)).deepEqual([
        { page: '1', pageSize: '20', sortBy: 'fullName', sortDirection: 'desc' },
        { page: '1', pageSize: '50' },
      ]);
    });

    it('refuses a page or a page size out of range, without a request', async () => {
      const { environment, requests } = await scripted(paging(() => []));
      for (const wrong of [{ page: 0 }, { page: 1.5 }, { pageSize: 201 }, { pageSize: -1 }]) {
        const flow = await contactNode(environment, { operation: 'search', ...wrong });
        should(errorOf(first(await flow.ask({}))).code).equal('invalid_input');
        await Flow.unload();
      }
      should(requests()).be.empty();
    });
  });

  describe('that finds nothing', () => {
    for (const all of [false, true]) {
      it(`emits an empty page and completes (all: ${String(all)})`, async () => {
        const { environment } = await scripted(paging(() => []));
        const flow = await contactNode(environment, { operation: 'search', all });
        const { msg } = first(await flow.ask({}));
        should((msg.payload as ItemPage).data).deepEqual([]);
        await flow.completed.next();
        should(flow.arrivals.all).have.length(1);
      });

      it(`emits no item and completes (all: ${String(all)})`, async () => {
        const { environment } = await scripted(paging(() => []));
        const flow = await contactNode(environment, { operation: 'search', emit: 'item', all });
        flow.send({ payload: 'x' });
        await flow.completed.next();
        should(flow.arrivals.all).be.empty();
      });
    }
  });

  describe('all', () => {
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

    it('fetches a few pages ahead and no more, and shows how far it is', async () => {
      const hold = gate();
      const answer = paging(() => upTo(1000));
      const { environment, requests } = await scripted(async (request) => {
        if (request.query.page !== '1') await hold.pass();
        return answer(request);
      });
      const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
      await flow.ask({}, 50);
      while (hold.waiting() < 3) await new Promise(setImmediate);
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
      it(`does not emit twice what moved to the next page while reading (${emit})`, async () => {
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

    it('reads to the end when the service gives no totals, or smaller pages than asked', async () => {
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
        const flow = await contactNode(environment, {
          operation: 'search',
          all: true,
          emit: 'item',
          pageSize: 10,
        });
        flow.send({});
        await flow.completed.next();
        should(idsOf(flow.arrivals.all)).deepEqual(upTo(30));
        should(partsOf(flow.arrivals.all)[0]?.count).equal(pageInfo?.totalRecord);
        await Flow.unload();
      }
    });

    it('ends with one failure when a page fails, after what came before it', async () => {
      const answer = paging(() => upTo(500));
      const { environment } = await scripted((request) =>
        request.query.page === '3' ? problemReply('forbidden') : answer(request),
      );
      const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
      const arrived = await flow.ask({ payload: 'as it was' }, 101);
      const failed = arrived[100];
      should(idsOf(arrived.slice(0, 100))).deepEqual(upTo(100));
      should(failed?.port).equal(1);
      should(failed?.msg.payload).equal('as it was');
      should(errorOf(failed as Arrived).code).equal('forbidden');
      await flow.completed.next();
      should(flow.arrivals.all).have.length(101);
      should(flow.completed.all).have.length(1);
    });

    it('raises that failure when nobody is wired to it', async () => {
      const { environment } = await scripted(() => problemReply('forbidden'));
      const flow = await contactNode(environment, { operation: 'search', all: true }, { unwired: [1] });
      flow.send({});
      should(first(await flow.errors.next()).error).containEql({ code: 'forbidden' });
      should(flow.completed.all).be.empty();
    });

    it('fails rather than read the first page for ever from a service that names pages otherwise', async () => {
      const { environment, requests } = await scripted((request) =>
        paging(() => upTo(100))({ ...request, query: { ...request.query, page: '1' } }),
      );
      const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
      const arrived = await flow.ask({}, 51);
      const failed = arrived[50] as Arrived;
      should(errorOf(failed).code).equal('invalid_response');
      should(errorOf(failed).message).match(/names/);
      should(requests().length).be.below(6);
    });

    it('is stopped by msg.reset: nothing more comes out, and the input is done, once', async () => {
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
      await new Promise(setImmediate);
      should(flow.arrivals.all).have.length(100);
      should(flow.completed.all).have.length(2);
    });

    it('settles nothing when a close interrupts it', async () => {
      const hold = gate();
      const answer = paging(() => upTo(1000));
      const { environment } = await scripted(async (request) => {
        if (Number(request.query.page) > 1) await hold.pass();
        return answer(request);
      });
      const flow = await contactNode(environment, { operation: 'search', all: true, emit: 'item' });
      await flow.ask({}, 50);
      await flow.redeploy('node', { pageSize: 20 });
      should(flow.completed.all).be.empty();
      should(flow.errors.all).be.empty();
      should(flow.arrivals.all).have.length(50);
    });
  });
});
