import type { Locator } from 'playwright-core';
import should from 'should';
import { openEnvironment, windowFrom } from '../support/editor/setup';
import { launchBrowser, type TestBrowser } from '../support/browser';
import { isLong } from '../support/extent';
import { startRed, type RealRed } from '../support/node-red';
import { phoneOf } from '../support/simulator-page';

/** The editor gives imported nodes new ids. */
const environmentId = `(() => {
  let id = '';
  RED.nodes.eachConfig((node) => { if (node.type === 'advisor-environment') id = node.id; });
  return id;
})()`;

/** Of Node-RED 5, `npm test` sees the palette, the canvas and the dialogs elsewhere; of 4.1, only this. */
for (const version of isLong ? ([4, 5] as const) : ([4] as const)) {
  describe(`the consent flow for a newcomer, on Node-RED ${version.toString()}`, function () {
    this.timeout(180_000);
    let red: RealRed;
    let browser: TestBrowser;

    before(async () => {
      [red, browser] = await Promise.all([startRed({ version, isWhole: true, flows: [] }), launchBrowser()]);
    });
    after(async () => {
      await browser.close();
      await red.close();
    });

    it('texts Elif once she has accepted on her phone, after it was imported from the menu, deployed and pressed', async () => {
      const { page, errors } = await browser.open({ viewport: { width: 1500, height: 900 } });
      await page.goto(red.url);
      await page.locator('#red-ui-header-button-sidemenu').click();
      await page.locator('#menu-item-import').click();
      const dialog = page.locator('#red-ui-clipboard-dialog');
      await dialog.getByRole('link', { name: 'Examples' }).click();
      await dialog.getByText('@advisor-texting/node-red').click();
      await dialog.getByText('02 Ask for consent, then text').click();
      await page.locator('#red-ui-clipboard-dialog-ok').click();
      await dialog.waitFor({ state: 'hidden' });
      await page.locator('.red-ui-tab-label', { hasText: 'Ask for consent, then text' }).first().click();
      const node = (label: string): Locator => page.locator('.red-ui-flow-node-group', { hasText: label });
      await page.getByText('wait for consent', { exact: true }).waitFor();

      const from = red.lines.length;
      await page.locator('#red-ui-header-button-deploy').click();
      await red.logged(/Started flows/, { from });
      await node('Text Elif').locator('.red-ui-flow-node-button-button').click();
      await page.getByText(/^sim 1 waiting/).waitFor();

      const environment = await page.evaluate<string>(environmentId);
      await openEnvironment(page, environment);
      const opened = await windowFrom(page, page.getByRole('button', { name: 'Open the phones' }));
      const phone = phoneOf(opened, 'Elif Kaya');
      await phone.getByRole('button', { name: 'Accept' }).click();
      await phone.getByText('Elif, your quarterly review is ready.').waitFor({ timeout: 20_000 });
      should(errors).deepEqual([]);
    });
  });
}
