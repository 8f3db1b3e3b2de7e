import should from 'should';
import type { Locator, Page } from 'playwright-core';
import { versions } from '../support/extent';
import type { FlowNode } from '../support/node-red';
import { silent, unasked } from './sidebar';
import {
  closeNode,
  dialogReady,
  environmentForm,
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
      await page.waitForFunction(`$('#node-input-environment option').length === 2`);
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
