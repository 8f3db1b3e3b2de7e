import should from 'should';
import { alsoClose, closeAll } from '../../support/closing';
import { Flow } from '../../support/flow';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { startSimulated, type Simulated } from '../../support/simulated';
import { idsOf, paging, partsOf, upTo, type ItemPage } from '../../support/address-book/paging-service';
import { contactNode, groupNode, scripted } from '../../support/address-book/setup';

describe('a search', () => {
  const simulated = async (contacts: number): Promise<Simulated> =>
    alsoClose(await startSimulated({ contacts }));

  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  it('is what new contact and group nodes do', async () => {
    for (const node of [contactNode, groupNode]) {
      const { environment, requests } = await scripted(paging(() => []));
      await (await node(environment, {})).ask({ payload: { firstName: 'Ann', name: 'Clients' } });
      should(requests().map(({ method }) => method)).deepEqual(['GET']);
      await Flow.unload();
    }
  });

  describe('one page', () => {
    it('emits the page unchanged and leaves parts alone', async () => {
      const { environment } = await simulated(120);
      const flow = await contactNode(environment, { operation: 'search', page: 3 });
      const parts = { id: 'outer', type: 'array', index: 0, count: 1 };
      const { port, msg } = only(await flow.ask({ payload: 'x', parts }));
      should(port).equal(0);
      should((msg.payload as ItemPage).data).have.length(20);
      should(msg.payload).have.property('pageInfo').containEql({ page: 3, pageSize: 50, totalRecord: 120 });
      should(msg.parts).deepEqual(parts);
      await flow.completed.next();
    });

    it('emits each item as a sequence, and sets its contactId for the next node', async () => {
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

    it('sends what the node says, and no order when it sets none', async () => {
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

    it('rejects a page or page size out of range without a request', async () => {
      const { environment, requests } = await scripted(paging(() => []));
      for (const wrong of [{ page: 0 }, { page: 1.5 }, { pageSize: 201 }, { pageSize: -1 }]) {
        const flow = await contactNode(environment, { operation: 'search', ...wrong });
        should(errorOf(only(await flow.ask({})).msg).code).equal('invalid_input');
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
        const { msg } = only(await flow.ask({}));
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
});
