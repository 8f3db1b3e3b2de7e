import should from 'should';
import type { Locator, Page } from 'playwright-core';
import { versions } from '../support/extent';
import type { FlowNode } from '../support/node-red';
import { silent, unasked } from './sidebar';
import {
  closeEnvironment,
  closeNode,
  dialogReady,
  environmentForm,
  openEnvironment,
  openNode,
  saved,
  startEditor,
  type StartedEditor,
} from './support';

const at = (id: string, type: string, y: number, more: object = {}): FlowNode => ({
  id,
  type,
  z: 'tab',
  x: 300,
  y,
  wires: [],
  ...more,
});

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Office' },
  { id: 'env', type: 'advisor-environment', name: 'Trial', service: 'simulator' },
  { id: 'real', type: 'advisor-environment', name: 'Real', service: 'production' },
  {
    id: 'moving',
    type: 'advisor-environment',
    name: 'Simulator (example 3)',
    service: 'simulator',
    country: '${COUNTRY}',
  },
  at('in', 'test-port', 40, { name: 'in', x: 100, wires: [['send']] }),
  at('send', 'advisor-send-text', 40, { environment: 'env', wires: [[], [], ['sent']] }),
  at('sent', 'test-port', 40, { name: 'sent', x: 500 }),
  at('ask', 'test-port', 120, { name: 'ask', x: 100, wires: [['wait']] }),
  at('wait', 'advisor-check-consent', 120, { environment: 'env', mode: 'wait', wires: [[], [], []] }),
];

for (const version of versions) {
  describe(`an office in the editor of Node-RED ${version.toString()}`, function () {
    this.timeout(180_000);
    let editor: StartedEditor;
    let page: Page;

    before(async () => {
      editor = await startEditor(version, flows);
      page = editor.page;
    });

    after(async () => {
      await editor.close();
    });

    const status = (text: string): Locator =>
      page.locator('.red-ui-flow-node-status-label:visible', { hasText: text });

    it('offers countries and time zones by name and code, and keeps a variable', async () => {
      await openEnvironment(page, 'moving');
      const field = (name: string): Locator => page.locator(`#node-config-input-${name}`);
      const options = (name: string): Locator =>
        environmentForm(page).locator(`[data-field=${name}]`).getByRole('option');
      should(await field('country').inputValue()).equal('${COUNTRY}');
      should(await field('timeZone').getAttribute('aria-expanded')).equal('false');

      await field('country').fill('germ');
      await options('country').first().getByText('Germany').waitFor();
      should(await options('country').count()).equal(1);
      await field('country').press('ArrowDown');
      await field('country').press('Enter');
      should(await field('country').inputValue()).equal('DE');
      await field('country').fill('JP');
      await options('country').getByText('Japan').click();
      should(await field('country').inputValue()).equal('JP');
      await field('country').fill('united kingdom');
      await field('timeZone').focus();
      should(await field('country').inputValue()).equal('GB');

      await field('timeZone').fill('mountain phoenix');
      await options('timeZone').getByText('Phoenix', { exact: true }).click();
      should(await field('timeZone').inputValue()).equal('America/Phoenix');
      await field('timeZone').fill('${ZONE}');
      should(await options('timeZone').first().isVisible()).be.false();
      await field('timeZone').press('Escape');
      await closeEnvironment(page);
      should(await saved(page, 'moving')).containEql({ country: 'GB', timeZone: '${ZONE}' });
    });

    it('proposes another name for a simulator that goes to production', async () => {
      await openEnvironment(page, 'moving');
      const use = environmentForm(page).getByRole('button', { name: 'Call it “Production”' });
      should(await use.isVisible()).be.false();
      await page.locator('#node-config-input-service').selectOption('production');
      await use.click();
      should(await page.locator('#node-config-input-name').inputValue()).equal('Production');
      should(await use.isVisible()).be.false();
      await closeEnvironment(page, 'cancel');
    });

    it('names those who wait before an environment is deleted, and no other takes its place', async () => {
      await editor.red.send('in', { phone: unasked, text: 'Hello' });
      await editor.red.send('ask', { phone: [{ phone: silent, name: 'Ada' }] });
      await status('sim needs consent').waitFor();
      await status('sim 1 waiting').waitFor();

      await openNode(page, 'send');
      await page.locator('#node-input-btn-environment-edit').click();
      await dialogReady(page, 'environment');
      const remove = page.locator('.red-ui-tray').last().locator('.red-ui-tray-toolbar .leftButton');
      const question = environmentForm(page).getByRole('alert');

      await remove.click();
      should(await question.locator('p').textContent()).match(/“Trial”: 1 .*Waiting for consent: Ada\./);
      await question.getByRole('button', { name: 'Keep it' }).click();
      await question.waitFor({ state: 'hidden' });
      (await page.evaluate<boolean>(`RED.nodes.node('env') !== null`)).should.be.true();

      await remove.click();
      await question.getByRole('button', { name: 'Delete it' }).click();
      await environmentForm(page).waitFor({ state: 'detached' });
      await page.waitForFunction(`$('#node-input-environment option').length === 3`);
      (await page.locator('#node-input-environment').inputValue()).should.equal('_ADD_');
      (await status('sim').count()).should.equal(0);
      await closeNode(page);
      (await saved(page, 'send')).should.have.property('environment', '');

      await openNode(page, 'send');
      (await page.locator('#node-input-environment').inputValue()).should.equal('_ADD_');
      await closeNode(page, 'cancel');
      editor.errors.should.eql([]);
    });
  });
}
