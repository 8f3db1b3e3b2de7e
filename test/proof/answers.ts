import fc from 'fast-check';
import type { Random } from './week';

/** How an answer reaches the client, or does not. */
const deliveries = ['refused', 'cutBeforeHead', 'cutInBody', 'pieces', 'earlyHints'] as const;

/** An answer as it is written to the wire. */
export interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly delivery?: (typeof deliveries)[number] | 'whole' | 'tooLarge';
  /** Where the body is cut, as a fraction of its length. */
  readonly at?: number;
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

/** The contract's example for each endpoint, and a token endpoint's answers (RFC 6749, sections 5.1 and 5.2). */
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

/** Enough of them for everything that is drawn: fast-check takes longer for a value than a node for a message. */
const jsonValues = fc.sample(fc.jsonValue(), { seed: 1, numRuns: 500 });

const draw = {
  one: <T>(random: Random, of: readonly T[]): T => of[Math.floor(random() * of.length)] as T,
  change: (random: Random): Change => ({
    where: Math.floor(random() * 41),
    how: draw.one(random, ['put', 'put', 'remove', 'repeat']),
    value: draw.one(random, random() < 0.8 ? oddValues : jsonValues),
  }),
};

/** Mutations of a JSON text. */
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
  200, 201, 202, 204, 206, 207, 299, 301, 304, 307, 400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 413,
  415, 418, 422, 429, 451, 499, 500, 501, 502, 503, 504, 520, 599, 600, 799,
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

/** An answer that is nearly, not at all, or exactly like one of these; now and then like one of another endpoint. */
export const answerLike = (
  random: Random,
  bases: readonly unknown[],
  others: readonly unknown[] = [],
): Answer => {
  const luck = random();
  const base = draw.one(random, luck < 0.6 ? bases : luck < 0.8 ? [problem] : [...others, ...oddValues]);
  const changes = Array.from({ length: Math.floor(random() * 4) }, () => draw.change(random));
  const body = JSON.stringify(changed(base, changes));
  const retryAfter = draw.one(random, retryAfters);
  const type = draw.one(random, contentTypes);
  const kind = random();
  return {
    status: random() < 0.5 ? 200 : draw.one(random, statuses),
    headers: {
      ...(retryAfter !== '' && { 'retry-after': retryAfter }),
      ...(type !== '' && { 'content-type': type }),
    },
    body: random() < 0.85 ? body : draw.one(random, damages)(body),
    delivery: kind < 0.0005 ? 'tooLarge' : kind < 0.25 ? draw.one(random, deliveries) : 'whole',
    at: random(),
  };
};

/** An answer as bytes, in as many writes, and what happens to the connection afterwards. */
export interface RawAnswer {
  readonly pieces: readonly Buffer[];
  readonly then: 'end' | 'reset' | 'stay';
}

const heads: readonly ((status: number, length: number) => string)[] = [
  (status, length) => `HTTP/1.1 ${String(status)} X\r\ncontent-length: ${String(length)}\r\n`,
  (status, length) => `HTTP/1.1 ${String(status)} X\r\ncontent-length: ${String(length + 1)}\r\n`,
  (status, length) =>
    `HTTP/1.1 ${String(status)} X\r\ncontent-length: ${String(Math.max(0, length - 1))}\r\n`,
  (status) => `HTTP/1.1 ${String(status)} X\r\ncontent-length: -1\r\n`,
  (status) => `HTTP/1.1 ${String(status)} X\r\ntransfer-encoding: chunked\r\n`,
  (status, length) =>
    `HTTP/1.1 ${String(status)} X\r\ntransfer-encoding: chunked\r\ncontent-length: ${String(length)}\r\n`,
  (status) => `HTTP/1.1 ${String(status)} X\r\nconnection: close\r\n`,
  (status) => `HTTP/1.0 ${String(status)}\r\n`,
  (status, length) => `HTTP/1.1 ${String(status)} X\ncontent-length: ${String(length)}\n`,
  () => 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n',
  () => 'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n',
  (status) => `HTTP/2 ${String(status)}\r\n`,
  (status, length) =>
    `HTTP/1.1 ${String(status)} X\r\n${'x: y\r\n'.repeat(2000)}content-length: ${String(length)}\r\n`,
  (status) => `HTTP/1.1 ${String(status)} X\r\n: \u0000\r\n`,
  () => 'SSH-2.0-OpenSSH_9.6\r\n',
  () => '\u0016\u0003\u0001\u0002',
  () => '',
];

/** Bytes that are, nearly are, or are nothing like an HTTP/1.1 answer with such a content. */
export const rawAnswerLike = (random: Random, bases: readonly unknown[]): RawAnswer => {
  const { status, headers, body } = answerLike(random, bases);
  const length = Buffer.byteLength(body);
  const head = random() < 0.4 ? heads[0] : draw.one(random, heads);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const made = `${head?.(status, length) ?? ''}${lines.join('')}\r\n`;
  const content = made.includes('chunked') ? `${length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body;
  const bytes = Buffer.from(made + content);
  for (; random() < 0.3;) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
  const ends = Array.from({ length: Math.floor(random() * 4) }, () => Math.floor(random() * bytes.length));
  ends.sort((a, b) => a - b);
  if (random() < 0.6) ends.push(bytes.length);
  const pieces = ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
  return { pieces, then: draw.one(random, ['end', 'reset', 'stay']) };
};
