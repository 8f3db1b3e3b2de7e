import { join } from 'node:path';
import type { Page } from 'playwright-core';
import should from 'should';
import { itInLongRun, versions } from '../../support/extent';
import { launchBrowser, type TestBrowser } from '../../support/browser';
import { examplesIn } from '../../support/examples/setup';
import { root } from '../../support/installation';
import { type FlowNode, startRed, type RealRed } from '../../support/node-red';

interface Box {
  readonly z: string;
  readonly type: string;
  readonly label: string;
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

/** A debug node has a button on its right side. */
const rightOf = ({ type, x, w }: Box): number => x + w / 2 + (type === 'debug' ? 26 : 0);

/** How much of the canvas is visible beside the sidebars; in Node-RED 5 the right one covers the canvas. */
const readRoom = `document.querySelector('#red-ui-sidebar').getBoundingClientRect().left -
  document.querySelector('#red-ui-workspace-chart').getBoundingClientRect().left`;

/** Only the editor knows how wide a label makes a node. */
const readBoxes = `(() => {
  const boxes = [];
  RED.nodes.eachNode(({ z, name, type, x, y, w, h }) => boxes.push({ z, type, label: name || type, x, y, w, h }));
  return boxes;
})()`;

/** The wires on the visible canvas that run behind a node, with that node. */
const readHidden = `[...document.querySelectorAll('.red-ui-flow-link')].flatMap((link) => {
  const { source, target } = link.__data__;
  const line = link.querySelector('.red-ui-flow-link-line');
  const length = line.getTotalLength();
  const points = Array.from({ length: 100 }, (_, at) => line.getPointAtLength((at / 99) * length));
  const labelOf = ({ name, type }) => name || type;
  return RED.nodes.filterNodes({ z: RED.workspaces.active() })
    .filter((node) => node !== source && node !== target)
    .filter(({ x, y, w, h }) => points.some((at) => Math.abs(at.x - x) < w / 2 && Math.abs(at.y - y) < h / 2))
    .map((node) => [labelOf(source), labelOf(target), labelOf(node)].join(' > '));
})`;

for (const version of versions) {
  describe(`the examples on the canvas of Node-RED ${version.toString()}`, function () {
    this.timeout(180_000);
    let red: RealRed;
    let browser: TestBrowser;
    let page: Page;
    const boxes: Box[] = [];
    const hidden: string[] = [];
    let flows: readonly FlowNode[];

    const hiddenOn = async (id: string): Promise<string[]> => {
      await page.evaluate(`RED.workspaces.show('${id}')`);
      // Drawn, and so measured: those of the previous canvas still exist for a moment.
      await page.waitForFunction(
        `RED.nodes.filterNodes({ z: '${id}' }).every(({ id }) => document.getElementById(id))`,
      );
      return (await page.evaluate<string[]>(readHidden)).map((wire) => `${id}: ${wire}`);
    };

    before(async () => {
      const { workspaceFlows } = await import('../../../scripts/start/workspace.mjs');
      flows = workspaceFlows(root);
      [red, browser] = await Promise.all([startRed({ version, flows }), launchBrowser()]);
      ({ page } = await browser.open({ viewport: { width: 1440, height: 900 } }));
      await page.goto(red.url);
      await page.locator('.red-ui-flow-node').first().waitFor();
      const canvases = flows.filter(({ type }) => type === 'tab' || type === 'subflow').map(({ id }) => id);
      for (const id of canvases) hidden.push(...(await hiddenOn(id)));
      boxes.push(...(await page.evaluate<Box[]>(readBoxes)));
      should(boxes.length).be.above(100);
    });
    after(async () => {
      await browser.close();
      await red.close();
    });

    it('overlap nowhere and leave room for their wires', () => {
      for (const one of boxes)
        for (const other of boxes) {
          if (one === other || one.z !== other.z || one.x > other.x) continue;
          const gap = other.x - other.w / 2 - (one.x + one.w / 2);
          const isLevel = Math.abs(one.y - other.y) < (one.h + other.h) / 2;
          if (isLevel) should(gap).be.aboveOrEqual(30, `${one.z}: ${one.label} and ${other.label}`);
        }
    });

    it('have no wire behind a node', () => should(hidden).eql([]));

    it('start with a welcome that lists them, line by line', () => {
      const [welcome, ...tabs] = flows.filter(({ type }) => type === 'tab');
      const listed = [...String(welcome?.['info']).matchAll(/^- (.+)$/gm)].map(([, title]) => title);
      should(listed).deepEqual(tabs.map(({ label }) => label));
      const lines = boxes.filter(({ z }) => z === welcome?.id);
      should(lines.length).be.above(3);
      should([...new Set(lines.map(({ x, w }) => x - w / 2))]).have.length(1);
    });

    it('share a simulator, which a node dragged onto the welcome uses immediately', async () => {
      const environments = flows.filter(({ type }) => type === 'advisor-environment');
      should(environments.map(({ name }) => name)).deepEqual([
        'Simulator',
        'Simulator (example 05: reminder)',
        'Simulator (example 08: form)',
        'Simulator (example 13: a morning report)',
        'Simulator (example 15: do not text)',
      ]);
      const ids = new Set(environments.map(({ id }) => id));
      const used = flows.flatMap(({ environment }) => (typeof environment === 'string' ? [environment] : []));
      should(used.filter((id) => !ids.has(id))).be.empty();
      const welcome = flows.find(({ type }) => type === 'tab')?.id ?? '';
      await page.evaluate(`RED.workspaces.show('${welcome}')`);
      const chosen: unknown = await page.evaluate(
        `RED.view.createNode('advisor-send-text', 300, 500).node.environment`,
      );
      should(chosen).equal(environments[0]?.id);
    });

    it('have a welcome with a link that shows the phones beside the editor', async () => {
      const welcome = flows.find(({ type }) => type === 'tab')?.id ?? '';
      await page.evaluate(`RED.workspaces.show('${welcome}'); RED.sidebar.info.show()`);
      const link = page.getByRole('link', { name: 'Open the phones' }).first();
      const [phones] = await Promise.all([page.context().waitForEvent('page'), link.click()]);
      await phones.waitForURL('**/advisor-texting/simulator/**');
      await phones.locator('h1').first().waitFor();
      should(page.url()).not.match(/simulator/);
      await page.locator('.red-ui-flow-node').first().waitFor();
      await phones.close();
    });

    it('start at the left edge and fit beside the sidebars of a window of 1440 pixels', async () => {
      const room = await page.evaluate<number>(readRoom);
      should(room).be.within(800, 1200);
      for (const box of boxes) {
        should(box.x - box.w / 2).be.aboveOrEqual(40, `${box.z}: ${box.label}`);
        should(rightOf(box)).be.belowOrEqual(room - 8, `${box.z}: ${box.label}`);
      }
    });

    it('link to their pages on this Node-RED', async () => {
      for (const [tab, link, heading] of [
        ['ex08tab00000000', 'Open the form', 'New contact'],
        ['ex12tab00000000', 'Open the dashboard', '10 contacts'],
      ] as const) {
        await page.evaluate(`RED.workspaces.show('${tab}'); RED.sidebar.info.show()`);
        const [opened] = await Promise.all([
          page.context().waitForEvent('page'),
          page.getByRole('link', { name: link }).first().click(),
        ]);
        await opened.getByRole('heading', { name: heading }).waitFor();
        await opened.close();
      }
    });

    itInLongRun('have no wire behind a node in the recipes', async () => {
      const behind: string[] = [];
      for (const { nodes } of examplesIn(join(root, 'examples', 'recipes'))) {
        const own = nodes.filter(({ type }) => type !== 'advisor-environment');
        await page.evaluate(`RED.nodes.import(${JSON.stringify(own)}); RED.view.redraw(true)`);
        const id = own.find(({ type }) => type === 'tab')?.id ?? '';
        behind.push(...(await hiddenOn(id)));
      }
      should(behind).eql([]);
    });
  });
}
