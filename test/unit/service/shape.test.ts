import fc from 'fast-check';
import should from 'should';
import { z } from 'zod';
import { endpoints, type EndpointName } from '../../../lib/service/endpoints';
import * as schemas from '../../../lib/service/schemas';
import { quickLook } from '../../../lib/service/answers';

const contact = {
  contactId: 7,
  identifier: 'a7',
  fullName: 'Ann Example',
  email: null,
  emailStatus: 'Active',
  groupCount: 2,
  groupNames: ['Clients', 'Golf'],
  isCrmLinkedContact: false,
  somethingNew: { nested: [1, 2, { three: 3 }] },
};
const pageInfo = { page: 1, pageSize: 200, totalRecord: 1, sortDirection: 'asc', sortBy: 'fullName' };

/** An answer of each kind, as shown in the contract. */
const answers: readonly (readonly [string, z.ZodType, unknown])[] = [
  ['contacts', schemas.contactPage, { data: [contact], pageInfo }],
  ['groups', schemas.groupPage, { data: [{ groupId: 1, name: 'Clients', contactCount: 3 }], pageInfo }],
  ['content', schemas.contentPage, { data: [{ title: 'A', url: 'https://example.com' }], pageInfo: null }],
  [
    'a sent text',
    schemas.messageResult,
    { successes: [{ messageId: 1, memberId: 2 }], failures: [], failureDetails: null },
  ],
  [
    'a text not sent',
    schemas.messageResult,
    { successes: [], failures: ['no consent'], failureDetails: [{ code: 'x' }] },
  ],
  ['consent', schemas.consentStatus, { memberId: 2, state: 'pending', lastChanged: 1760000000000 }],
  [
    'a request for consent',
    schemas.consentRequestResult,
    { successes: [{ memberId: 2, consentState: 'pending' }], failures: [] },
  ],
];

/** Any JSON value, with the names and values of the contract mixed in. */
const names = [
  'data',
  'pageInfo',
  'contactId',
  'successes',
  'failures',
  'messageId',
  'state',
  '__proto__',
  'id',
];
const arbitrary = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom(null, true, 0, -1, 1.5, 2 ** 53, 1e308, '', 'text', 7),
    fc.constantFrom(...answers.map(([, , answer]) => answer)),
    fc.array(tie('value'), { maxLength: 3 }),
    fc
      .array(fc.tuple(fc.constantFrom(...names), tie('value')), { maxLength: 4 })
      .map(
        (fields) =>
          JSON.parse(
            `{${fields.map(([name, value]) => `"${name}":${JSON.stringify(value)}`).join()}}`,
          ) as unknown,
      ),
  ),
})).value;

describe('the quick check of an answer', () => {
  for (const [name, schema, answer] of answers) {
    it(`accepts ${name} as shown in the contract`, () => {
      quickLook(schema)(answer).should.be.true();
      should(schema.parse(answer)).eql(answer);
    });
  }

  it('accepts nothing that the schema rejects or would change', () => {
    for (const name of Object.keys(endpoints) as EndpointName[]) {
      const schema: z.ZodType = endpoints[name].response;
      const looksRight = quickLook(schema);
      fc.assert(
        fc.property(arbitrary, (value) => {
          if (!looksRight(value)) return;
          const checked = schema.safeParse(value);
          checked.success.should.be.true();
          JSON.stringify(sorted(checked.data)).should.equal(JSON.stringify(sorted(value)));
        }),
        { numRuns: 400 },
      );
    }
  });

  it('finds every wrong field of a contact', () => {
    const looksRight = quickLook(schemas.contactPage);
    const wrong = {
      contactId: [7.5, 2 ** 53, true, {}],
      somethingNew: [2 ** 53, { nested: [{ id: 2 ** 60 }] }],
      fullName: [7, false, [], {}],
      groupNames: ['Clients', [1], [null]],
      isCrmLinkedContact: ['yes', 0],
    };
    for (const [field, values] of Object.entries(wrong)) {
      for (const value of values) {
        looksRight({ data: [contact, { ...contact, [field]: value }], pageInfo }).should.be.false();
      }
    }
    looksRight({ pageInfo }).should.be.false();
    looksRight({ data: [contact], pageInfo: { ...pageInfo, page: '1' } }).should.be.false();
    looksRight([]).should.be.false();
    looksRight(null).should.be.false();
  });

  it('leaves infinite, hidden and deep values to the schema', () => {
    const looksRight = quickLook(schemas.consentStatus);
    looksRight(JSON.parse('{"state":"pending","lastChanged":1e999}')).should.be.false();
    looksRight(JSON.parse('{"state":"pending","__proto__":{"memberId":1}}')).should.be.false();
    const nested = JSON.parse(`${'['.repeat(60)}${']'.repeat(60)}`) as unknown;
    looksRight({ state: 'pending', more: nested }).should.be.false();
  });

  it('leaves everything to a schema with custom rules', () => {
    quickLook(z.looseObject({ id: z.int().min(0) }))({ id: 1 }).should.be.false();
    quickLook(z.object({ id: z.int() }))({ id: 1 }).should.be.false();
  });
});

/** Sorted fields, because a schema may reorder them. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return fields.map(([name, inner]) => [name, sorted(inner)]);
}
