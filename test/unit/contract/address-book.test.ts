import should from 'should';
import { sortFields } from '../../../lib/contract-values';
import { shouldBeProblem } from '../../support/contract/problem';
import {
  call,
  contract,
  habits,
  idOnWire,
  shouldBeId,
  simulated,
  simulator,
} from '../../support/contract/service';

const contacts = '/core/contact/contacts';
const groups = '/core/contact/groups';

const create = async (path: string, body: object): Promise<number> => {
  const answer = await call('POST', path, { body });
  should(answer.status).equal(200, answer.text);
  shouldBeId(answer.body['id']);
  return Number(answer.body['id']);
};
const get = (id: number) => call('GET', `${contacts}/${String(id)}`);
const setGroups = (id: number, body: object) => call('PUT', `${contacts}/${String(id)}/groups`, { body });

interface Page {
  data: Record<string, unknown>[];
  pageInfo: Record<string, unknown>;
}
const search = async (path: string): Promise<Page> => {
  const answer = await call('GET', path);
  should(answer.status).equal(200, answer.text);
  return answer.body as unknown as Page;
};

/** A service that leaves out `groupIds` shows memberships only by name, in the search. */
const shouldBeIn = async (id: number, groupIds: readonly number[]): Promise<void> => {
  if (habits.groupIds === 'given') {
    should((await get(id)).body['groupIds']).eql(groupIds.map(idOnWire));
    return;
  }
  const found = (await search(`${contacts}?pageSize=200`)).data.find(
    (one) => Number(one['contactId']) === id,
  );
  should(found?.['groupCount']).equal(groupIds.length);
};

/** Contacts with dates as this service writes them. */
const inFormat = (contact: typeof fields): object =>
  habits.dates === 'iso' ? contact : { ...contact, birthDate: '05/06/1980', clientAnniversary: '01/02/2015' };

const fields = {
  firstName: 'Nora',
  lastName: 'Example',
  emailAddress: 'nora@example.com',
  nickname: 'Nori',
  birthDate: '1980-05-06',
  phone: '+12995550120',
  clientAnniversary: '2015-01-02',
  gender: 0,
  maritalStatus: 1,
  address1: '1 Main St',
  address2: 'Apt 2',
  city: 'Springfield',
  state: 'IL',
  postalCode: '62701',
};

