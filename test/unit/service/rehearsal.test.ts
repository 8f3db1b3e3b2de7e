import { createServer, get, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import should from 'should';
import { wordsIn } from '../../../lib/runtime/language';
import { usualPrefixes } from '../../../lib/service/prefixes';
import { serviceError } from '../../../lib/service/errors';
import type { Clock } from '../../../lib/service/clock';
import { rehearse, type Finding, type Need, type Rehearsal } from '../../../lib/check/rehearsal';
import { environmentFor, startSimulator, type Simulator, type SimulatorOptions } from '../../../simulator';
import { listen } from '../../support/server';

const scopes = [
  'text.messaging.write',
  'text.messaging.read',
  'core.contacts.read',
  'core.contacts.write',
  'core.content.read',
];
const words = wordsIn('en-US');
const say = ({ key, values = {}, problem }: Finding): string =>
  problem ? words.problem(problem) : words.say(key, values);

describe('a rehearsal', () => {
  let simulator: Simulator;
  let server: Server | undefined;

  const start = async (options: SimulatorOptions = {}): Promise<void> => {
    simulator = await startSimulator({ contacts: 12, ...options });
  };
  const settings = (changes: Partial<Rehearsal> = {}): Rehearsal => ({
    baseUrl: simulator.baseUrl,
    apiKey: simulator.credentials.apiKey,
    prefixes: usualPrefixes,
    names: {},
    proxy: '',
    wanted: scopes,
    granted: () => scopes,
    token: () => simulator.accessToken('default'),
    // Retries happen immediately.
    random: () => 0,
    ...changes,
  });
  /** The settings that an environment needs for the foreign service. */
  const foreign = (changes: Partial<Rehearsal> = {}): Rehearsal => {
    const { corePrefix, textPrefix, names } = environmentFor(simulator.settings.habits);
    return settings({ prefixes: { core: corePrefix, text: textPrefix }, names, ...changes });
  };
  const try_ = async (rehearsal: Rehearsal): Promise<(check: string) => [Finding['ok'], string]> => {
    const findings = await rehearse(rehearsal);
    findings
      .map(({ check }) => check)
      .should.eql([
        ...['reachability', 'token', 'apiKey', 'scopes', 'prefixes', 'names'],
        ...['dates', 'groupIds', 'phones'],
      ]);
    for (const finding of findings) {
      say(finding).should.not.match(/__|check\./);
      say(finding).should.not.containEql(simulator.credentials.apiKey);
      say(finding).should.not.containEql(simulator.accessToken('default'));
    }
    const unread = simulator.ledger.entries().filter(({ method }) => method !== 'GET');
    unread.should.eql([]);
    return (check) => {
      const finding = findings.find((each) => each.check === check);
      should(finding).not.be.undefined();
      return finding ? [finding.ok, say(finding)] : [null, ''];
    };
  };
  const serve = async (answer: RequestListener): Promise<string> => {
    server = createServer(answer).listen(0, '127.0.0.1');
    await new Promise((resolve) => server?.once('listening', resolve));
    return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/v1`;
  };

  afterEach(async () => {
    server?.close();
    server = undefined;
    await simulator.close();
  });

  it('finds nothing wrong with the usual service, and only reads', async () => {
    await start();
    const found = await try_(settings());
    for (const check of ['reachability', 'token', 'apiKey', 'scopes', 'prefixes', 'names'] as const)
      should([check, found(check)[0]]).eql([check, true]);
    should(found('reachability')[1]).containEql(simulator.baseUrl);
    should(found('apiKey')[1]).match(/refuses a wrong one \(HTTP 401\)/);
    should(found('dates')).match([true, /birthDate ####-##-##.*\(# is a digit\)/]);
    should(found('groupIds')[0]).equal(true);
    should(found('phones')[0]).equal(true);
  });

  it('finds no problem with the foreign service once the settings describe how it differs', async () => {
    await start({ profile: 'foreign' });
    const found = await try_(foreign());
    for (const check of ['reachability', 'token', 'apiKey', 'scopes', 'prefixes', 'names'] as const)
      should([check, found(check)[0]]).eql([check, true]);
    should(found('apiKey')[1]).match(/A gateway, not the service, refuses.*HTTP 403/);
    should(found('dates')).match([null, /birthDate ##\/##\/####/]);
    should(found('groupIds')).match([null, /do not include groupIds/]);
  });

  it('suggests the query names that work, for each search', async () => {
    await start({ profile: 'foreign' });
    const found = await try_(foreign({ names: { sortBy: 'orderBy' } }));
    const [ok, message] = found('names');
    should(ok).be.false();
    should(JSON.parse(/\{.*\}/.exec(message)?.[0] ?? '')).eql(simulator.settings.habits.names);
    should(found('prefixes')[0]).be.true();
  });

  it('notices page 1 in place of page 2 when unknown names are ignored', async () => {
    await start({ settings: { habits: { names: { 'groups.page': 'p' } } } });
    const found = await try_(settings());
    should(found('names')).match([false, /\(groups: page\).*\{"groups.page":"p"\}/]);
  });

  for (const [name, wire, where] of [
    ['sortBy', 'sort', 'contacts'],
    ['sortDirection', 'direction', 'contacts'],
    ['sortDirection', 'order', 'groups'],
    ['searchText', 'query', 'content'],
    ['contentType', 'type', 'content'],
    ['memberId', 'member', 'consents'],
  ] as const) {
    for (const unknownQuery of ['ignored', 'refused'] as const) {
      it(`notices a name other than ${name} (${where}) when unknown ones are ${unknownQuery}`, async () => {
        const key = where === 'consents' ? name : `${where}.${name}`;
        await start({ settings: { habits: { unknownQuery, names: { [key]: wire } } } });
        const [ok, message] = (await try_(settings()))('names');
        should(ok).be.false();
        message.should.containEql(`(${where}: ${name})`);
        const proposed = JSON.parse(/\{.*\}/.exec(message)?.[0] ?? '') as Record<string, string>;
        should((await try_(settings({ names: proposed })))('names')[0]).be.true();
      });
    }
  }

  it('says which names reading cannot check, and what to do about them', async () => {
    await start();
    const baseUrl = await serve(({ url = '' }, response) => {
      const query = new URL(url, 'http://service').searchParams;
      const [size, page] = [Number(query.get('pageSize') ?? 3), Number(query.get('page') ?? 1)];
      const data = [1, 2, 3].slice((page - 1) * size, page * size).map((contactId) => ({ contactId }));
      const found = query.has('searchText') || query.has('contentType') ? [] : data;
      response.end(JSON.stringify({ data: found, state: 'none' }));
    });
    const found = await try_(settings({ baseUrl }));
    should(found('names')).match([
      true,
      /whether it accepts contacts: sortBy, sortDirection; groups: sortDirection; consents: memberId: search with them/,
    ]);
  });

  it('says to ask the operator when no common name works', async () => {
    await start({ settings: { habits: { names: { 'content.searchText': 'needle' } } } });
    should((await try_(settings()))('names')).match([
      false,
      /no common name works for content: searchText: ask the operator/,
    ]);
  });

  it('lists the names that it found beside those it did not find', async () => {
    const habits = { names: { 'content.searchText': 'needle', page: 'page_number', pageSize: 'maxResults' } };
    await start({ settings: { habits } });
    const [ok, message] = (await try_(settings()))('names');
    should(ok).be.false();
    message.should.containEql('{"page":"page_number","pageSize":"maxResults"}');
    message.should.match(/No common name works for content: searchText: ask the operator/);
  });

  for (const [name, isOffset] of [
    ['page', false],
    ['pageIndex', false],
    ['offset', true],
  ] as const)
    it(`says that no setting helps with a service that counts from zero (${name})`, async () => {
      await start();
      const records = [1, 2, 3, 4, 5].map((contactId) => ({ contactId }));
      const baseUrl = await serve(({ url = '' }, response) => {
        const query = new URL(url, 'http://service').searchParams;
        const [size, at] = [Number(query.get('limit') ?? 5), Number(query.get(name) ?? 0)];
        const from = isOffset ? at : at * size;
        // Echoes the requested page number as if that were the second page.
        const pageInfo = { pageSize: size, ...(isOffset ? {} : { page: at }) };
        response.end(JSON.stringify({ data: records.slice(from, from + size), pageInfo, state: 'none' }));
      });
      const [ok, message] = (await try_(settings({ baseUrl })))('names');
      should(ok).be.false();
      message.should.match(new RegExp(`For pages it accepts ${name}, which counts from 0`));
      message.should.containEql('"pageSize":"limit"');
      message.should.not.containEql('"page":');
    });

  it('finds nothing wrong with a service that always requires a phone number, as the contract allows', async () => {
    await start();
    const baseUrl = await serve(({ url = '', headers }, response) => {
      const { searchParams } = new URL(url, 'http://service');
      if (url.includes('/consents') && !searchParams.has('phone') && 'authorization' in headers) {
        const problem = {
          code: 'invalid_request',
          retryable: false,
          status: 400,
          detail: 'phone is required',
        };
        response.writeHead(400).end(JSON.stringify(problem));
        return;
      }
      get(simulator.url + url, { headers }, (answer) => {
        answer.pipe(response.writeHead(answer.statusCode ?? 500));
      });
    });
    const { pathname } = new URL(simulator.baseUrl);
    const found = await try_(settings({ baseUrl: new URL(pathname, baseUrl).href }));
    should(found('names')).match([true, /Reading cannot show whether it accepts consents: memberId/]);
  });

  it('says that names were not tested when the service rejected every request', async () => {
    await start();
    for (const wrong of [settings({ apiKey: 'wrong' }), settings({ baseUrl: `${simulator.url}/v2` })])
      should((await try_(wrong))('names')).match(['untried', /^Not tested/]);
  });

  it('draws no conclusion about names from an address book without a second page', async () => {
    await start();
    const pageInfo = { page: 1, pageSize: 1, totalRecord: 1 };
    const baseUrl = await serve(({ url = '' }, response) => {
      const data = url.includes('/library/') ? [] : [{ contactId: 1 }];
      response.end(JSON.stringify({ data, pageInfo, state: 'none' }));
    });
    should((await try_(settings({ baseUrl })))('names')).match([null, /too few records/]);
  });

  it('recognizes the second page by its records if the service does not number pages', async () => {
    await start();
    const baseUrl = await serve(({ url = '' }, response) => {
      const query = new URL(url, 'http://service').searchParams;
      const [size, page] = [Number(query.get('size') ?? 3), Number(query.get('p') ?? 1)];
      const data = [1, 2, 3].slice((page - 1) * size, page * size).map((contactId) => ({ contactId }));
      const found = query.has('searchText') || query.has('contentType') ? [] : data;
      response.end(JSON.stringify({ data: found, state: 'none' }));
    });
    const found = await try_(settings({ baseUrl }));
    should(found('names')).match([false, /\{"page":"p","pageSize":"size"\}/]);
    const told = await try_(settings({ baseUrl, names: { page: 'p', pageSize: 'size' } }));
    should(told('names')[0]).be.true();
  });

  for (const [wrong, setting] of [
    [{ core: 'core', text: 'txt' }, 'Texting prefix'],
    [{ core: 'corp', text: 'text' }, 'Address book prefix'],
  ] as const) {
    it(`says that the ${setting} is wrong, and not the address`, async () => {
      await start();
      const found = await try_(settings({ prefixes: wrong }));
      should(found('prefixes')).match([false, new RegExp(`correct ${setting}\\.`)]);
      should(found('reachability')[0]).be.true();
      should(found('apiKey')[0]).be.true();
    });
  }

  it('rejects an address where everything is 404, and says which was requested', async () => {
    await start();
    const elsewhere = await serve((_, response) => response.writeHead(404).end('nothing here'));
    const found = await try_(settings({ baseUrl: elsewhere }));
    should(found('reachability')).match([false, new RegExp(`${elsewhere}.*HTTP 404.*Service address`)]);
    should(found('apiKey')[0]).equal('untried');
    should(found('names')[0]).equal('untried');
  });

  it('rejects an address where a web page answers, and blames nothing else', async () => {
    await start();
    const page = await serve((_, response) =>
      response.setHeader('content-type', 'text/html').end('<!doctype html><p>Welcome'),
    );
    const found = await try_(settings({ baseUrl: page }));
    should(found('reachability')).match([false, new RegExp(`other than the service answers at ${page}`)]);
    for (const check of ['apiKey', 'prefixes', 'names'] as const) should(found(check)[0]).equal('untried');
  });

  it('stops where nothing answers', async () => {
    await start();
    const found = await try_(settings({ baseUrl: 'http://127.0.0.1:1/v1' }));
    should(found('reachability')).match([false, /Nothing answers at http:\/\/127\.0\.0\.1:1\/v1/]);
    for (const check of ['apiKey', 'scopes', 'prefixes', 'names'] as const)
      should(found(check)[0]).equal('untried');
  });

  for (const profile of ['usual', 'foreign'] as const) {
    it(`detects a wrong key by comparing it with one that is certainly wrong, ${profile}`, async () => {
      await start({ profile });
      const found = await try_(foreign({ apiKey: 'another-key' }));
      should(found('apiKey')).match([false, /API key is refused.*correct it/]);
      // The foreign service is behind a gateway, which rejects a wrong key without a problem body.
      should(found('reachability')[0]).equal(profile === 'foreign' ? 'untried' : true);
      should(found('token')[0]).equal('untried');
      should(found('prefixes')[0]).not.be.false();
    });
  }

  it('distinguishes a rejected token from a rejected key', async () => {
    await start({ profile: 'foreign' });
    const found = await try_(foreign({ token: () => 'no-token-of-this-service' }));
    should(found('token')).match([false, /authorize again/]);
    should(found('apiKey')[0]).be.true();
  });

  it('names scopes that are requested and not granted, according to the token and to a read', async () => {
    await start();
    const some = scopes.filter((scope) => scope !== 'core.content.read');
    const byWord = await try_(settings({ granted: () => some }));
    should(byWord('scopes')).match([false, /Not granted: core\.content\.read\./]);
    const byRead = await try_(
      settings({ granted: () => undefined, token: () => simulator.accessToken('default', some) }),
    );
    should(byRead('scopes')).match([false, /Not granted: core\.content\.read\./]);
    should(byRead('apiKey')[0]).be.true();
  });

  it('has no verdict on what needs a token when there is none', async () => {
    await start();
    const found = await try_(
      settings({
        token: () =>
          Promise.reject(
            serviceError('authorization_required', 'not_authorized', { advisor: 'a', name: 'n' }),
          ),
      }),
    );
    should(found('reachability')[0]).be.true();
    should(found('token')).match([false, /has not authorized/]);
    for (const check of ['apiKey', 'scopes', 'prefixes', 'names', 'dates', 'groupIds', 'phones'] as const)
      should(found(check)).eql(['untried', 'Not tested: there is no token.']);
  });
});

/** Waits take no time: the clock jumps ahead. */
const impatientClock = (): Clock & { at: number } => {
  const clock = {
    at: 1_000_000,
    now: () => clock.at,
    elapsed: () => clock.at,
    after(ms: number, task: () => void) {
      const until = clock.at + ms;
      const turn = setImmediate(() => {
        clock.at = Math.max(clock.at, until);
        task();
      });
      return () => {
        clearImmediate(turn);
      };
    },
  };
  return clock;
};

interface Asked {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly key: string;
  readonly count: number;
}
type Reply = readonly [status: number, body: string, headers?: Record<string, string>];

/** Answers everything that a test does not answer itself, strictly as the contract says. */
class PlainService {
  asked = 0;
  private readonly server: Server;

  constructor(own: (asked: Asked) => Reply | undefined = () => undefined) {
    this.server = createServer((request, response) => {
      const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://service');
      const path = pathname.replace('/v1', '');
      const key = String(request.headers['x-api-key'] ?? '');
      this.asked += 1;
      const [status, body, headers = {}] =
        own({ path, query, key, count: this.asked }) ?? this.answer(path, query, key);
      response.writeHead(status, headers).end(body);
    });
  }

  async start(): Promise<string> {
    const port = await listen(this.server);
    return `http://127.0.0.1:${String(port)}/v1`;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  static problem(status: number, code: string, detail: string): Reply {
    return [status, JSON.stringify({ code, status, detail, retryable: status === 429, title: code })];
  }

  private answer(path: string, query: URLSearchParams, key: string): Reply {
    if (key !== 'the-right-key') return PlainService.problem(401, 'unauthorized', 'key');
    const list = (items: object[], page = 'page', size = 'pageSize'): Reply => {
      const [at, most] = [Number(query.get(page) ?? 1), Number(query.get(size) ?? 10)];
      const desc = query.get('sortDirection') === 'desc';
      const data = (desc ? [...items].reverse() : items).slice((at - 1) * most, at * most);
      const pageInfo = {
        ...{ page: at, pageSize: most, totalRecord: items.length },
        ...{ sortBy: query.get('sortBy'), sortDirection: query.get('sortDirection') },
      };
      return [200, JSON.stringify({ data, pageInfo })];
    };
    const people = [1, 2, 3].map((contactId) => ({ contactId, fullName: `Person ${String(contactId)}` }));
    if (path === '/text/messaging/consents') {
      const phone = query.get('phone');
      if (phone === null && !query.has('memberId'))
        return PlainService.problem(400, 'invalid_request', 'whose?');
      return phone === null || /^\+[1-9]\d{7,14}$/.test(phone)
        ? PlainService.problem(404, 'not_found', 'nobody')
        : PlainService.problem(400, 'invalid_request', 'phone');
    }
    if (path === '/core/contact/contacts') return list(people);
    if (path === '/core/contact/groups') return list([{ groupId: 1 }, { groupId: 2 }, { groupId: 3 }]);
    if (path === '/core/content/library/search') {
      const isAll = [null, 'All'].includes(query.get('contentType')) && !query.has('searchText');
      return list(isAll ? [{ title: 'a' }, { title: 'b' }, { title: 'c' }] : []);
    }
    if (/^\/core\/contact\/contacts\/\d$/.test(path))
      return [
        200,
        JSON.stringify({ contactId: 1, groupIds: [], birthDate: '23 Nov 1960', phone: '(202) 555-0123' }),
      ];
    return [404, 'nothing here'];
  }
}

describe('a rehearsal on handwritten services', () => {
  let service: PlainService;
  let clock: ReturnType<typeof impatientClock>;
  beforeEach(() => {
    clock = impatientClock();
  });
  afterEach(() => {
    service.close();
  });

  const rehearsed = async (own?: (asked: Asked) => Reply | undefined, changes: Partial<Rehearsal> = {}) => {
    service = new PlainService(own);
    const findings = await rehearse({
      baseUrl: await service.start(),
      apiKey: 'the-right-key',
      prefixes: usualPrefixes,
      names: {},
      proxy: '',
      wanted: scopes,
      granted: () => scopes,
      token: () => 'a-token-of-somebody',
      random: () => 0.5,
      clock,
      ...changes,
    });
    const found = Object.fromEntries(findings.map((finding) => [finding.check, finding]));
    return {
      verdicts: Object.fromEntries(findings.map(({ check, ok }) => [check, ok])),
      message: (check: string): string => {
        const finding = found[check];
        return finding ? say(finding) : '';
      },
    };
  };
  const fine = {
    ...{ reachability: true, token: true, apiKey: true, scopes: true, prefixes: true, names: true },
    ...{ dates: null, groupIds: true, phones: null },
  };

  it('finds nothing wrong with one that follows the contract, in about thirty reads', async () => {
    const { verdicts, message } = await rehearsed();
    should(verdicts).eql(fine);
    message('dates').should.containEql('birthDate ## xxx ####');
    should(service.asked).be.below(40);
  });

  for (const [part, setting] of [
    ['text', 'Texting prefix'],
    ['core', 'Address book prefix'],
  ] as const) {
    const known = /^\/(core\/contact|core\/content|text\/messaging)\//;
    it(`blames the ${setting} when a gateway answers 403 for every path it does not know`, async () => {
      const { verdicts, message } = await rehearsed(
        ({ path, count }) =>
          known.test(path)
            ? undefined
            : [
                403,
                `<h1>Forbidden</h1>${path} request ${String(count * 7919)}`,
                { 'content-type': 'text/html' },
              ],
        { prefixes: { ...usualPrefixes, [part]: 'wrong' } },
      );
      should(verdicts['prefixes']).equal(false);
      message('prefixes').should.containEql(`/wrong: correct ${setting}`);
      should(verdicts['apiKey']).equal(true);
    });
  }

  for (const [what, unknown] of [
    ['a gateway', () => [404, 'nothing here']],
    ['the service', (path) => PlainService.problem(404, 'not_found', `There is no path ${path}.`)],
  ] as const satisfies readonly (readonly [string, (path: string) => Reply])[]) {
    const answer = ({ path }: Asked): Reply | undefined => {
      if (path === '/text/messaging/consents') return PlainService.problem(404, 'not_found', 'nobody');
      return path.startsWith('/core/') ? undefined : unknown(path);
    };
    it(`accepts that nobody has a number that is none either, where ${what} answers unknown paths otherwise`, async () => {
      const { verdicts } = await rehearsed(answer);
      should(verdicts['prefixes']).be.true();
    });
    it(`still blames the Texting prefix where ${what} does`, async () => {
      const { message, verdicts } = await rehearsed(answer, { prefixes: { ...usualPrefixes, text: 'txt' } });
      should(verdicts['prefixes']).be.false();
      message('prefixes').should.containEql('/txt: correct Texting prefix');
    });
  }

  it('does not call a prefix right if a gateway rejects it for an unknown reason', async () => {
    const { verdicts, message } = await rehearsed(({ path }) =>
      path.startsWith('/text/') ? [403, 'no entry for you'] : undefined,
    );
    should(verdicts['prefixes']).equal('untried');
    message('prefixes').should.match(
      /under \/text cannot be determined \(HTTP 403\)\. Check Texting prefix first/,
    );
  });

  it('does not mention a half of the service that nobody uses', async () => {
    const some = scopes.filter((scope) => scope.startsWith('core.'));
    const { verdicts } = await rehearsed(
      ({ path }) => (path.startsWith('/text/') ? [403, 'no'] : undefined),
      {
        wanted: some,
        granted: () => some,
      },
    );
    should(verdicts['prefixes']).equal(true);
  });

  const notFound = PlainService.problem(404, 'not_found', 'No such path');
  for (const [what, path, reply] of [
    ['not there', '/core/content/library/search', notFound],
    ['refused by a gateway', '/core/contact/groups', [403, '<h1>Forbidden</h1>']],
    ['a web page', '/core/contact/contacts', [200, '<!doctype html>']],
    ['of another shape', '/core/contact/contacts/{contactId}', [200, '{"name":"Ann"}']],
  ] as const)
    it(`names the path that is ${what} (${path}), though the rest of the service works`, async () => {
      const pattern = new RegExp(`^${path.replace('{contactId}', String.raw`\d`)}$`);
      const { verdicts, message } = await rehearsed((asked) =>
        pattern.test(asked.path) ? reply : undefined,
      );
      should(verdicts['prefixes']).be.false();
      message('prefixes').should.containEql(`contract says at ${path} (`);
      should(verdicts).match({ reachability: true, token: true, apiKey: true, scopes: true, names: true });
    });

  it('does not blame the path if a gateway rejects what was not granted', async () => {
    const { verdicts } = await rehearsed(
      ({ path }) => (path.startsWith('/core/content') ? [403, '<h1>Forbidden</h1>'] : undefined),
      { granted: () => scopes.filter((scope) => scope !== 'core.content.read') },
    );
    should(verdicts).eql({ ...fine, scopes: false });
  });

  it('reads the next contact if one was deleted since the search, and never says that it was not answered', async () => {
    const gone = await rehearsed(({ path }) => (path.endsWith('/contacts/1') ? notFound : undefined));
    should(gone.verdicts).eql(fine);
    service.close();
    const silent = await rehearsed(({ path }) =>
      path.includes('/contacts/') ? [503, 'one moment'] : undefined,
    );
    should(silent.verdicts).eql({ ...fine, dates: 'untried', groupIds: 'untried', phones: 'untried' });
    silent.message('dates').should.match(/did not answer \(HTTP 503\)/);
  });

  it('says how numbers are stored, without their digits, and whether the country makes them readable', async () => {
    const unread = await rehearsed();
    unread.message('phones').should.match(/cannot be read: \(###\) ###-#### .+set Country/);
    service.close();
    const read = await rehearsed(undefined, { canRead: (number) => number === '(202) 555-0123' });
    should(read.verdicts.phones).be.true();
    read.message('phones').should.match(/can be read with Country: \(###\) ###-####/);
    service.close();
    const withPhone = (phone: string) =>
      rehearsed(({ path }) =>
        path.includes('/contacts/')
          ? [200, JSON.stringify({ contactId: 1, groupIds: [], phone })]
          : undefined,
      );
    const good = await withPhone('+12025550123');
    should(good.verdicts.phones).be.true();
    service.close();
    const none = await withPhone('');
    should(none.verdicts.phones).be.null();
    none.message('phones').should.match(/none of the contacts read has a phone number/);
  });

  it('skips contacts when nobody asks to read them', async () => {
    const some = scopes.filter((scope) => scope.startsWith('text.'));
    const { verdicts, message } = await rehearsed(
      ({ path, key }) =>
        key === 'the-right-key' && path.startsWith('/core/')
          ? PlainService.problem(403, 'forbidden', 'core.contacts.read')
          : undefined,
      { wanted: some, granted: () => some },
    );
    should(verdicts).eql({ ...fine, groupIds: null });
    message('dates').should.match(/permissions do not include reading contacts/);
  });

  for (const names of [{ page: 'pageNumber' }, {}])
    it(`distinguishes names when a search returns nothing without a page (${JSON.stringify(names)} is set)`, async () => {
      const { verdicts, message } = await rehearsed(
        ({ path, query, key }) => {
          if (key !== 'the-right-key' || !/contacts$|groups$|search$/.test(path)) return undefined;
          const page = query.get('pageNumber');
          if (page === null) return PlainService.problem(400, 'invalid_request', 'pageNumber is required');
          query.set('page', page);
          return undefined;
        },
        { names },
      );
      if ('page' in names) should(verdicts).eql(fine);
      else
        message('names').should.match(
          /\(contacts: page; groups: page; content: page\)\. Set Query names to \{"page":"pageNumber"\}/,
        );
    });

  it('waits as long as a 429 asks, with the same findings', async () => {
    const began = clock.at;
    let limited = 0;
    const { verdicts } = await rehearsed(({ count }) => {
      if (count % 5 !== 0) return undefined;
      limited += 1;
      return [429, '', { 'retry-after': '2' }];
    });
    should(verdicts).eql(fine);
    should(limited).be.above(3);
    should(clock.at - began).be.aboveOrEqual(2000 * (limited - 3));
  });

  for (const last of [0, 2, 5, 7, 10, 14, 18, 20])
    it(`stops, and says what was not tested, when ${String(last)} requests succeed and then 429 lasts for an hour`, async () => {
      const { verdicts, message } = await rehearsed(({ count }) =>
        count > last ? [429, '', { 'retry-after': '3600' }] : undefined,
      );
      should(Object.values(verdicts)).not.containEql(false);
      should(Object.values(verdicts)).containEql('untried');
      // The requests that were in flight together.
      should(service.asked).be.belowOrEqual(last + 4);
      message('apiKey').should.not.containEql('does not check it');
    });

  it('retries brief failures, and reports the rest if one search keeps failing', async () => {
    let failed = 0;
    const passing = await rehearsed(({ count }) =>
      count === 6 ? (failed++, [503, 'one moment']) : undefined,
    );
    should([failed, passing.verdicts]).eql([1, fine]);
    service.close();
    const { verdicts, message } = await rehearsed(({ path }) =>
      path.startsWith('/core/content') ? [500, 'broken'] : undefined,
    );
    should(verdicts).eql({ ...fine, names: 'untried' });
    message('names').should.match(
      /did not answer \(HTTP 500\): content: page, pageSize, searchText, contentType/,
    );
  });

  it('respects the requests per second of the environment', async () => {
    const began = clock.at;
    await rehearsed(undefined, { requestsPerSecond: 2 });
    should(clock.at - began).be.aboveOrEqual((service.asked - 1) * 500 - 1);
  });

  it('makes about a hundred requests at most for names that cannot be guessed', async () => {
    const renamed =
      (isRefused: boolean) =>
      (asked: Asked): Reply | undefined => {
        const { path, query } = asked;
        if (asked.key !== 'the-right-key' || path.includes('consents')) return undefined;
        const unknown = [...query.keys()].filter((name) => !name.startsWith('unusual-'));
        if (isRefused && unknown.length > 0) return PlainService.problem(400, 'invalid_request', 'query');
        for (const name of unknown) query.delete(name);
        return undefined;
      };
    const ignoring = await rehearsed(renamed(false));
    should(ignoring.verdicts['names']).equal(false);
    should(service.asked).be.below(60);
    service.close();
    const refusing = await rehearsed(renamed(true));
    should(refusing.verdicts['names']).equal(false);
    should(service.asked).be.below(160);
  });

  it('names the node that needs a permission that is not selected or not granted', async () => {
    const needs: Need[] = [
      { endpoint: 'sendMessage', node: '"greet"' },
      { endpoint: 'requestConsent', node: '"ask"' },
      { endpoint: 'getConsent', node: '"ask"' },
    ];
    const reading = scopes.filter((scope) => !scope.endsWith('messaging.write'));
    const prefixes = { core: 'core', text: 'text' };
    const unticked = await rehearsed(undefined, { needs, wanted: reading, granted: () => reading, prefixes });
    should(unticked.verdicts['scopes']).equal(false);
    unticked.message('scopes').should.match(/not selected.*text\.messaging\.write \("greet", "ask"\)/);
    service.close();
    const lacking = await rehearsed(undefined, { needs, granted: () => reading });
    should(lacking.verdicts['scopes']).equal(false);
    lacking
      .message('scopes')
      .should.match(/^Not granted: text\.messaging\.write \("greet", "ask"\)\..*check the prefixes/);
    service.close();
    const unknown = await rehearsed(undefined, { needs, granted: () => undefined });
    should(unknown.verdicts['scopes']).equal('untried');
    unknown.message('scopes').should.match(/Not tested.*text\.messaging\.write \("greet", "ask"\)/);
  });

  it('names permissions as the service does', async () => {
    const { message } = await rehearsed(
      ({ path, query, key }) => {
        if (key !== 'the-right-key') return undefined;
        return path.startsWith('/sms/') && query.get('phone') !== '0'
          ? PlainService.problem(403, 'forbidden', 'sms.messaging.read')
          : undefined;
      },
      { prefixes: { core: 'core', text: 'sms' }, granted: () => undefined },
    );
    message('scopes').should.match(/^Not granted: sms\.messaging\.read\./);
  });

  it('says who answered "not found", and names the prefixes if a web page or a gateway did', async () => {
    const own = await rehearsed(() => PlainService.problem(404, 'not_found', 'No such place'));
    should(own.verdicts['reachability']).equal(false);
    own.message('reachability').should.match(/^The service answered "not found".*correct the prefixes/);
    service.close();
    const page = await rehearsed(() => [200, '<!doctype html>', { 'content-type': 'text/html' }]);
    page.message('reachability').should.match(/other than the service.*the prefixes if the address is right/);
    service.close();
    const gateway = await rehearsed(() => [403, '<h1>Forbidden</h1>']);
    should(gateway.verdicts['reachability']).equal('untried');
    gateway
      .message('reachability')
      .should.match(/A gateway answered.*\(HTTP 403\).*Service address and the prefixes/);
    should(gateway.verdicts['apiKey']).equal(false);
    gateway.message('apiKey').should.match(/API key is refused.*the prefixes/);
  });
});
