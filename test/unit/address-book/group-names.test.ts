import should from 'should';
import { Flow } from '../../support/flow';
import { frozenClock } from '../../support/service/setup';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { simulatedForEach } from '../../support/simulated';
import { folders, groupNode, scripted, type Request } from '../../support/address-book/setup';

/** Contacts of every fresh simulator. */
const ann = 1001;
const dev = 1004;

describe('groups by name', () => {
  const on = simulatedForEach();

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

  it('are looked up once and remembered for a minute', async () => {
    const clock = frozenClock();
    const { environment, requests } = await scripted(
      serving(() => [[9, 'VIP']]),
      { clock },
    );
    const flow = await groupNode(environment, { operation: 'addContact' });
    await flow.ask({ contactId: 5, groupId: 'VIP' });
    await clock.move(59_000);
    const { msg } = only(await flow.ask({ contactId: 6, groupId: ' VIP ' }));
    should(msg.groupId).equal(9);
    should(lookups(requests)).equal(1);
    await clock.move(2000);
    await flow.ask({ contactId: 5, groupId: 'VIP' });
    should(lookups(requests)).equal(2);
  });

  it('are reported as unknown, and looked up again the next time', async () => {
    let groups: [number, string][] = [];
    const { environment } = await scripted(serving(() => groups));
    const flow = await groupNode(environment, { operation: 'addContact' });
    const failed = only(await flow.ask({ contactId: 5, groupId: 'VIP' }));
    should(failed.port).equal(1);
    should(errorOf(failed.msg).code).equal('invalid_input');
    should(errorOf(failed.msg).message).match(/no group named "VIP"/);
    groups = [[9, 'VIP']];
    should(only(await flow.ask({ contactId: 5, groupId: 'VIP' })).msg.groupId).equal(9);
  });

  it('suggest one with a different spelling rather than guess', async () => {
    const { environment, requests } = await scripted(serving(() => [[9, 'Clients']]));
    const flow = await groupNode(environment, { operation: 'addContact' });
    const failed = only(await flow.ask({ contactId: 5, groupId: 'clients' }));
    should(errorOf(failed.msg).code).equal('invalid_input');
    should(errorOf(failed.msg).message).match(/no group named "clients", but there is one named "Clients"/);
    should(lookups(requests)).equal(1);
  });

  it('list the groups that share a name rather than guess', async () => {
    const { environment } = await scripted(
      serving(() => [
        [9, 'VIP'],
        [12, 'VIP'],
        [13, 'vip'],
      ]),
    );
    const flow = await groupNode(environment, { operation: 'addContact' });
    const failed = only(await flow.ask({ contactId: 5, groupId: 'VIP' }));
    should(errorOf(failed.msg).code).equal('invalid_input');
    should(errorOf(failed.msg).message).match(/9, 12\b/);
  });

  it('are found right after their creation, and not after their deletion', async () => {
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
    const created = only(await flow.arrivals.next()).msg.groupId;
    flow.send({ contactId: ann, groupId: 'Fresh' });
    should(only(await flow.arrivals.next()).msg.groupId).equal(created);
    flow.send({ groupId: created }, 'to-delete');
    await flow.arrivals.next();
    flow.send({ contactId: ann, groupId: 'Fresh' });
    should(errorOf(only(await flow.arrivals.next()).msg).code).equal('invalid_input');
  });

  it('notice immediately that a second group of the same name was created', async () => {
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
    const created = only(await flow.arrivals.next()).msg.groupId;
    const failed = only(await flow.ask({ contactId: ann, groupId: 'Clients' }));
    should(errorOf(failed.msg).message).containEql(`101, ${String(created)}`);
  });

  it('are looked up on all pages, and each advisor has their own groups', async () => {
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
    should(only(await flow.ask({ advisor: 'maria', contactId: 5, groupId: 'Group 449' })).msg.groupId).equal(
      449,
    );
    should(lookups(requests)).equal(3);
    await flow.ask({ advisor: 'omar', contactId: 5, groupId: 'Group 449' });
    should(lookups(requests)).equal(6);
  });

  it('are looked up several at once', async () => {
    const { environment, requests } = await scripted(
      serving(() => [
        [9, 'VIP'],
        [12, 'Clients'],
      ]),
    );
    const flow = await groupNode(environment, { operation: 'setGroups' });
    await flow.ask({ contactId: 5, groupIds: ['Clients', 'VIP', '9', 'Clients'] });
    should(lookups(requests)).equal(1);
    should(requests().at(-1)?.body).eql({ groupIds: [12, 9] });
  });

  it('reject what is neither an id nor a name', async () => {
    const flow = await groupNode(on.environment, { operation: 'addContact' });
    for (const groupId of [undefined, '', '  ', 1.5, {}, ['Clients']]) {
      should(errorOf(only(await flow.ask({ contactId: ann, groupId })).msg).code).equal('invalid_input');
    }
    should(on.simulator.ledger.entries()).be.empty();
  });

  for (const [what, pageInfo] of [
    ['claims to be the first', { page: 1 }],
    ['has no number', null],
  ] as const) {
    it(`are not searched on a second page that repeats the first and ${what}`, async () => {
      const groups = Array.from({ length: 200 }, (_, at) => ({ groupId: at + 1, name: `Group ${at}` }));
      const { environment, requests } = await scripted(({ method, path }) => {
        if (method === 'GET' && path.endsWith('/groups')) return { body: { data: groups, pageInfo } };
        return { body: { contactId: 5, groupIds: [] } };
      });
      const flow = await groupNode(environment, { operation: 'addContact' });
      const failed = only(await flow.ask({ contactId: 5, groupId: 'Group 300' }));
      should(errorOf(failed.msg).code).equal('invalid_response');
      should(errorOf(failed.msg).message).match(/probably has another name for the page number/);
      should(requests().some(({ method }) => method === 'PUT')).be.false();
    });
  }
});
