import should from 'should';
import { nextIteration } from '../../support/event-loop';
import { Flow } from '../../support/flow';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { simulatedForEach } from '../../support/simulated';
import { folders, groupNode, scripted } from '../../support/address-book/setup';

/** Contacts and groups of every fresh simulator. */
const ann = 1001;
const dev = 1004;
const clients = 101;
const prospects = 102;
const retirement = 103;

describe('contact group node', () => {
  const on = simulatedForEach();

  const groupsOf = async (contactId: number): Promise<unknown[]> => {
    const client = await on.environment.client();
    const answer = await client.call('getContact', { params: { contactId } }, { advisor: 'default' });
    return [...(answer.data.groupIds ?? [])];
  };

  describe('create and delete', () => {
    it('creates a group from an object or from a name alone', async () => {
      const { environment, requests } = await scripted(() => ({ body: { id: 7 } }));
      const flow = await groupNode(environment, { operation: 'create' });
      const given = { name: 'VIP', externalGroupId: 'x-1', colour: 'red' };
      const { port, msg } = only(await flow.ask({ payload: given }));
      should(port).equal(0);
      should(msg).containEql({ payload: { id: 7 }, groupId: 7, group: given });
      should(only(await flow.ask({ payload: 'Friends' })).msg.group).equal('Friends');
      should(requests().map(({ body }) => body)).deepEqual([
        { name: 'VIP', externalGroupId: 'x-1' },
        { name: 'Friends' },
      ]);
      should(flow.warnings[0]).match(/colour/);
    });

    it('emits one outcome per entry of a list', async () => {
      const flow = await groupNode(on.environment, { operation: 'create' });
      const arrived = await flow.ask({ payload: ['One', { name: 'Two' }, {}, 5] }, 4);
      const failed = arrived.filter(({ port }) => port === 1);
      should(failed.map(({ msg }) => msg.group)).deepEqual([{}, 5]);
      should(arrived.map(({ msg }) => (msg.parts as { count: number }).count)).deepEqual([4, 4, 4, 4]);
    });

    it('deletes by id and never by name', async () => {
      const flow = await groupNode(on.environment, { operation: 'delete' });
      const { msg } = only(await flow.ask({ groupId: String(clients) }));
      should(msg).containEql({ payload: { id: clients }, groupId: clients });
      for (const groupId of ['Prospects', undefined, '', 1.5]) {
        should(errorOf(only(await flow.ask({ groupId })).msg).code).equal('invalid_input');
      }
      should(errorOf(only(await flow.ask({ groupId: clients })).msg).code).equal('not_found');
      should(on.received('deleteGroup')).equal(2);
    });
  });

  describe('adding and removing a contact', () => {
    it('keeps the other groups of the contact', async () => {
      const flow = await groupNode(on.environment, { operation: 'addContact' });
      const { port, msg } = only(await flow.ask({ contactId: ann, groupId: prospects, payload: 'old' }));
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
      const { msg } = only(await flow.ask({ contactId: ann, groupId: clients }));
      should(msg.payload).deepEqual({ id: ann });
      should(on.received('setContactGroups')).equal(0);
    });

    it('emits one outcome per contact of a list', async () => {
      const flow = await groupNode(on.environment, {
        operation: 'addContact',
        groupId: 'Newsletter',
        groupIdType: 'str',
      });
      const arrived = await flow.ask({ contactId: [ann, 999999, 'Ann Ito'] }, 3);
      const codes = arrived.map((one) => (one.port === 0 ? 'done' : errorOf(one.msg).code));
      should(codes.sort()).deepEqual(['done', 'invalid_input', 'not_found']);
      should(new Set(arrived.map(({ msg }) => msg.contactId))).deepEqual(new Set([ann, 999999, 'Ann Ito']));
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
      should((await groupsOf(dev)).sort()).deepEqual([clients, retirement, 104]);
    });

    for (const operation of ['addContact', 'removeContact']) {
      for (const contact of [{ contactId: 5 }, { contactId: 5, groupIds: null }]) {
        it(`writes nothing for a contact given as ${JSON.stringify(contact)}: ${operation}`, async () => {
          const { environment, requests } = await scripted(({ method }) => ({
            body: method === 'GET' ? contact : { id: 5 },
          }));
          const flow = await groupNode(environment, { operation });
          const failed = only(await flow.ask({ contactId: 5, groupId: 9 }));
          should(failed.port).equal(1);
          should(errorOf(failed.msg)).containEql({ code: 'invalid_response', attempts: 1 });
          should(errorOf(failed.msg).message).match(/Nothing was saved: .* without its groups/);
          should(requests().map(({ method }) => method)).deepEqual(['GET']);
        });
      }
    }
  });

  describe('setting the groups', () => {
    it('replaces them, by any mix of ids and names', async () => {
      const flow = await groupNode(on.environment, { operation: 'setGroups' });
      const { msg } = only(await flow.ask({ contactId: ann, groupIds: [102, 'Newsletter', '102'] }));
      should(msg.payload).deepEqual({ id: ann });
      should(await groupsOf(ann)).deepEqual([102, 104]);
      await flow.ask({ contactId: ann, groupIds: [] });
      should(await groupsOf(ann)).deepEqual([]);
      should(errorOf(only(await flow.ask({ contactId: ann })).msg).code).equal('invalid_input');
    });

    for (const [form, groupId, written] of [
      ['numbers', 12, 12],
      ['strings', '12', '12'],
      ['nobody tells which', undefined, '12'],
    ] as const) {
      it(`writes an id given as a string of digits as the service does: ${form}`, async () => {
        const { environment, requests } = await scripted(({ method }) => {
          if (method === 'PUT') return { body: { id: 5 } };
          if (groupId === undefined) return { status: 403, body: {} };
          const pageInfo = { page: 1, pageSize: 200, totalRecord: 1 };
          return { body: { data: [{ groupId, name: 'Clients' }], pageInfo } };
        });
        const flow = await groupNode(environment, { operation: 'setGroups' });
        should(only(await flow.ask({ contactId: 5, groupIds: ['12', 7, '7'] })).port).equal(0);
        should(requests().find(({ method }) => method === 'PUT')?.body).deepEqual({ groupIds: [written, 7] });
      });
    }

    const groups = { groupIds: [1, 2] };
    for (const [operation, msg, written] of [
      ['setGroups', { groupIds: [1] }, [1]],
      ['addContact', { groupId: 3 }, [1, 2, 3]],
      ['addContact', { groupId: 2 }, [1, 2]],
      ['removeContact', { groupId: 2 }, [1]],
    ] as const)
      for (const isSelectAllGroup of ['true', 'false', true, false])
        it(`passes isSelectAllGroup on as set: ${operation} of ${JSON.stringify(msg)}, ${JSON.stringify(isSelectAllGroup)}`, async () => {
          const { environment, requests } = await scripted(({ method }) => ({
            body: method === 'GET' ? { contactId: 5, ...groups } : { id: 5 },
          }));
          const flow = await groupNode(environment, { operation, isSelectAllGroup });
          should(only(await flow.ask({ contactId: 5, ...msg })).port).equal(0);
          should(requests().at(-1)).containEql({
            method: 'PUT',
            body: { groupIds: [...written], isSelectAllGroup: String(isSelectAllGroup) === 'true' },
          });
        });

    it('does not send isSelectAllGroup if it is not set', async () => {
      for (const config of [{}, { isSelectAllGroup: '' }]) {
        const { environment, requests } = await scripted(() => ({ body: { id: 5 } }));
        const flow = await groupNode(environment, { operation: 'setGroups', ...config });
        await flow.ask({ contactId: 5, groupIds: [1] });
        should(requests().map(({ body }) => body)).deepEqual([{ groupIds: [1] }]);
        await Flow.unload();
      }
    });
  });

  it('searches, and sets each group id for the next node', async () => {
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

  it('serializes changes to groups and details of one contact', async () => {
    const order: string[] = [];
    const { environment } = await scripted(async ({ method, path }) => {
      order.push(`${method} ${path.split('/').slice(4).join('/')}`);
      await nextIteration();
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
