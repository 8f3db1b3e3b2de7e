import type { Locator, Page } from 'playwright-core';
import { dialogReady } from '../editor/setup';

/** The editor as a person uses it: only by mouse and keyboard. */
const nodeOnFlow = (page: Page, label: string): Locator =>
  page.locator('.red-ui-flow-node', { hasText: new RegExp(`^\\s*${label}`) });

const middle = async (place: Locator): Promise<{ x: number; y: number }> => {
  const box = await place.boundingBox();
  if (box === null) throw new Error('There is nothing to point at.');
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
};

const drag = async (
  page: Page,
  from: { x: number; y: number },
  to: { x: number; y: number },
): Promise<void> => {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move((from.x + to.x) / 2, (from.y + to.y) / 2, { steps: 4 });
  await page.mouse.move(to.x, to.y, { steps: 4 });
  await page.mouse.up();
};

const fromPalette = async (page: Page, search: string, type: string, x: number, y: number): Promise<void> => {
  const filter = page.locator('#red-ui-palette-search input');
  await filter.fill('');
  await filter.pressSequentially(search);
  const entry = page.locator(`.red-ui-palette-node[data-palette-type="${type}"]:visible`);
  await entry.waitFor();
  // The palette slides its categories open.
  await entry.click({ trial: true });
  const canvas = await page.locator('#red-ui-workspace-chart').boundingBox();
  if (canvas === null) throw new Error('There is no canvas.');
  await drag(page, await middle(entry), { x: canvas.x + x, y: canvas.y + y });
};

const wire = async (page: Page, from: string, output: number, to: string): Promise<void> => {
  const out = nodeOnFlow(page, from).locator('.red-ui-flow-port-output').nth(output);
  const into = nodeOnFlow(page, to).locator('.red-ui-flow-port-input');
  await drag(page, await middle(out), await middle(into));
};

const openNode = async (page: Page, label: string): Promise<void> => {
  await nodeOnFlow(page, label).dblclick();
  await dialogReady(page);
};

const done = async (page: Page): Promise<void> => {
  await page.locator('#node-dialog-ok').click();
  await page.locator('#node-dialog-ok').waitFor({ state: 'detached' });
};

const row = (page: Page, label: string): Locator =>
  page.locator('.advisor-form .form-row:visible', { hasText: new RegExp(`^\\s*${label}`) });

/** Chooses where the value of a field comes from, and types it in. */
const typeIn = async (page: Page, label: string, source: string, text: string): Promise<void> => {
  await row(page, label).locator('.red-ui-typedInput-type-select').click();
  await page
    .locator('.red-ui-typedInput-options:visible a', { hasText: new RegExp(`^\\s*${source}\\s*$`) })
    .click();
  const box = row(page, label).locator('textarea:visible, .red-ui-typedInput-input:visible').first();
  await box.fill(text);
  await box.press('End');
};

const choose = async (page: Page, label: string, option: string): Promise<void> => {
  await row(page, label).locator('select').selectOption({ label: option });
};

/** Steps 1 to 5 of the tour in README.md. */
export const buildTheFlow = async (page: Page): Promise<void> => {
  await fromPalette(page, 'inject', 'inject', 160, 100);
  await fromPalette(page, 'advisor', 'advisor-send-text', 300, 100);
  await fromPalette(page, 'advisor', 'advisor-request-consent', 300, 200);
  await fromPalette(page, 'advisor', 'advisor-check-consent', 500, 200);
  await fromPalette(page, 'debug', 'debug', 600, 100);

  await openNode(page, 'send text');
  await row(page, 'Environment').locator('a:has(.fa-plus)').click();
  await dialogReady(page, 'environment');
  await page.locator('#node-config-dialog-ok').click();
  await page.locator('#node-config-dialog-ok').waitFor({ state: 'detached' });
  await typeIn(page, 'Phone number', 'string', '+12175550107');
  await typeIn(page, 'Text', 'text typed here', 'Hello Grace, shall we talk on Friday?');
  await done(page);

  await openNode(page, 'request consent');
  await choose(page, 'Environment', 'Simulator');
  await done(page);

  await openNode(page, 'check consent');
  await choose(page, 'Environment', 'Simulator');
  await choose(page, 'Wait', 'until accepted');
  await choose(page, 'Check interval', 'custom');
  await row(page, 'At first every').locator('input').fill('5');
  await done(page);

  await wire(page, 'timestamp', 0, 'text');
  await wire(page, 'text', 2, 'request consent');
  await wire(page, 'request consent', 0, 'wait for consent');
  await wire(page, 'wait for consent', 0, 'text');
  await wire(page, 'text', 0, 'debug');
};

export const deploy = async (page: Page): Promise<void> => {
  await page.locator('#red-ui-header-button-deploy').click();
  await page.locator('.red-ui-notification', { hasText: 'Successfully deployed' }).waitFor();
};

export const pressInject = async (page: Page): Promise<void> => {
  await nodeOnFlow(page, 'timestamp').locator('.red-ui-flow-node-button-button').click();
};

export const statusOf = (page: Page, label: string): Locator =>
  nodeOnFlow(page, label).locator('.red-ui-flow-node-status-label');
