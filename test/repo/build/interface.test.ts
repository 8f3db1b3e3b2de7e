import should from 'should';
import type { NodeSpec } from '../../../lib/runtime/spec';
import { specs } from '../../support/examples/node-types';

/** The properties of a new node with their values, as a saved flow has them; credentials are left out. */
const defaultsOf = ({ fields }: NodeSpec): Record<string, unknown> =>
  Object.fromEntries(
    fields.flatMap((field): [string, unknown][] => {
      if (field.kind === 'credential') return [];
      if (field.kind === 'environment') return [[field.name, '']];
      if (field.kind !== 'typed') return [[field.name, field.default]];
      return [
        [field.name, field.default],
        [`${field.name}Type`, field.defaultType],
      ];
    }),
  );

const every = { name: '', environment: '' };
const advisor = { advisor: '', advisorType: 'str' };
const phone = { phone: 'phone', phoneType: 'msg', phoneField: 'phone' };
const paging = { page: 1, pageSize: 50, all: false, emit: 'page' };
const filter = { filter: '', filterType: 'str' };
const contactId = { contactId: 'contactId', contactIdType: 'msg' };

/** Flows in the wild rely on these names, values and outputs. */
const published: Readonly<Record<string, readonly [outputs: string, defaults: object]>> = {
  'advisor-environment': [
    '',
    {
      ...{ name: '', service: 'simulator', baseUrl: '', authUrl: '', tokenUrl: '', redirectUri: '' },
      grant: 'authorization_code',
      scopes: [
        ...['text.messaging.write', 'text.messaging.read'],
        ...['core.contacts.read', 'core.contacts.write', 'core.content.read', 'offline_access'],
      ],
      ...{ corePrefix: 'core', textPrefix: 'text' },
      ...{ country: '', timeZone: '', textFrom: '', textUntil: '', outsideHours: 'hold' },
      ...{ maxConcurrent: 16, requestsPerSecond: 0, timeout: 30, retries: 4, repeatSends: 'contract' },
      ...{ journal: true, resumeWithin: 3600, deliveryDateUnit: 'ms', names: {}, consentPattern: '' },
      ...{ proxy: '', store: 'embedded' },
    },
  ],
  'advisor-send-text': [
    'sent failed needsConsent',
    {
      ...{ ...every, ...advisor, ...phone, text: 'text', textType: 'msg', schedule: 'now' },
      ...{ deliveryDate: 'deliveryDate', deliveryDateType: 'msg' },
      ...{ frequency: 'frequency', frequencyType: 'msg', hours: 'environment' },
      ...{ onceKey: '', onceKeyType: 'off', onceFor: 24, maxSegments: 0 },
    },
  ],
  'advisor-request-consent': [
    'asked failed',
    { ...every, ...advisor, ...phone, every: 24, limit: 3, hours: 'environment' },
  ],
  'advisor-check-consent': [
    'accepted failed notAccepted',
    {
      ...{ ...every, ...advisor, ...phone, by: 'phone', memberId: 'memberId', memberIdType: 'msg' },
      ...{ mode: 'once', pollEvery: 30, pollFor: 300, thenEvery: 300, giveUpAfter: 86400 },
    },
  ],
  'advisor-contact': [
    'done failed',
    {
      ...{ ...every, ...advisor, ...contactId, operation: 'search', matchBy: 'email' },
      ...{ contact: 'payload', contactType: 'msg', fields: [], merge: true },
      ...{ ...filter, ...paging, sortBy: '', sortDirection: '' },
    },
  ],
  'advisor-group': [
    'done failed',
    {
      ...{ ...every, ...advisor, ...contactId, operation: 'search', group: 'payload', groupType: 'msg' },
      ...{ groupId: 'groupId', groupIdType: 'msg', groupIds: 'groupIds', groupIdsType: 'msg' },
      ...{ isSelectAllGroup: '', skipWithoutPhone: true, ...filter, ...paging, sortDirection: '' },
    },
  ],
  'advisor-content': [
    'found failed',
    { ...every, ...advisor, search: 'payload', searchType: 'msg', contentType: 'All', ...paging },
  ],
  'advisor-do-not-text': [
    'done failed blocked',
    { ...every, ...phone, operation: 'block', reason: '', reasonType: 'str', ...paging },
  ],
  'advisor-activity': [
    'done failed',
    { ...every, ...advisor, operation: 'waits', itemId: 'payload.id', itemIdType: 'msg', ...paging },
  ],
  'advisor-events': ['event', every],
};

describe('the public interface', () => {
  it('has these node types, with these outputs, properties and defaults', () => {
    should(specs.map(({ type }) => type)).deepEqual(Object.keys(published));
    for (const spec of specs) {
      const [outputs = '', defaults] = published[spec.type] ?? [];
      should(spec.outputs.join(' ')).equal(outputs);
      should(defaultsOf(spec)).deepEqual(defaults, spec.type);
    }
  });
});
