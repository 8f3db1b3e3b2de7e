import should from 'should';
import { nextIteration } from '../../support/event-loop';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import type { Reply } from '../../support/server';
import { simulatedForEach } from '../../support/simulated';
import { gate } from '../../support/address-book/paging-service';
import { groupNode, payloads, scripted, type Request } from '../../support/address-book/setup';
import { problemReply } from '../../support/service/setup';
import type { Flow } from '../../support/flow';
import { until } from '../../support/until';

interface Person {
  readonly contactId: number;
  readonly phone?: string | null;
  readonly groupIds?: readonly number[] | undefined;
  readonly groupNames?: readonly string[] | undefined;
  readonly groupCount?: number;
}

const clients = 7;
const names = new Map([
  [clients, 'Clients'],
  [8, 'Friends'],
]);

/** A service with these people, which derives its groups from them. */
const serviceOf =
  (people: readonly Person[], groups = names) =>
  ({ path, query }: Request): Reply => {
    const [page, size] = [Number(query.page ?? 1), Number(query.pageSize ?? 50)];
    const pageOf = (data: readonly object[]): Reply => ({
      body: {
        data: data.slice((page - 1) * size, page * size),
        pageInfo: { page, pageSize: size, totalRecord: data.length },
      },
    });
    if (path.endsWith('/groups')) return pageOf([...groups].map(([groupId, name]) => ({ groupId, name })));
    if (path.endsWith('/contacts'))
      return pageOf(
        people.map(({ contactId, groupNames, groupCount }) => ({ contactId, groupNames, groupCount })),
      );
    const found = people.find(({ contactId }) => path.endsWith(`/contacts/${String(contactId)}`));
    if (!found) return problemReply('not_found');
    const { contactId, phone, groupIds } = found;
    return { body: { contactId, phone, groupIds } };
  };

const member = (contactId: number, more: Partial<Person> = {}): Person => ({
  contactId,
  phone: `+1206555${String(contactId).padStart(4, '0')}`,
  groupIds: [clients],
  groupNames: ['Clients'],
  ...more,
});

const contactReads = (requests: readonly Request[]): number =>
  requests.filter(({ path }) => /\/contacts\/\d+$/.test(path)).length;

const end = async (flow: Flow, msg: object = {}): Promise<Record<string, unknown>> => {
  flow.send({ ...msg });
  return only(await flow.completed.next());
};