contract('address book and content', () => {
  describe('contacts', () => {
    it('creates a contact and returns all 14 input fields', async () => {
      const id = await create(contacts, fields);
      const { status, body } = await get(id);
      should(status).equal(200);
      const phone = habits.phones === 'e164' ? fields.phone : '(299) 555-0120';
      should(body).containEql({ ...inFormat(fields), phone });
      should(body['contactId']).equal(idOnWire(id));
      if (habits.groupIds === 'given') should(body['groupIds']).be.an.Array();
      should(body['customFields']).be.an.Array();
      await call('DELETE', `${contacts}/${String(id)}`);
    });

    it('strips unknown fields', async () => {
      const id = await create(contacts, { firstName: 'Only', nonsense: 1 });
      should((await get(id)).body).not.have.property('nonsense');
      await call('DELETE', `${contacts}/${String(id)}`);
    });

    it('updates fields and returns the id', async () => {
      const id = await create(contacts, fields);
      const answer = await call('PUT', `${contacts}/${String(id)}`, { body: { ...fields, city: 'Chicago' } });
      should(answer.body['id']).equal(idOnWire(id));
      should((await get(id)).body['city']).equal('Chicago');
      await call('DELETE', `${contacts}/${String(id)}`);
    });

    simulated('clears the fields an update leaves out, or keeps them, as the setting says', async () => {
      const id = await create(contacts, fields);
      simulator().change({ updateOmitted: 'keep' });
      await call('PUT', `${contacts}/${String(id)}`, { body: { city: 'Chicago' } });
      should((await get(id)).body).containEql({ city: 'Chicago', lastName: 'Example' });
      simulator().change({ updateOmitted: 'clear' });
      await call('PUT', `${contacts}/${String(id)}`, { body: { city: 'Peoria' } });
      const { body } = await get(id);
      should(body['city']).equal('Peoria');
      should(body['lastName']).equal(habits.absentTexts === 'missing' ? undefined : '');
    });

    it('deletes a contact, which is then 404 to get, update, delete and group', async () => {
      const id = await create(contacts, { firstName: 'Gone' });
      should((await call('DELETE', `${contacts}/${String(id)}`)).status).be.within(200, 299);
      shouldBeProblem(await get(id), 'not_found');
      shouldBeProblem(await call('PUT', `${contacts}/${String(id)}`, { body: fields }), 'not_found');
      shouldBeProblem(await call('DELETE', `${contacts}/${String(id)}`), 'not_found');
      shouldBeProblem(await setGroups(id, { groupIds: [] }), 'not_found');
    });

    it('answers 400 for a phone that is not E.164 and for a field of the wrong type', async () => {
      shouldBeProblem(await call('POST', contacts, { body: { phone: '555-0100' } }), 'invalid_request');
      shouldBeProblem(await call('POST', contacts, { body: { gender: 'x' } }), 'invalid_request');
    });
  });

  describe('groups', () => {
    it('creates, finds and deletes a group', async () => {
      const name = `Group ${String(Date.now())}`;
      const id = await create(groups, { name, externalGroupId: 'ext-1' });
      const { data } = await search(`${groups}?pageSize=200`);
      const found = data.find(({ groupId }) => groupId === idOnWire(id));
      should(found).containEql({ name, externalId: 'ext-1', contactCount: 0 });
      should((await call('DELETE', `${groups}/${String(id)}`)).status).be.within(200, 299);
      shouldBeProblem(await call('DELETE', `${groups}/${String(id)}`), 'not_found');
    });

    it('replaces memberships: the contact leaves groups that are not named', async () => {
      const [one, two] = [await create(groups, { name: 'One' }), await create(groups, { name: 'Two' })];
      const id = await create(contacts, { firstName: 'Member' });
      should((await setGroups(id, { groupIds: [one] })).body['id']).equal(idOnWire(id));
      await shouldBeIn(id, [one]);
      await setGroups(id, { groupIds: [two] });
      await shouldBeIn(id, [two]);
      const { data } = await search(`${groups}?pageSize=200`);
      should(data.find(({ groupId }) => groupId === idOnWire(one))?.['contactCount']).equal(0);
      should(data.find(({ groupId }) => groupId === idOnWire(two))?.['contactCount']).equal(1);
      await call('DELETE', `${groups}/${String(two)}`);
      await shouldBeIn(id, []);
      await call('DELETE', `${groups}/${String(one)}`);
      await call('DELETE', `${contacts}/${String(id)}`);
    });

    simulated('puts a contact into every group with isSelectAllGroup', async () => {
      const id = await create(contacts, { firstName: 'All' });
      await setGroups(id, { groupIds: [], isSelectAllGroup: true });
      await shouldBeIn(id, [101, 102, 103, 104]);
    });

    simulated('answers 400 for a group that does not exist', async () => {
      shouldBeProblem(await setGroups(1001, { groupIds: [999_999] }), 'invalid_request');
    });
  });

  describe('searches', () => {
    for (const path of [contacts, groups, '/core/content/library/search']) {
      it(`wraps a page of ${path} as the contract shows`, async () => {
        const { data, pageInfo } = await search(`${path}?page=1&pageSize=2`);
        should(data.length).be.within(0, 2);
        should(pageInfo).containEql({ page: 1, pageSize: 2 });
        should(pageInfo['totalRecord']).be.a.Number();
        should(['asc', 'desc']).containEql(pageInfo['sortDirection']);
        should(pageInfo['sortBy']).be.a.String();
      });

      for (const query of [
        'page=0',
        'page=1.5',
        'page=x',
        'pageSize=0',
        'pageSize=201',
        'pageSize=1&pageSize=2',
      ]) {
        it(`answers 400 for ${path}?${query}`, async () => {
          shouldBeProblem(await call('GET', `${path}?${query}`), 'invalid_request');
        });
      }
    }

    for (const sortBy of sortFields) {
      it(`sorts contacts by ${sortBy} in both directions`, async () => {
        const ascending = await search(`${contacts}?pageSize=200&sortBy=${sortBy}&sortDirection=asc`);
        const descending = await search(`${contacts}?pageSize=200&sortBy=${sortBy}&sortDirection=desc`);
        should(ascending.pageInfo).containEql({ sortBy, sortDirection: 'asc' });
        should(descending.pageInfo).containEql({ sortBy, sortDirection: 'desc' });
        const keys = ascending.data.map((one) => {
          const value = one[sortBy] ?? '';
          // One profile writes the month first.
          if (sortBy === 'dateTimeCreated') return Date.parse(String(value));
          return typeof value === 'string' ? value.toLowerCase() : value;
        }) as (string | number)[];
        should(keys.filter(Number.isNaN)).be.empty();
        should(keys).eql(keys.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)));
        should(descending.data.map(({ contactId }) => contactId)).eql(
          ascending.data.map(({ contactId }) => contactId).reverse(),
        );
      });
    }

    it('answers 400 for an unknown sort field or direction', async () => {
      shouldBeProblem(await call('GET', `${contacts}?sortBy=phone`), 'invalid_request');
      shouldBeProblem(await call('GET', `${contacts}?sortDirection=up`), 'invalid_request');
      shouldBeProblem(await call('GET', `${groups}?sortDirection=up`), 'invalid_request');
    });

    it('returns a summary of a contact with the fields of the contract', async () => {
      const { data } = await search(`${contacts}?pageSize=1`);
      should(data[0]).have.properties(
        ...['contactId', 'identifier', 'fullName', 'firstName', 'lastName', 'email', 'emailStatus', 'status'],
        ...['emailAddressDisposition', 'source', 'sourceText', 'groupCount', 'groupNames', 'remoteContactId'],
        ...['remoteContactUrl', 'isCrmLinkedContact', 'dateTimeCreated'],
      );
    });

    simulated('finds content by type and text', async () => {
      const library = '/core/content/library/search';
      const { data } = await search(`${library}?searchText=RETIREMENT%20guide`);
      should(data).have.length(1);
      should(data[0]).have.only.keys('title', 'url');
      should((await search(`${library}?contentType=Emails&searchText=retirement%20guide`)).data).eql([]);
    });

    it('answers 400 for an unknown content type and for a text of 151 characters', async () => {
      const library = '/core/content/library/search';
      shouldBeProblem(await call('GET', `${library}?contentType=Videos`), 'invalid_request');
      shouldBeProblem(await call('GET', `${library}?searchText=${'x'.repeat(151)}`), 'invalid_request');
      should((await call('GET', `${library}?searchText=${'x'.repeat(150)}`)).status).equal(200);
    });
  });
});
