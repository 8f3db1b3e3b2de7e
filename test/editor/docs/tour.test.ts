import 'should';
import type { Page } from 'playwright-core';
import { describeInLongRun } from '../../support/extent';
import { launchBrowser, type TestBrowser } from '../../support/browser';
import { type RealRed, startRed } from '../../support/node-red';
import { buildTheFlow, deploy, pressInject, statusOf } from '../../support/docs/tour';

describeInLongRun('the five-minute tour of the README, by mouse and keyboard', function () {
  this.timeout(180_000);
  let red: RealRed;
  let browser: TestBrowser;
  let page: Page;
  let errors: readonly string[];

  before(async () => {
    [red, browser] = await Promise.all([
      startRed({ version: 5, isWhole: true, flows: [{ id: 'tab', type: 'tab', label: 'Flow 1' }] }),
      launchBrowser(),
    ]);
    ({ page, errors } = await browser.open());
    await page.goto(red.url);
    await page.locator('.red-ui-palette-node').first().waitFor();
  });

  after(async () => {
    await browser.close();
    await red.close();
  });

  it('builds and deploys the consent flow on an empty tab', async () => {
    await buildTheFlow(page);
    (await page.locator('.red-ui-flow-node-error:visible').count()).should.equal(0);
    await deploy(page);
  });

  it('asks Grace, waits for her, and texts her once she has accepted', async () => {
    await pressInject(page);
    await statusOf(page, 'wait for consent')
      .filter({ hasText: /^sim 1 waiting/ })
      .waitFor();
    const phones = await page.context().newPage();
    await phones.goto(`${red.url}/advisor-texting/simulator/`);
    const grace = phones.locator('article', { hasText: '+1 217 555 0107' });
    await grace.locator('[data-action=accept]').click();
    await grace.getByText('Hello Grace, shall we talk on Friday?').waitFor();
    await statusOf(page, 'text')
      .filter({ hasText: /^sim 1 sent, 1 no consent/ })
      .waitFor();
    await statusOf(page, 'wait for consent')
      .filter({ hasText: /accepted/ })
      .waitFor();
  });

  it('leaves no error in the console', () => {
    errors.should.eql([]);
  });
});