describe('members of a group', () => {
  const on = simulatedForEach();
  const config = { operation: 'members', groupId: 'Clients', groupIdType: 'str' };

  it('are emitted one by one with id and number, the last with the count and the summary', async () => {
    const people = [1, 2, 3, 4, 5].map((id) =>
      id === 3 ? member(id, { groupIds: [8], groupNames: ['Friends'] }) : member(id),
    );
    const { environment, requests } = await scripted(serviceOf(people));
    const flow = await groupNode(environment, config);
    const done = await end(flow, { topic: 'kept' });
    const arrived = flow.arrivals.all;
    should(arrived.map(({ port }) => port)).deepEqual([0, 0, 0, 0]);
    should(arrived.map(({ msg }) => [msg.contactId, msg.phone, msg.groupId, msg.topic])).deepEqual(
      [1, 2, 4, 5].map((id) => [id, `+1206555000${String(id)}`, clients, 'kept']),
    );
    should(arrived[0]?.msg.payload).containEql({ contactId: 1, groupIds: [clients] });
    should(arrived.map(({ msg }) => msg.contact)).deepEqual(arrived.map(({ msg }) => msg.payload));
    const parts = arrived.map(({ msg }) => msg.parts as { id: string; index: number; count?: number });
    should(parts.map(({ index, count }) => [index, count])).deepEqual([
      [0, undefined],
      [1, undefined],
      [2, undefined],
      [3, 4],
    ]);
    const summary = { id: parts[0]?.id, total: 4, done: 4, failed: 0, skipped: 0, byCode: {} };
    should(arrived.at(-1)?.msg.summary).deepEqual(summary);
    should(done['summary']).deepEqual(summary);
    should(arrived.slice(0, -1).every(({ msg }) => msg.summary === undefined)).be.true();
    should(contactReads(requests())).equal(4);
  });

  it('are emitted once, even if the service lists one twice on a page', async () => {
    const { environment } = await scripted(serviceOf([member(1), member(2), member(1), member(3)]));
    const flow = await groupNode(environment, config);
    await end(flow);
    should(flow.arrivals.all.map(({ msg }) => msg.contactId)).deepEqual([1, 2, 3]);
  });

  it('are those whose groupIds say so, not those by the names in the search', async () => {
    const twins = new Map([
      [clients, 'Clients'],
      [9, 'Clients'],
    ]);
    const people = [member(1), member(2, { groupIds: [9] }), member(3, { groupNames: undefined })];
    const { environment } = await scripted(serviceOf(people, twins));
    const flow = await groupNode(environment, { ...config, groupId: '7', groupIdType: 'num' });
    await end(flow);
    should(flow.arrivals.all.map(({ msg }) => msg.contactId)).deepEqual([1, 3]);
  });

  it('are those of a unique name if a contact does not list its groups', async () => {
    const people = [member(1, { groupIds: undefined }), member(2, { groupIds: undefined, groupNames: [] })];
    const { environment } = await scripted(serviceOf(people));
    const flow = await groupNode(environment, config);
    await end(flow);
    should(flow.arrivals.all.map(({ msg }) => msg.contactId)).deepEqual([1]);
  });

  it('are found even if the search names no group, or fewer than the contact is in', async () => {
    const people = [
      member(1, { groupNames: [] }),
      member(2, { groupNames: ['Friends'], groupCount: 2 }),
      member(3, { groupNames: [], groupCount: 0, groupIds: [] }),
    ];
    const { environment, requests } = await scripted(serviceOf(people));
    const flow = await groupNode(environment, config);
    await end(flow);
    should(flow.arrivals.all.map(({ msg }) => msg.contactId)).deepEqual([1, 2]);
    should(contactReads(requests())).equal(2);
  });

  it('fail one by one if a gateway, not the service, says that they are not found', async () => {
    const people = [member(1), member(2), member(3)];
    const answer = serviceOf(people);
    const { environment } = await scripted((request) => {
      if (request.path.endsWith('/contacts/1')) return { status: 404, body: '<html>' };
      return request.path.endsWith('/contacts/2') ? problemReply('not_found') : answer(request);
    });
    const flow = await groupNode(environment, config);
    const done = await end(flow);
    should(flow.arrivals.all.map(({ port, msg }) => [port, msg.contactId])).deepEqual([
      [1, 1],
      [0, 3],
    ]);
    should(done['summary']).containEql({ total: 2, done: 1, failed: 1, byCode: { not_found: 1 } });
  });

  it('cannot be determined if neither says which groups a contact is in', async () => {
    const people = [member(1, { groupIds: undefined, groupNames: undefined })];
    const { environment } = await scripted(serviceOf(people));
    const flow = await groupNode(environment, config);
    const arrived = only(await flow.ask({}));
    should(arrived.port).equal(1);
    should(errorOf(arrived.msg)).match({ code: 'invalid_response', message: /cannot be determined/ });
  });

  for (const skipWithoutPhone of [true, false]) {
    it(`without a number are ${skipWithoutPhone ? 'left out and counted' : 'failures'}`, async () => {
      const people = [member(1, { phone: null }), member(2), member(3, { phone: 'later' })];
      const { environment } = await scripted(serviceOf(people));
      const flow = await groupNode(environment, { ...config, skipWithoutPhone });
      const done = await end(flow);
      const { arrivals } = flow;
      if (skipWithoutPhone) {
        should(arrivals.all.map(({ msg }) => msg.contactId)).deepEqual([2]);
        should(done['summary']).containEql({ total: 1, done: 1, failed: 0, skipped: 2 });
        return;
      }
      should(arrivals.all.map(({ port, msg }) => [port, msg.contactId])).deepEqual([
        [1, 1],
        [0, 2],
        [1, 3],
      ]);
      should(errorOf(arrivals.all[0]?.msg ?? {})).match({
        code: 'invalid_input',
        message: /no phone number/,
      });
      should(done['summary']).containEql({
        total: 3,
        done: 1,
        failed: 2,
        skipped: 0,
        byCode: { invalid_input: 2 },
      });
    });
  }

  it('that fail are counted by code, even if that is the name of a property of every object', async () => {
    const answer = serviceOf([member(1), member(2)]);
    const { environment } = await scripted((request) =>
      /\/contacts\/\d+$/.test(request.path)
        ? { status: 400, body: { code: 'constructor', retryable: false } }
        : answer(request),
    );
    const done = await end(await groupNode(environment, config));
    should(done['summary']).containEql({ failed: 2, byCode: { constructor: 2 } });
  });

  it('have their numbers parsed as people write them', async () => {
    const people = [member(1, { phone: '+1 (206) 555-0101' }), member(2, { phone: '206 555 0102' })];
    const { environment } = await scripted(serviceOf(people), { settings: { country: 'US' } });
    const flow = await groupNode(environment, config);
    await end(flow);
    should(flow.arrivals.all.map(({ msg }) => msg.phone)).deepEqual(['+12065550101', '+12065550102']);
  });

  it('of an empty group are none, and the summary says so', async () => {
    const { environment } = await scripted(serviceOf([member(1, { groupIds: [], groupNames: [] })]));
    const flow = await groupNode(environment, config);
    const done = await end(flow);
    should(flow.arrivals.all).be.empty();
    should(done['summary']).containEql({ total: 0, done: 0, skipped: 0 });
    await until(() => flow.statuses.at(-1)?.fill === 'grey');
    should(flow.statuses.at(-1)).match({ shape: 'ring', text: /0 found/ });
  });

  for (const groupId of ['Strangers', '99']) {
    it(`of a missing group are a failure (${groupId})`, async () => {
      const { environment } = await scripted(serviceOf([]));
      const flow = await groupNode(environment, { ...config, groupId });
      should(errorOf(only(await flow.ask({})).msg)).match({ code: 'invalid_input' });
    });
  }

  it('are not emitted any more after msg.reset', async () => {
    const hold = gate();
    const people = Array.from({ length: 40 }, (_, index) => member(index + 1));
    const answer = serviceOf(people);
    const { environment } = await scripted(async (request) => {
      if (request.path.endsWith('/contacts/9')) await hold.pass();
      return answer(request);
    });
    const flow = await groupNode(environment, config);
    flow.send({});
    while (hold.waiting() === 0 || flow.arrivals.all.length === 0) await nextIteration();
    flow.send({ reset: true });
    await hold.open();
    await flow.completed.next();
    // They are emitted in order, and the ninth was delayed.
    should(flow.arrivals.all.length).be.within(1, 8);
  });

  it('of the simulator can be texted', async () => {
    const { environment } = on;
    const flow = await groupNode(environment, config);
    await end(flow);
    should(flow.arrivals.all.length).be.above(0);
    for (const { msg } of flow.arrivals.all) should(msg.phone).match(/^\+1\d{10}$/);
    should(payloads(flow.arrivals.all).every((contact) => typeof contact === 'object')).be.true();
  });
});
