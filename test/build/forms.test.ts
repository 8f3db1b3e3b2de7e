import should from 'should';
import type { Page } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../support/browser';
import { type FlowNode, type RealRed, startRed } from '../support/node-red';

const flowTypes = ['send-text', 'request-consent', 'check-consent', 'contact', 'group', 'content'];

/** Nodes as a flow of an older version would have them: hardly a property saved. */
const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Forms' },
  { id: 'environment', type: 'advisor-environment', name: '', service: 'simulator' },
  ...flowTypes.map((name, index) => ({
    id: name,
    type: `advisor-${name}`,
    z: 'tab',
    x: 300,
    y: 60 + 80 * index,
    environment: 'environment',
    wires: [],
  })),
];

const open = async (page: Page, id: string): Promise<void> => {
  await page.evaluate(`RED.editor.edit(RED.nodes.node('${id}'))`);
  await page.locator(`.advisor-form[data-type="advisor-${id}"]`).waitFor();
};

const done = async (page: Page): Promise<void> => {
  await page.locator('#node-dialog-ok').click();
  await page.locator('.advisor-form').waitFor({ state: 'detached' });
};

const openEnvironment = async (page: Page): Promise<void> => {
  await page.evaluate(`RED.editor.editConfig('', 'advisor-environment', 'environment')`);
  await page.locator('.advisor-form[data-type="advisor-environment"]').waitFor();
};

const doneEnvironment = async (page: Page): Promise<void> => {
  await page.locator('#node-config-dialog-ok').click();
  await page.locator('.advisor-form').waitFor({ state: 'detached' });
};

const saved = (page: Page, id: string): Promise<Record<string, unknown>> =>
  page.evaluate(`RED.nodes.convertNode(RED.nodes.node('${id}'))`);

const labelOf = (page: Page, id: string): Promise<string> =>
  page.evaluate(`RED.utils.getNodeLabel(RED.nodes.node('${id}'))`);

/** Types into the box that the editor shows in place of a typed input. */
const typedBox = (page: Page, field: string) =>
  page.locator(`#node-input-${field} + .red-ui-typedInput-container input.red-ui-typedInput-input`);

for (const version of [4, 5] as const) {
  describe(`the forms in the editor of Node-RED ${version.toString()}`, function () {
    this.timeout(90_000);
    let red: RealRed;
    let browser: TestBrowser;
    let page: Page;
    let errors: readonly string[];

    before(async () => {
      [red, browser] = await Promise.all([startRed({ version, flows }), launchBrowser()]);
      ({ page, errors } = await browser.open());
      await page.goto(red.url);
      await page.locator('.red-ui-flow-node').first().waitFor();
    });

    after(async () => {
      await browser.close();
      await red.close();
    });

    it('open and close for every node, filling in what an older flow does not have', async () => {
      for (const name of flowTypes) {
        await open(page, name);
        (await page.locator('.advisor-form .advisor-error:visible').allTextContents()).should.eql([]);
        (await page.locator('.advisor-form [data-i18n]:visible').allTextContents()).forEach((text) => {
          text.should.not.match(/^(label|hint|option|unit|row)\./);
        });
        await done(page);
      }
      (await saved(page, 'check-consent')).should.containEql({
        mode: 'once',
        pollEvery: 30,
        giveUpAfter: 86400,
      });
      (await saved(page, 'contact')).should.containEql({
        contactType: 'msg',
        merge: true,
        fields: [],
        pageSize: 50,
      });
    });

    it('say what to fix while one types, and on the red triangle', async () => {
      await open(page, 'send-text');
      await page.evaluate(`$('#node-input-phone').typedInput('type', 'str')`);
      await typedBox(page, 'phone').fill('512');
      await typedBox(page, 'phone').press('End');
      const sentence = page.locator('[data-field=phone] .advisor-error');
      (await sentence.textContent())?.should.match(/^Begin the number with \+/);
      (await typedBox(page, 'phone').getAttribute('aria-invalid'))?.should.equal('true');
      await done(page);
      const told = await page.evaluate<string[]>(`RED.nodes.node('send-text').validationErrors`);
      told.join().should.match(/Begin the number with \+/);
      await open(page, 'send-text');
      await typedBox(page, 'phone').fill('+15125550142');
      await typedBox(page, 'phone').press('End');
      (await sentence.textContent())?.should.equal('');
      await done(page);
      should(await page.evaluate(`RED.nodes.node('send-text').valid`)).be.true();
    });

    it('show only the fields that apply, and keep numbers as numbers', async () => {
      await open(page, 'check-consent');
      await page.locator('[data-field=pollEvery]').isHidden().should.be.fulfilledWith(true);
      await page.locator('#node-input-mode').selectOption('wait');
      await page.locator('#node-input-pace').selectOption('custom');
      await page.locator('#node-input-pollEvery').fill('5');
      await done(page);
      (await saved(page, 'check-consent')).should.containEql({ mode: 'wait', pollEvery: 5, thenEvery: 300 });
      (await labelOf(page, 'check-consent')).should.equal('wait for consent');
    });

    it('read like a sentence on the flow', async () => {
      await open(page, 'send-text');
      await page.evaluate(`$('#node-input-text').typedInput('type', 'str').typedInput('value', 'Hi Ann')`);
      await done(page);
      (await labelOf(page, 'send-text')).should.equal('text “Hi Ann”');
    });

    it('take a contact field by field', async () => {
      await open(page, 'contact');
      await page.evaluate(`$('#node-input-contact').typedInput('type', 'fields')`);
      await typedBox(page, 'fields-entry-firstName').fill('Ann');
      await typedBox(page, 'fields-entry-firstName').press('End');
      await done(page);
      (await saved(page, 'contact')).should.containEql({
        contactType: 'fields',
        fields: [{ field: 'firstName', value: 'Ann', valueType: 'str' }],
      });
    });

    it('ask a real service for what it needs, and take a variable for the choice', async () => {
      await openEnvironment(page);
      await page.locator('[data-field=baseUrl]').isHidden().should.be.fulfilledWith(true);
      await page.locator('#node-config-input-service').selectOption('sandbox');
      (await page.locator('[data-field=baseUrl] .advisor-error').textContent())?.should.match(/fill this in/);
      await page.locator('.advisor-advanced > summary').click();
      await page.locator('#node-config-input-timeout').fill('45');
      await page.locator('#node-config-input-scopes-entry-others').fill('maker.extra');
      await page.locator('#node-config-input-service').selectOption({ index: 3 });
      await page.locator('#node-config-input-service-variable').fill('${SERVICE}');
      await doneEnvironment(page);
      const environment = await saved(page, 'environment');
      environment.should.containEql({ service: '${SERVICE}', timeout: 45, names: {} });
      (environment['scopes'] as string[]).should.containEql('maker.extra').and.containEql('offline_access');
    });

    it('name every control for a screen reader', async () => {
      await open(page, 'group');
      const nameless = await page.evaluate<string[]>(`
        [...document.querySelectorAll('.advisor-form input, .advisor-form select, .advisor-form button')]
          .filter((one) => one.offsetParent !== null)
          .filter((one) => !(one.getAttribute('aria-label') || one.title || one.textContent.trim()
            || [...(one.labels || [])].some((label) => label.textContent.trim())
            || document.getElementById(one.getAttribute('aria-labelledby'))?.textContent.trim()))
          .map((one) => one.outerHTML)`);
      nameless.should.eql([]);
      await done(page);
    });

    it('leave no error in the console', () => {
      errors.should.eql([]);
    });
  });
}
