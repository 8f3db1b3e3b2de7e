import should from 'should';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { simulatedForEach } from '../../support/simulated';
import { partsOf, type ItemPage } from '../../support/address-book/paging-service';
import { contactNode, groupNode, scripted } from '../../support/address-book/setup';
import { until } from '../../support/until';

const people = [
  { contactId: 1, fullName: 'Grace Hopper', firstName: 'Grace', lastName: 'Hopper', email: 'gh@example.com' },
  { contactId: 2, fullName: 'Ann Ito', firstName: 'Ann', lastName: 'Ito', email: 'ann@example.com' },
  { contactId: 3, fullName: null, firstName: 'René', lastName: 'Grau', email: null },
  { contactId: 4, fullName: 'Ben Okafor', firstName: 'Ben', lastName: 'Okafor', email: 'grace@example.com' },
  { contactId: 5, fullName: 'Graça Lima', firstName: 'Graça', lastName: 'Lima', email: 'lima@example.com' },
];

/** Pages of at most two, whatever is requested. */
const service = (records: readonly object[] = people) =>
  scripted(({ query }) => {
    const page = Number(query.page ?? 1);
    const pageInfo = { page, pageSize: 2, totalRecord: records.length, sortBy: 'fullName' };
    return { body: { data: records.slice((page - 1) * 2, page * 2), pageInfo } };
  });
const idsIn = ({ data }: { data: readonly { contactId: number }[] }): number[] =>
  data.map(({ contactId }) => contactId);
type Found = ItemPage & { pageInfo: Record<string, unknown> };

describe('a filter', () => {
  simulatedForEach();
  const search = { operation: 'search' };

  for (const [filter, ids] of [
    ['gra', [1, 3, 4, 5]],
    ['GRACE', [1, 4]],
    ['rene gra', [3]],
    ['hopper gh@', [1]],
    ['lima graca', [5]],
    ['nobody', []],
  ] as const) {
    it(`matches every word in names and addresses, ignoring case and accents: ${filter}`, async () => {
      const { environment } = await service();
      const flow = await contactNode(environment, { ...search, filter });
      const found = only(await flow.ask({})).msg.payload as Found;
      should(idsIn(found)).deepEqual(ids);
      should(found.pageInfo).containEql({ page: 1, pageSize: 50, totalRecord: ids.length });
      should(found.pageInfo).containEql({ sortBy: 'fullName' });
    });
  }

  it('comes from the message, and an empty one finds everything in pages of the service', async () => {
    const { environment, requests } = await service();
    const flow = await contactNode(environment, { ...search, filter: 'payload', filterType: 'msg' });
    should(idsIn(only(await flow.ask({ payload: 'ann' })).msg.payload as Found)).deepEqual([2]);
    const asked = requests().length;
    should(idsIn(only(await flow.ask({ payload: '' })).msg.payload as Found)).deepEqual([1, 2]);
    should(requests().length).equal(asked + 1);
    should(errorOf(only(await flow.ask({ payload: { name: 'ann' } })).msg)).match({
      code: 'invalid_input',
      message: /not text/,
    });
  });

  it('returns pages of the matches, whose total is known once the end was read', async () => {
    const { environment, requests } = await service();
    const flow = await contactNode(environment, { ...search, filter: 'gra', page: 1, pageSize: 2 });
    const one = only(await flow.ask({})).msg.payload as Found;
    should(idsIn(one)).deepEqual([1, 3]);
    should(one.pageInfo).containEql({ page: 1, pageSize: 2, totalRecord: null });
    should(requests().length).be.within(2, 3);
  });

  it('returns a second page of the matches', async () => {
    const { environment } = await service();
    const flow = await contactNode(environment, { ...search, filter: 'gra', page: 2, pageSize: 3 });
    const two = only(await flow.ask({})).msg.payload as Found;
    should(idsIn(two)).deepEqual([5]);
    should(two.pageInfo).containEql({ page: 2, pageSize: 3, totalRecord: 4 });
  });

  it('streams all matches one by one, the last with the count', async () => {
    const { environment } = await service();
    const flow = await contactNode(environment, { ...search, filter: 'gra', all: true, emit: 'item' });
    const arrived = await flow.ask({}, 4);
    await flow.completed.next();
    should(arrived.map(({ msg }) => msg.contactId)).deepEqual([1, 3, 4, 5]);
    should(partsOf(arrived).map(({ index, count }) => [index, count])).deepEqual([
      [0, undefined],
      [1, undefined],
      [2, undefined],
      [3, 4],
    ]);
  });

  it('streams all matches page by page', async () => {
    const { environment } = await service();
    const flow = await contactNode(environment, { ...search, filter: 'gra', all: true, pageSize: 3 });
    const arrived = await flow.ask({}, 2);
    await flow.completed.next();
    const pages = arrived.map(({ msg }) => msg.payload as Found);
    should(pages.map(idsIn)).deepEqual([[1, 3, 4], [5]]);
    should(pages.map(({ pageInfo }) => pageInfo['totalRecord'])).deepEqual([null, 4]);
    should(partsOf(arrived).map(({ count }) => count)).deepEqual([undefined, 2]);
  });

  it('that matches nobody returns an empty page, or nothing one by one, and no green dot', async () => {
    const { environment } = await service();
    const flow = await contactNode(environment, { ...search, filter: 'nobody', all: true });
    const page = only(await flow.ask({})).msg.payload as Found;
    should(page).match({ data: [], pageInfo: { page: 1, totalRecord: 0 } });
    await until(() => flow.statuses.at(-1)?.fill === 'grey');
  });

  it('searches the names of groups', async () => {
    const groups = ['Clients', 'Prospects', 'Golf clients'].map((name, groupId) => ({ groupId, name }));
    const { environment } = await service(groups);
    const flow = await groupNode(environment, { ...search, filter: 'client', all: true, emit: 'item' });
    const arrived = await flow.ask({}, 2);
    should(arrived.map(({ msg }) => msg.groupId)).deepEqual([0, 2]);
  });

  it('emits its matches before a page that fails', async () => {
    const { environment } = await scripted(({ query }) =>
      query.page === '1'
        ? { body: { data: people.slice(0, 2), pageInfo: { page: 1, pageSize: 2, totalRecord: 5 } } }
        : { status: 403, body: {} },
    );
    const flow = await contactNode(environment, { ...search, filter: 'gra', all: true, emit: 'item' });
    const arrived = await flow.ask({}, 2);
    should(arrived.map(({ port }) => port)).deepEqual([0, 1]);
  });
});
