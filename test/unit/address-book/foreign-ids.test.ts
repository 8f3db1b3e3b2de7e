import should from 'should';
import { Flow } from '../../support/flow';
import { only } from '../../support/only';
import { simulatedForEach } from '../../support/simulated';
import { contactNode, groupNode, scripted } from '../../support/address-book/setup';

describe('ids that are not small integers', () => {
  simulatedForEach();

  const long = '9007199254740993';

  for (const id of [
    'c-17',
    '0b5f9a2e-3f53-4c6c-9d52-1f0a8f3d7c11',
    long,
    'x',
    'qwerty',
    '007',
    'a.b@c',
    'Zoë=',
    '-_4kd',
  ]) {
    it(`${id} is put into the path unchanged, and returned unchanged`, async () => {
      const written = id === long ? id : JSON.stringify(id);
      const { environment, requests } = await scripted(() => ({ body: `{"contactId":${written}}` }));
      const flow = await contactNode(environment, { operation: 'get' });
      const { port, msg } = only(await flow.ask({ contactId: id }));
      should(port).equal(0);
      should(msg.payload).eql({ contactId: id });
      should(msg.contactId).equal(id);
      should(requests()[0]?.path).equal(`/v1/core/contact/contacts/${encodeURIComponent(id)}`);
    });
  }

  for (const id of ['../groups', '1/2', '..', 'a b', '-', '-1', '1.5', '.5', '\ud800', 'a\u0000']) {
    it(`${JSON.stringify(id)} is invalid, and costs no request`, async () => {
      const { environment, requests } = await scripted(() => ({ body: {} }));
      const flow = await contactNode(environment, { operation: 'get' });
      const { port, msg } = only(await flow.ask({ contactId: id }));
      should(port).equal(1);
      should(msg.error).containEql({ code: 'invalid_input' });
      should(requests()).be.empty();
    });
  }

  const cases: [title: string, groups: string, groupId: unknown, written: string, contactId?: string][] = [
    ['strings stay strings', '["12","g-7"]', 9, '["12","g-7","9"]'],
    ['the first is a string where the id of the contact is one', '[]', '9', '["9"]', '"1"'],
    ['the first is a number where ids of contacts are words', '[]', 9, '[9]', '"c-1"'],
    ['long integers stay integers', `[12,${long}]`, '9', `[12,${long},9]`],
    ['a long integer is added as one', '[12]', long, `[12,${long}]`],
  ];
  for (const [title, groups, groupId, written, contactId = '1'] of cases) {
    it(`of groups are written back unchanged: ${title}`, async () => {
      const bodies: unknown[] = [];
      const { environment } = await scripted(
        ({ method }) => ({
          body: method === 'GET' ? `{"contactId":${contactId},"groupIds":${groups}}` : '',
        }),
        {},
        (body) => bodies.push(body),
      );
      const flow = await groupNode(environment, { operation: 'addContact' });
      should(only(await flow.ask({ contactId: 1, groupId })).port).equal(0);
      should(bodies.at(-1)).equal(`{"groupIds":${written}}`);
    });
  }

  it('of groups are the same as a number or a string', async () => {
    const { environment, requests } = await scripted(() => ({
      body: { contactId: 1, groupIds: ['12', '13'] },
    }));
    const flow = await groupNode(environment, { operation: 'removeContact' });
    should(only(await flow.ask({ contactId: 1, groupId: 12 })).port).equal(0);
    should(requests().at(-1)).containEql({ method: 'PUT', body: { groupIds: ['13'] } });
  });

  it('of groups may be words: a name takes precedence, and a delete accepts no name', async () => {
    const data = [
      { groupId: 'vip', name: 'Clients' },
      { groupId: 'Friends', name: 'vip ' },
    ];
    const { environment, requests } = await scripted(({ method, path }) => ({
      body: method === 'GET' ? (path.endsWith('/groups') ? { data } : { contactId: 1, groupIds: [] }) : '',
    }));
    const add = await groupNode(environment, { operation: 'addContact' });
    for (const [groupId, written] of [
      ['Clients', 'vip'],
      ['vip', 'Friends'],
      ['Friends', 'Friends'],
    ]) {
      should(only(await add.ask({ contactId: 1, groupId })).port).equal(0);
      should(requests().at(-1)?.body).eql({ groupIds: [written] });
    }
    await Flow.unload();
    const remove = await groupNode(environment, { operation: 'delete' });
    should(only(await remove.ask({ groupId: 'Clients' })).msg.error).containEql({ code: 'invalid_input' });
    should(only(await remove.ask({ groupId: 'Friends' })).msg.payload).eql({ id: 'Friends' });
    should(requests().at(-1)).containEql({ method: 'DELETE', path: '/v1/core/contact/groups/Friends' });
  });

  it('a create that returns none still succeeds', async () => {
    const { environment } = await scripted(() => ({ status: 201 }));
    const flow = await contactNode(environment, { operation: 'create' });
    const { port, msg } = only(await flow.ask({ payload: { firstName: 'A' } }));
    should(port).equal(0);
    should(msg).not.have.property('contactId');
  });
});
