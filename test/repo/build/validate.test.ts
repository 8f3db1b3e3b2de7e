import { isSupportedCountry } from 'libphonenumber-js';
import should from 'should';
import { isCountry } from '../../../lib/kinds';
import { fieldProblem, type ValidationContext } from '../../../lib/editor/validate';
import { filledRows, tickedAnd } from '../../../lib/editor/values';
import { applies, withDefaults } from '../../../lib/runtime/settings';
import { phoneNumber } from '../../../lib/texting/recipients';
import type { Field, RowsField } from '../../../lib/runtime/spec';
import { spec as checkConsent } from '../../../nodes/check-consent/spec';
import { spec as contact } from '../../../nodes/contact/spec';
import { spec as content } from '../../../nodes/content/spec';
import { spec as environment } from '../../../nodes/environment/spec';
import { spec as group } from '../../../nodes/group/spec';
import { spec as sendText } from '../../../nodes/send-text/spec';

const now = Date.parse('2030-06-01T12:00:00Z');
const environments = new Map<unknown, ValidationContext['environment']>([
  ['us', { country: 'US', timeZone: 'America/New_York', isComplete: true, isDisabled: false }],
  ['plain', { country: '', timeZone: '', isComplete: true, isDisabled: false }],
  ['incomplete', { country: '', timeZone: '', isComplete: false, isDisabled: false }],
  ['disabled', { country: '', timeZone: '', isComplete: true, isDisabled: true }],
]);
const around = (values: Record<string, unknown>): ValidationContext => ({
  now,
  say: (key) => key,
  values,
  environment: environments.get(values['environment']),
  propertyExpression: (text) => !/[[\s]/.test(text),
  jsonata: (text) => !text.endsWith('('),
});

const fieldOf = (fields: readonly Field[], name: string): Field => {
  const field = fields.find((one) => one.name === name);
  if (!field) throw new Error(`No field ${name}.`);
  return field;
};

const at = (deliveryDate: string, deliveryDateType: string) => ({
  schedule: 'at',
  deliveryDate,
  deliveryDateType,
});
const created = (json: string) => ({ operation: 'create', contact: json, contactType: 'json' });
const set = (json: string) => ({ operation: 'setGroups', groupIds: json, groupIdsType: 'json' });
const filled = (...rows: readonly [field: string, value: string, valueType: string][]) => ({
  operation: 'create',
  contactType: 'fields',
  fields: rows.map(([field, value, valueType]) => ({ field, value, valueType })),
});

describe('the complaints of a form', () => {
  const cases: [
    fields: readonly Field[],
    name: string,
    values: Record<string, unknown>,
    expected: string | undefined,
  ][] = [
    [sendText.fields, 'phone', { phone: '', phoneType: 'msg' }, 'invalid.required'],
    [sendText.fields, 'phone', { phone: 'a[', phoneType: 'msg' }, 'invalid.property'],
    [sendText.fields, 'phone', { phone: '+15125550142', phoneType: 'str' }, undefined],
    [sendText.fields, 'phone', { phone: '+0512555', phoneType: 'str' }, 'invalid.phone'],
    [sendText.fields, 'phone', { phone: '512 555 0142', phoneType: 'str', environment: 'us' }, undefined],
    [
      sendText.fields,
      'phone',
      { phone: '5125550142', phoneType: 'str', environment: 'plain' },
      'invalid.phoneCountry',
    ],
    [
      sendText.fields,
      'phone',
      { phone: '5125550142', phoneType: 'str', environment: 'incomplete' },
      'invalid.phoneCountry',
    ],
    [
      sendText.fields,
      'phone',
      { phone: '(999) 12', phoneType: 'str', environment: 'plain' },
      'invalid.phone',
    ],
    [sendText.fields, 'phone', { phone: '5125550142', phoneType: 'str' }, undefined],
    [sendText.fields, 'phone', { phone: 'grace', phoneType: 'str', environment: 'us' }, 'invalid.noPhone'],
    [sendText.fields, 'phone', { phone: 'grace', phoneType: 'str' }, 'invalid.noPhone'],
    [sendText.fields, 'phone', { phone: '+', phoneType: 'str' }, 'invalid.noPhone'],
    [sendText.fields, 'environment', { environment: 'incomplete' }, 'invalid.environmentIncomplete'],
    [sendText.fields, 'environment', { environment: 'disabled' }, 'invalid.environmentDisabled'],
    [sendText.fields, 'phone', { phone: '+1 (202) 555-0113', phoneType: 'str' }, undefined],
    [sendText.fields, 'phone', { phone: ' +12025550113 ', phoneType: 'str' }, undefined],
    [sendText.fields, 'phone', { phone: '0113', phoneType: 'str', environment: 'us' }, 'invalid.phone'],
    [
      sendText.fields,
      'phone',
      { phone: '["+12025550113", {"phone":"+12025550114"}]', phoneType: 'json' },
      undefined,
    ],
    [sendText.fields, 'phone', { phone: '"+12025550113"', phoneType: 'json' }, undefined],
    [sendText.fields, 'phone', { phone: '[]', phoneType: 'json' }, 'invalid.list'],
    [sendText.fields, 'phone', { phone: '{}', phoneType: 'json' }, 'invalid.phones'],
    [sendText.fields, 'phone', { phone: '["grace"]', phoneType: 'json' }, 'invalid.entry'],
    [sendText.fields, 'phone', { phone: '[["+12025550113"]]', phoneType: 'json' }, 'invalid.entry'],
    [sendText.fields, 'phone', { phone: 'phone', phoneType: 'cookie' }, 'invalid.source'],
    [sendText.fields, 'phone', { phone: '[1', phoneType: 'json' }, 'invalid.json'],
    [sendText.fields, 'phone', { phone: '$(', phoneType: 'jsonata' }, 'invalid.jsonata'],
    [sendText.fields, 'phone', { phone: '${PHONE}', phoneType: 'str' }, undefined],
    [sendText.fields, 'text', { text: '   ', textType: 'str' }, 'invalid.required'],
    [
      sendText.fields,
      'deliveryDate',
      { schedule: 'now', deliveryDate: 'x', deliveryDateType: 'str' },
      undefined,
    ],
    [
      sendText.fields,
      'deliveryDate',
      { schedule: 'at', deliveryDate: 'x', deliveryDateType: 'str' },
      'invalid.date',
    ],
    [
      sendText.fields,
      'deliveryDate',
      { schedule: 'at', deliveryDate: '2030-05-31', deliveryDateType: 'str' },
      'invalid.past',
    ],
    [
      sendText.fields,
      'deliveryDate',
      { schedule: 'at', deliveryDate: String(now + 1), deliveryDateType: 'num' },
      undefined,
    ],
    [sendText.fields, 'environment', { environment: '' }, 'invalid.environment'],
    [sendText.fields, 'environment', { environment: 'us' }, undefined],
    [contact.fields, 'pageSize', { operation: 'search', pageSize: 201 }, 'invalid.max'],
    [contact.fields, 'pageSize', { operation: 'search', pageSize: '0' }, 'invalid.min'],
    [contact.fields, 'pageSize', { operation: 'search', pageSize: '1.5' }, 'invalid.whole'],
    [contact.fields, 'pageSize', { operation: 'search', pageSize: 'many' }, 'invalid.number'],
    [contact.fields, 'pageSize', { operation: 'create', pageSize: 'many' }, undefined],
    [contact.fields, 'contact', { operation: 'create', contact: '', contactType: 'fields' }, undefined],
    [sendText.fields, 'deliveryDate', at(String(now + 1), 'str'), undefined],
    [sendText.fields, 'deliveryDate', at(String(now), 'num'), 'invalid.past'],
    [
      sendText.fields,
      'frequency',
      { schedule: 'at', frequency: '1.5', frequencyType: 'num' },
      'invalid.whole',
    ],
    [sendText.fields, 'frequency', { schedule: 'at', frequency: '', frequencyType: 'num' }, undefined],
    [
      sendText.fields,
      'frequency',
      { schedule: 'at', frequency: ' ', frequencyType: 'msg' },
      'invalid.property',
    ],
    [
      checkConsent.fields,
      'memberId',
      { by: 'memberId', memberId: '7.5', memberIdType: 'num' },
      'invalid.whole',
    ],
    [content.fields, 'search', { search: `${'x'.repeat(150)} `, searchType: 'str' }, undefined],
    [content.fields, 'search', { search: 'x'.repeat(151), searchType: 'str' }, 'invalid.long'],
    [contact.fields, 'operation', { operation: 'upsert' }, 'invalid.choice'],
    [contact.fields, 'operation', { operation: '${OPERATION}' }, undefined],
    [contact.fields, 'operation', { operation: '' }, undefined],
    [contact.fields, 'contactId', { operation: 'get', contactId: '1.5', contactIdType: 'num' }, 'invalid.id'],
    [contact.fields, 'contactId', { operation: 'get', contactId: '15', contactIdType: 'num' }, undefined],
    [contact.fields, 'contact', created('{"firstName":""}'), undefined],
    [contact.fields, 'contact', created('[{"firstName":"Ann"},{"gender":"2"}]'), undefined],
    [contact.fields, 'contact', created('[{"firstName":"Ann"},{"gender":"abc"}]'), 'invalid.entry'],
    [contact.fields, 'contact', created('{"gender":"abc"}'), 'invalid.recordNumber'],
    [contact.fields, 'contact', created('{"city":true}'), 'invalid.recordText'],
    [contact.fields, 'contact', created('{"born":"1970"}'), 'invalid.recordEmpty'],
    [contact.fields, 'contact', created('"Ann"'), 'invalid.record'],
    [contact.fields, 'contact', created('[]'), 'invalid.list'],
    [contact.fields, 'fields', filled(['firstName', 'Ann', 'str'], ['gender', '2', 'num']), undefined],
    [contact.fields, 'fields', filled(), 'invalid.noFields'],
    [contact.fields, 'fields', filled(['gender', ' ', 'num']), 'invalid.noFields'],
    [contact.fields, 'fields', filled(['gender', 'abc', 'num']), 'row.gender: invalid.numberTyped'],
    [contact.fields, 'fields', filled(['city', 'a[', 'msg']), 'row.city: invalid.property'],
    [contact.fields, 'fields', filled(['city', '$(', 'jsonata']), 'row.city: invalid.jsonata'],
    [contact.fields, 'fields', filled(['city', '$(', 'str']), undefined],
    [
      contact.fields,
      'fields',
      { operation: 'create', contactType: 'fields', fields: undefined },
      'invalid.noFields',
    ],
    [
      group.fields,
      'groupId',
      { operation: 'delete', groupId: 'Friends', groupIdType: 'str' },
      'invalid.deleteById',
    ],
    [group.fields, 'groupId', { operation: 'delete', groupId: ' 12 ', groupIdType: 'str' }, undefined],
    [group.fields, 'groupId', { operation: 'addContact', groupId: 'Friends', groupIdType: 'str' }, undefined],
    [
      group.fields,
      'groupId',
      { operation: '${OPERATION}', groupId: 'Friends', groupIdType: 'str' },
      undefined,
    ],
    [
      group.fields,
      'groupId',
      { operation: 'addContact', groupId: '1.5', groupIdType: 'num' },
      'invalid.group',
    ],
    [
      group.fields,
      'contactId',
      { operation: 'addContact', contactId: '[1, 2.5]', contactIdType: 'json' },
      'invalid.entry',
    ],
    [
      group.fields,
      'contactId',
      { operation: 'addContact', contactId: '[1, "2"]', contactIdType: 'json' },
      undefined,
    ],
    [group.fields, 'groupIds', set('{"a":1}'), 'invalid.group'],
    [group.fields, 'groupIds', set('[1, null]'), 'invalid.entry'],
    [group.fields, 'groupIds', set('[1, "Friends"]'), undefined],
    [group.fields, 'groupIds', set('[]'), undefined],
    [group.fields, 'groupIds', set('null'), 'invalid.group'],
    [group.fields, 'groupIds', { ...set('null'), isSelectAllGroup: 'true' }, undefined],
    [group.fields, 'groupIds', { ...set(''), groupIdsType: 'msg' }, 'invalid.required'],
    [group.fields, 'groupIds', { ...set(''), groupIdsType: 'msg', isSelectAllGroup: 'true' }, undefined],
    [group.fields, 'groupIds', { ...set(''), isSelectAllGroup: 'true' }, 'invalid.required'],
    [group.fields, 'group', { operation: 'create', group: '[]', groupType: 'json' }, 'invalid.list'],
    [
      group.fields,
      'group',
      { operation: 'create', group: '["Friends", {"name":"Family"}]', groupType: 'json' },
      undefined,
    ],
    [
      group.fields,
      'group',
      { operation: 'create', group: '{"name":""}', groupType: 'json' },
      'invalid.recordEmpty',
    ],
    [group.fields, 'group', { operation: 'create', group: '5', groupType: 'json' }, 'invalid.record'],
    [environment.fields, 'baseUrl', { service: 'simulator', baseUrl: '' }, undefined],
    [environment.fields, 'baseUrl', { service: 'sandbox', baseUrl: '' }, 'invalid.empty'],
    [environment.fields, 'baseUrl', { service: '${SERVICE}', baseUrl: '' }, 'invalid.empty'],
    [environment.fields, 'baseUrl', { service: 'sandbox', baseUrl: 'service' }, 'invalid.address'],
    [
      environment.fields,
      'baseUrl',
      { service: 'sandbox', baseUrl: 'http://service.example/v1' },
      'invalid.insecure',
    ],
    [environment.fields, 'baseUrl', { service: 'sandbox', baseUrl: 'http://127.0.0.1:8100/v1' }, undefined],
    [environment.fields, 'proxy', { service: 'sandbox', proxy: 'socks://proxy.example' }, 'invalid.proxy'],
    [
      environment.fields,
      'proxy',
      { service: 'sandbox', proxy: 'http://${USER}:${KEY}@proxy.example' },
      undefined,
    ],
    [
      environment.fields,
      'proxy',
      { service: 'sandbox', proxy: 'http://ada:${KEY}@proxy.example' },
      'invalid.proxyPassword',
    ],
    [
      environment.fields,
      'baseUrl',
      { service: 'sandbox', baseUrl: 'https://service.example/api' },
      'invalid.version',
    ],
    [
      environment.fields,
      'redirectUri',
      { service: 'sandbox', grant: 'authorization_code', redirectUri: 'https://a.example/#x' },
      'invalid.fragment',
    ],
    [
      environment.fields,
      'redirectUri',
      { service: 'sandbox', grant: 'authorization_code', redirectUri: 'https://a.example/*' },
      'invalid.wildcard',
    ],
    [
      environment.fields,
      'redirectUri',
      { service: 'sandbox', grant: 'client_credentials', redirectUri: '' },
      undefined,
    ],
    [environment.fields, 'country', { country: 'USA' }, 'invalid.country'],
    [environment.fields, 'country', { country: 'XX' }, 'invalid.country'],
    [environment.fields, 'country', { country: 'UK' }, 'invalid.country'],
    [environment.fields, 'country', { country: 'gb' }, undefined],
    [environment.fields, 'scopes', { service: 'sandbox', scopes: [] }, 'invalid.noTicks'],
    [environment.fields, 'scopes', { service: 'simulator', scopes: [] }, undefined],
    [environment.fields, 'service', { service: '${}' }, 'invalid.variable'],
    [environment.fields, 'service', { service: '${SERVICE}' }, undefined],
    [environment.fields, 'service', { service: 'staging' }, 'invalid.choice'],
    [environment.fields, 'service', { service: '' }, 'invalid.choice'],
    [environment.fields, 'repeatSends', { repeatSends: '' }, undefined],
    [environment.fields, 'baseUrl', { service: 'sandbox', baseUrl: '${BASE}/v1' }, undefined],
    [environment.fields, 'consentPattern', { consentPattern: '(' }, 'invalid.pattern'],
    [environment.fields, 'names', { names: 'no object' }, 'invalid.json'],
    [environment.fields, 'timeout', { timeout: '${TIMEOUT}' }, undefined],
    [environment.fields, 'textUntil', { textFrom: '08:00', textUntil: '' }, 'invalid.hours'],
    [environment.fields, 'textUntil', { textFrom: '', textUntil: '21:00' }, 'invalid.hours'],
    [environment.fields, 'textUntil', { textFrom: '9', textUntil: '09:00' }, 'invalid.hours'],
    [environment.fields, 'textUntil', { textFrom: '', textUntil: '9 pm' }, 'invalid.time'],
    [environment.fields, 'textUntil', { textFrom: '22:00', textUntil: '06:00' }, undefined],
    [environment.fields, 'textUntil', { textFrom: '${FROM}', textUntil: '21:00' }, undefined],
    [environment.fields, 'textUntil', { textFrom: '${FROM}', textUntil: '' }, 'invalid.hours'],
  ];

  for (const [fields, name, values, expected] of cases) {
    it(`${name} with ${JSON.stringify(values)}: ${expected ?? 'nothing'}`, () => {
      should(fieldProblem(fieldOf(fields, name), values[name], around(values))).equal(expected);
    });
  }
});

describe('the complaints of a form about several values', () => {
  const speaking = (values: Record<string, unknown>): ValidationContext => ({
    ...around(values),
    say: (key, parts = {}) => [key, ...Object.values(parts)].join(' '),
  });

  it('name each wrong row, and what is wrong with it', () => {
    const values = filled(['firstName', 'Ann', 'str'], ['gender', 'abc', 'num'], ['city', 'a[', 'msg']);
    should(fieldProblem(fieldOf(contact.fields, 'fields'), values.fields, speaking(values))).equal(
      'row.gender: invalid.numberTyped row.city: invalid.property',
    );
  });

  it('name the place of a wrong entry in a list', () => {
    const values = { phone: '["+12025550113", "grace"]', phoneType: 'json' };
    should(fieldProblem(fieldOf(sendText.fields, 'phone'), values.phone, speaking(values))).equal(
      'invalid.entry 2 invalid.noPhone',
    );
  });
});

describe('a form and the node behind it', () => {
  const phones = [
    '+12025550113',
    '+1 (202) 555-0113',
    '+1-202-555-0113',
    '+120255',
    '+',
    'grace',
    '٢٠٢٥٥٥٠١١٣',
    '["+12025550113"]',
    '{"phone":"2025550113"}',
    '[202] 555 0113',
  ];
  for (const [id, country] of [
    ['us', 'US'],
    ['plain', ''],
  ] as const) {
    for (const phone of [...phones, ' +12025550113', '202 555 0113', '(202) 555-0113', '0113']) {
      it(`agree on ${phone} ${country === '' ? 'without a country' : `in ${country}`}`, () => {
        const values = { phone, phoneType: 'str', environment: id };
        const problem = fieldProblem(fieldOf(sendText.fields, 'phone'), phone, around(values));
        should(problem === undefined).equal(phoneNumber(phone, country) !== undefined);
      });
    }
  }
});

describe('the countries of a form', () => {
  it('are those whose numbers the nodes can read', () => {
    const letters = Array.from('ABCDEFGHIJKLMNOPQRSTUVWXYZ');
    const codes = letters.flatMap((first) => letters.map((second) => first + second));
    codes.filter(isCountry).should.eql(codes.filter((code) => isSupportedCountry(code)));
  });
});

describe('the values of a form', () => {
  it('default if nothing was chosen, as in the nodes', () => {
    withDefaults(contact.fields, { operation: '', sortBy: '' }).should.containEql({
      operation: 'search',
      sortBy: '',
    });
  });

  it('default if an older flow lacks them', () => {
    const values = withDefaults(sendText.fields, { phone: 'number' });
    values.should.containEql({
      phone: 'number',
      phoneType: 'msg',
      text: 'text',
      textType: 'msg',
      schedule: 'now',
    });
  });

  it('show a field only while it applies', () => {
    const rows = fieldOf(contact.fields, 'fields');
    applies(rows, { operation: 'create', contactType: 'fields' }).should.be.true();
    applies(rows, { operation: 'create', contactType: 'msg' }).should.be.false();
    applies(rows, { operation: 'get', contactType: 'fields' }).should.be.false();
  });

  it('leave out empty rows', () => {
    const rows = fieldOf(contact.fields, 'fields') as RowsField;
    filledRows(rows, { city: 'Austin', cityType: 'str', state: '', stateType: 'str' }).should.eql([
      { field: 'city', value: 'Austin', valueType: 'str' },
    ]);
  });

  it('keep selected and typed-in scopes, each once', () => {
    tickedAnd(['a', 'b'], ' b, c  d').should.eql(['a', 'b', 'c', 'd']);
  });
});
