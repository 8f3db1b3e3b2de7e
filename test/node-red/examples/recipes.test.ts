import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { day } from '../../../lib/durations';
import { startSimulator, type StateView } from '../../../simulator';
import { alsoClose, closeAll } from '../../support/closing';
import { root } from '../../support/installation';
import type { RealRed } from '../../support/node-red';
import { errorOf } from '../../support/outcomes';
import { until } from '../../support/until';
import {
  Clicked,
  examplesIn,
  overheard,
  payloadOf,
  type Phones,
  startExamples,
} from '../../support/examples/setup';

const recipes = examplesIn(join(root, 'examples', 'recipes'));

describe('the recipes', function () {
  this.timeout(120_000);
  let red: RealRed;
  let phones: Phones;

  before(async () => {
    ({ red, phones } = await startExamples({ version: 5, profile: 'usual' }, [
      ...recipes.flatMap(overheard),
      { id: 'flush', type: 'test-port', z: 'r19tab', name: 'flush', wires: [['r19d']] },
    ]));
  });
  after(async () => {
    await red.close();
    await closeAll();
  });
  beforeEach(async () => {
    await phones.reset();
    red.arrived.length = 0;
  });

  const ann = '+12065550101';
  const ben = '+12125550102';
  const silvia = '+12025550111';

  const recipe = (title: string): Clicked => {
    const found = recipes.find((one) => one.title === title);
    if (!found) throw new Error(`There is no recipe ${title}.`);
    return new Clicked(red, found);
  };
  const waitsOf = (environment: string): string => `advisor-texting/${environment}/waits`;
  const firstWait = (environment: string): Promise<string> =>
    until(async () => {
      const { data } = (await red.request('GET', waitsOf(environment))).json as { data: { id: string }[] };
      return data[0]?.id;
    });
  const cancelFirstWait = async (environment: string): Promise<void> => {
    await red.request('DELETE', `${waitsOf(environment)}/${await firstWait(environment)}`);
  };
  /** The hour of the simulator's clock where Ann lives. */
  const hourOfAnn = async (): Promise<number> => {
    const { now } = (await phones.control('GET', 'state')) as StateView;
    const hour = { timeZone: 'America/Los_Angeles', hour: 'numeric', hourCycle: 'h23' } as const;
    return Number(new Intl.DateTimeFormat('en-US', hour).format(now));
  };
  const tried = new Set<string>();
  const recipeDoes = (title: string, run: (flow: Clicked) => Promise<void>): void => {
    tried.add(title);
    it(title, () => run(recipe(title)));
  };

  recipeDoes('Text everybody in a spreadsheet', async (flow) => {
    await flow.press('Text the rows');
    should((await flow.shown('sent', 2)).map(({ phone }) => phone).sort()).eql([ann, ben]);
  });

  recipeDoes('Put the first name into a text', async (flow) => {
    await flow.press('Text Ann and somebody');
    should(await flow.one('sent')).containEql({ text: 'Hello Ann, shall we talk on Friday?' });
    should(errorOf(await flow.one('not sent'))).containEql({ code: 'invalid_input' });
  });

  recipeDoes('Text from a different advisor in each row', async (flow) => {
    await flow.press('Text from two advisors');
    const sent = await flow.shown('sent', 2);
    should(sent.map(({ phone, advisor }) => [phone, advisor]).sort()).eql([
      [ann, 'alex'],
      [ben, 'maria'],
    ]);
    should(await phones.texts(ben, 'maria')).eql(['Hello Ben, a word from your advisor.']);
  });

  recipeDoes('Get a total at the end of a list', async (flow) => {
    await flow.press('Text three people');
    const { summary } = await flow.one('total');
    should(summary).containEql({ total: 3, sent: 2, failed: 1, byCode: { invalid_input: 1 } });
  });

  recipeDoes('Get a list of who failed', async (flow) => {
    await flow.press('Text a list');
    const rows = (await flow.shown('row of the file', 3)).map(({ payload }) => String(payload));
    should(rows.some((row) => row.startsWith('Lee,+12025550115,failed,'))).be.true();
    should(rows.some((row) => row.startsWith("Kim,'=1+2,failed,"))).be.true();
    should(rows.some((row) => row.startsWith('Max,,failed,'))).be.true();
  });

  recipeDoes('Ask for consent first, and text when it is given', async (flow) => {
    await flow.press('Text Dana');
    should(await phones.advanceUntil(flow.one('sent'))).containEql({ phone: '+12025550101' });
  });

  recipeDoes('Remind people who have not answered', async (flow) => {
    await flow.press('Ask Silvia');
    should(errorOf(await phones.advanceUntil(flow.one('given up'), 3600))).containEql({
      code: 'consent_limit',
    });
    should(await phones.texts(silvia, 'default', 'consent-request')).have.length(2);
    const [asked, reminded] = await phones.ledger('requestConsent');
    should((reminded?.at ?? 0) - (asked?.at ?? 0)).be.aboveOrEqual(day);

    await phones.reset();
    await flow.press('Ask Silvia');
    await cancelFirstWait('r07env');
    should(payloadOf(await flow.one('given up'))).containEql({ reason: 'cancelled' });
  });

  recipeDoes('Text a whole group', async (flow) => {
    await flow.press('Text the clients');
    const texts = (await flow.shown('sent', 4)).map(({ text }) => String(text)).sort();
    should(texts[0]).equal('Hello Ann, our office is closed on Friday.');
  });

  recipeDoes('Avoid texting people at night', async (flow) => {
    while ((await hourOfAnn()) !== 22) await phones.advance(3600);
    await flow.press('Text Ann in her hours');
    await flow.status(/held until/);
    await flow.press('Reply at once');
    should(await flow.one('left')).containEql({ outcome: 'sent', text: 'Thank you, we call you back.' });
    should(await phones.texts(ann)).have.length(1);
    while ((await hourOfAnn()) !== 8) await phones.advance(3600);
    should(await phones.texts(ann)).have.length(1);
    // Texts are spread over the first minutes of the hours.
    await phones.advance(3600 + 900);
    should(await flow.one('left')).containEql({ outcome: 'sent', text: 'Your review is ready.' });
  });

  recipeDoes('Text every weekday at nine in Chicago', async (flow) => {
    await flow.press('Weekdays at 1:00');
    const { deliveryDate, scheduled } = payloadOf(await flow.one('scheduled'));
    should(scheduled).be.true();
    const hour = new Intl.DateTimeFormat('en-US', {
      timeZone: 'America/Chicago',
      hour: 'numeric',
      hourCycle: 'h23',
    });
    should(hour.format(Number(deliveryDate))).equal('09');
    await flow.press('Weekdays at 1:00');
    should(payloadOf(await flow.one('scheduled'))).containEql({ alreadySent: true });
  });

  recipeDoes('Block people who say stop', async (flow) => {
    await flow.press('Block Ina');
    should(errorOf(await flow.one('blocked'))).containEql({ code: 'blocked' });
  });

  recipeDoes('Try a campaign without texting anybody', async (flow) => {
    await flow.press('Dry run');
    should(payloadOf(await flow.one('would be sent'))).containEql({ dryRun: true });
    should(await flow.one('would not')).containEql({ outcome: 'needsConsent' });
    should(await phones.ledger('sendMessage')).eql([]);
  });

  recipeDoes('Make sure that a text is sent only once', async (flow) => {
    await flow.press('Press twice');
    await flow.one('sent');
    await flow.press('Press twice');
    should(payloadOf(await flow.one('sent'))).containEql({ alreadySent: true });
    should(await phones.texts(ann)).have.length(1);
  });

  recipeDoes('Cancel texts that have not been sent yet', async (flow) => {
    await flow.press('Text five people');
    await flow.one('sent');
    await flow.press('Cancel the rest');
    should(errorOf(await flow.one('not sent'))).containEql({ code: 'cancelled' });
  });

  recipeDoes('List waits for consent', async (flow) => {
    await flow.press('Ask Silvia');
    await firstWait('r15env');
    await flow.press('List waits');
    const { data } = payloadOf(await flow.one('waits')) as { data: { phone: string; until: number }[] };
    should(data.map(({ phone }) => phone)).eql([silvia]);
    should(data[0]?.until).be.a.Number();
    await cancelFirstWait('r15env');
    should(payloadOf(await flow.one('answer'))).containEql({ reason: 'cancelled' });
  });

  recipeDoes('Update a contact, or create it if it is new', async (flow) => {
    await flow.press('Save Nora');
    const { contactId } = await flow.one('saved');
    await flow.press('Save Nora');
    should(await flow.one('saved')).containEql({ contactId });
    await flow.press('Save a form with an empty field');
    should(await flow.one('saved')).containEql({
      contactId,
      contact: { firstName: 'Nora', emailAddress: 'nora@example.com', city: 'Dallas' },
    });
  });

  recipeDoes('Add a contact to a group', async (flow) => {
    await flow.press('Add contact 1004');
    should(await flow.one('added')).containEql({ contactId: 1004 });
  });

  recipeDoes('Text an article from the content library', async (flow) => {
    await flow.press('Text about retirement');
    should((await flow.one('sent'))['text']).match(/ https?:\/\//);
  });

  recipeDoes('Retry later when the service was down', async (flow) => {
    await phones.control('POST', 'faults', { code: 'downstream_unavailable', rate: 1 });
    await flow.press('Text Ann');
    await phones.advanceUntil(flow.status(/^1$/), 60);
    await phones.control('DELETE', 'faults');
    should(await phones.texts(ann)).eql([]);
    // The ten minutes are over.
    await red.send('flush', { flush: true });
    should(await flow.one('sent')).containEql({ phone: ann });
    should(await phones.texts(ann)).eql(['Hello']);

    await flow.press('Text Ann', { phone: 'nobody', text: 'Hello' });
    should(errorOf(await flow.one('final'))).containEql({ code: 'invalid_input', retryable: false });
  });

  recipeDoes('Get notified when an advisor must authorize again', async (flow) => {
    await flow.press('Who is authorized?');
    const { data } = payloadOf(await flow.one('advisors')) as { data: { state: string }[] };
    should(data.map(({ state }) => state)).eql(['authorized']);

    // The simulator inside Node-RED never ends an authorization: the same flow on a service that has.
    const { baseUrl, authUrl, tokenUrl, credentials } = alsoClose(await startSimulator());
    const office = {
      id: 'office',
      type: 'advisor-environment',
      service: 'sandbox',
      ...{ baseUrl, authUrl, tokenUrl },
      redirectUri: 'https://red.example/advisor-texting/callback',
      grant: 'authorization_code',
      scopes: ['offline_access', 'text.messaging.write'],
      credentials: { ...credentials, refreshToken: 'withdrawn' },
    };
    const nodes = recipes.filter(({ nodes: [tab] }) => tab?.id === 'r20tab').flatMap(overheard);
    await red.deploy([
      office,
      ...nodes.map((node) => ('environment' in node ? { ...node, environment: 'office' } : node)),
      { id: 'in', type: 'test-port', z: 'r20tab', name: 'in', wires: [['send']] },
      { id: 'send', type: 'advisor-send-text', z: 'r20tab', environment: 'office', wires: [[], [], []] },
    ]);
    await red.send('in', { phone: ann, text: 'Hello' });
    const { advisor, link } = payloadOf(await flow.one('mail this'));
    should(advisor).equal('default');
    should(link).match(/^https:\/\/red\.example\/advisor-texting\/link\/\S+$/);
  });

  it('are all tested here, and each is on the page with its flow', () => {
    should(recipes.map(({ title }) => title)).eql([...tried].sort());
    const page = readFileSync(join(root, 'docs', 'recipes.md'), 'utf8');
    for (const title of tried) page.should.containEql(`recipes/${encodeURI(title)}.json`);
    should(recipes).have.length(20);
  });
});
