import should from 'should';
import { problemOf, type Surroundings } from '../../lib/editor/validate';
import { applies, filledRows, tickedAnd, withDefaults } from '../../lib/editor/values';
import type { Field, RowsField } from '../../lib/runtime/spec';
import { spec as contact } from '../../nodes/contact/spec';
import { spec as environment } from '../../nodes/environment/spec';
import { spec as sendText } from '../../nodes/send-text/spec';

const now = Date.parse('2030-06-01T12:00:00Z');
const environments = new Map<unknown, ReturnType<Surroundings['environment']>>([
  ['us', { country: 'US', isComplete: true }],
  ['plain', { country: '', isComplete: true }],
  ['begun', { country: '', isComplete: false }],
]);
const around: Surroundings = {
  now,
  say: (key) => key,
  environment: (id) => environments.get(id),
  propertyExpression: (text) => !text.includes('['),
  jsonata: (text) => !text.endsWith('('),
};

const fieldOf = (fields: readonly Field[], name: string): Field => {
  const field = fields.find((one) => one.name === name);
  if (!field) throw new Error(`No field ${name}.`);
  return field;
};

describe('what a form complains about', () => {
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
      { phone: '5125550142', phoneType: 'str', environment: 'begun' },
      'invalid.phoneCountry',
    ],
    [sendText.fields, 'phone', { phone: '5125550142', phoneType: 'str' }, undefined],
    [sendText.fields, 'phone', { phone: 'grace', phoneType: 'str', environment: 'us' }, 'invalid.noPhone'],
    [sendText.fields, 'phone', { phone: 'grace', phoneType: 'str' }, 'invalid.noPhone'],
    [sendText.fields, 'phone', { phone: '+', phoneType: 'str' }, 'invalid.noPhone'],
    [sendText.fields, 'environment', { environment: 'begun' }, 'invalid.environmentIncomplete'],
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
    [environment.fields, 'baseUrl', { service: 'simulator', baseUrl: '' }, undefined],
    [environment.fields, 'baseUrl', { service: 'sandbox', baseUrl: '' }, 'invalid.empty'],
    [environment.fields, 'baseUrl', { service: '${SERVICE}', baseUrl: '' }, 'invalid.empty'],
    [environment.fields, 'baseUrl', { service: 'sandbox', baseUrl: 'service' }, 'invalid.url'],
    [
      environment.fields,
      'baseUrl',
      { service: 'sandbox', baseUrl: 'http://service.example/v1' },
      'invalid.https',
    ],
    [environment.fields, 'baseUrl', { service: 'sandbox', baseUrl: 'http://127.0.0.1:8100/v1' }, undefined],
    [
      environment.fields,
      'redirectUri',
      { service: 'sandbox', grant: 'authorization_code', redirectUri: 'https://a.example/#x' },
      'invalid.fragment',
    ],
    [
      environment.fields,
      'redirectUri',
      { service: 'sandbox', grant: 'client_credentials', redirectUri: '' },
      undefined,
    ],
    [environment.fields, 'country', { country: 'USA' }, 'invalid.country'],
    [environment.fields, 'consentPattern', { consentPattern: '(' }, 'invalid.pattern'],
    [environment.fields, 'names', { names: 'no object' }, 'invalid.json'],
    [environment.fields, 'timeout', { timeout: '${TIMEOUT}' }, undefined],
  ];

  for (const [fields, name, values, expected] of cases) {
    it(`${name} with ${JSON.stringify(values)}: ${expected ?? 'nothing'}`, () => {
      should(problemOf(fieldOf(fields, name), values[name], values, around)).equal(expected);
    });
  }
});

describe('the values of a form', () => {
  it('take their defaults where an older flow has none', () => {
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

  it('leave out rows that are empty', () => {
    const rows = fieldOf(contact.fields, 'fields') as RowsField;
    filledRows(rows, (row) => ({ value: row === 'city' ? 'Austin' : '', valueType: 'str' })).should.eql([
      { field: 'city', value: 'Austin', valueType: 'str' },
    ]);
  });

  it('keep ticked scopes and those typed in, each once', () => {
    tickedAnd(['a', 'b'], ' b, c  d').should.eql(['a', 'b', 'c', 'd']);
  });
});
