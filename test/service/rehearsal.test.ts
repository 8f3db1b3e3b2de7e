import { createServer, get, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import should from 'should';
import { wordsIn } from '../../lib/runtime/language';
import { usualPrefixes } from '../../lib/service/prefixes';
import { serviceError } from '../../lib/service/errors';
import { rehearse, type CheckName, type Finding, type Rehearsal } from '../../lib/service/rehearsal';
import { environmentFor, startSimulator, type Simulator, type SimulatorOptions } from '../../simulator';

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
    ...changes,
  });
  /** What an environment of the foreign service has to be told. */
  const foreign = (changes: Partial<Rehearsal> = {}): Rehearsal => {
    const { corePrefix, textPrefix, names } = environmentFor(simulator.settings.habits);
    return settings({ prefixes: { core: corePrefix, text: textPrefix }, names, ...changes });
  };
  const try_ = async (rehearsal: Rehearsal): Promise<(check: CheckName) => [Finding['ok'], string]> => {
    const findings = await rehearse(rehearsal);
    findings
      .map(({ check }) => check)
      .should.eql(['reachability', 'token', 'apiKey', 'scopes', 'prefixes', 'names', 'dates', 'groupIds']);
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

  it('finds the usual service in order, by reads alone', async () => {
    await start();
    const found = await try_(settings());
    for (const check of ['reachability', 'token', 'apiKey', 'scopes', 'prefixes', 'names'] as const)
      should([check, found(check)[0]]).eql([check, true]);
    should(found('reachability')[1]).containEql(simulator.baseUrl);
    should(found('apiKey')[1]).match(/A wrong one is refused by the service \(HTTP 401\)/);
    should(found('dates')).match([true, /birthDate 0000-00-00/]);
    should(found('groupIds')[0]).equal(true);
  });

  it('finds the foreign service in order once it has been told how that differs', async () => {
    await start({ profile: 'foreign' });
    const found = await try_(foreign());
    for (const check of ['reachability', 'token', 'apiKey', 'scopes', 'prefixes', 'names'] as const)
      should([check, found(check)[0]]).eql([check, true]);
    should(found('apiKey')[1]).match(/by a gateway.*HTTP 403/);
    should(found('dates')).match([null, /birthDate 00\/00\/0000/]);
    should(found('groupIds')).match([null, /without groupIds/]);
  });

  it('names the query names that work, for each search', async () => {
    await start({ profile: 'foreign' });
    const found = await try_(foreign({ names: { sortBy: 'orderBy' } }));
    const [ok, message] = found('names');
    should(ok).be.false();
    should(JSON.parse(/\{.*\}/.exec(message)?.[0] ?? '')).eql(simulator.settings.habits.names);
    should(found('prefixes')[0]).be.true();
  });

  it('notices page 1 in place of page 2 where unknown names are ignored', async () => {
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
      it(`notices another name than ${name} (${where}) where unknown ones are ${unknownQuery}`, async () => {
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

  it('says which names no read can judge, and what to do about them', async () => {
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
      /whether it heeds contacts: sortBy, sortDirection; groups: sortDirection; consents: memberId: search with them/,
    ]);
  });

  it('asks the operator for a name that no usual one stands for', async () => {
    await start({ settings: { habits: { names: { 'content.searchText': 'needle' } } } });
    should((await try_(settings()))('names')).match([
      false,
      /no usual name works for content: searchText: ask the operator/,
    ]);
  });

  it('names what was found beside what was not', async () => {
    const habits = { names: { 'content.searchText': 'needle', page: 'page_number', pageSize: 'maxResults' } };
    await start({ settings: { habits } });
    const [ok, message] = (await try_(settings()))('names');
    should(ok).be.false();
    message.should.containEql('{"page":"page_number","pageSize":"maxResults"}');
    message.should.match(/No usual name works for content: searchText: ask the operator/);
  });

  for (const [name, isOffset] of [
    ['page', false],
    ['pageIndex', false],
    ['offset', true],
  ] as const)
    it(`says of a service that counts from zero (${name}) that no setting changes it`, async () => {
      await start();
      const records = [1, 2, 3, 4, 5].map((contactId) => ({ contactId }));
      const baseUrl = await serve(({ url = '' }, response) => {
        const query = new URL(url, 'http://service').searchParams;
        const [size, at] = [Number(query.get('limit') ?? 5), Number(query.get(name) ?? 0)];
        const from = isOffset ? at : at * size;
        // Says again what it was asked for, as if that were the second page.
        const pageInfo = { pageSize: size, ...(isOffset ? {} : { page: at }) };
        response.end(JSON.stringify({ data: records.slice(from, from + size), pageInfo, state: 'none' }));
      });
      const [ok, message] = (await try_(settings({ baseUrl })))('names');
      should(ok).be.false();
      message.should.match(new RegExp(`What it heeds for pages is ${name}, which counts from 0`));
      message.should.containEql('"pageSize":"limit"');
      message.should.not.containEql('"page":');
    });

  it('finds nothing wrong with a service that always wants a phone number, which the contract allows', async () => {
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
    should(found('names')).match([true, /No read tells whether it heeds consents: memberId/]);
  });

  it('says that names were not tried where the service let nobody in', async () => {
    await start();
    for (const wrong of [settings({ apiKey: 'wrong' }), settings({ baseUrl: `${simulator.url}/v2` })])
      should((await try_(wrong))('names')).match([null, /^Not tried/]);
  });

  it('does not judge names by an address book without a second page', async () => {
    await start();
    const pageInfo = { page: 1, pageSize: 1, totalRecord: 1 };
    const baseUrl = await serve(({ url = '' }, response) => {
      const data = url.includes('/library/') ? [] : [{ contactId: 1 }];
      response.end(JSON.stringify({ data, pageInfo, state: 'none' }));
    });
    should((await try_(settings({ baseUrl })))('names')).match([null, /too few records/]);
  });

  it('tells the second page by its records where the service does not number pages', async () => {
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

  it('has a cross for an address where everything is 404, and says which was asked', async () => {
    await start();
    const elsewhere = await serve((_, response) => response.writeHead(404).end('nothing here'));
    const found = await try_(settings({ baseUrl: elsewhere }));
    should(found('reachability')).match([false, new RegExp(`${elsewhere}.*HTTP 404.*Service address`)]);
    should(found('apiKey')[0]).be.null();
    should(found('names')[0]).be.null();
  });

  it('has a cross for an address where a web page answers, and blames nothing else', async () => {
    await start();
    const page = await serve((_, response) =>
      response.setHeader('content-type', 'text/html').end('<!doctype html><p>Welcome'),
    );
    const found = await try_(settings({ baseUrl: page }));
    should(found('reachability')).match([false, new RegExp(`${page}.*not the service`)]);
    for (const check of ['apiKey', 'prefixes', 'names'] as const) should(found(check)[0]).be.null();
  });

  it('tries nothing further where nothing answers', async () => {
    await start();
    const found = await try_(settings({ baseUrl: 'http://127.0.0.1:1/v1' }));
    should(found('reachability')).match([false, /Nothing answers at http:\/\/127\.0\.0\.1:1\/v1/]);
    for (const check of ['apiKey', 'scopes', 'prefixes', 'names'] as const) should(found(check)[0]).be.null();
  });

  for (const profile of ['usual', 'foreign'] as const) {
    it(`tells a wrong key by comparing it with one that is wrong for certain, ${profile}`, async () => {
      await start({ profile });
      const found = await try_(foreign({ apiKey: 'another-key' }));
      should(found('apiKey')).match([false, /correct API key/]);
      should(found('reachability')[0]).be.true();
      should(found('token')[0]).be.true();
      should(found('prefixes')[0]).not.be.false();
    });
  }

  it('tells a refused token from a refused key', async () => {
    await start({ profile: 'foreign' });
    const found = await try_(foreign({ token: () => 'no-token-of-this-service' }));
    should(found('token')).match([false, /authorize again/]);
    should(found('apiKey')[0]).be.true();
  });

  it('names scopes that are wanted and not granted, by word and by what a read gets', async () => {
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

  it('has no verdict on what needs a token where there is none', async () => {
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
    for (const check of ['apiKey', 'scopes', 'prefixes', 'names', 'dates', 'groupIds'] as const)
      should(found(check)).eql([null, 'Not tried: there is no token.']);
  });
});
