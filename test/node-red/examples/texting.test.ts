import should from 'should';
import { type Habits, profiles } from '../../../simulator';
import { isLong } from '../../support/extent';
import type { Message, RealRed } from '../../support/node-red';
import { numbers } from '../../support/numbers';
import { errorOf } from '../../support/outcomes';
import { until } from '../../support/until';
import {
  Clicked,
  exampleOf,
  examples,
  overheard,
  payloadOf,
  Phones,
  runs,
  startExamples,
  titleOf,
} from '../../support/examples/setup';

const ann = '+12065550101';
const { landline } = numbers;
const dana = '+12025550103';
const elif = '+12155550105';
const jonas = '+12245550110';
const erin = '+12025550104';
const finn = '+12025550105';
const changeContact = [
  { id: 'change', type: 'test-port', z: 'ex06tab00000000', name: 'change contact', wires: [['update']] },
  {
    id: 'update',
    type: 'advisor-contact',
    z: 'ex06tab00000000',
    environment: 'ex06env00000000',
    operation: 'update',
    wires: [['changed'], ['changed']],
  },
  { id: 'changed', type: 'test-port', z: 'ex06tab00000000', name: 'contact changed', wires: [] },
];
const textJonas = {
  id: 'textJonas',
  type: 'test-port',
  z: 'ex02tab00000000',
  name: 'text Jonas',
  wires: [['ex02send51000000']],
};
const texting = [...examples.slice(0, 7).flatMap(overheard), ...changeContact, textJonas];
const hour = 3600;

