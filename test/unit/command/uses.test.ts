import should from 'should';
import { endpoints, type EndpointName } from '../../../lib/service/endpoints';
import { routesOf } from '../../../simulator/contract/routes';
import { endpointsOf } from '../../../nodes/environment/saved-nodes';
import type { Message } from '../../../lib/runtime/red';
import { folders as bookFolders, scripted, type Request } from '../../support/address-book/setup';
import { closeAll } from '../../support/closing';
import { Flow } from '../../support/flow';
import { checkFolder, folders as sendFolders, requestFolder } from '../../support/texting/setup';

const folders = [...sendFolders, requestFolder, checkFolder, ...bookFolders];
const routeIn = routesOf(endpoints);
const phone = '+13125550177';
const contact = { firstName: 'Ann', lastName: 'Ito', emailAddress: 'ann@example.com' };

const calledBy = ({ method, path }: Request): EndpointName => {
  const route = routeIn(method, path.replace('/v1', ''));
  should(route).not.be.undefined();
  return route?.name ?? 'sendMessage';
};

/** One contact in one group; a search returns its only record. */
const answers: Readonly<Record<EndpointName, unknown>> = {
  sendMessage: { successes: [{ messageId: 1, memberId: 2 }], failures: [] },
  requestConsent: { successes: [{ memberId: 2, consentState: 'pending' }], failures: [] },
  getConsent: { memberId: 2, state: 'accepted', lastChanged: 1 },
  createContact: { id: 6 },
  updateContact: { id: 5 },
  getContact: { contactId: 5, ...contact, phone, groupIds: [7] },
  searchContacts: {
    data: [{ contactId: 5, fullName: 'Ann Ito', email: 'ann@example.com', groupNames: ['Clients'] }],
  },
  deleteContact: {},
  setContactGroups: { id: 5 },
  createGroup: { id: 8 },
  searchGroups: { data: [{ groupId: 7, name: 'Clients' }] },
  deleteGroup: {},
  searchContent: { data: [{ title: 'A', url: 'https://example.com' }] },
};

type Case = readonly [
  type: string,
  config: Readonly<Record<string, unknown>>,
  ...messages: readonly Message[],
];

const cases: readonly Case[] = [
  ['send-text', {}, { phone, text: 'Hello' }, { phone, text: 'Hello', dryRun: true }],
  ['request-consent', { every: 0 }, { phone }, { phone: '+13125550178' }],
  ['check-consent', { mode: 'once' }, { phone }],
  ['contact', {}, {}],
  ['contact', { operation: 'search' }, {}],
  ['contact', { operation: 'get' }, { contactId: 5 }],
  ['contact', { operation: 'create' }, { payload: contact }],
  ['contact', { operation: 'update' }, { contactId: 5, payload: contact }],
  ['contact', { operation: 'update', merge: false }, { contactId: 5, payload: contact }],
  ['contact', { operation: 'save' }, { payload: contact }, { payload: { emailAddress: 'new@example.com' } }],
  [
    'contact',
    { operation: 'save', merge: false },
    { payload: contact },
    { payload: { emailAddress: 'new@example.com' } },
    { payload: { emailAddress: 'new@example.com' } },
  ],
  ['contact', { operation: 'delete' }, { contactId: 5 }],
  ['group', {}, {}],
  ['group', { operation: 'search' }, {}],
  ['group', { operation: 'create' }, { payload: 'Friends' }],
  ['group', { operation: 'members' }, { groupId: 7 }],
  ['group', { operation: 'members', groupId: '7', groupIdType: 'num' }, {}],
  ['group', { operation: 'delete' }, { groupId: 7 }, { groupId: 'friends' }],
  ['group', { operation: 'delete', groupId: '7', groupIdType: 'num' }, {}],
  ['group', { operation: 'addContact' }, { contactId: 5, groupId: 8 }, { contactId: 5, groupId: 'Clients' }],
  ['group', { operation: 'addContact', groupId: '8', groupIdType: 'num' }, { contactId: 5 }],
  ['group', { operation: 'removeContact' }, { contactId: 5, groupId: 'Clients' }],
  ['group', { operation: 'removeContact', groupId: '7', groupIdType: 'num' }, { contactId: 5 }],
  ['group', { operation: 'setGroups' }, { contactId: 5, groupIds: ['Clients'] }],
  ['group', { operation: 'setGroups', groupIds: 'Clients', groupIdsType: 'str' }, { contactId: 5 }],
  ['group', { operation: 'setGroups', groupIds: '7', groupIdsType: 'num' }, { contactId: 5 }],
  ['content', {}, { payload: '' }],
];

describe('the endpoints that nodes declare', () => {
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
  });

  for (const [name, config, ...messages] of cases)
    it(`are those they call: ${name}, ${JSON.stringify(config)}`, async () => {
      const { environment, requests } = await scripted((request) => {
        const called = calledBy(request);
        // Somebody who has consented is not asked: the consent is then read.
        const isRefused = called === 'requestConsent' && JSON.stringify(request.body).includes('0178');
        if (isRefused) return { status: 400, body: { code: 'invalid_request', status: 400 } };
        return { body: answers[called] };
      });
      const node = { type: `advisor-${name}`, ...config };
      const flow = await Flow.load({ folders, environment, nodes: [{ id: 'node', ...node }] });
      for (const msg of messages) {
        flow.send({ ...msg });
        await flow.completed.next();
      }
      should(new Set(requests().map(calledBy))).eql(new Set(endpointsOf(node)));
    });

  it('are tested for every node that calls something', () => {
    const tried = new Set(
      cases.flatMap(([name, config]) => endpointsOf({ type: `advisor-${name}`, ...config })),
    );
    should([...tried].sort()).eql(Object.keys(endpoints).sort());
    const callers = folders.filter(({ spec }) => spec.uses.length > 0).map(({ spec }) => spec.type);
    should(new Set(cases.map(([name]) => `advisor-${name}`))).eql(new Set(callers));
  });
});
