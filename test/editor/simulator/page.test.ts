import should from 'should';
import { profiles } from '../../../simulator';
import { pageForEach, phoneOf } from '../../support/simulator-page';

const number = '+14155550123';
const readable = '+1 415 555 0123';

describe("the simulator's page of somebody with flows on it", () => {
  let hasFlows = false;
  const on = pageForEach({ hasFlows: () => hasFlows });

  it('says to press a button, not to import an example, from the deploy on', async () => {
    await on.page.getByText('import an example').waitFor();
    hasFlows = true;
    on.bench.simulator.flowsChanged();
    await on.page.getByText('Your flows are ready').waitFor();
    should(await on.page.getByText('import an example').count()).equal(0);
  });
});

describe("the simulator's page", () => {
  const on = pageForEach();

  const press = async (name: string): Promise<void> => {
    await phoneOf(on.page, readable)
      .getByRole('button', { name: new RegExp(`^${name}, `) })
      .click();
  };
  const badge = (text: string) => phoneOf(on.page, readable).locator('.badge', { hasText: text });

  it('says on every screen that nobody is really texted', async () => {
    for (const tab of ['Phones', 'Messages', 'Contacts']) {
      await on.page.getByRole('tab', { name: new RegExp(`^${tab}`) }).click();
      await on.page.mouse.wheel(0, 5000);
      const banner = on.page.getByRole('complementary', { name: 'Simulator notice' });
      should(await banner.innerText()).match(/nobody is really texted\s+Texts stay on this page/);
      should((await banner.boundingBox())?.y).equal(0);
    }
    const banner = await on.page.locator('.banner').evaluate((shown) => getComputedStyle(shown).position);
    should(banner).equal('sticky');
  });

  it('explains what to do while there is no phone', async () => {
    await on.page.getByRole('heading', { name: 'Nothing has arrived yet' }).waitFor();
    await on.page.getByText('import an example').waitFor();
  });

  it('shows a text on the phone of its number the moment it arrives', async () => {
    await on.bench.askConsent(number);
    await press('Accept');
    await badge('accepted').waitFor();
    await on.bench.send(number, 'See you on Thursday.');
    await phoneOf(on.page, readable).getByText('See you on Thursday.').waitFor();
  });

  it('accepts a consent request, and the service then says accepted', async () => {
    await on.bench.askConsent(number);
    await badge('pending').waitFor();
    await press('Accept');
    await badge('accepted').waitFor();
    should(await on.bench.consent(number)).equal('accepted');
  });

  it('declines a consent request, which the service shows as pending; accepting later is possible', async () => {
    await on.bench.askConsent(number);
    await press('Decline');
    await phoneOf(on.page, readable).getByText('Declined.').waitFor();
    await badge('pending').waitFor();
    should(await on.bench.consent(number)).equal('pending');
    await press('Accept now');
    await badge('accepted').waitFor();
  });

  it('stays silent without telling the service anything', async () => {
    await on.bench.askConsent(number);
    await press('Stay silent');
    await phoneOf(on.page, readable).getByText('Not answering.').waitFor();
    should(await on.bench.consent(number)).equal('pending');
    await press('Answer now');
    await press('Accept');
    await badge('accepted').waitFor();
  });

  it('asks again after a new consent request', async () => {
    await on.bench.askConsent(number);
    await press('Decline');
    await phoneOf(on.page, readable).getByText('Declined.').waitFor();
    await on.bench.askConsent(number);
    await press('Accept');
    await badge('accepted').waitFor();
  });

  it('wipes a phone: its texts and its consent', async () => {
    await on.bench.askConsent(number);
    await press('Accept');
    await press('Wipe this phone');
    await phoneOf(on.page, readable).waitFor({ state: 'detached' });
    should(await on.bench.consent(number)).equal('none');
  });

  it('says next to the wipe of a phone that flows still know whom they asked', async () => {
    await on.bench.askConsent(number);
    await press('Accept');
    const wipe = phoneOf(on.page, readable).getByRole('button', { name: /^Wipe this phone/ });
    should(await wipe.getAttribute('title')).match(
      /“request consent” asks a number at most once in 24 hours/,
    );
    await wipe.click();
    const told = on.page.getByRole('alert').filter({ hasText: `Wiped: No name, ${readable}.` });
    should(await told.innerText()).match(/“request consent” asks a number at most once in 24 hours/);
    await on.page.getByRole('button', { name: 'Close' }).click();
    await told.waitFor({ state: 'hidden' });
  });

  it('shows a scheduled text with its time, and as arrived once that is reached', async () => {
    await on.bench.askConsent(number);
    await press('Accept');
    await badge('accepted').waitFor();
    const deliveryDate = on.bench.simulator.clock.now() + 30 * 60_000;
    await on.bench.send(number, 'Happy birthday!', { scheduleDelivery: true, deliveryDate });
    const bubble = phoneOf(on.page, readable).locator('.bubble', { hasText: 'Happy birthday!' });
    await bubble.getByText('scheduled for').waitFor();
    await on.page.getByRole('button', { name: '+1 hour' }).click();
    await bubble.getByText('as scheduled').waitFor();
  });

  it('moves the clock by each of its buttons and says how far ahead it is', async () => {
    const steps = [
      ['+30 seconds', 30],
      ['+5 minutes', 300],
      ['+1 hour', 3600],
      ['+1 day', 86_400],
    ] as const;
    for (const [label, seconds] of steps) {
      const before = on.bench.simulator.clock.now();
      const moved = on.page.waitForResponse((response) => response.url().endsWith('control/clock'));
      await on.page.getByRole('button', { name: label }).click();
      await moved;
      should(on.bench.simulator.clock.now() - before).be.within(seconds * 1000, seconds * 1000 + 20_000);
    }
    await on.page.getByText('1 day 1 hour ahead').waitFor();
  });

  it('says how far ahead the clock is in the amounts pressed, whatever the move itself took', async () => {
    const pill = on.page.locator('#ahead');
    let sum = 0;
    for (const [seconds, shown] of [
      [28, '30 seconds ahead'],
      [298, '5 minutes ahead'],
      [3575, '1 hour ahead'],
      [86_290, '1 day ahead'],
      [90_300, '1 day 1 hour ahead'],
      [2 * 86_400 + 300, '2 days 5 minutes ahead'],
    ] as const) {
      await on.bench.simulator.advance(seconds - sum);
      sum = seconds;
      await pill.getByText(shown, { exact: true }).waitFor();
    }
  });

  it('says why the clock does not go back, and how to return to real time, once it is ahead', async () => {
    const question = on.page.getByText('Return to real time?');
    should(await question.isVisible()).be.false();
    await on.bench.simulator.advance(86_400);
    await question.click();
    await on.page.getByText('This clock only moves forward').waitFor();
    const how = on.page.getByText('To return to real time');
    await how.waitFor();
    const said = await how.innerText();
    for (const word of ['ADVISOR_TEXTING_SIMULATOR=fresh', 'npm start -- --fresh', '--data'])
      should(said).containEql(word);
  });

  it("takes the lead of the clock from the simulator, not from the browser's machine", async () => {
    const page = await on.bench.open();
    await page.clock.install({ time: Date.now() - 3_600_000 });
    await page.reload();
    await page.locator('#live[data-state=live]').waitFor();
    should(await page.locator('#ahead').isVisible()).be.false();
  });

  it('turns a fault on for the next request, and shows when it is used up', async () => {
    await on.page.getByText('Make something go wrong').click();
    await on.page.getByRole('combobox', { name: 'Fault', exact: true }).selectOption('conflict');
    await on.page.getByRole('button', { name: 'Turn on' }).click();
    const listed = on.page.getByLabel('Active faults');
    await listed.getByText('Any request: conflict').waitFor();
    should((await on.bench.call('GET', '/core/contact/groups')).status).equal(409);
    await listed.waitFor({ state: 'hidden' });
    should((await on.bench.call('GET', '/core/contact/groups')).status).equal(200);
  });

  it('turns all faults off', async () => {
    await on.page.getByText('Make something go wrong').click();
    await on.page.getByLabel('How often').selectOption({ label: 'Every request' });
    await on.page.getByRole('button', { name: 'Turn on' }).click();
    await on.page.getByRole('button', { name: 'Turn off all faults' }).click();
    await on.page.getByLabel('Active faults').waitFor({ state: 'hidden' });
    should((await on.bench.call('GET', '/core/contact/groups')).status).equal(200);
  });

  it('can remove the set-up for consent, so that a consent request gets a 409', async () => {
    await on.page.getByText('Account settings').click();
    const changed = on.page.waitForResponse((response) => response.url().endsWith('control/settings'));
    await on.page.getByLabel('Set up for consent collection').uncheck();
    await changed;
    const answer = await on.bench.call('POST', '/text/messaging/consent-requests', {
      phoneNumbers: [number],
    });
    should(answer.status).equal(409);
  });

  it('resets only after a confirmation', async () => {
    await on.bench.askConsent(number);
    await phoneOf(on.page, readable).waitFor();
    await on.page.getByRole('button', { name: 'Reset the simulator' }).click();
    await on.page.getByRole('button', { name: 'Cancel' }).click();
    await phoneOf(on.page, readable).waitFor();
    await on.page.getByRole('button', { name: 'Reset the simulator' }).click();
    await on.page.getByRole('button', { name: 'Reset', exact: true }).click();
    await on.page.getByRole('heading', { name: 'Nothing has arrived yet' }).waitFor();
  });

  it('becomes another service on request, says what an environment needs, and accepts habits one by one', async () => {
    const { page, bench } = on;
    const profile = page.getByRole('combobox', { name: 'Simulated service' });
    should(await profile.inputValue()).equal('usual');
    should(await page.locator('#needs').isVisible()).be.false();
    await profile.selectOption('foreign');
    await page.getByText('Follows the contract').waitFor();
    should(bench.simulator.settings.habits).eql(profiles.foreign);
    const needs = await page.locator('#needs').innerText();
    should(needs).match(/corePrefix\s+crm\s+textPrefix\s+sms\s+names\s+\{\s+"page": "pageNumber"/);
    should(needs).match(/deliveryDateUnit\s+s\b/);
    await page.getByText('Individual habits').click();
    await page
      .getByRole('combobox', { name: 'Ids', exact: true })
      .selectOption({ label: 'are numbers beyond 2^53' });
    await page.getByText('Individual habits were changed.').waitFor();
    should(await profile.inputValue()).equal('mixed');
    should(bench.simulator.settings.habits).eql({ ...profiles.foreign, ids: 'large' });
    await profile.selectOption('usual');
    await page.getByText('Behaves as this package assumes').waitFor();
    should(bench.simulator.settings.habits).eql(profiles.usual);
  });
});
