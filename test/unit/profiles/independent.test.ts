import should from 'should';
import type { Message } from '../../../lib/runtime/red';
import { rehearse } from '../../../lib/check/rehearsal';
import { contactNode, contentNode, groupNode } from '../../support/address-book/setup';
import { closeAll } from '../../support/closing';
import type { TestEnvironment } from '../../support/environment';
import { Flow, type Arrived } from '../../support/flow';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { checkFolder, folders as sendFolders, requestFolder } from '../../support/texting/setup';
import {
  contactForms,
  independentNames,
  independentPrefixes,
  startIndependent,
  type IndependentService,
} from '../../support/profiles/independent-service';
import { until } from '../../support/until';

const phone = '+13125550191';
const folders = [...sendFolders, requestFolder, checkFolder];

describe('flows on an independently written service', function () {
  this.timeout(120_000);
  let service: IndependentService;
  let environment: TestEnvironment;

  beforeEach(async () => {
    ({ service, environment } = await startIndependent());
  });
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
    should(service.complaints).eql([]);
  });

  const done = ({ port, msg }: Arrived): Message => {
    should(port).equal(0, JSON.stringify(msg.error));
    return msg;
  };
  const once = async (flow: Promise<Flow>, msg: Message): Promise<Message> => {
    const arrived = only(await (await flow).ask(msg));
    await Flow.unload();
    return done(arrived);
  };

  for (const form of contactForms)
    describe(`with contacts of the form "${form}"`, () => {
      beforeEach(() => {
        service.form = form;
      });

      it('the canonical flow: a contact that appears late is asked, waited for, and texted after accepting', async () => {
        const flow = await Flow.load({
          folders,
          environment,
          nodes: [
            { id: 'send', type: 'advisor-send-text' },
            { id: 'request', type: 'advisor-request-consent' },
            { id: 'check', type: 'advisor-check-consent', mode: 'wait', pollEvery: 0.2 },
          ],
        });
        const through = async (msg: Message, node: string): Promise<Arrived> => {
          const coming = flow.arrivals.next();
          flow.send(msg, node);
          return only(await coming);
        };
        const refused = await through({ phone, text: 'Your review is ready. Ω' }, 'send');
        should(refused.port).equal(2, JSON.stringify(refused.msg.error));
        const asked = done(await through(refused.msg, 'request'));
        should(asked.payload).containEql({ memberId: null, consentState: null, requested: true });
        const coming = flow.arrivals.next();
        flow.send(asked, 'check');
        // Twice 404, then an undocumented state: the wait continues.
        await until(() => service.looks >= 4);
        should(flow.arrivals.all).have.length(2);
        service.accept(phone);
        const accepted = done(only(await coming));
        should(accepted.payload).containEql({ state: 'accepted', memberId: `m:${phone}` });
        const sent = done(await through(accepted, 'send'));
        should(sent.payload).containEql({ messageId: '18446744073709551615', memberId: `m:${phone}` });
        should(service.texts).eql(['Your review is ready. Ω']);
      });

      it('the address book: a contact is created, changed without losing fields, grouped, found and deleted', async () => {
        const given = { firstName: 'Zoë', lastName: 'Aalto', phone: '+13125550177', birthDate: '6 May 1980' };
        const { contactId } = await once(contactNode(environment, { operation: 'create' }), {
          payload: given,
        });
        should(contactId).be.a.String();
        await once(contactNode(environment, { operation: 'update' }), {
          contactId,
          payload: { city: 'Turku' },
        });
        const read = await once(contactNode(environment, { operation: 'get' }), { contactId });
        should(read.payload).containEql({
          ...given,
          phone: form === 'national' ? '(312) 555-0177' : given.phone,
          city: 'Turku',
          contactId,
          groupIds: [],
          tags: ['x'],
        });
        for (const groupId of ['Clients', 'Newsletter'])
          await once(groupNode(environment, { operation: 'addContact' }), { contactId, groupId });
        should(service.people.get(String(contactId))?.groups).eql(['90071992547409931', '90071992547409933']);
        await once(groupNode(environment, { operation: 'removeContact' }), { contactId, groupId: 'Clients' });
        should(service.people.get(String(contactId))?.groups).eql(['90071992547409933']);
        const found = await once(contactNode(environment, { operation: 'search', filter: 'zoe AALTO' }), {});
        should((found.payload as { data: object[] }).data).match([{ contactId, fullName: 'Zoë Aalto' }]);
        const deleted = await once(contactNode(environment, { operation: 'delete' }), { contactId });
        should(deleted.payload).eql({ id: contactId });
        const gone = only(await (await contactNode(environment, { operation: 'get' })).ask({ contactId }));
        should(errorOf(gone.msg)).containEql({ code: 'not_found', type: 'urn:example:texting:not_found' });
      });
    });

  it('searches read page after page, even if pages have no number', async () => {
    const config = { operation: 'search', all: true, pageSize: 2, emit: 'item', sortBy: 'fullName' };
    let flow = await contactNode(environment, config);
    const people = (await flow.ask({}, 5)).map((each) => done(each).payload as { fullName: string });
    should(new Set(people.map(({ fullName }) => fullName)).size).equal(5);
    await flow.completed.next();
    await Flow.unload();
    flow = await groupNode(environment, { operation: 'search', all: true, pageSize: 1, emit: 'item' });
    const groups = (await flow.ask({}, 2)).map((each) => done(each).payload as { groupId: unknown });
    should(groups.map(({ groupId }) => groupId)).eql(['90071992547409931', '90071992547409933']);
    await flow.completed.next();
    await Flow.unload();
    flow = await contentNode(environment, { all: true, pageSize: 1, emit: 'item' });
    const content = (await flow.ask({ payload: 'RETIRE' }, 2)).map((each) => done(each).payload);
    should(content).match([{ title: 'Retire early' }, { title: 'Retire well' }]);
    await flow.completed.next();
  });

  it('members of a group are listed with their numbers', async () => {
    const flow = await groupNode(environment, {
      operation: 'members',
      groupId: 'Clients',
      groupIdType: 'str',
    });
    const members = (await flow.ask({}, 5)).map(done);
    should(new Set(members.map((msg) => msg.phone))).eql(new Set(['+12025550181']));
    await flow.completed.next();
  });

  it('the service is checked by reads, and every problem is named', async () => {
    const scopes = ['text.messaging.read', 'core.contacts.read'];
    const settings = {
      baseUrl: service.baseUrl,
      apiKey: service.apiKey,
      prefixes: independentPrefixes,
      names: independentNames as Record<string, string>,
      proxy: '',
      wanted: scopes,
      granted: () => scopes,
      token: () => service.token,
    };
    const verdicts = async (changes: Partial<typeof settings> = {}): Promise<Record<string, unknown>> => {
      const found = await rehearse({ ...settings, ...changes });
      return Object.fromEntries(found.map(({ check, ok }) => [check, ok]));
    };
    const fine = { reachability: true, token: true, apiKey: true, scopes: true, prefixes: true, names: true };
    should(await verdicts()).containEql({ ...fine, groupIds: true, dates: null });
    should(await verdicts({ apiKey: 'other' })).containEql({ apiKey: false });
    should(await verdicts({ token: () => 'other' })).containEql({ token: false });
    should(await verdicts({ prefixes: { core: 'core', text: 'msg-api' } })).containEql({ prefixes: false });
    service.complaints.length = 0;
    should(await verdicts({ names: {} })).containEql({ names: false });
    // It does not know the names that were tried.
    service.complaints.length = 0;
  });
});
