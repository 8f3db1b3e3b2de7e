import type { Request as HttpRequest } from 'express';
import should from 'should';
import { pagesOf } from '../../../lib/address-book/paging';
import type { ResultPage } from '../../../lib/service/endpoints';
import type { RunningEnvironment } from '../../../nodes/environment/environment';
import { lookUp } from '../../../nodes/environment/lookup';
import { closeAll } from '../../support/closing';
import { Flow } from '../../support/flow';
import { memoryInUse } from '../../support/memory';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { contactNode, groupNode, scripted, type Request } from '../../support/address-book/setup';

type PageInfo = ResultPage<unknown>['pageInfo'];

/** Pages that are all full and new; `total` says how many records there are after a page. */
const endless =
  (total: (page: number, pageSize: number) => number | undefined) =>
  ({ method, path, query }: Request) => {
    if (method !== 'GET' || /\d$/.test(path)) return { body: { contactId: 5, groupIds: [], id: 5 } };
    const page = Number(query.page);
    const pageSize = Number(query.pageSize);
    const data = Array.from({ length: pageSize }, (_, at) => {
      const id = page * pageSize + at;
      return { contactId: id, groupId: id, name: `Group ${String(id)}`, fullName: 'Ann' };
    });
    return { body: { data, pageInfo: { page, totalRecord: total(page, pageSize) } } };
  };

/** One more page with each page. */
const growing = endless((page, pageSize) => (page + 1) * pageSize);

describe('endless pages', () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  const isStopped = (error: { code: string; message: string }): void => {
    should(error.code).equal('invalid_response');
    should(error.message).match(/still reports more/);
  };

  it('are read up to ten times the first total, and earlier records are emitted', async () => {
    const { environment, requests } = await scripted(growing);
    const flow = await contactNode(environment, { operation: 'search', all: true, pageSize: 10 });
    const arrived = await flow.ask({}, 21);
    isStopped(errorOf(arrived.at(-1)?.msg ?? {}));
    should(arrived.slice(0, -1).map(({ port }) => port)).eql(Array.from({ length: 20 }, () => 0));
    should(requests()).have.length(20);
  });

  for (const [what, config, msg] of [
    ['a filter', { operation: 'search', all: true, filter: 'nobody' }, {}],
    ['one page of a filter', { operation: 'search', filter: 'nobody' }, {}],
  ] as const)
    it(`fail ${what}`, async () => {
      const { environment, requests } = await scripted(growing);
      const flow = await contactNode(environment, { ...config, filterType: 'str' });
      isStopped(errorOf(only(await flow.ask(msg)).msg));
      should(requests()).have.length(20);
    });

  it('fail a search for a group by name, before anything is written', async () => {
    for (const [operation, msg] of [
      ['addContact', { contactId: 5, groupId: 'VIP' }],
      ['setGroups', { contactId: 5, groupIds: ['VIP', 'Clients'] }],
      ['members', { groupId: 'VIP' }],
    ] as const) {
      const { environment, requests } = await scripted(growing);
      const flow = await groupNode(environment, { operation });
      isStopped(errorOf(only(await flow.ask(msg)).msg));
      should(requests()).have.length(20);
      should(requests().some(({ method }) => method !== 'GET')).be.false();
      await Flow.unload();
    }
  });

  it('fail a lookup of the editor', async () => {
    const { environment, requests } = await scripted(growing);
    const request = { params: { what: 'groups' }, query: { filter: 'nobody' } } as unknown as HttpRequest;
    await should(lookUp(environment as unknown as RunningEnvironment, request)).be.rejectedWith(
      /still reports more/,
    );
    should(requests()).have.length(20);
  });

  it('are read up to 10,000 if there is no total', async () => {
    let asked = 0;
    const pageInfo: PageInfo = null;
    const fetch = async (page: number): Promise<ResultPage<number>> => {
      asked = Math.max(asked, page);
      return { data: [page], pageInfo };
    };
    let read = 0;
    const reading = async (): Promise<void> => {
      for await (const { fresh } of pagesOf(fetch, { pageSize: 1, idOf: (id) => id })) read += fresh.length;
    };
    await should(reading()).be.rejectedWith(/10000 pages/);
    should([asked, read]).eql([10_000, 10_000]);
  });

  it('may be ten times as many as first announced, as long as they end', async () => {
    const fetch = async (page: number): Promise<ResultPage<number>> => ({
      data: [page],
      pageInfo: { page, totalRecord: Math.min(page + 1, 20) },
    });
    let read = 0;
    for await (const { fresh } of pagesOf(fetch, { pageSize: 1 })) read += fresh.length;
    should(read).equal(20);
  });
});

/** A search of very many records, of which `recordOf` gives each; everything else is answered with one contact. */
const many = (path: string, recordOf: (at: number) => object) => {
  const total = 20_000;
  return scripted((request) => {
    if (request.method !== 'GET' || !request.path.endsWith(path))
      return { body: { contactId: 5, groupIds: [], id: 5 } };
    const from = (Number(request.query.page) - 1) * 200;
    const data = Array.from({ length: 200 }, (_, at) => recordOf(from + at));
    return { body: { data, pageInfo: { totalRecord: total } } };
  });
};

const long = (at: number): string => `${'x'.repeat(1000)}${String(at)}`;

describe('a search for one record among very many', () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  it('needs no memory for all the others, for a group by its name', async () => {
    const { environment } = await many('/groups', (at) => ({ groupId: at, name: long(at) }));
    const flow = await groupNode(environment, { operation: 'addContact' });
    const before = memoryInUse();
    const { msg } = only(await flow.ask({ contactId: 5, groupId: long(7000) }));
    should(msg.groupId).equal(7000);
    should(memoryInUse() - before).be.below(8 * 1024 * 1024);
  });

  it('needs no memory for all the others, for a list of contacts to save', async () => {
    const { environment, requests } = await many('/contacts', (at) => ({ contactId: at, email: long(at) }));
    const flow = await contactNode(environment, { operation: 'save', matchBy: 'email' });
    const coming = flow.arrivals.next(2);
    const before = memoryInUse();
    flow.send({ payload: [7000, 8000].map((at) => ({ emailAddress: long(at), city: 'Reno' })) });
    const arrived = await coming;
    should(arrived.map(({ msg }) => msg['contactId'])).eql([7000, 8000]);
    should(memoryInUse() - before).be.below(8 * 1024 * 1024);
    should(requests().filter(({ path }) => path.endsWith('/contacts'))).have.length(100);
  });

  it('lists the first few of very many contacts that match', async () => {
    const { environment } = await many('/contacts', (at) => ({ contactId: at, fullName: 'Ann Ito' }));
    const flow = await contactNode(environment, { operation: 'save', matchBy: 'fullName' });
    const { msg } = only(await flow.ask({ payload: { firstName: 'Ann', lastName: 'Ito' } }));
    const { code, details } = errorOf(msg) as { code: string; details?: unknown[] };
    should(code).equal('invalid_input');
    should(details).have.length(20);
  });
});
