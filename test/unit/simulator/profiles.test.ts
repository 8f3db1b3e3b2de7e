import { request } from 'node:http';
import should from 'should';
import { MovableClock } from '../../../simulator/movable-clock';
import { environmentFor, profiles, startSimulator, type Habits, type Simulator } from '../../../simulator';
import { habitChoices, habitNames, profileOf } from '../../../simulator/profiles';
import { numbers } from '../../support/numbers';
import { Caller } from '../../support/simulator/caller';

const { consented, unasked } = numbers;
const contacts = '/core/contact/contacts';

/** Without the headers that fetch adds by itself. */
const bare = (url: string, headers: Record<string, string>): Promise<{ status: number; body: string }> =>
  new Promise((resolve, reject) => {
    const asked = request(url, { headers }, (answer) => {
      let body = '';
      answer.on('data', (chunk: Buffer) => (body += chunk.toString()));
      answer.on('end', () => {
        resolve({ status: answer.statusCode ?? 0, body });
      });
    });
    asked.on('error', reject).end();
  });

describe('the habits of the simulated service', () => {
  const begin = Date.UTC(2030, 0, 2, 15, 4, 5);
  let simulator: Simulator;
  let caller: Caller;

  beforeEach(async () => {
    simulator = await startSimulator({ clock: new MovableClock(() => begin) });
    caller = new Caller(simulator);
  });
  afterEach(() => simulator.close());

  const withHabits = (habits: Partial<Habits>): void => {
    simulator.change({ habits });
  };
  const first = async (): Promise<Record<string, unknown>> =>
    (await caller.call('GET', `${contacts}/1001`)).body;
  const statusOf = async (path: string): Promise<number> => (await caller.call('GET', path)).status;

  const tokenFor = (scope: string): Promise<Response> =>
    fetch(simulator.tokenUrl, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: simulator.credentials.clientId,
        client_secret: simulator.credentials.clientSecret,
        ...(scope === '' ? {} : { scope }),
      }),
    });

  it('corePrefix and textPrefix: start paths and scopes, and the contract’s own are then 404', async () => {
    withHabits({ corePrefix: 'crm', textPrefix: 'sms' });
    should(await statusOf(contacts)).equal(404);
    should(await statusOf('/crm/contact/contacts')).equal(200);
    should((await caller.send(consented)).status).equal(404);
    const sent = await caller.call('POST', '/sms/messaging/messages', { phone: consented, text: 'x' });
    should(sent.status).equal(200);
    should((await tokenFor('text.messaging.read')).status).equal(400);
    const granted = (await (await tokenFor('sms.messaging.read')).json()) as Record<string, string>;
    should(granted['scope']).equal('sms.messaging.read');
    const limited = new Caller(simulator, 'default', () => granted['access_token'] ?? '');
    const refused = await limited.call('GET', '/crm/contact/contacts');
    should([refused.status, refused.body['detail']]).eql([
      403,
      'The token lacks the scope crm.contacts.read.',
    ]);
  });

  it('names: rename the parameters of all searches, or of one', async () => {
    withHabits({ names: { page: 'p', 'groups.page': 'n' } });
    const pageOf = async (path: string): Promise<unknown> =>
      ((await caller.call('GET', path)).body['pageInfo'] as { page: number }).page;
    should(await pageOf(`${contacts}?p=2&pageSize=3`)).equal(2);
    should(await pageOf('/core/contact/groups?n=2')).equal(2);
    should(await pageOf('/core/content/library/search?p=2&pageSize=3')).equal(2);
    // Unknown and not rejected: page 3 is silently page 1.
    should(await pageOf(`${contacts}?page=3`)).equal(1);
    const refused = await caller.call('GET', `${contacts}?p=0`);
    should(refused.body['detail']).match(/ p: /);
  });

  it('unknownQuery: refused is a 400 that lists the known names', async () => {
    should(await statusOf(`${contacts}?colour=red`)).equal(200);
    withHabits({ unknownQuery: 'refused', names: { page: 'p' } });
    const answer = await caller.call('GET', `${contacts}?page=2`);
    should(answer.status).equal(400);
    should(answer.body['detail']).match(/Unknown query parameter: page\. Known here: p, pageSize/);
    should(await statusOf(`${contacts}/1001?expand=all`)).equal(400);
  });

  it('deliveryDateUnit: the other unit is a 400', async () => {
    const statusAt = async (deliveryDate: number): Promise<number> =>
      (await caller.send(consented, 'Later', { scheduleDelivery: true, deliveryDate })).status;
    const [inMs, inSeconds] = [begin + 3600_000, begin / 1000 + 3600];
    should([await statusAt(inMs), await statusAt(inSeconds)]).eql([200, 200]);
    withHabits({ deliveryDateUnit: 's' });
    should([await statusAt(inMs), await statusAt(inSeconds)]).eql([400, 200]);
    withHabits({ deliveryDateUnit: 'ms' });
    should([await statusAt(inMs), await statusAt(inSeconds)]).eql([200, 400]);
    const times = simulator.state().phones.flatMap(({ messages }) => messages.map((one) => one.scheduledFor));
    should(new Set(times)).eql(new Set([inMs]));
  });

  it('badKey: bare is a 403 without a body, before the token is checked', async () => {
    withHabits({ badKey: 'bare' });
    const headers = { 'x-api-key': 'wrong' };
    const answer = await fetch(simulator.baseUrl + contacts, { headers });
    should([answer.status, await answer.text()]).eql([403, '']);
    should(simulator.ledger.entries().at(-1)).containEql({ status: 403, processed: false });
    should(await statusOf(contacts)).equal(200);
  });

  it('userAgent: required is a 403 without a body for requests without one, even for a token', async () => {
    const headers = {
      authorization: `Bearer ${simulator.accessToken('default')}`,
      'x-api-key': simulator.credentials.apiKey,
    };
    const url = simulator.baseUrl + contacts;
    should((await bare(url, headers)).status).equal(200);
    withHabits({ userAgent: 'required' });
    should(await bare(url, headers)).eql({ status: 403, body: '' });
    should((await bare(url, { ...headers, 'user-agent': 'flows/1' })).status).equal(200);
    should(await bare(simulator.tokenUrl, {})).eql({ status: 403, body: '' });
  });

  it('ids: strings in answers, and accepted in paths, queries and bodies', async () => {
    withHabits({ ids: 'strings' });
    should(await first()).containEql({ contactId: '1001', groupIds: ['101', '103'] });
    const put = await caller.call('PUT', `${contacts}/1001/groups`, { groupIds: ['102', 104] });
    should(put.body).eql({ id: '1001' });
    should((await first())['groupIds']).eql(['102', '104']);
    const [success] = (await caller.send(consented)).body['successes'] as Record<string, unknown>[];
    should(success?.['messageId']).be.a.String();
    const member = String((await caller.check(consented)).body['memberId']);
    should(await statusOf(`/text/messaging/consents?memberId=${member}`)).equal(200);
  });

  it('ids: large are numbers that JavaScript cannot represent, and each is found by its digits', async () => {
    withHabits({ ids: 'large' });
    const { text } = await caller.call('GET', `${contacts}?pageSize=2`);
    const digits = [...text.matchAll(/"contactId":(\d+)/g)].map(([, id]) => id ?? '');
    should(digits).have.length(2);
    for (const id of digits) should(Number.isSafeInteger(Number(id))).be.false();
    should((await caller.call('GET', `${contacts}/${digits[1] ?? ''}`)).text).match(
      new RegExp(`"contactId":${digits[1] ?? ''},`),
    );
    const group = /"groupIds":\[(\d+)/.exec(
      (await caller.call('GET', `${contacts}/${digits[0] ?? ''}`)).text,
    );
    const put = await caller.call('PUT', `${contacts}/1002/groups`, { groupIds: [group?.[1]] });
    should(put.status).equal(200);
    withHabits({ ids: 'numbers' });
    should((await caller.call('GET', `${contacts}/1002`)).body['groupIds']).eql([101]);
  });

  it('groupIds: missing leaves them out of a contact, and keeps its groups', async () => {
    withHabits({ groupIds: 'missing' });
    should(await first()).not.have.property('groupIds');
    should((await caller.call('GET', `${contacts}?pageSize=1`)).text).match(/"groupNames":\["Clients"/);
  });

  it('absentTexts: left out, empty or null; numbers are never empty', async () => {
    const made = await caller.call('POST', contacts, { city: 'Reno' });
    const path = `${contacts}/${String(made.body['id'])}`;
    const read = async () => (await caller.call('GET', path)).body;
    should(await read()).not.have.properties('nickname', 'phone', 'remoteContactId', 'gender');
    should(JSON.stringify(await read())).not.match(/null/);
    withHabits({ absentTexts: 'empty' });
    should(await read()).containEql({ nickname: '', phone: '', remoteContactId: '', city: 'Reno' });
    should(await read()).not.have.property('gender');
    withHabits({ absentTexts: 'null' });
    should(await read()).containEql({ nickname: null, phone: null, gender: null, city: 'Reno' });
  });

  it('phones: national in a contact that is read, and never in a request', async () => {
    withHabits({ phones: 'national' });
    should((await caller.call('GET', `${contacts}/1001`)).body['phone']).equal('(206) 555-0101');
    const refused = await caller.call('PUT', `${contacts}/1001`, { phone: '(206) 555-0101' });
    should(refused.status).equal(400);
  });

  it('emptyLists: missing leaves failures out of a success and successes out of a failure', async () => {
    withHabits({ emptyLists: 'missing' });
    should((await caller.send(consented)).body).have.only.keys('successes');
    should((await caller.send(unasked)).body).have.only.keys('failures');
    // Both are required in the answer to a consent request.
    should((await caller.ask(unasked)).body).have.only.keys('successes', 'failures');
  });

  it('failureDetails: none, entries with a code, or another shape', async () => {
    const detailsOf = async (phone: string): Promise<unknown> =>
      (await caller.send(phone)).body['failureDetails'];
    should(await detailsOf(unasked)).equal(undefined);
    withHabits({ failureDetails: 'codes' });
    should(await detailsOf(unasked)).eql([{ phone: unasked, code: 'consent_required' }]);
    should(await detailsOf(consented)).equal(undefined);
    withHabits({ failureDetails: 'other' });
    should(await detailsOf(unasked))
      .be.an.Object()
      .and.not.an.Array();
  });

  it('dates: in another format, which is accepted too', async () => {
    withHabits({ dates: 'us' });
    const { birthDate, dateTimeCreated } = await first();
    should(birthDate).match(/^\d\d\/\d\d\/1960$/);
    should(dateTimeCreated).equal('01/02/2023 09:00:00 AM');
    await caller.call('PUT', `${contacts}/1001`, { birthDate: '12/31/1959', clientAnniversary: 'in May' });
    should(await first()).containEql({
      birthDate: '12/31/1959',
      clientAnniversary: 'in May',
      dateTimeModified: '01/02/2030 03:04:05 PM',
    });
    withHabits({ dates: 'iso' });
    should((await first())['birthDate']).equal('1959-12-31');
  });

  it('clientOpenid: refused when requested, and not granted by default', async () => {
    should((await tokenFor('openid text.messaging.read')).status).equal(200);
    withHabits({ clientOpenid: 'refused' });
    const refused = await tokenFor('openid text.messaging.read');
    should([refused.status, ((await refused.json()) as { error: string }).error]).eql([400, 'invalid_scope']);
    const granted = (await (await tokenFor('')).json()) as { scope: string };
    should(granted.scope.split(' ')).not.containEql('openid').and.containEql('text.messaging.read');
  });

  it('contactDelay: 404 for a while after a consent request to a number without a contact', async () => {
    withHabits({ contactDelay: 45 });
    const unknown = '+12995550101';
    await caller.ask(unknown);
    should((await caller.check(unknown)).status).equal(404);
    await simulator.advance(44);
    should((await caller.check(unknown)).status).equal(404);
    await simulator.advance(1);
    should((await caller.check(unknown)).body['state']).equal('pending');
    await caller.ask(unknown);
    should((await caller.check(unknown)).body['state']).equal('pending');
    const known = '+12145550104';
    await caller.ask(known);
    should((await caller.check(known)).body['state']).equal('pending');
  });

  it('retryAfter: a date, never too early', async () => {
    withHabits({ retryAfter: 'date' });
    for (const fault of [
      { code: 'rate_limited', retryAfter: 90 },
      { status: 503, retryAfter: 90 },
    ] as const) {
      simulator.faults.add(fault);
      const answer = await caller.call('GET', contacts);
      should(answer.headers.get('retry-after')).equal('Wed, 02 Jan 2030 15:05:35 GMT');
    }
  });

  it('differ between the profiles, all of them', () => {
    const shared = habitNames.filter((habit) => {
      const [usual, foreign]: readonly Habits[] = [profiles.usual, profiles.foreign];
      return JSON.stringify(usual?.[habit]) === JSON.stringify(foreign?.[habit]);
    });
    should(shared).eql([]);
    should(Object.keys(habitChoices).filter((habit) => !(habit in profiles.usual))).eql([]);
  });

  it('are changed one by one or all at once, by object and control API, and shown with the profile’s name', async () => {
    const told = async (change: object): Promise<[unknown, unknown]> => {
      const { status, body } = await caller.control('PUT', 'settings', change);
      should(status).equal(200);
      return [body['profile'], (body['habits'] as Habits).ids];
    };
    should(await told({})).eql(['usual', 'numbers']);
    should(await told({ profile: 'foreign' })).eql(['foreign', 'strings']);
    should(await told({ habits: { ids: 'large' } })).eql([null, 'large']);
    should(await told({ profile: 'foreign' })).eql(['foreign', 'strings']);
    should(await told({ profile: 'usual', habits: { ids: 'strings' } })).eql([null, 'strings']);
    should(await told({ habits: profiles.foreign })).eql(['foreign', 'strings']);
    await simulator.reset();
    should(profileOf(simulator.settings.habits)).equal('usual');
    should(simulator.state().settings.profile).equal('usual');
  });

  for (const [change, complaint] of [
    [{ profile: 'strange' }, /"usual"\|"emptyTexts"[^]*at profile/],
    [{ habits: { mood: 'bad' } }, /mood/],
    [{ habits: { ids: 'letters' } }, /"numbers"\|"strings"\|"large"[^]*at habits\.ids/],
    [{ habits: { textPrefix: 'a.b' } }, /slashes or dots/],
    [{ habits: { names: { pages: 'p' } } }, /pages/],
    [{ habits: { names: { page: 'limit', pageSize: 'limit' } } }, /its own name/],
    [{ habits: { contactDelay: -1 } }, /at habits\.contactDelay/],
  ] as const) {
    it(`are not changed by ${JSON.stringify(change)}, which is rejected with a reason`, async () => {
      const { status, body } = await caller.control('PUT', 'settings', change);
      should(status).equal(400);
      should(body['detail']).match(complaint);
      should(simulator.settings.habits).eql(profiles.usual);
    });
  }

  it('start as those of the profile, and reset returns to them', async () => {
    const foreign = await startSimulator({ profile: 'foreign', settings: { habits: { contactDelay: 0 } } });
    foreign.change({ profile: 'usual' });
    await foreign.reset();
    should(foreign.settings.habits).eql({ ...profiles.foreign, contactDelay: 0 });
    await foreign.close();
  });

  it('give the settings that an environment needs', () => {
    should(environmentFor(profiles.usual)).eql({
      corePrefix: 'core',
      textPrefix: 'text',
      names: {},
      deliveryDateUnit: 'ms',
    });
    should(environmentFor(profiles.foreign)).containEql({
      corePrefix: 'crm',
      deliveryDateUnit: 's',
      country: 'US',
    });
  });
});
