import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMemoryStore } from '../../../lib/state/memory';
import { alsoClose } from '../closing';
import { environmentOn, type EnvironmentChoices, type TestEnvironment } from '../environment';
import { nextIteration } from '../event-loop';

/**
 * A service that follows only the letter of the interface document: it shares no code with the package or its
 * simulator, and uses different freedoms than either. Ids are strings, or integers beyond the range of a
 * number; groups and content have no page numbers; writes are answered with 200, 201, 202 and 204, with and
 * without a body; answers arrive in pieces; a contact appears some time after it was asked.
 */
export const independentNames = {
  'contacts.page': 'p',
  'contacts.pageSize': 'n',
  'contacts.sortBy': 'order-by',
  'contacts.sortDirection': 'order',
  'groups.page': 'pageNumber',
  'groups.pageSize': 'limit',
  'content.page': 'page_no',
  'content.pageSize': 'per_page',
  'content.searchText': 'q',
  memberId: 'member',
};
export const independentPrefixes = { core: 'people', text: 'msg-api' };

/** Beyond 2^53: written as a number on the wire. */
const groupIds = { Clients: '90071992547409931', Newsletter: '90071992547409933' } as const;

interface Person {
  fields: Record<string, unknown>;
  groups: string[];
}

interface Consent {
  state: string;
  /** Polls that are still answered with 404: the contact is created a moment later. */
  late: number;
}

const isE164 = /^\+[1-9]\d{7,14}$/;

/** How a contact is read: without its missing texts, with null or "" in their place, or with a national number. */
export const contactForms = ['missing', 'null', 'empty', 'national'] as const;
type ContactForm = (typeof contactForms)[number];

const inputTexts = [
  'firstName',
  'lastName',
  'emailAddress',
  'nickname',
  'birthDate',
  'phone',
  'clientAnniversary',
  'address1',
  'address2',
  'city',
  'state',
  'postalCode',
];