for (const run of runs) {
  describe(`the texting examples ${titleOf(run)}`, function () {
    this.timeout(120_000);
    let red: RealRed;
    let phones: Phones;
    const habits: Habits = profiles[run.profile];

    before(async () => {
      ({ red, phones } = await startExamples(run, texting));
    });
    after(() => red.close());
    beforeEach(async () => {
      await phones.reset();
      red.arrived.length = 0;
    });

    /** What the campaign has emitted for somebody. */
    const rowsOf = (name: string): Record<string, unknown>[] =>
      red.arrived
        .filter(({ port }) => port === 'ex04tab00000000 row')
        .map(({ msg }) => payloadOf(msg))
        .filter((row) => row['name'] === name);

    const example = (number: number): Clicked => new Clicked(red, exampleOf(number));

    it('1: each of the three buttons leads to a different output', async () => {
      const flow = example(1);
      await flow.press('Text Ann');
      should(payloadOf(await flow.one('sent'))).containEql({ scheduled: false, attempts: 1 });
      await flow.press('Text a landline');
      should(errorOf(await flow.one('failed'))).containEql({ code: 'rejected' });
      await flow.press('Text somebody new');
      should(await flow.one('needs consent')).have.property('resend');
      should(await phones.texts(ann)).deepEqual(['Hello from Node-RED!']);
      should((await phones.ledger('sendMessage')).length).equal(3);
    });

    it('2: Dana is asked, accepts by herself and gets her text; Elif once she has accepted', async () => {
      const flow = example(2);
      await flow.press('Text Dana');
      await flow.press('Text Elif');
      await flow.status(/^sim 2 waiting/);
      should(await phones.texts(dana)).deepEqual([]);
      should(await phones.advanceUntil(flow.one('the text is sent'))).containEql({ phone: dana });
      should(await phones.texts(dana)).deepEqual(['Dana, your quarterly review is ready.']);
      await phones.accept(elif);
      const last = await phones.advanceUntil(flow.one('the text is sent'));
      should(last).containEql({ phone: elif });
      should(last).not.have.any.keys('resend', 'error');
      should(await phones.texts(elif)).deepEqual(['Elif, your quarterly review is ready.']);
      for (const phone of [dana, elif])
        should((await phones.texts(phone, 'default', 'consent-request')).length).equal(1);
    });

    it('3: the subflow texts Ann immediately, Erin once she has accepted, and fails for a landline', async () => {
      const flow = example(3);
      await flow.press('Text Ann');
      should(await flow.one('sent')).containEql({ phone: ann });
      await flow.press('Text Erin');
      await flow.status(/^sim 1 waiting/);
      should(await phones.advanceUntil(flow.one('sent'))).containEql({ phone: erin });
      should(await phones.texts(erin)).deepEqual(['Erin, your statement is ready.']);
      await flow.press('Text a landline');
      const failed = await flow.one('failed');
      should(failed).containEql({ phone: landline });
      should(errorOf(failed)).containEql({ code: 'rejected' });
    });

    it('4: the campaign reports the summary of the first pass, and a row for everyone who fails or follows', async () => {
      const flow = example(4);
      await flow.press('Run the campaign');
      const failed = payloadOf(await flow.one('row'));
      should(failed).containEql({ name: 'Eve', phone: 'not a number' });
      should(failed['result']).match(/^failed: /);
      should((await flow.one('first-pass summary'))['summary']).containEql({
        total: 5,
        sent: 3,
        failed: 1,
        needsConsent: 1,
        byCode: { invalid_input: 1 },
      });
      should(await phones.texts(ann)).deepEqual([
        'Hi Ann, our new market letter is out. Shall I send it to you?',
      ]);
      await flow.status(/^sim 1 waiting/);
      while (rowsOf('Finn').length < 1) await phones.advance(5);
      should(payloadOf(await flow.one('row'))).containEql({ name: 'Finn', result: 'sent' });
      should(await phones.texts(finn)).deepEqual([
        'Hi Finn, our new market letter is out. Shall I send it to you?',
      ]);
    });

    if (run.profile === 'usual') {
      it('4: pressed twice, stopped, killed, started again and deployed, it texts each person once and reports every outcome', async () => {
        const flow = example(4);
        await flow.press('Run the campaign');
        await flow.one('first-pass summary');
        await flow.press('Run the campaign');
        should((await flow.one('first-pass summary'))['summary']).containEql({
          total: 5,
          sent: 3,
          failed: 1,
          needsConsent: 1,
          alreadySent: 3,
        });
        await flow.status(/^sim 2 waiting \(1 person\)/);
        // The simulator saves its own state a little later: a kill could make it forget that Finn was asked.
        await red.restart();
        await flow.status(/^sim 2 waiting \(1 person\)/);
        await red.kill9();
        await red.run();
        phones = await Phones.open(red, run.profile);
        await red.deploy(await red.flows());
        while (rowsOf('Finn').length < 2) await phones.advance(5);
        for (const row of rowsOf('Finn')) should(row).containEql({ result: 'sent' });
        should(rowsOf('Eve')).have.length(2);
        for (const phone of [ann, finn]) should(await phones.texts(phone)).have.length(1);
        should(await phones.texts(finn, 'default', 'consent-request')).have.length(1);
      });
    }

    it('5: the reminder arrives in a minute, immediately if the clock was moved; a past date fails', async () => {
      const flow = example(5);
      await flow.press('Remind Ann');
      should(payloadOf(await flow.one('scheduled'))).containEql({ scheduled: true, messageId: null });
      await phones.advance(61);
      should((await phones.texts(ann)).length).equal(1);
      await flow.press('Remind Ann');
      should(payloadOf(await flow.one('scheduled'))).containEql({ scheduled: true, messageId: null });
      should((await phones.texts(ann)).length).equal(2);
      await flow.press('Tomorrow');
      const { deliveryDate } = payloadOf(await flow.one('scheduled'));
      const inChicago = new Intl.DateTimeFormat('en-US', { timeStyle: 'short', timeZone: 'America/Chicago' });
      should(inChicago.format(Number(deliveryDate))).match(/^9:00\sAM$/);
      await flow.press('Recurring');
      should(await flow.one('scheduled')).containEql({ frequency: 7, outcome: 'sent' });
      await flow.press('Too late');
      should(errorOf(await flow.one('failed'))).containEql({ code: 'invalid_input' });
    });

    if (habits.dates === 'iso') {
      it('6: those who have their birthday today are greeted, and nobody else, even after the clock was moved', async () => {
        const flow = example(6);
        await phones.advance(24 * hour);
        await flow.press('Whose birthday is it?');
        await flow.shown('greeted', 2);
        const sends = await phones.ledger('sendMessage');
        should(sends.map(({ text }) => text).sort()).deepEqual([
          'Happy birthday, Ann! All the best from your advisor.',
          'Happy birthday, Ben! All the best from your advisor.',
        ]);
        should((await phones.ledger('getContact')).length).equal(10);
        await flow.press('Whose birthday is it?');
        await flow.shown('greeted', 2);
        should((await phones.ledger('sendMessage')).length).equal(2);
      });

      it('6: a birth date in another format is shown by name, and the others are still greeted', async () => {
        const flow = example(6);
        // Nobody is greeted twice within a day.
        await phones.advance(72 * hour);
        await red.send('change contact', { contactId: 1002, payload: { birthDate: '11/16/1976' } });
        await red.messages('contact changed', 1);
        await flow.press('Whose birthday is it?');
        const shown = await flow.one('date not readable');
        should(payloadOf(shown)).containEql({
          firstName: 'Ben',
          lastName: 'Okafor',
          birthDate: '11/16/1976',
        });
        await flow.one('greeted');
        should((await phones.ledger('sendMessage')).map(({ phone }) => phone)).deepEqual([ann]);
      });
    } else {
      it('6: birth dates in another format are all shown by name, and nobody is greeted', async () => {
        const flow = example(6);
        await flow.press('Whose birthday is it?');
        const shown = await flow.shown('date not readable', 10);
        should(shown.map((msg) => payloadOf(msg)['firstName'])).containDeep(['Ann', 'Ben']);
        for (const msg of shown) should(payloadOf(msg)['birthDate']).match(/^\d\d\/\d\d\/\d{4}$/);
        should(await phones.ledger('sendMessage')).deepEqual([]);
      });
    }

    it('7: each advisor texts from their own account', async () => {
      const flow = example(7);
      for (const who of ['Maria', 'Noah', 'Olga']) {
        await flow.press(`From ${who}`);
        should(await flow.one('sent')).containEql({ advisor: who.toLowerCase() });
        should(await phones.texts(ann, who.toLowerCase())).deepEqual([`Hello, this is ${who}.`]);
      }
      should(await phones.texts(ann)).deepEqual([]);
    });

    // Days of polls take long, and how often somebody is asked does not depend on the service.
    if (run.profile === 'usual' && isLong) {
      it('2: pressed every six hours for a week, it asks a silent person three times and no more', async () => {
        const flow = example(2);
        let presses = 0;
        const waiting = 'advisor-texting/ex02env00000000/pending?node=ex02check0000061';
        const isSettled = async (): Promise<boolean> => {
          const { count } = (await red.request('GET', waiting)).json as { count: number };
          const failed = red.arrived.filter(({ port }) => port === 'ex02tab00000000 something failed');
          return count + failed.length === presses;
        };
        /** Moving the clock while she is being asked would shorten the day since then. */
        const pressed = async (): Promise<void> => {
          await flow.press('Text Elif');
          presses += 1;
          await until(isSettled);
        };
        await pressed();
        for (let hours = 0; hours < 7 * 24; hours += 6) {
          await phones.advance(6 * hour);
          await pressed();
        }
        const asked = (await phones.ledger('requestConsent')).filter(({ phone }) => phone === elif);
        const gaps = asked.slice(1).map(({ at }, index) => at - (asked[index]?.at ?? 0));
        should(asked.length).equal(3);
        for (const gap of gaps) should(gap).be.aboveOrEqual(24 * hour * 1000);
        should(await phones.texts(elif)).deepEqual([]);
      });
    }

    if (run.profile === 'usual' || isLong)
      it('2: somebody who stays silent is asked again after a day, three times in total, and then it ends', async () => {
        const failed = (): Message | undefined =>
          red.arrived.find(
            ({ port, msg }) => port === 'ex02tab00000000 something failed' && msg['phone'] === jonas,
          )?.msg;
        await red.send('text Jonas', { phone: jonas, text: 'Jonas, your quarterly review is ready.' });
        // In steps, since a wait that starts during one lasts a day from its end.
        while (!failed()) await phones.advance(6 * hour);
        should(errorOf(failed() ?? {})).containEql({ code: 'consent_limit' });
        should(await phones.texts(jonas, 'default', 'consent-request')).have.length(3);
        should(await phones.texts(jonas)).deepEqual([]);
      });
  });
}
