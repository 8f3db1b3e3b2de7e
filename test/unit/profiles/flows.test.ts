import type { Request } from 'express';
import should from 'should';
import type { Message } from '../../../lib/runtime/red';
import { MovableClock } from '../../../simulator/movable-clock';
import type { RunningEnvironment } from '../../../nodes/environment/environment';
import { lookUp } from '../../../nodes/environment/lookup';
import { environmentFor, profiles, type Habits, type ProfileName } from '../../../simulator';
import { contactNode, contentNode, groupNode } from '../../support/address-book/setup';
import { Flow, type Arrived } from '../../support/flow';
import { numbers } from '../../support/numbers';
import { only } from '../../support/only';
import { errorOf } from '../../support/outcomes';
import { simulatedForEach, startSimulated } from '../../support/simulated';
import { checkFolder, folders as sendFolders, requestFolder } from '../../support/texting/setup';

const begin = 1_750_000_000_000;
const unknown = '+12995550101';
const { consented } = numbers;
const folders = [...sendFolders, requestFolder, checkFolder];

for (const profile of Object.keys(profiles) as ProfileName[]) {
  describe(`flows on a service of the ${profile} profile`, () => {
    const habits: Habits = profiles[profile];
    const on = simulatedForEach(() => {
      const { corePrefix, textPrefix, names, deliveryDateUnit, country = '' } = environmentFor(habits);
      const client = { names, prefixes: { core: corePrefix, text: textPrefix } };
      return startSimulated(
        { clock: new MovableClock(() => begin), profile },
        { client, settings: { deliveryDateUnit, country } },
      );
    });

    const id = (number: number): unknown => (habits.ids === 'numbers' ? number : String(number));
    const texts = (phone: string): string[] =>
      (on.simulator.state().phones.find((one) => one.phone === phone)?.messages ?? [])
        .filter(({ kind }) => kind === 'text')
        .map(({ text }) => text);

    it('the canonical flow: a person with an unknown number is asked, waited for, and texted after accepting', async () => {
      const flow = await Flow.load({
        folders,
        environment: on.environment,
        nodes: [
          { id: 'send', type: 'advisor-send-text' },
          { id: 'request', type: 'advisor-request-consent' },
          { id: 'check', type: 'advisor-check-consent', mode: 'wait' },
        ],
      });
      const through = async (msg: Message, node: string): Promise<Arrived> => {
        const coming = flow.arrivals.next();
        flow.send(msg, node);
        return only(await coming);
      };
      const refused = await through({ phone: unknown, text: 'Your review is ready.' }, 'send');
      should(refused.port).equal(2, JSON.stringify(refused.msg.error));
      const asked = await through(refused.msg, 'request');
      should(asked.port).equal(0, JSON.stringify(asked.msg.error));
      const coming = flow.arrivals.next();
      flow.send(asked.msg, 'check');
      await on.simulator.clock.move(90_000);
      should(flow.arrivals.all.length).equal(2, 'the wait goes on');
      on.simulator.accept(unknown);
      await on.simulator.clock.move(60_000);
      const accepted = only(await coming);
      should(accepted.port).equal(0, JSON.stringify(accepted.msg.error));
      const sent = await through(accepted.msg, 'send');
      should(sent.port).equal(0, JSON.stringify(sent.msg.error));
      should(texts(unknown)).eql(['Your review is ready.']);
    });

    it('a scheduled text arrives when it is due', async () => {
      const flow = await Flow.load({
        folders,
        environment: on.environment,
        nodes: [{ id: 'send', type: 'advisor-send-text', schedule: 'at' }],
      });
      const arrived = only(
        await flow.ask({ phone: consented, text: 'Later', deliveryDate: begin + 3_600_000 }),
      );
      should(arrived.port).equal(0, JSON.stringify(arrived.msg.error));
      const message = on.simulator.state().phones.flatMap(({ messages }) => messages)[0];
      should(message?.scheduledFor).equal(begin + 3_600_000);
    });

    it('a contact is created, read, changed without losing fields, found and deleted', async () => {
      const given = { firstName: 'Zoe', lastName: 'Aalto', birthDate: '1980-05-06', phone: '+13125550177' };
      let flow = await contactNode(on.environment, { operation: 'create' });
      const created = only(await flow.ask({ payload: given }));
      should(created.port).equal(0, JSON.stringify(created.msg.error));
      const { contactId } = created.msg;
      should(contactId).equal(id(1011));
      await Flow.unload();
      flow = await contactNode(on.environment, { operation: 'update' });
      const updated = only(await flow.ask({ contactId, payload: { city: 'Turku' } }));
      should(updated.port).equal(0, JSON.stringify(updated.msg.error));
      await Flow.unload();
      flow = await contactNode(on.environment, { operation: 'get' });
      const read = only(await flow.ask({ contactId }));
      const birthDate = habits.dates === 'iso' ? '1980-05-06' : '05/06/1980';
      const phone = habits.phones === 'e164' ? given.phone : '(312) 555-0177';
      should(read.msg.payload).containEql({ ...given, phone, birthDate, city: 'Turku', contactId });
      await Flow.unload();
      flow = await contactNode(on.environment, { operation: 'delete' });
      should(only(await flow.ask({ contactId })).port).equal(0);
    });

    it('a contact is saved: created once, then found by its address or its name and changed', async () => {
      const given = { firstName: 'Zoe', lastName: 'Aalto', emailAddress: 'zoe@example.com' };
      const ids: unknown[] = [];
      for (const [matchBy, payload] of [
        ['email', { ...given, phone: '+13125550177' }],
        ['email', { emailAddress: 'ZOE@example.com', city: 'Turku' }],
        ['fullName', { firstName: 'zoe', lastName: 'aalto', nickname: 'Z', phone: '' }],
      ] as const) {
        const flow = await contactNode(on.environment, { operation: 'save', matchBy });
        const saved = only(await flow.ask({ payload }));
        should(saved.port).equal(0, JSON.stringify(saved.msg.error));
        ids.push(saved.msg.contactId);
        await Flow.unload();
      }
      should(ids).eql([id(1011), id(1011), id(1011)]);
      const flow = await contactNode(on.environment, { operation: 'get' });
      const phone = habits.phones === 'e164' ? '+13125550177' : '(312) 555-0177';
      const read = only(await flow.ask({ contactId: 1011 })).msg.payload as Record<string, unknown>;
      should(read).containEql({ city: 'Turku', nickname: 'Z', phone });
      should(read['address1']).equal(habits.absentTexts === 'missing' ? undefined : '');
    });

    it('a search reads page after page, each once, in the requested order', async () => {
      const config = {
        operation: 'search',
        all: true,
        pageSize: 3,
        sortBy: 'fullName',
        sortDirection: 'desc',
      };
      const flow = await contactNode(on.environment, { ...config, emit: 'item' });
      const found = await flow.ask({}, 10);
      should(found.filter(({ port }) => port !== 0).map(({ msg }) => msg.error)).eql([]);
      const names = found.map(({ msg }) => (msg.payload as { fullName: string }).fullName);
      should(names).eql([...new Set(names)].sort().reverse());
    });

    it('groups are found, a group’s members are read, and memberships are replaced', async () => {
      let flow = await groupNode(on.environment, { operation: 'search', sortDirection: 'desc' });
      const page = only(await flow.ask({})).msg.payload as { data: { name: string }[] };
      should(page.data.map(({ name }) => name))
        .containEql('Clients')
        .and.have.length(4);
      await Flow.unload();
      flow = await groupNode(on.environment, { operation: 'setGroups' });
      const set = only(await flow.ask({ contactId: 1004, groupIds: ['Clients', 104] }));
      should(set.port).equal(0, JSON.stringify(set.msg.error));
      should(
        on.simulator.state().contacts.sample.find(({ contactId }) => contactId === 1004)?.groupNames,
      ).eql(['Clients', 'Newsletter']);
    });

    it('a contact is added to a group only if its other groups are known: otherwise nothing is written', async () => {
      const flow = await groupNode(on.environment, { operation: 'addContact' });
      const added = only(await flow.ask({ contactId: 1001, groupId: 104 }));
      if (habits.groupIds === 'given') should(added.port).equal(0, JSON.stringify(added.msg.error));
      else should(errorOf(added.msg).code).equal('invalid_response');
      const groups = on.simulator
        .state()
        .contacts.sample.find(({ contactId }) => contactId === 1001)?.groupNames;
      const before = ['Clients', 'Retirement planning'];
      should(groups).eql(habits.groupIds === 'given' ? [...before, 'Newsletter'] : before);
    });

    it('content is searched by type and text, page after page', async () => {
      const config = { contentType: 'WebContent', all: true, pageSize: 4, emit: 'item' };
      const flow = await contentNode(on.environment, config);
      const found = await flow.ask({ payload: '' }, 10);
      should(found.filter(({ port }) => port !== 0).map(({ msg }) => msg.error)).eql([]);
      should(new Set(found.map(({ msg }) => (msg.payload as { title: string }).title)).size).equal(10);
    });

    const groupsOf = (contactId: number): readonly string[] | undefined =>
      on.simulator.state().contacts.sample.find((one) => one.contactId === contactId)?.groupNames;
    /** One operation in a flow of its own. */
    const inGroupNode = async (config: object, msg: Message, count = 1): Promise<Arrived[]> => {
      const flow = await groupNode(on.environment, { ...config });
      const arrived = await flow.ask(msg, count);
      await Flow.unload();
      should(arrived.filter(({ port }) => port !== 0).map(({ msg: failed }) => failed.error)).eql([]);
      return arrived;
    };

    it('a group is created, found by name, given members, listed with their numbers, and deleted', async () => {
      const created = only(await inGroupNode({ operation: 'create' }, { payload: { name: 'Autumn event' } }));
      const { groupId } = created.msg;
      should(created.msg.payload).eql({ id: groupId });
      const added = { operation: 'setGroups' };
      await inGroupNode(added, { contactId: [1001, 1002], groupIds: ['Autumn event', 'Clients'] }, 2);
      const flow = await groupNode(on.environment, {
        operation: 'members',
        groupId: 'Autumn event',
        groupIdType: 'str',
      });
      flow.send({});
      const done = only(await flow.completed.next());
      should(flow.arrivals.all.map(({ msg }) => [msg.contactId, msg.phone, msg.groupId])).eql([
        [id(1001), '+12065550101', groupId],
        [id(1002), '+12125550102', groupId],
      ]);
      should(done.summary).containEql({ total: 2, done: 2, failed: 0, skipped: 0 });
      await Flow.unload();
      await inGroupNode({ operation: 'delete' }, { groupId });
      should(groupsOf(1001)).eql(['Clients']);
    });

    it('a contact is removed from one group only if its other groups are known: otherwise nothing is written', async () => {
      const flow = await groupNode(on.environment, { operation: 'removeContact' });
      const removed = only(await flow.ask({ contactId: 1001, groupId: 'Retirement planning' }));
      if (habits.groupIds === 'given') should(removed.port).equal(0, JSON.stringify(removed.msg.error));
      else should(errorOf(removed.msg).code).equal('invalid_response');
      should(groupsOf(1001)).eql(
        habits.groupIds === 'given' ? ['Clients'] : ['Clients', 'Retirement planning'],
      );
    });

    it('all groups are selected at once on request', async () => {
      await inGroupNode(
        { operation: 'setGroups', isSelectAllGroup: 'true', groupIds: '[]', groupIdsType: 'json' },
        { contactId: 1004 },
      );
      should(on.received('setContactGroups')).equal(1);
    });

    it('contacts and groups are filtered locally, over all pages', async () => {
      let flow = await contactNode(on.environment, { operation: 'search', filter: 'ann ito' });
      const people = only(await flow.ask({})).msg.payload as { data: { fullName: string }[] };
      should(people.data.map(({ fullName }) => fullName)).eql(['Ann Ito']);
      await Flow.unload();
      flow = await groupNode(on.environment, { operation: 'search', filter: 'NEWS' });
      const groups = only(await flow.ask({})).msg.payload as { data: { name: string }[] };
      should(groups.data.map(({ name }) => name)).eql(['Newsletter']);
    });

    it('several contacts are created, read and deleted, each with its own outcome', async () => {
      const people = [{ firstName: 'Uma' }, { firstName: 'Vera' }, { firstName: 'Will', phone: 'none' }];
      let flow = await contactNode(on.environment, { operation: 'create' });
      const created = await flow.ask({ payload: people }, 3);
      should(created.map(({ port }) => port).sort()).eql([0, 0, 1]);
      const contactId = created.flatMap(({ port, msg }) => (port === 0 ? [msg.contactId] : []));
      for (const operation of ['get', 'delete']) {
        await Flow.unload();
        flow = await contactNode(on.environment, { operation });
        const done = await flow.ask({ contactId }, 2);
        should(done.map(({ port }) => port)).eql([0, 0]);
        should(done.map(({ msg }) => String(msg.contactId)).sort()).eql(contactId.map(String).sort());
      }
      should(only(await flow.ask({ contactId: contactId[0] })).msg.error).containEql({ code: 'not_found' });
    });

    it('an update without merge replaces, and one with the id of a search changes that contact', async () => {
      let flow = await contactNode(on.environment, { operation: 'search', filter: 'Elif' });
      const found = only(await flow.ask({})).msg.payload as { data: { contactId: unknown }[] };
      await Flow.unload();
      flow = await contactNode(on.environment, { operation: 'update', merge: false });
      const payload = { firstName: 'Elif', lastName: 'Demir', phone: '+12155550105' };
      const updated = only(await flow.ask({ contactId: found.data[0]?.contactId, payload }));
      should(updated.msg.payload).eql({ id: id(1005) });
      should(
        on.simulator.state().contacts.sample.find(({ contactId }) => contactId === 1005)?.fullName,
      ).equal('Elif Demir');
    });

    it('the pickers of the editor find contacts, groups and content', async () => {
      const look = async (what: string, filter: string): Promise<unknown[]> => {
        const request = { params: { what }, query: { filter } } as unknown as Request;
        const found = await lookUp(on.environment as unknown as RunningEnvironment, request);
        return (found as { data: unknown[] }).data;
      };
      should(await look('contacts', 'okafor')).match([{ contactId: id(1002), fullName: 'Ben Okafor' }]);
      should(await look('groups', 'client')).match([{ groupId: id(101), name: 'Clients' }]);
      should(await look('content', 'retire')).not.be.empty();
      should(await look('content', '')).have.length(20);
    });

    it('consent is looked up by the member id that the service returned', async () => {
      const flow = await Flow.load({
        folders,
        environment: on.environment,
        nodes: [
          { id: 'send', type: 'advisor-send-text' },
          { id: 'check', type: 'advisor-check-consent', by: 'memberId', mode: 'once' },
        ],
      });
      const sent = only(await flow.ask({ phone: consented, text: 'Hello' }));
      const { memberId } = sent.msg.payload as { memberId: unknown };
      should(typeof memberId).equal(habits.ids === 'numbers' ? 'number' : 'string');
      const coming = flow.arrivals.next();
      flow.send({ memberId }, 'check');
      const looked = only(await coming);
      should(looked.port).equal(0, JSON.stringify(looked.msg.error));
      should(looked.msg.payload).containEql({ memberId, state: 'accepted' });
    });
  });
}
