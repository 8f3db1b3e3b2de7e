import should from 'should';
import { pageForEach, phoneOf } from '../../support/simulator-page';

describe("the lists of the simulator's page", () => {
  const on = pageForEach({ contacts: 60 });

  const tab = (name: string) => on.page.getByRole('tab', { name: new RegExp(`^${name}`) });
  const count = (selector: string): Promise<number> => on.page.locator(selector).count();

  it('show an advisor’s contacts page by page, with their number', async () => {
    await tab('Contacts').click();
    await on.page.getByText('Page 1 of 3').waitFor();
    should(await tab('Contacts').innerText()).match(new RegExp(String(on.bench.shown.contacts.count)));
    should(await count('#contact-rows tr')).equal(25);
    await on.page.getByRole('button', { name: 'Next' }).click();
    await on.page.getByText('Page 2 of 3').waitFor();
    await on.page.getByRole('button', { name: 'Next' }).click();
    await on.page.getByText('Page 3 of 3').waitFor();
    should(await count('#contact-rows tr')).equal(10);
    should(await on.page.getByRole('button', { name: 'Next' }).isDisabled()).be.true();
  });

  it('find contacts by name or number, and count a new one immediately', async () => {
    await tab('Contacts').click();
    await on.page.getByText('Page 1 of 3').waitFor();
    await on.bench.call('POST', '/core/contact/contacts', {
      firstName: 'Zelda',
      lastName: 'Quist',
      phone: '+14155550177',
    });
    await tab('Contacts').getByText('61').waitFor();
    await on.page.getByRole('searchbox').fill('zelda');
    await on.page.getByText('Page 1 of 1').waitFor();
    should(await on.page.locator('#contact-rows').innerText()).match(/Zelda Quist\s+\+1 415 555 0177/);
  });

  it('include every message, newest first', async () => {
    on.bench.simulator.change({ consentRequired: false });
    await on.bench.send('+14155550101', 'first');
    await on.bench.send('+14155550102', 'second');
    await tab('Messages').click();
    await on.page.locator('#message-rows').getByText('second').waitFor();
    should(await on.page.locator('#message-rows td.text').allInnerTexts()).eql(['second', 'first']);
  });

  it('show an answer above its question where both came at the same moment', async () => {
    await on.bench.askConsent('+12025550110');
    await tab('Messages').click();
    const texts = on.page.locator('#message-rows td.text');
    await texts.nth(1).waitFor();
    should(await texts.allInnerTexts()).match(['NO', /would like to text you/]);
  });

  it('show one phone for a number that several advisors text, and on each message whose it is', async () => {
    await on.bench.askConsent('+14155550101', 'default');
    const phone = phoneOf(on.page, '+1 415 555 0101');
    await phone.locator('.bubble').waitFor();
    should(await phone.locator('.from').count()).equal(0);
    await on.bench.askConsent('+14155550101', 'riley');
    await phone.locator('.sender', { hasText: 'Riley Chen' }).waitFor();
    should(await phone.locator('.bubble .from').allInnerTexts()).eql(['Alex Morgan', 'Riley Chen']);
    await phone.getByRole('group', { name: 'Riley Chen' }).getByRole('button', { name: 'Accept' }).click();
    await phone.locator('.sender', { hasText: 'Riley Chen' }).getByText('accepted').waitFor();
    const senders = await phone.locator('.sender').allInnerTexts();
    should(senders.map((text) => text.replaceAll(/\s+/g, ' '))).match([
      /Alex Morgan Consent: pending/,
      /Riley Chen Consent: accepted/,
    ]);
    should(await phone.locator('.bubble .from').allInnerTexts()).eql([
      'Alex Morgan',
      'Riley Chen',
      'to Riley Chen',
    ]);
    should(on.bench.simulator.state('default').phones[0]?.consent).equal('pending');
    await tab('Messages').click();
    await on.page.locator('#message-rows td.whose-column', { hasText: 'Riley Chen' }).first().waitFor();
  });

  it('wipe a phone for every advisor who texted it', async () => {
    on.bench.simulator.change({ consentRequired: false });
    await on.bench.send('+14155550101', 'from Alex', {}, 'default');
    await on.bench.send('+14155550101', 'from Riley', {}, 'riley');
    const phone = phoneOf(on.page, '+1 415 555 0101');
    await phone.getByText('from Riley').waitFor();
    await phone.locator('[data-action=wipe]').click();
    await phone.waitFor({ state: 'detached' });
    should(on.bench.shown.phones.some(({ messages }) => messages.length > 0)).be.false();
  });

  it('show the contacts of all advisors and whose they are, or of the selected one', async () => {
    await on.bench.askConsent('+14155550102', 'default');
    await on.bench.askConsent('+14155550102', 'riley');
    await phoneOf(on.page, '+1 415 555 0102').getByText('Riley Chen', { exact: true }).first().waitFor();
    await tab('Contacts').getByText(String(on.bench.shown.contacts.count)).waitFor();
    await tab('Contacts').click();
    await on.page.getByText('Address books of all advisors').waitFor();
    await on.page.getByRole('searchbox').fill('+1 415 555 0102');
    await on.page.getByText('Page 1 of 1').waitFor();
    should(await on.page.locator('#contact-rows td.whose-column').allInnerTexts()).eql([
      'Alex Morgan',
      'Riley Chen',
    ]);
    await on.page.getByLabel('Advisor', { exact: true }).selectOption('riley');
    await on.page.getByText('Address book of Riley Chen').waitFor();
    await on.page.locator('#contact-rows tr').nth(1).waitFor({ state: 'detached' });
    should(on.bench.simulator.state('riley').contacts.count * 2).equal(on.bench.shown.contacts.count);
    should(await on.page.locator('#contacts .whose-column').first().isVisible()).be.false();
  });

  it('stay usable with hundreds of phones: the newest first, the rest one click or a filter away', async () => {
    on.bench.simulator.change({ consentRequired: false });
    for (let line = 100; line < 330; line++) {
      await on.bench.send(`+14155550${String(line)}`, `Text number ${String(line)}`);
    }
    await on.page.locator('article').first().getByText('Text number 329').waitFor();
    should(await tab('Phones').innerText()).match(/230/);
    await on.page.getByText('Older phones not shown: 30').waitFor();
    should(await count('article')).equal(24);
    await on.page.getByRole('button', { name: 'Show 24 more of 200 phones' }).click();
    should(await count('article')).equal(48);
    await on.page.getByRole('searchbox').fill('(415) 555-0150');
    await on.page.locator('article').first().getByText('Text number 150').waitFor();
    should(await count('article')).equal(1);
    await on.page.getByRole('searchbox').fill('nobody has this');
    await on.page.getByRole('button', { name: 'Clear the filter' }).click();
    should(await count('article')).equal(48);
  });

  it('treat hostile names and texts as text, everywhere', async () => {
    const hostile =
      '<img src=x onerror="window.struck = true"><script>window.struck = true</script>\u009b2J\u202e';
    on.bench.simulator.change({ consentRequired: false });
    await on.bench.call('POST', '/core/contact/contacts', {
      firstName: hostile,
      lastName: '"><svg onload=window.struck=true>',
      emailAddress: hostile,
      phone: '+14155550166',
    });
    await on.bench.send('+14155550166', `javascript:alert(1) ${hostile}`, {}, 'default');
    await on.bench.send('+14155550167', hostile, {}, hostile);
    await phoneOf(on.page, '+1 415 555 0167').waitFor();
    await on.page.getByRole('searchbox').fill('<img src=x');
    for (const name of ['Phones', 'Messages', 'Contacts']) {
      await tab(name).click();
      await on.page.locator('[role=tabpanel]:visible').getByText('<img src=x').first().waitFor();
      should(await count('main img, main script, main svg')).equal(0);
      should(await on.page.locator('main').textContent()).not.match(/[\u009b\u202e]/);
    }
    should(await on.page.evaluate(() => 'struck' in globalThis)).be.false();
  });
});
