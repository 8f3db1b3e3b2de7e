import should from 'should';
import { startSimulator, type Simulator } from '../../../simulator';
import { seededContact } from '../../../simulator/state/seed';
import { Caller } from '../../support/simulator/caller';

interface Page {
  data: { contactId: number; fullName: string }[];
  pageInfo: { totalRecord: number };
}

describe("the simulator's address book", () => {
  let simulator: Simulator;
  let caller: Caller;
  const search = async (query: string): Promise<Page> =>
    (await caller.call('GET', `/core/contact/contacts?${query}`)).body as unknown as Page;

  describe('with 100,000 contacts', () => {
    before(async () => {
      simulator = await startSimulator({ contacts: 100_000 });
      caller = new Caller(simulator);
    });
    after(() => simulator.close());

    it('returns every contact once over all pages, in order', async () => {
      for (const sort of ['', '&sortBy=fullName&sortDirection=desc']) {
        const ids = new Set<number>();
        let last = '\uffff';
        let misplaced = 0;
        for (let page = 1; page <= 500; page++) {
          const { data, pageInfo } = await search(`page=${String(page)}&pageSize=200${sort}`);
          should(pageInfo.totalRecord).equal(100_000);
          for (const { contactId, fullName } of data) {
            ids.add(contactId);
            if (sort !== '' && fullName.toLowerCase() > last) misplaced++;
            last = fullName.toLowerCase();
          }
        }
        should(misplaced).equal(0);
        should(ids.size).equal(100_000);
        should((await search(`page=501&pageSize=200${sort}`)).data).eql([]);
      }
    });

    it('stays in order as contacts are added, changed and deleted', async () => {
      const names = async (): Promise<string[]> =>
        (await search('pageSize=3&sortBy=fullName')).data.map(({ fullName }) => fullName);
      const before = await names();
      const { body } = await caller.call('POST', '/core/contact/contacts', { firstName: 'Aaaa' });
      should(await names()).eql(['Aaaa', ...before.slice(0, 2)]);
      const path = `/core/contact/contacts/${String(body['id'])}`;
      await caller.call('PUT', path, { firstName: 'Zzzz' });
      should(await names()).eql(before);
      should((await search('pageSize=1&sortBy=fullName&sortDirection=desc')).data[0]?.fullName).equal('Zzzz');
      await caller.call('DELETE', path);
      should((await search('pageSize=1&sortBy=fullName&sortDirection=desc')).pageInfo.totalRecord).equal(
        100_000,
      );
      for (let index = 0; index < 50; index++) {
        await caller.call('POST', '/core/contact/contacts', {
          firstName: `Aa${String(index).padStart(2, '0')}`,
        });
      }
      should(await names()).eql(['Aa00', 'Aa01', 'Aa02']);
    });

    it('finds a seeded contact by its number, and by the new one after a change', async () => {
      const { body } = await caller.call('GET', '/core/contact/contacts/2000');
      should((await caller.check(String(body['phone']))).status).equal(200);
      await caller.call('PUT', '/core/contact/contacts/2000', { phone: '+12995550177' });
      should((await caller.check(String(body['phone']))).status).equal(404);
      should((await caller.check('+12995550177')).body['memberId']).equal(702_000);
    });

    it('uses fictional numbers only', async () => {
      for (const id of [1001, 1010, 1011, 5000, 50_000]) {
        const { body } = await caller.call('GET', `/core/contact/contacts/${String(id)}`);
        should(body['phone']).match(/^\+1[2-9]\d\d55501\d\d$/);
      }
    });
  });

  describe('by default', () => {
    before(async () => {
      simulator = await startSimulator();
      caller = new Caller(simulator);
    });
    after(() => simulator.close());

    const contact = async (contactId: number) =>
      (await caller.call('GET', `/core/contact/contacts/${String(contactId)}`)).body;
    const isToday = ({ birthDate }: Record<string, unknown>): boolean => {
      const [month, day] = String(birthDate).split('-').slice(1).map(Number);
      const today = new Date();
      return month === today.getMonth() + 1 && day === today.getDate();
    };

    it('has a handful of contacts, two of whom have their birthday today', async () => {
      const { data } = await search('');
      should(data).have.length(10);
      const details = await Promise.all(data.map(({ contactId }) => contact(contactId)));
      should(details.filter(isToday).length).be.aboveOrEqual(2);
    });

    it('dates those birthdays by the real day, however far its clock was moved', async () => {
      await simulator.advance(86_400);
      for (const contactId of [1001, 1002]) should(isToday(await contact(contactId))).be.true();
    });

    it('puts those birthdays on the 29th of February in leap years', () => {
      for (const index of [0, 1]) {
        const { birthDate = '' } = seededContact(index, () => new Date(2028, 1, 29)).fields;
        should(birthDate).endWith('-02-29');
        should(new Date(birthDate).getUTCDate()).equal(29);
      }
    });

    it('counts the members of its groups', async () => {
      const { body } = await caller.call('GET', '/core/contact/groups');
      const counts = (body['data'] as { name: string; contactCount: number }[]).map((one) => [
        one.name,
        one.contactCount,
      ]);
      should(counts).eql([
        ['Clients', 6],
        ['Newsletter', 4],
        ['Prospects', 3],
        ['Retirement planning', 4],
      ]);
    });
  });

  it('may be empty', async () => {
    simulator = await startSimulator({ contacts: 0 });
    caller = new Caller(simulator);
    should((await search('')).pageInfo.totalRecord).equal(0);
    await simulator.close();
  });
});
