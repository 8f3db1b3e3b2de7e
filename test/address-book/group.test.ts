import should from 'should';
import { Flow } from '../support/flow';
import { startSimulated, type Simulated } from '../support/simulated';
import { closeAll, frozenClock } from '../service/support';
import { errorOf, first, folders, groupNode, scripted, type Request } from './setup';

/** Contacts and groups of every fresh simulator. */
const ann = 1001;
const dev = 1004;
const clients = 101;
const prospects = 102;
const retirement = 103;

describe('contact group node', () => {
  let on: Simulated;

  beforeEach(async () => {
    on = await startSimulated();
  });
  afterEach(async () => {
    await Flow.unload();
    await on.close();
    await closeAll();
  });

  const groupsOf = async (contactId: number): Promise<unknown> => {
    const client = await on.environment.client();
    const answer = await client.call('getContact', { params: { contactId } }, { advisor: 'default' });
    return answer.data.groupIds;
  };

  describe('create and delete', () => {
    it('creates a group from an object or from a name alone', async () => {
      const { environment, requests } = await scripted(() => ({ body: { id: 7 } }));
      const flow = await groupNode(environment, {});
      const given = { name: 'VIP', externalGroupId: 'x-1', colour: 'red' };
      const { port, msg } = first(await flow.ask({ payload: given }));
      should(port).equal(0);
      should(msg).containEql({ payload: { id: 7 }, groupId: 7, group: given });
      should(first(await flow.ask({ payload: 'Friends' })).msg.group).equal('Friends');
      should(requests().map(({ body }) => body)).deepEqual([
        { name: 'VIP', externalGroupId: 'x-1' },
        { name: 'Friends' },
      ]);
      should(flow.warnings[0]).match(/colour/);
    });

    it('gives one outcome each for a list', async () => {
      const flow = await groupNode(on.environment, {});
      const arrived = await flow.ask({ payload: ['One', { name: 'Two' }, {}, 5] }, 4);
      const failed = arrived.filter(({ port }) => port === 1);
      should(failed.map(({ msg }) => msg.group)).deepEqual([{}, 5]);
      should(arrived.map(({ msg }) => (msg.parts as { count: number }).count)).deepEqual([4, 4, 4, 4]);
    });

    it('deletes by id and never by name', async () => {
      const flow = await groupNode(on.environment, { operation: 'delete' });
      const { msg } = first(await flow.ask({ groupId: String(clients) }));
      should(msg).containEql({ payload: { id: clients }, groupId: clients });
      for (const groupId of ['Prospects', undefined, '', 1.5]) {
        should(errorOf(first(await flow.ask({ groupId }))).code).equal('invalid_input');
      }
      should(errorOf(first(await flow.ask({ groupId: clients }))).code).equal('not_found');
      should(on.received('searchGroups')).equal(0);
    });
  });

  describe('adding and removing a contact', () => {
    it('keeps the other groups of the contact', async () => {
      const flow = await groupNode(on.environment, { operation: 'addContact' });
      const { port, msg } = first(await flow.ask({ contactId: ann, groupId: prospects, payload: 'old' }));
      should(port).equal(0);
      should(msg).containEql({ payload: { id: ann }, contactId: ann, groupId: prospects });
      should(await groupsOf(ann)).deepEqual([clients, retirement, prospects]);
      await Flow.unload();
      const remove = await groupNode(on.environment, { operation: 'removeContact' });
      await remove.ask({ contactId: ann, groupId: clients });
      should(await groupsOf(ann)).deepEqual([retirement, prospects]);
    });

    it('writes nothing when there is nothing to change', async () => {
      const flow = await groupNode(on.environment, { operation: 'addContact' });
      const { msg } = first(await flow.ask({ contactId: ann, groupId: clients }));
      should(msg.payload).deepEqual({ id: ann });
      should(on.received('setContactGroups')).equal(0);
    });

    it('gives one outcome each for a list of contacts', async () => {
      const flow = await groupNode(on.environment, {
        operation: 'addContact',
        groupId: 'Newsletter',
        groupIdType: 'str',
      });
      const arrived = await flow.ask({ contactId: [ann, 999999, 'x'] }, 3);
      const codes = arrived.map((one) => (one.port === 0 ? 'done' : errorOf(one).code));
      should(codes.sort()).deepEqual(['done', 'invalid_input', 'not_found']);
      should(on.received('searchGroups')).equal(1);
    });

    it('loses no change when several nodes change one contact at once', async () => {
      const flow = await Flow.load({
        folders,
        environment: on.environment,
        nodes: [
          { id: 'add', type: 'advisor-group', operation: 'addContact' },
          { id: 'also', type: 'advisor-group', operation: 'addContact' },
          { id: 'remove', type: 'advisor-group', operation: 'removeContact' },
        ],
      });
      flow.send({ contactId: dev, groupId: clients }, 'add');
      flow.send({ contactId: dev, groupId: retirement }, 'also');
      flow.send({ contactId: String(dev), groupId: prospects }, 'remove');
      flow.send({ contactId: dev, groupId: 104 }, 'add');
      await flow.arrivals.next(4);
      should(await groupsOf(dev)).deepEqual([clients, retirement, 104]);
    });

    it('takes a contact without a word on groups for one that is in none', async () => {
      const { environment, requests } = await scripted(({ method }) => ({
        body: method === 'GET' ? { contactId: 5 } : { id: 5 },
      }));
      const flow = await groupNode(environment, { operation: 'addContact' });
      await flow.ask({ contactId: 5, groupId: 9 });
      should(requests()[1]?.body).deepEqual({ groupIds: [9] });
    });
  });

  describe('setting the groups', () => {
    it('replaces them, by ids and names in any mix', async () => {
      const flow = await groupNode(on.environment, { operation: 'setGroups' });
      const { msg } = first(await flow.ask({ contactId: ann, groupIds: [102, 'Newsletter', '102'] }));
      should(msg.payload).deepEqual({ id: ann });
      should(await groupsOf(ann)).deepEqual([102, 104]);
      await flow.ask({ contactId: ann, groupIds: [] });
      should(await groupsOf(ann)).deepEqual([]);
      should(errorOf(first(await flow.ask({ contactId: ann }))).code).equal('invalid_input');
    });

    it('sends isSelectAllGroup only when it is set', async () => {
      for (const isSelectAllGroup of [false, true]) {
        const { environment, requests } = await scripted(() => ({ body: { id: 5 } }));
        const flow = await groupNode(environment, { operation: 'setGroups', isSelectAllGroup });
        await flow.ask({ contactId: 5, groupIds: [1] });
        should(requests().map(({ body }) => body)).deepEqual([
          isSelectAllGroup ? { groupIds: [1], isSelectAllGroup } : { groupIds: [1] },
        ]);
        await Flow.unload();
      }
    });
  });

  describe('groups by name', () => {
    const page = (groups: readonly (readonly [number, string])[]) => ({
      body: { data: groups.map(([groupId, name]) => ({ groupId, name })) },
    });
    const serving =
      (groups: () => readonly (readonly [number, string])[]) =>
      ({ method, path }: Request) => {
        if (method === 'GET' && path.endsWith('/groups')) return page(groups());
        return { body: method === 'GET' ? { contactId: 5, groupIds: [] } : { id: 8 } };
      };
    const lookups = (requests: () => Request[]): number =>
      requests().filter(({ method, path }) => method === 'GET' && path.endsWith('/groups')).length;

    it('looks a name up once and remembers it for a minute', async () => {
      const clock = frozenClock();
      const { environment, requests } = await scripted(
        serving(() => [[9, 'VIP']]),
        { clock },
      );
      const flow = await groupNode(environment, { operation: 'addContact' });
      await flow.ask({ contactId: 5, groupId: 'VIP' });
      await clock.move(59_000);
      const { msg } = first(await flow.ask({ contactId: 6, groupId: ' VIP ' }));
      should(msg.groupId).equal(9);
      should(lookups(requests)).equal(1);
      await clock.move(2000);
      await flow.ask({ contactId: 5, groupId: 'VIP' });
      should(lookups(requests)).equal(2);
    });

    it('says that there is none, and looks again the next time', async () => {
      let groups: [number, string][] = [];
      const { environment } = await scripted(serving(() => groups));
      const flow = await groupNode(environment, { operation: 'addContact' });
      const failed = first(await flow.ask({ contactId: 5, groupId: 'VIP' }));
      should(failed.port).equal(1);
      should(errorOf(failed).code).equal('not_found');
      should(errorOf(failed).message).match(/no group named "VIP"/);
      groups = [[9, 'VIP']];
      should(first(await flow.ask({ contactId: 5, groupId: 'VIP' })).msg.groupId).equal(9);
    });

    it('lists the groups that share a name, rather than guess', async () => {
      const { environment } = await scripted(
        serving(() => [
          [9, 'VIP'],
          [12, 'VIP'],
          [13, 'vip'],
        ]),
      );
      const flow = await groupNode(environment, { operation: 'addContact' });
      const failed = first(await flow.ask({ contactId: 5, groupId: 'VIP' }));
      should(errorOf(failed).code).equal('invalid_input');
      should(errorOf(failed).message).match(/9, 12\b/);
    });

    it('finds a group that has just been created, and not one that has just been deleted', async () => {
      const flow = await Flow.load({
        folders,
        environment: on.environment,
        nodes: ['addContact', 'create', 'delete'].map((operation) => ({
          id: `to-${operation}`,
          type: 'advisor-group',
          operation,
        })),
      });
      flow.send({ contactId: ann, groupId: 'Clients' });
      await flow.arrivals.next();
      flow.send({ payload: 'Fresh' }, 'to-create');
      const created = first(await flow.arrivals.next()).msg.groupId;
      flow.send({ contactId: ann, groupId: 'Fresh' });
      should(first(await flow.arrivals.next()).msg.groupId).equal(created);
      flow.send({ groupId: created }, 'to-delete');
      await flow.arrivals.next();
      flow.send({ contactId: ann, groupId: 'Fresh' });
      should(errorOf(first(await flow.arrivals.next())).code).equal('not_found');
    });

    it('notices at once that a second group of a name was created', async () => {
      const flow = await Flow.load({
        folders,
        environment: on.environment,
        nodes: ['addContact', 'create'].map((operation) => ({
          id: `to-${operation}`,
          type: 'advisor-group',
          operation,
        })),
      });
      await flow.ask({ contactId: dev, groupId: 'Clients' });
      flow.send({ payload: 'Clients' }, 'to-create');
      const created = first(await flow.arrivals.next()).msg.groupId;
      const failed = first(await flow.ask({ contactId: ann, groupId: 'Clients' }));
      should(errorOf(failed).message).containEql(`101, ${String(created)}`);
    });

    it('reads all pages of groups, and each advisor has groups of their own', async () => {
      const { environment, requests } = await scripted(
        ({ method, path, query }) => {
          if (method !== 'GET' || !path.endsWith('/groups')) {
            return { body: method === 'GET' ? { contactId: 5, groupIds: [] } : { id: 5 } };
          }
          const from = (Number(query.page) - 1) * 200;
          const data = Array.from({ length: Math.min(200, 450 - from) }, (_, at) => ({
            groupId: from + at,
            name: `Group ${String(from + at)}`,
          }));
          return { body: { data, pageInfo: { totalRecord: 450 } } };
        },
        { advisors: ['maria', 'omar'] },
      );
      const flow = await groupNode(environment, { operation: 'addContact' });
      should(
        first(await flow.ask({ advisor: 'maria', contactId: 5, groupId: 'Group 449' })).msg.groupId,
      ).equal(449);
      should(lookups(requests)).equal(3);
      await flow.ask({ advisor: 'omar', contactId: 5, groupId: 'Group 449' });
      should(lookups(requests)).equal(6);
    });

    it('refuses what is neither an id nor a name', async () => {
      const flow = await groupNode(on.environment, { operation: 'addContact' });
      for (const groupId of [undefined, '', '  ', 1.5, {}, ['Clients']]) {
        should(errorOf(first(await flow.ask({ contactId: ann, groupId }))).code).equal('invalid_input');
      }
      should(on.simulator.ledger.entries()).be.empty();
    });
  });

  it('searches, and names each group for the next node', async () => {
    const flow = await groupNode(on.environment, {
      operation: 'search',
      emit: 'item',
      sortDirection: 'desc',
    });
    const arrived = await flow.ask({}, 4);
    should(arrived.map(({ msg }) => (msg.payload as { name: string }).name)).deepEqual([
      'Retirement planning',
      'Prospects',
      'Newsletter',
      'Clients',
    ]);
    should(arrived[3]?.msg.groupId).equal(clients);
  });

  it('changes groups and details of one contact one after the other', async () => {
    const order: string[] = [];
    const { environment } = await scripted(async ({ method, path }) => {
      order.push(`${method} ${path.split('/').slice(4).join('/')}`);
      await new Promise(setImmediate);
      return { body: method === 'GET' ? { contactId: 5, groupIds: [] } : { id: 5 } };
    });
    const flow = await Flow.load({
      folders,
      environment,
      nodes: [
        { id: 'to-update', type: 'advisor-contact', operation: 'update' },
        { id: 'add', type: 'advisor-group', operation: 'addContact' },
      ],
    });
    flow.send({ contactId: 5, payload: { city: 'Reno' } }, 'to-update');
    flow.send({ contactId: 5, groupId: 9 }, 'add');
    await flow.arrivals.next(2);
    should(order).deepEqual(['GET contacts/5', 'PUT contacts/5', 'GET contacts/5', 'PUT contacts/5/groups']);
  });
});