const scopes: readonly (readonly [request: RegExp, scope: string])[] = [
  [/^POST msg-api\//, 'text.messaging.write'],
  [/^GET msg-api\//, 'text.messaging.read'],
  [/^GET people\/contact\//, 'core.contacts.read'],
  [/^GET people\/content\//, 'core.content.read'],
  [/^\w+ people\//, 'core.contacts.write'],
];

type Answer = readonly [status: number, body?: string, type?: string];

const json = (value: unknown): string => JSON.stringify(value);

export class IndependentService {
  readonly apiKey = 'k/ey+of=the operator'.replace(' ', '-');
  readonly token = 'opaque.token_of~the-advisor';
  readonly texts: string[] = [];
  /** Violations of the document. */
  readonly complaints: string[] = [];
  readonly people = new Map<string, Person>();
  /** The bodies that replaced memberships. */
  readonly memberships: Record<string, unknown>[] = [];
  looks = 0;
  sends = 0;
  asked = 0;
  form: ContactForm = 'missing';
  /** The first text is answered with 429. */
  isLimited = true;
  /** In the contract's words; all of them by default. */
  granted: ReadonlySet<string> | undefined;
  /** The answer to every text, whatever the consent. */
  refusal: object | undefined;
  private readonly consents = new Map<string, Consent>();
  private readonly server = createServer((request, response) => {
    void this.handle(request, response);
  });
  private next = 1;

  get baseUrl(): string {
    return `http://127.0.0.1:${String((this.server.address() as AddressInfo).port)}/gateway/texting/v1`;
  }

  async start(): Promise<void> {
    for (const name of ['Åsa Öberg', 'Bo Li', 'Chi Ng', 'Dai Ito', 'Eve Roy']) {
      const [firstName, lastName] = name.split(' ');
      this.add({ firstName, lastName, phone: '+12025550181', birthDate: '23 Nov 1960' }, [groupIds.Clients]);
    }
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  accept(phone: string): void {
    this.consents.set(phone, { state: 'accepted', late: 0 });
  }

  add(fields: Record<string, unknown>, groups: string[] = []): string {
    const id = `c_${(this.next++).toString(36)}~x`;
    this.people.set(id, { fields, groups });
    return id;
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const [status, text = '', type = 'Application/JSON; Charset=UTF-8'] = this.answer(request, body);
    const retryAfter = status === 429 ? ['RETRY-AFTER', new Date(0).toUTCString()] : [];
    const headers = ['X-Served-By', 'edge 7', ...retryAfter];
    if (text === '') {
      response.writeHead(status, headers).end();
      return;
    }
    // In arbitrary pieces, even within a character.
    response.writeHead(status, [...headers, 'CONTENT-TYPE', type]);
    const bytes = Buffer.from(`\r\n ${text}\n`);
    for (let at = 0; at < bytes.length; at += 61) {
      response.write(bytes.subarray(at, at + 61));
      await nextIteration();
    }
    response.end();
  }

  private problem(status: number, code: string, detail: string): Answer {
    const problem = {
      code,
      retryable: status === 429,
      detail,
      title: 'Etwas ging schief',
      type: `urn:example:texting:${code}`,
      instance: 'urn:uuid:6f2c',
      status,
      traceId: '00-4bf9-01',
      details: [[{ why: null }]],
      help: { href: '/help' },
    };
    return [status, json(problem), 'application/problem+json;charset=utf-8;v=2'];
  }

  private answer({ method = '', url = '', headers }: IncomingMessage, body: string): Answer {
    if (headers['user-agent'] === undefined) return [403, '<html>Request blocked</html>', 'text/html'];
    if (headers['x-api-key'] !== this.apiKey) return [401];
    if (headers.authorization !== `Bearer ${this.token}`) return this.problem(401, 'unauthorized', 'Token');
    const { pathname, searchParams } = new URL(url, this.baseUrl);
    const path = pathname.replace('/gateway/texting/v1/', '');
    const query = Object.fromEntries(searchParams);
    const given = body === '' ? undefined : (JSON.parse(body) as Record<string, unknown>);
    if (given && !/^application\/json\b/.test(headers['content-type'] ?? ''))
      return this.problem(415, 'unsupported_media_type', 'JSON only');
    const what = `${method} ${path}`;
    const scope = scopes.find(([request]) => request.test(what))?.[1] ?? '';
    if (this.granted?.has(scope) === false)
      return this.problem(403, 'forbidden', `The token lacks the scope ${scope}`);
    if (what === 'POST msg-api/messaging/messages') return this.send(given ?? {});
    if (what === 'POST msg-api/messaging/consent-requests') return this.ask(given ?? {});
    if (what === 'GET msg-api/messaging/consents') return this.look(query);
    if (path.startsWith('people/')) return this.addressBook(what.replace('people/', ''), query, given, body);
    return this.problem(404, 'not_found', `No such place: ${path}`);
  }

  private only(given: object, allowed: readonly string[]): void {
    for (const name of Object.keys(given))
      if (!allowed.includes(name)) this.complaints.push(`unexpected ${name}`);
  }

  private send(given: Record<string, unknown>): Answer {
    this.only(given, ['phone', 'text']);
    if (this.isLimited) {
      this.isLimited = false;
      return this.problem(429, 'rate_limited', 'Slow down');
    }
    this.sends += 1;
    const phone = String(given['phone']);
    if (!isE164.test(phone)) return this.problem(400, 'invalid_request', 'phone');
    if (this.refusal) return [200, json(this.refusal)];
    if (this.consents.get(phone)?.state !== 'accepted')
      return [
        200,
        json({
          successes: [],
          failures: ['The Member Has Not CONSENTED to texts (ref 9)'],
          failureDetails: { [phone]: { explanation: 'see handbook' } },
        }),
      ];
    this.texts.push(String(given['text']));
    return [
      200,
      `{"successes":[{"memberId":"m:${phone}","messageId":18446744073709551615,"lane":"A"}],"cost":0.1}`,
    ];
  }

  private ask({ phoneNumbers, ...rest }: Record<string, unknown>): Answer {
    this.only(rest, []);
    if (!Array.isArray(phoneNumbers) || phoneNumbers.length === 0)
      return this.problem(400, 'invalid_request', 'phoneNumbers');
    this.asked += 1;
    if ((phoneNumbers as string[]).some((phone) => this.consents.get(phone)?.state === 'accepted'))
      return this.problem(400, 'invalid_request', 'Has accepted');
    for (const phone of phoneNumbers as string[]) this.consents.set(phone, { state: 'Requested', late: 2 });
    return [200, json({ successes: [{ memberId: null, consentState: null }], failures: [], batch: 'b-1' })];
  }

  private look(query: Record<string, string>): Answer {
    this.looks += 1;
    this.only(query, ['phone', 'member']);
    const phone = query['phone'] ?? (query['member'] ?? '').replace('m:', '');
    if (query['member'] === undefined && !isE164.test(phone))
      return this.problem(400, 'invalid_request', 'phone');
    const consent = this.consents.get(phone);
    if (!consent) return this.problem(404, 'not_found', 'Nobody has this number');
    if (consent.late > 0) {
      consent.late -= 1;
      return this.problem(404, 'not_found', 'Not there yet');
    }
    const { state } = consent;
    return [200, json({ state, lastChanged: 1.7e9, memberId: `m:${phone}`, since: null })];
  }

  private asRead({ fields, groups }: Person, contactId: string): string {
    const form = this.form;
    const absent = form === 'null' ? null : form === 'empty' ? '' : undefined;
    const read = { ...Object.fromEntries(inputTexts.map((name) => [name, absent])), ...fields };
    const [, area, office, line] = /^\+1(\d{3})(\d{3})(\d{4})$/.exec(String(fields['phone'])) ?? [];
    const phone = form === 'national' && area ? `(${area}) ${String(office)}-${String(line)}` : read['phone'];
    const written = json({ ...read, phone, contactId, tags: ['x'] });
    // No number could represent the ids.
    return written.replace(/\}$/, `,"groupIds":[${groups.join(',')}]}`);
  }

  /** A text has at least one character, and every number is in E.164. */
  private faultIn(given: Record<string, unknown>): string | undefined {
    if ('phone' in given && !isE164.test(String(given['phone']))) return 'phone';
    return inputTexts.find(
      (name) => name in given && (typeof given[name] !== 'string' || given[name] === ''),
    );
  }

  private addressBook(
    what: string,
    query: Record<string, string>,
    given: Record<string, unknown> | undefined,
    body: string,
  ): Answer {
    const [, id = ''] = /contacts\/([^/]+)/.exec(what) ?? [];
    const contactId = decodeURIComponent(id);
    const person = this.people.get(contactId);
    const place = id === '' ? what : what.replace(id, ':id');
    if (id !== '' && !person) return this.problem(404, 'not_found', 'No such contact');
    const fault =
      /^(POST contact\/contacts|PUT contact\/contacts\/:id)$/.test(place) && this.faultIn(given ?? {});
    if (fault) return this.problem(400, 'invalid_request', fault);
    switch (place) {
      case 'POST contact/contacts':
        return [201, json({ id: this.add(given ?? {}), href: '/x' })];
      case 'PUT contact/contacts/:id':
        if (person) person.fields = given ?? {};
        return [204];
      case 'GET contact/contacts/:id':
        return [200, this.asRead(person ?? { fields: {}, groups: [] }, contactId)];
      case 'DELETE contact/contacts/:id':
        this.people.delete(contactId);
        return [202];
      case 'PUT contact/contacts/:id/groups':
        this.memberships.push(given ?? {});
        // As written: no number could represent them.
        if (person) person.groups = [...body.matchAll(/\d{10,}/g)].map(([digits]) => digits);
        return [200, 'null'];
      case 'GET contact/contacts':
        return this.searchPeople(query);
      case 'GET contact/groups': {
        this.only(query, ['pageNumber', 'limit', 'sortDirection']);
        const [page, size] = [Number(query['pageNumber'] ?? 1), Number(query['limit'] ?? 1)];
        const all = Object.entries(groupIds).map(
          ([name, digits]) => `{"groupId":${digits},"name":"${name}"}`,
        );
        return [200, `{"data":[${all.slice((page - 1) * size, page * size).join(',')}]}`];
      }
      case 'GET content/library/search': {
        this.only(query, ['page_no', 'per_page', 'q', 'contentType']);
        const [page, size] = [Number(query['page_no'] ?? 1), Number(query['per_page'] ?? 2)];
        const titles = ['Retire early', 'Retire well', 'Taxes'].filter((title) =>
          title.toLowerCase().includes((query['q'] ?? '').toLowerCase()),
        );
        // Everything it has is for the web.
        const isWeb = ['All', 'WebContent'].includes(query['contentType'] ?? 'All');
        const data = isWeb ? titles.map((title) => ({ title, url: null, teaser: '…' })) : [];
        return [200, json({ data: data.slice((page - 1) * size, page * size), pageInfo: null })];
      }
      default:
        return this.problem(404, 'not_found', place);
    }
  }

  private searchPeople(query: Record<string, string>): Answer {
    this.only(query, ['p', 'n', 'order-by', 'order']);
    const [page, size] = [Number(query['p'] ?? 1), Number(query['n'] ?? 2)];
    const all = [...this.people].map(([contactId, { fields }]) => ({
      contactId,
      fullName: `${String(fields['firstName'])} ${String(fields['lastName'])}`,
      dateTimeCreated: 'Thu, 01 Jan 2026 00:00:00 GMT',
    }));
    const data = all.slice((page - 1) * size, page * size);
    return [200, json({ pageInfo: { page, totalRecord: all.length, sortBy: null }, data, took: 3 })];
  }
}

/** An environment on such a service; `closeAll` ends both. */
export const startIndependent = async (
  choices: EnvironmentChoices = {},
): Promise<{ readonly service: IndependentService; readonly environment: TestEnvironment }> => {
  const service = alsoClose(new IndependentService());
  await service.start();
  const { baseUrl, apiKey } = service;
  const environment = environmentOn(
    { baseUrl, apiKey, token: () => service.token },
    {
      store: createMemoryStore(),
      client: { names: independentNames, prefixes: independentPrefixes },
      ...choices,
      settings: { country: 'US', ...choices.settings },
    },
  );
  return { service, environment: alsoClose(environment) };
};
