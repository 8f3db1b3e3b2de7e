import should from 'should';
import { profiles } from '../../../simulator';
import type { Message, RealRed } from '../../support/node-red';
import { errorOf } from '../../support/outcomes';
import {
  Clicked,
  exampleOf,
  examples,
  overheard,
  payloadOf,
  type Phones,
  runs,
  startExamples,
  tabOf,
  titleOf,
  withDashboard,
} from '../../support/examples/setup';

const payloadText = (msg: Message): string => String(msg['payload']);

const form = { firstName: "Pat O'Neil", lastName: '', emailAddress: 'pat@example.com', phone: '' };

for (const run of runs) {
  describe(`the examples from the eighth on, ${titleOf(run)}`, function () {
    this.timeout(180_000);
    let red: RealRed;
    let phones: Phones;

    before(async () => {
      ({ red, phones } = await startExamples(run, [...examples.slice(7), withDashboard].flatMap(overheard)));
    });
    after(() => red.close());
    beforeEach(() => phones.reset());

    const example = (number: number): Clicked => new Clicked(red, exampleOf(number));

    it('8: the form creates a contact from its fields, and says what was wrong', async () => {
      const page = await fetch(`${red.url}/new-contact`);
      const html = await page.text();
      should(html).containEql('<form method="post" action="new-contact"');
      for (const field of Object.keys(form)) should(html).containEql(`name="${field}"`);
      const post = (fields: Record<string, string>): Promise<Response> =>
        fetch(`${red.url}/new-contact`, { method: 'POST', body: new URLSearchParams(fields) });
      const answer = await post(form);
      should(answer.status).equal(200);
      should(answer.headers.get('content-type')).match(/^text\/plain/);
      const said = await answer.text();
      should(said).match(/^Thank you: Pat O'Neil is contact number \d+\.$/);
      // Sent again, it is about the same contact.
      should(await (await post({ ...form, emailAddress: 'Pat@example.com' })).text()).equal(said);
      const { data } = (await phones.control('GET', 'contacts?filter=pat@example.com')) as {
        data: { fullName: string; phone: string }[];
      };
      should(data).have.length(1);
      should(data[0]).containEql({ fullName: "Pat O'Neil", phone: '' });
      const other = { firstName: 'Patty', lastName: "O'Neil", emailAddress: 'atty.pat@example.com' };
      should(await (await post(other)).text()).match(/^Thank you: Patty is contact number \d+\.$/);
      should(await (await post({ firstName: 'Nameless' })).text()).startWith('Thank you: Nameless ');
      const refused = await post({ ...form, emailAddress: 'new@example.com', phone: '12' });
      should(refused.status).equal(400);
      should(await refused.text()).startWith('That did not work: ');
    });

    it('8: people who leave a number are welcomed once, after consent, even if the form is sent twice', async () => {
      const flow = example(8);
      const body = (): URLSearchParams => new URLSearchParams({ ...form, phone: '(202) 555-0123' });
      for (let time = 0; time < 2; time++)
        should((await fetch(`${red.url}/new-contact`, { method: 'POST', body: body() })).status).equal(200);
      await flow.status(/^sim 2 waiting \(1 person\)/);
      await phones.accept('+12025550123');
      const welcomed = await phones.advanceUntil(flow.shown('welcomed', 2));
      should(welcomed.filter((msg) => payloadOf(msg)['alreadySent'] === true)).have.length(1);
      for (const msg of welcomed) should(msg).not.have.any.keys('req', 'res');
      should(await phones.texts('+12025550123')).deepEqual([
        "Welcome, Pat O'Neil! You are in our address book now.",
      ]);
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
      it('10: contacts without their groups fail visibly, and stay in the same groups', async () => {
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

    it('17: a contact is created once, found by its name, changed, put into groups and deleted', async () => {
      const flow = example(17);
      await flow.press('Nora');
      const created = payloadOf(await flow.one('as it is now')) as Record<string, unknown>;
      await flow.press('Nora has moved');
      const moved = payloadOf(await flow.one('as it is now')) as Record<string, unknown>;
      should(created).containEql({ lastName: 'Lindqvist', city: 'Chicago' });
      should(moved).containEql({ contactId: created['contactId'], lastName: 'Lindqvist', city: 'Portland' });
      should(String(moved['phone']).replaceAll(/\D/g, '')).endWith('5035550197');
      should(await phones.ledger('createContact')).have.length(1);
      should((await groupNames()).get(Number(moved['contactId']))).deepEqual(['Clients', 'Newsletter']);
      await flow.press('Delete Nora');
      should(payloadOf(await flow.one('deleted'))).deepEqual({ id: Number(moved['contactId']) });
    });

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

    it('13: the report counts who waits, and lists who failed since yesterday', async () => {
      const flow = example(13);
      await flow.press('Report now');
      should(payloadText(await flow.one('the report'))).equal(
        'Waiting for consent: 0\nFailed since yesterday: 0',
      );
      await flow.press('Text a landline');
      should(errorOf(await flow.one('it failed'))).containEql({ code: 'rejected' });
      await flow.press('Report now');
      const report = await flow.one('the report');
      should(report).containEql({ topic: 'Texting, this morning' });
      should(payloadText(report)).match(
        /^Waiting for consent: 0\nFailed since yesterday: 1\n\w{3} \d+:\d\d [AP]M {2}\+12025550115 {2}The service refused .+$/,
      );
      const phone = Array.from({ length: 300 }, (_, n) => `nobody ${String(n)}`);
      await flow.press('Text a landline', { phone });
      await flow.press('Text a landline', { phone: '' });
      await flow.shown('it failed', phone.length + 1);
      await flow.press('Report now');
      const [, heading, ...lines] = payloadText(await flow.one('the report')).split('\n');
      should(heading).equal('Failed since yesterday: 302');
      should(lines.filter((line) => line.includes('nobody'))).have.length(phone.length);
      should(
        lines.filter((line) => / {2}no number {2}There is no phone number in .+$/.test(line)),
      ).have.length(1);
    });

    it('14: the mail names the advisor and has the link', async () => {
      const flow = example(14);
      await flow.press('Simulate a lost authorization');
      const mail = payloadText(await flow.one('the mail'));
      should(mail).match(/^Dear ada,\n\nOur texting is no longer allowed to send texts for you\./);
      should(mail).containEql('\nhttps://nodered.example.com/advisor-texting/link/example\n');
    });

    it('15: people on the list are not texted, people who write stop are added, and it is exported as CSV', async () => {
      const flow = example(15);
      await flow.press('Import the list');
      should((await flow.shown('on the list', 2)).map((msg) => payloadOf(msg)['reason']).sort()).deepEqual([
        'asked by phone',
        'moved away',
      ]);
      await flow.press('Text three people');
      const became = await flow.shown('each outcome', 3);
      should(
        became.map((msg) => (msg['outcome'] === 'sent' ? 'sent' : errorOf(msg)['code'])).sort(),
      ).deepEqual(['blocked', 'blocked', 'sent']);
      should((await phones.ledger('sendMessage')).map(({ phone }) => phone)).deepEqual(['+12165550106']);
      await flow.press('An answer by mail');
      should(payloadOf(await flow.one('on the list'))).containEql({
        phone: '+13125550183',
        reason: 'wrote stop',
      });
      await flow.press('Another answer');
      should(payloadText(await flow.one('other answers'))).equal('See you at the end of May.');
      for (let round = 0; round < 2; round++) {
        await flow.press('Export the list');
        const [names, ...rows] = payloadText(await flow.one('the CSV'))
          .trim()
          .split('\n');
        should(names).equal('phone,since,reason');
        should(rows.map((row) => row.replace(/,\d+,/, ',')).sort()).deepEqual([
          '+13125550181,asked by phone',
          '+13125550182,moved away',
          '+13125550183,wrote stop',
        ]);
      }
    });

    it('16: in the dry run nobody is texted, and the numbers are those of the campaign', async () => {
      const flow = example(16);
      await flow.press('How would it go?');
      const tried = payloadOf(await flow.one('report'));
      should(tried).containEql({
        total: 6,
        sent: 4,
        needsConsent: 1,
        failed: 1,
        byCode: { invalid_input: 1 },
      });
      should(await phones.ledger('sendMessage')).deepEqual([]);
      await flow.press('Go');
      const went = payloadOf(await flow.one('report'));
      for (const count of ['total', 'sent', 'needsConsent', 'failed', 'byCode'])
        should(went[count]).deepEqual(tried[count]);
      should(await phones.texts('+12065550101')).deepEqual(['Hi Ann, our new market letter is out.']);
      should(await phones.ledger('sendMessage')).have.length(4);
    });

    // The version and the service make no difference to the contents of the address book.
    if (run.version === 5 && run.profile === 'usual')
      it('keep their promises from the last to the first, one after another, on what the earlier ones left', async () => {
        red.arrived.length = 0;
        const campaign = example(16);
        await campaign.press('Go');
        should(payloadOf(await campaign.one('report'))).containEql({ sent: 4, needsConsent: 1, failed: 1 });
        const stopped = example(15);
        await stopped.press('Import the list');
        await stopped.shown('on the list', 2);
        await stopped.press('Text three people');
        should((await stopped.shown('each outcome', 3)).map((msg) => msg['outcome']).sort()).deepEqual([
          'failed',
          'failed',
          'sent',
        ]);
        const morning = example(13);
        await morning.press('Text a landline');
        await morning.one('it failed');
        await morning.press('Report now');
        should(payloadText(await morning.one('the report'))).match(/\+12025550115 {2}The service refused/);
        should(await (await fetch(`${red.url}/address-book`)).text()).containEql('<td>CRM</td><td>10</td>');
        const article = example(11);
        await article.press('About retirement');
        await article.shown('sent', 4);
        const group = example(10);
        await group.press('Invite three');
        should((await group.shown('added', 3)).map((msg) => payloadOf(msg)['id']).sort()).deepEqual([
          1001, 1002, 1003,
        ]);
        const reconciliation = example(9);
        await reconciliation.press('Compare');
        should((await reconciliation.one('report'))['payload']).containEql({
          missingInAddressBook: ['Zoe Quinn'],
        });
        const body = new URLSearchParams({ ...form, emailAddress: 'last@example.com' });
        const answer = await fetch(`${red.url}/new-contact`, { method: 'POST', body });
        should(await answer.text()).match(/^Thank you: /);
      });

    it('with Dashboard 2: waits are on the page, and leave as cancelled when their button is pressed', async () => {
      const flow = new Clicked(red, withDashboard);
      await flow.press('Wait for Jonas');
      let waits: { id: string; phone: string }[];
      do waits = payloadOf(await flow.one('waits'))['data'] as typeof waits;
      while (waits.length === 0);
      should(waits.map(({ phone }) => phone)).deepEqual(['+12245550110']);
      await red.send(`${tabOf(withDashboard.nodes)} waits`, { payload: { id: waits[0]?.id } });
      const ended = await flow.one('the wait has ended');
      should(ended).containEql({ outcome: 'notAccepted', phone: '+12245550110' });
      should(payloadOf(ended)).containEql({ reason: 'cancelled' });
      do waits = payloadOf(await flow.one('waits'))['data'] as typeof waits;
      while (waits.length > 0);
    });
  });
}
