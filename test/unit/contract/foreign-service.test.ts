import should from 'should';
import { minute, second } from '../../../lib/durations';
import { rehearse } from '../../../lib/check/rehearsal';
import type { Message } from '../../../lib/runtime/red';
import { MovableClock } from '../../../simulator/movable-clock';
import { endpoints } from '../../../lib/service/endpoints';
import { endpointsOf } from '../../../nodes/environment/saved-nodes';
import { contactNode, folders as bookFolders, groupNode } from '../../support/address-book/setup';
import { closeAll } from '../../support/closing';
import type { EnvironmentChoices, TestEnvironment } from '../../support/environment';
import { nextIteration } from '../../support/event-loop';
import { Flow, type Arrived } from '../../support/flow';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import {
  independentNames,
  independentPrefixes,
  startIndependent,
  type IndependentService,
} from '../../support/profiles/independent-service';
import { checkFolder, requestFolder, sendFolder, sendNode } from '../../support/texting/setup';

const begin = 1_750_000_000_000;
const phone = '+12025550123';
const person = { firstName: 'Zoë', lastName: 'Aalto', phone };

describe('a service that follows the contract to the letter', () => {
  let service: IndependentService;
  let environment: TestEnvironment;

  const start = async (choices: EnvironmentChoices = {}): Promise<void> => {
    ({ service, environment } = await startIndependent(choices));
    service.isLimited = false;
  };
  beforeEach(() => start());
  afterEach(async () => {
    await Flow.unload();
    await closeAll();
    should(service.complaints).eql([]);
  });

  const once = async (loading: Promise<Flow>, msg: Message): Promise<Arrived> => {
    const arrived = only(await (await loading).ask(msg));
    await Flow.unload();
    return arrived;
  };
  const done = async (loading: Promise<Flow>, msg: Message): Promise<Message> => {
    const { port, msg: left } = await once(loading, msg);
    should(port).equal(0, JSON.stringify(left.error));
    return left;
  };
  const stored = (contactId: string): unknown => service.people.get(contactId)?.fields;

  it('accepts a contact whose stored number is empty, null, missing or national when only its city changes', async () => {
    for (const form of ['empty', 'null', 'missing'] as const) {
      service.form = form;
      const contactId = service.add({ firstName: 'Zoë' });
      await done(contactNode(environment, { operation: 'update' }), {
        contactId,
        payload: { city: 'Turku' },
      });
      should(stored(contactId)).eql({ firstName: 'Zoë', city: 'Turku' });
    }
    service.form = 'national';
    const contactId = service.add(person);
    await done(contactNode(environment, { operation: 'update' }), { contactId, payload: { city: 'Turku' } });
    should(stored(contactId)).eql({ ...person, city: 'Turku' });
  });

  it('creates a contact without a number from one whose number is an empty string', async () => {
    const payload = { firstName: 'Zoë', phone: '' };
    const { contactId } = await done(contactNode(environment, { operation: 'create' }), { payload });
    should(stored(String(contactId))).eql({ firstName: 'Zoë' });
  });

  it('has the format of its stored numbers reported by the connection test', async () => {
    const { baseUrl, apiKey } = service;
    const reported = async (canRead: boolean): Promise<unknown> => {
      const findings = await rehearse({
        baseUrl,
        apiKey,
        prefixes: independentPrefixes,
        names: independentNames as Record<string, string>,
        proxy: '',
        wanted: ['core.contacts.read'],
        granted: () => ['core.contacts.read'],
        token: () => service.token,
        canRead: () => canRead,
      });
      const { ok, key, values } = findings.find(({ check }) => check === 'phones') ?? {};
      return [ok, key, values?.['formats']];
    };
    should(await reported(true)).eql([true, 'check.phones', '']);
    service.form = 'national';
    should(await reported(true)).eql([true, 'check.phonesRead', '(###) ###-####']);
    should(await reported(false)).eql([null, 'check.phonesOther', '(###) ###-####']);
  });

  for (const mode of ['once', 'wait'])
    it(`is not texted forever if it accepts a consent and still rejects texts, in a loop that checks with ${mode}`, async () => {
      const clock = new MovableClock(() => begin);
      await start({ clock, settings: { journal: true } });
      service.accept(phone);
      service.refusal = { successes: [], failures: ['Member has not consented'] };
      const flow = await Flow.load({
        folders: [sendFolder, requestFolder, checkFolder],
        environment,
        nodes: [
          { id: 'send', type: 'advisor-send-text' },
          { id: 'request', type: 'advisor-request-consent' },
          { id: 'check', type: 'advisor-check-consent', mode },
        ],
        wires: [
          ['send', 2, 'request'],
          ['request', 0, 'check'],
          ['check', 0, 'send'],
        ],
      });
      flow.send({ phone, text: 'Hi' });
      const failed = (): Arrived[] =>
        flow.arrivals.all.filter(({ from, port }) => from === 'send' && port === 1);
      while (failed().length === 0) {
        await clock.move(second);
        await nextIteration();
        should(service.sends).be.below(6, 'the flow spins');
      }
      should(errorOf(only(failed()).msg)).containEql({ code: 'rejected', attempts: 4 });
      should(clock.now() - begin).be.aboveOrEqual(12.5 * minute);
      should([service.sends, service.asked]).eql([5, 1]);
    });

  it("may report missing consent in its own words: the user's pattern alone decides", async () => {
    const failures = ['Member has not consented to receive texts or has opted out'];
    for (const [consentPattern, port] of [
      ['not consented', 2],
      ['', 1],
      ['no consent on file', 1],
    ] as const) {
      await start({ settings: { consentPattern } });
      service.refusal = { successes: [], failures };
      should((await once(sendNode(environment), { phone, text: 'Hi' })).port).equal(port);
    }
  });

  it('has its failure details in the error, or in the payload if consent is missing', async () => {
    const failureDetails = [{ code: 'landline' }];
    service.refusal = { successes: [], failures: ['Not textable'], failureDetails };
    const refused = await once(sendNode(environment), { phone, text: 'Hi' });
    should(refused.port).equal(1);
    should(errorOf(refused.msg)).containEql({ code: 'rejected', details: failureDetails });
    service.refusal = { successes: [], failures: ['Member has not consented'], failureDetails };
    const unasked = await once(sendNode(environment), { phone, text: 'Hi' });
    should(unasked.port).equal(2);
    should(unasked.msg.payload).containEql({ details: failureDetails });
  });

  it('is polled immediately by a wait with an interval of ten minutes', async () => {
    const clock = new MovableClock(() => begin);
    await start({ clock, settings: { journal: true } });
    service.accept(phone);
    const flow = await Flow.load({
      folders: [checkFolder],
      environment,
      nodes: [{ id: 'check', type: 'advisor-check-consent', mode: 'wait', pollEvery: 600 }],
    });
    const coming = flow.ask({ phone });
    while (service.looks === 0) {
      await clock.move(1);
      await nextIteration();
      should(clock.now() - begin).be.below(10 * second, 'no look came');
    }
    should(only(await coming).port).equal(0);
  });

  it('is called with no permissions beyond those that nodes declare', async () => {
    const contactId = service.add(person);
    service.accept(phone);
    const groupIds = ['Clients'];
    const cases: [node: { type: string; operation?: string }, msg: Message, scopes: string[]][] = [
      [
        { type: 'advisor-group', operation: 'setGroups' },
        { contactId, groupIds },
        ['core.contacts.read', 'core.contacts.write'],
      ],
      [
        { type: 'advisor-send-text' },
        { phone, text: 'Hi', dryRun: true },
        ['text.messaging.read', 'text.messaging.write'],
      ],
    ];
    for (const [node, msg, scopes] of cases) {
      const granted = new Set(endpointsOf(node).map((name) => endpoints[name].scope as string));
      should([...granted].sort()).eql(scopes);
      service.granted = granted;
      const nodes = [{ id: 'node', ...node }];
      await done(Flow.load({ folders: [...bookFolders, sendFolder], environment, nodes }), { ...msg });
    }
  });

  it('gets isSelectAllGroup as it is set, and not by default, even when a contact is added or removed', async () => {
    for (const operation of ['setGroups', 'addContact', 'removeContact']) {
      service.memberships.length = 0;
      for (const isSelectAllGroup of ['', 'true', 'false']) {
        const contactId = service.add(person, operation === 'removeContact' ? ['90071992547409931'] : []);
        const msg = { contactId, groupId: 'Clients', groupIds: ['Clients'] };
        await done(groupNode(environment, { operation, isSelectAllGroup }), msg);
      }
      should(service.memberships.map((body) => body['isSelectAllGroup'])).eql([undefined, true, false]);
    }
  });

  it('gets isSelectAllGroup for a contact that is already in the group', async () => {
    for (const isSelectAllGroup of ['', 'true', 'false']) {
      const contactId = service.add(person, ['90071992547409931']);
      await done(groupNode(environment, { operation: 'addContact', isSelectAllGroup }), {
        contactId,
        groupId: 'Clients',
      });
    }
    should(service.memberships.map((body) => body['isSelectAllGroup'])).eql([true, false]);
  });
});
