import fc from 'fast-check';

/** An answer as it is written to the wire. */
export interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

const problem = {
  type: 'https://example.test/problem',
  title: 'A problem',
  status: 409,
  detail: 'The token lacks the scope core.contacts.read.',
  instance: '/v1/here',
  code: 'conflict',
  traceId: 'trace-1',
  retryable: true,
  details: [{ field: 'phone', issue: 'wrong' }],
};
const pageInfo = { page: 1, pageSize: 50, totalRecord: 2, sortDirection: 'asc', sortBy: 'fullName' };
const contact = {
  contactId: 7,
  phone: '+12025550101',
  firstName: 'Ann',
  groupIds: [1, 2],
  customFields: [{ key: 'k' }],
};

/** What the contract shows for each endpoint, and what a token endpoint answers (RFC 6749, sections 5.1 and 5.2). */
export const contractAnswers: readonly unknown[] = [
  { successes: [{ messageId: 7, memberId: 9 }], failures: [] },
  {
    successes: [],
    failures: ['The member has not consented.'],
    failureDetails: [{ code: 'consent_required' }],
  },
  { successes: [{ memberId: 9, consentState: 'pending' }], failures: [] },
  { memberId: 9, state: 'accepted', lastChanged: 1_700_000_000_000 },
  contact,
  { id: 12 },
  {
    data: [{ contactId: 7, fullName: 'Ann Ito', groupNames: ['Clients'], groupId: 3, name: 'Clients' }],
    pageInfo,
  },
  { data: [{ title: 'An article', url: 'https://example.test/a' }], pageInfo },
];
export const tokenAnswers: readonly unknown[] = [
  {
    access_token: 'access-1',
    token_type: 'Bearer',
    expires_in: 3600,
    refresh_token: 'refresh-1',
    scope: 'openid text.messaging.read',
    id_token: 'e30.eyJzdWIiOiJhbGljZSIsIm5hbWUiOiJBbGljZSJ9.e30',
  },
  { error: 'invalid_grant', error_description: 'The token is spent.' },
  { error: 'temporarily_unavailable' },
  { error: 'invalid_client' },
];

const deep = (levels: number): unknown => {
  let value: unknown = 0;
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { value };
  return value;
};

/** Values that a program may stumble over. */
export const oddValues: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  1e308,
  2 ** 53,
  -0,
  '',
  ' ',
  'accepted',
  '12',
  '+12025550101',
  '\u0000',
  '\ud800',
  '__proto__',
  'x'.repeat(5000),
  [],
  {},
  [null],
  [[]],
  { length: 3 },
  { then: 1 },
  { toString: null },
  { constructor: null, hasOwnProperty: 1 },
  deep(20),
  deep(200),
];

interface Change {
  readonly where: number;
  readonly how: 'put' | 'remove' | 'repeat';
  readonly value: unknown;
}

type Holder = Record<string, unknown>;
const isHolder = (value: unknown): value is Holder => typeof value === 'object' && value !== null;

const placesIn = (value: unknown, depth = 0): [Holder, string][] =>
  isHolder(value) && depth < 8
    ? Object.entries(value).flatMap(([name, inner]) => [
        [value, name] as [Holder, string],
        ...placesIn(inner, depth + 1),
      ])
    : [];

const changed = (given: unknown, changes: readonly Change[]): unknown => {
  const value = structuredClone(given);
  for (const { where, how, value: put } of changes) {
    const places = placesIn(value);
    const place = places[where % Math.max(1, places.length)];
    if (place === undefined) return structuredClone(put);
    const [holder, name] = place;
    if (how === 'put') holder[name] = structuredClone(put);
    else if (how === 'remove') Reflect.deleteProperty(holder, name);
    else holder[name] = [holder[name], holder[name]];
  }
  return value;
};

const change = fc.record({
  where: fc.nat({ max: 40 }),
  how: fc.constantFrom('put', 'put', 'remove', 'repeat'),
  value: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...oddValues) },
    { weight: 1, arbitrary: fc.jsonValue() },
  ),
}) as fc.Arbitrary<Change>;

/** What is done to a text that is JSON. */
const damages: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.slice(0, -1),
  (text) => text.slice(0, text.length / 2),
  (text) => `\ufeff${text}`,
  (text) => `${text}${text}`,
  (text) => text.replace(/"(\w+)"/, '"__proto__"'),
  (text) => text.replace(/\d+/, '9007199254740993'),
  (text) => text.replace(/\d+/, '1e999'),
  (text) => `<html>${text}</html>`,
  () => '',
];

const statuses = [
  200, 201, 202, 204, 206, 207, 299, 301, 304, 307, 400, 401, 402, 403, 404, 405, 406, 408, 409,
] as const;
const failures = [
  410, 413, 415, 418, 422, 429, 451, 499, 500, 501, 502, 503, 504, 520, 599, 600, 799,
] as const;
const retryAfters = [
  '',
  '0',
  '1',
  '99999999999',
  '-5',
  'soon',
  'Fri, 31 Dec 1999 23:59:59 GMT',
  'Fri, 99 Foo',
  '1.5',
  '١',
];
const contentTypes = [
  'application/json',
  'application/problem+json',
  'text/html',
  '',
  'application/json; charset=utf-16',
];

/** Answers that are nearly, not at all, or exactly what the contract shows. */
export const answersLike = (bases: readonly unknown[]): fc.Arbitrary<Answer> =>
  fc
    .record({
      base: fc.constantFrom(...bases, problem, ...oddValues),
      changes: fc.array(change, { maxLength: 3 }),
      damage: fc.oneof(
        { weight: 6, arbitrary: fc.constant(0) },
        { weight: 1, arbitrary: fc.nat({ max: damages.length - 1 }) },
      ),
      status: fc.oneof(
        { weight: 3, arbitrary: fc.constant(200) },
        { weight: 3, arbitrary: fc.constantFrom(...statuses, ...failures) },
      ),
      retryAfter: fc.constantFrom(...retryAfters),
      type: fc.constantFrom(...contentTypes),
    })
    .map(({ base, changes, damage, status, retryAfter, type }) => ({
      status,
      headers: {
        ...(retryAfter !== '' && /^[ -~]+$/.test(retryAfter) && { 'retry-after': retryAfter }),
        ...(type !== '' && { 'content-type': type }),
      },
      body: (damages[damage] ?? String)(JSON.stringify(changed(base, changes))),
    }));
