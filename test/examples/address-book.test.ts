import should from 'should';
import { profiles } from '../../simulator';
import type { RealRed } from '../support/node-red';
import {
  Clicked,
  errorOf,
  exampleOf,
  examples,
  overheard,
  type Phones,
  runs,
  startExamples,
  titleOf,
} from './support';

const form = { firstName: "Pat O'Neil", lastName: '', emailAddress: 'pat@example.com', phone: '' };

for (const run of runs) {
  describe(`the address-book examples ${titleOf(run)}`, function () {
    this.timeout(60_000);
    let red: RealRed;
    let phones: Phones;

    before(async () => {
      ({ red, phones } = await startExamples(run, examples.slice(7).flatMap(overheard)));
    });
    after(() => red.close());
    beforeEach(() => phones.reset());

    const example = (number: number): Clicked => new Clicked(red, exampleOf(number));

    it('8: the form makes a contact of the fields filled in, and says what was wrong', async () => {
      const page = await fetch(`${red.url}/new-contact`);
      const html = await page.text();
      should(html).containEql('<form method="post" action="new-contact">');
      for (const field of Object.keys(form)) should(html).containEql(`name="${field}"`);
      const post = (fields: Record<string, string>): Promise<Response> =>
        fetch(`${red.url}/new-contact`, { method: 'POST', body: new URLSearchParams(fields) });
      const answer = await post(form);
      should(answer.status).equal(200);
      should(answer.headers.get('content-type')).match(/^text\/plain/);
      should(await answer.text()).match(/^Thank you: Pat O'Neil is contact number \d+\.$/);
      const { data } = (await phones.control('GET', 'contacts?filter=pat@example.com')) as {
        data: { fullName: string; phone: string }[];
      };
      should(data).have.length(1);
      should(data[0]).containEql({ fullName: "Pat O'Neil", phone: '' });
      const refused = await post({ ...form, phone: '12' });
      should(refused.status).equal(400);
      should(await refused.text()).startWith('That did not work: ');
    });

    it('9: the report names who is missing on which side', async () => {
      const flow = example(9);
      for (let round = 0; round < 2; round++) {
        await flow.press('Compare');
        const report = (await flow.one('report'))['payload'] as Record<string, unknown>;
        should(report).containEql({ contacts: 10, missingInAddressBook: ['Zoe Quinn'] });
        should(report['missingInList']).have.length(8);
        should(report['missingInList']).containEql('Carla Reyes');
      }
    });

    it('9: a search that fails gives no report', async () => {
      const flow = example(9);
      const before = (await red.messages('ex09tab00000000 report', 2)).length;
      await phones.control('POST', 'faults', { endpoint: 'searchContacts', code: 'forbidden' });
      await flow.press('Compare');
      should(errorOf(await flow.one('the search failed'))).containEql({ code: 'forbidden' });
      await flow.press('Compare');
      const all = await red.messages('ex09tab00000000 report', before + 1);
      should(all.at(-1)?.['payload']).containEql({ contacts: 10 });
      should(all).have.length(before + 1);
    });

    const groupNames = async (): Promise<Map<number, string[]>> => {
      const { data } = (await phones.control('GET', 'contacts?pageSize=100')) as {
        data: { contactId: number; groupNames: string[] }[];
      };
      return new Map(data.map((contact) => [contact.contactId, contact.groupNames]));
    };

    if (profiles[run.profile].groupIds === 'given') {
      it('10: the group is created once, and each contact is in it once', async () => {
        const flow = example(10);
        for (let round = 0; round < 2; round++) {
          await flow.press('Invite three');
          await flow.shown('added', 3);
        }
        should(await phones.ledger('createGroup')).have.length(1);
        const invited = [...(await groupNames())].filter(([, names]) => names.includes('Autumn event'));
        should(invited.map(([contactId]) => contactId)).deepEqual([1001, 1002, 1003]);
        for (const [, names] of invited) should(new Set(names).size).equal(names.length);
        should(invited[0]?.[1]).containDeep(['Clients', 'Retirement planning']);
      });
    } else {
      it('10: contacts that come without their groups fail visibly, and are in the same groups as before', async () => {
        const flow = example(10);
        const before = await groupNames();
        for (let round = 0; round < 2; round++) {
          await flow.press('Invite three');
          for (const failed of await flow.shown('failed', 3))
            should(errorOf(failed)).containEql({ code: 'invalid_response' });
        }
        should(await phones.ledger('createGroup')).have.length(1);
        should(await phones.ledger('setContactGroups')).deepEqual([]);
        should(await groupNames()).deepEqual(before);
      });
    }

    it('11: the title and link of the first article reach those of the group who have consented', async () => {
      const flow = example(11);
      await flow.press('About retirement');
      const first = await flow.one('sent');
      const [text] = await phones.texts(String(first['phone']));
      should(text).match(/retire.*: https:\/\//i);
      should(first['payload']).be.an.Object();
      const sends = await phones.ledger('sendMessage');
      should(new Set(sends.map((entry) => entry.text))).deepEqual(new Set([text]));
    });

    it('12: the page counts all contacts, by source and by status', async () => {
      const page = async (): Promise<string> => (await fetch(`${red.url}/address-book`)).text();
      should(await page()).containEql('<h1>10 contacts</h1>');
      should(await page()).containEql('<td>CRM</td><td>10</td>');
      await fetch(`${red.url}/new-contact`, { method: 'POST', body: new URLSearchParams(form) });
      const html = await page();
      should(html).containEql('<h1>11 contacts</h1>');
      should(html).containEql('<td>API</td><td>1</td>');
      should(html).match(/By status.*<td>\w+<\/td><td>\d+<\/td>/s);
    });

    it('12: the page says so when the address book cannot be read', async () => {
      await phones.control('POST', 'faults', { endpoint: 'searchContacts', code: 'forbidden' });
      should(await (await fetch(`${red.url}/address-book`)).text()).containEql('could not be read');
    });
  });
}
