import should from 'should';
import type { Page } from 'playwright-core';
import { languages } from '../../../lib/languages';
import { isLong } from '../../support/extent';
import { type Bench, benchForEach } from '../../support/simulator-page';

const widths = [360, 375, 768, 1280, 1500, 1920];

/** Elements that a line break makes ragged or hard to read: numbers, buttons, tabs, and states. */
const inOneLine =
  '.phone-number, .badge span:last-child, .ahead, .live, .row .button, [role=tab], .kind, .answers .button';

/** A tab may have its count below its name; nothing else has a second line. */
const raggedOn = (page: Page): Promise<string[]> =>
  page.locator(inOneLine).evaluateAll((elements) =>
    elements
      .filter((element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        const middles = [...range.getClientRects()].map(({ top, height }) => top + height / 2);
        const height = Math.max(...middles) - Math.min(...middles);
        return element.checkVisibility() && height > (element.querySelector('.count') === null ? 8 : 24);
      })
      .map((element) => element.textContent),
  );

const overflowOf = (page: Page): Promise<number> =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

const fill = async (bench: Bench): Promise<void> => {
  for (const phone of ['+12025550100', '+12025550110', '+14155550123', '+819012345678']) {
    await bench.askConsent(phone);
  }
  const deliveryDate = bench.simulator.clock.now() + 3 * 86_400_000;
  await bench.send('+12025550100', 'Happy birthday!', { scheduleDelivery: true, deliveryDate });
  await bench.send('+12025550100', `https://example.com/${'a-very-long-address'.repeat(20)}`);
  await bench.send('+12145550104', 'She has not consented.');
  await bench.call('POST', '/core/contact/contacts', {
    firstName: 'Maximiliana',
    lastName: 'Featherstonehaugh-Cholmondeley',
    emailAddress: `${'long.'.repeat(15)}address@example.com`,
    phone: '+14155550199',
  });
  await bench.askConsent('+14155550199', 'riley');
  for (const advisor of ['riley', 'jordan']) await bench.askConsent('+12025550110', advisor);
  bench.simulator.faults.add({ kind: 'cut-inside', endpoint: 'sendMessage', phone: '+12025550111' });
  await bench.simulator.advance(86_400 + 82_800);
};

describe("the layout of the simulator's page", () => {
  const bench = benchForEach();

  // German has the longest words.
  for (const locale of isLong ? languages : ['de']) {
    it(`breaks no number, button or state, and never scrolls sideways, at any usual width (${locale})`, async () => {
      await fill(bench());
      const page = await bench().open({ locale });
      await page.locator('#back summary').click();
      for (const tab of ['phones', 'messages', 'contacts']) {
        await page.locator(`#tab-${tab}`).click();
        await page.locator(`#${tab} .phone-number`).first().waitFor();
        for (const width of widths) {
          await page.setViewportSize({ width, height: 900 });
          should([tab, width, await raggedOn(page)]).eql([tab, width, []]);
          should([tab, width, await overflowOf(page)]).eql([tab, width, 0]);
        }
      }
    });
  }

  it('links from the phones to the controls where those come after them', async () => {
    await fill(bench());
    const page = await bench().open({ viewport: { width: 375, height: 740 } });
    should(
      await page.locator('#clock-title').evaluate((title) => title.getBoundingClientRect().top),
    ).be.above(740);
    await page.getByRole('link', { name: 'Simulator controls' }).click();
    should(
      await page.locator('#clock-title').evaluate((title) => title.getBoundingClientRect().top),
    ).be.within(40, 740);
    await page.setViewportSize({ width: 1280, height: 800 });
    should(await page.getByRole('link', { name: 'Simulator controls' }).isVisible()).be.false();
  });
});
