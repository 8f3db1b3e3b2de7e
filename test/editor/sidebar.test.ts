import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import type { Locator } from 'playwright-core';
import { root } from '../support/installation';
import type { FlowNode } from '../support/node-red';
import { setTheme, themesOf, violations } from './looks';
import { startEditor, type StartedEditor } from './support';

const silent = '+12025550111';
const never = '+12025550112';
const landline = '+12025550115';

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Mine' },
  { id: 'env', type: 'advisor-environment', name: 'Play <b>', service: 'simulator' },
  { id: 'in', type: 'test-port', z: 'tab', name: 'in', x: 100, y: 40, wires: [['waiting']] },
  {
    id: 'waiting',
    type: 'advisor-check-consent',
    z: 'tab',
    name: 'my wait',
    environment: 'env',
    mode: 'wait',
    x: 300,
    y: 40,
    wires: [['out'], ['out'], ['out']],
  },
  { id: 'out', type: 'test-port', z: 'tab', name: 'out', x: 500, y: 40, wires: [[]] },
  { id: 'text', type: 'test-port', z: 'tab', name: 'text', x: 100, y: 140, wires: [['send']] },
  {
    id: 'send',
    type: 'advisor-send-text',
    z: 'tab',
    name: 'my send',
    environment: 'env',
    x: 300,
    y: 140,
    wires: [[], ['failed'], []],
  },
  { id: 'failed', type: 'test-port', z: 'tab', name: 'failed', x: 500, y: 140, wires: [[]] },
];

for (const version of [4, 5] as const) {
  describe(`the sidebar in Node-RED ${String(version)}`, function () {
    this.timeout(120_000);
    let editor: StartedEditor;
    let sidebar: Locator;

    before(async () => {
      editor = await startEditor(version, flows);
      sidebar = editor.page.locator('.advisor-sidebar');
      await editor.page.evaluate(`RED.sidebar.show('advisor-texting')`);
      await sidebar.locator('.advisor-side-name').waitFor();
    });
    after(async () => {
      await editor.close();
    });

    const rowOf = (phone: string): Locator => sidebar.locator('.advisor-side-waits li', { hasText: phone });

    it('shows by itself who waits and what failed, as text', async () => {
      const { red } = editor;
      should(await sidebar.locator('.advisor-side-name').textContent()).equal('Play <b>');
      await red.send('in', { phone: [silent, never] });
      await rowOf(silent).waitFor();
      await rowOf(never).waitFor();
      should(await rowOf(silent).textContent()).match(/default · since .* · next check .* · until /);
      await red.send('text', { phone: landline, text: 'secret' });
      const failure = sidebar.locator('.advisor-side-failures li', { hasText: landline });
      await failure.waitFor();
      should(await failure.textContent()).match(/refused.*my send/);
      should(await sidebar.textContent()).not.containEql('secret');
      should(await sidebar.locator('.advisor-side-advisors li').textContent()).match(/default.*authorized/);
    });

    it('finds a number, shows the node and lets nobody lose the focus', async () => {
      const search = sidebar.getByLabel('Search by number');
      await search.fill('0112');
      await rowOf(silent).waitFor({ state: 'detached' });
      should(await rowOf(never).count()).equal(1);
      await search.fill('');
      await rowOf(silent).waitFor();
      const button = rowOf(silent).getByRole('button', { name: 'Show the node' });
      await button.focus();
      await editor.red.send('in', { phone: '+12025550116' });
      await rowOf('+12025550116').waitFor();
      should(await button.evaluate((element) => element === document.activeElement)).be.true();
      await editor.page.keyboard.press('Enter');
    });

    it('checks one now and cancels one by keyboard, and cancels by mouse only what is meant', async () => {
      const { red, page } = editor;
      await rowOf(silent).getByRole('button', { name: 'Check now' }).focus();
      await page.keyboard.press('Enter');
      const cancel = rowOf(never).getByRole('button', { name: 'Cancel' });
      await cancel.focus();
      await page.keyboard.press('Enter');
      await rowOf(never).getByRole('button', { name: 'Press again to do it' }).waitFor();
      await page.keyboard.press('Enter');
      await rowOf(never).waitFor({ state: 'detached' });
      const [told] = await red.messages('out', 1);
      should(told).containEql({ phone: never, outcome: 'notAccepted' });
      await rowOf(silent).getByRole('button', { name: 'Cancel' }).click();
      await rowOf(silent).getByRole('button', { name: 'Press again to do it' }).click();
      await rowOf(silent).waitFor({ state: 'detached' });
    });

    for (const theme of themesOf(version)) {
      it(`is accessible in the ${theme} theme, and says nothing in red`, async () => {
        await setTheme(editor.page, theme);
        should(await violations(editor.page, '.advisor-sidebar')).deepEqual([]);
        const folder = join(root, 'test', 'output');
        mkdirSync(folder, { recursive: true });
        await sidebar.screenshot({
          path: join(folder, `sidebar-${String(version)}-${theme}.png`),
          animations: 'disabled',
        });
        should(editor.errors).deepEqual([]);
      });
    }
  });
}
