import type { Locator, Page } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../browser';
import type { Version } from '../installation';
import { startRed, type FlowNode, type RealRed } from '../node-red';

export interface Editor {
  readonly page: Page;
  /** What the developer tools would show in red, and dialogs that the editor could not prepare. */
  readonly errors: readonly string[];
}

/** Node-RED 5 shows a tip a few seconds after it started to load, whether it has a place for it or not. */
const isTip = (error: string): boolean => /reading 'html'\)\n +at \w+ \(\S+\/red\.min\.js\S*\)$/.test(error);

export const openEditor = async (red: RealRed, browser: TestBrowser, login?: string): Promise<Editor> => {
  const { page, errors } = await browser.open({ viewport: { width: 1280, height: 1000 } });
  const trouble: string[] = [];
  // The editor only logs it when a form fails; its own warnings are not about us.
  page.on('console', (message) => {
    const isOurs = message.type() === 'warning' && /advisor/i.test(message.text());
    if (isOurs || /^(oneditprepare|oneditsave|Definition error)/.test(message.text())) {
      trouble.push(message.text());
    }
  });
  await page.goto(`${red.adminUrl}/`, { timeout: 30_000 });
  if (login !== undefined) {
    await page.locator('#node-dialog-login-username').fill(login);
    await page.locator('#node-dialog-login-password').fill(login);
    await page.locator('#node-dialog-login-submit').click();
  }
  await page.locator('.red-ui-flow-node').first().waitFor();
  return {
    page,
    get errors() {
      return [...errors, ...trouble].filter((error) => !isTip(error));
    },
  };
};

/** A Node-RED for one test, with its editor open. */
export interface StartedEditor extends Editor {
  readonly red: RealRed;
  readonly browser: TestBrowser;
  close(): Promise<void>;
}

/** `prepare` runs before the editor is opened. */
export const startEditor = async (
  version: Version,
  flows: FlowNode[],
  prepare: (red: RealRed) => Promise<unknown> = () => Promise.resolve(),
): Promise<StartedEditor> => {
  const [red, browser] = await Promise.all([startRed({ version, flows }), launchBrowser()]);
  await prepare(red);
  const editor = await openEditor(red, browser);
  return {
    red,
    browser,
    page: editor.page,
    get errors() {
      return editor.errors;
    },
    async close() {
      await browser.close();
      await red.close();
    },
  };
};

/** A node's properties as they would be deployed. */
export const saved = (page: Page, id: string): Promise<Record<string, unknown>> =>
  page.evaluate(`RED.nodes.convertNode(RED.nodes.node('${id}'))`);

export const labelOf = (page: Page, id: string): Promise<string> =>
  page.evaluate(`RED.utils.getNodeLabel(RED.nodes.node('${id}'))`);

/** The text of the red triangle on a node. */
export const triangle = (page: Page, id: string): Promise<string[]> =>
  page.evaluate(`[RED.nodes.node('${id}').validationErrors].flat().filter(Boolean).map(String)`);

/** Dialogs slide: a click while they do may miss. */
const standsStill = (page: Page): Promise<unknown> =>
  page.waitForFunction(
    `[...document.querySelectorAll('.red-ui-tray')].every((tray) => getComputedStyle(tray).right === '0px')`,
  );

const formOf = (type?: string): string =>
  type === undefined ? '.advisor-form' : `.advisor-form[data-type="advisor-${type}"]`;

/** A dialog slides in, gets its width and then the focus. */
export const dialogReady = async (page: Page, type?: string): Promise<void> => {
  await page.locator(formOf(type)).waitFor();
  await page.waitForFunction(
    `document.activeElement.closest('.red-ui-tray')?.querySelector('${formOf(type)}')`,
  );
  await standsStill(page);
};

export const openNode = async (page: Page, id: string): Promise<void> => {
  await page.evaluate(`RED.editor.edit(RED.nodes.node('${id}'))`);
  await dialogReady(page);
};

export const closeNode = async (page: Page, button: 'ok' | 'cancel' = 'ok'): Promise<void> => {
  await page.locator(`#node-dialog-${button}`).click();
  await page.locator('.advisor-form').waitFor({ state: 'detached' });
};

export const environmentForm = (page: Page): Locator => page.locator(formOf('environment'));

export const openEnvironment = async (page: Page, id: string): Promise<void> => {
  await page.evaluate(`RED.editor.editConfig('', 'advisor-environment', '${id}')`);
  await dialogReady(page, 'environment');
};

export const closeEnvironment = async (page: Page, button: 'ok' | 'cancel' = 'ok'): Promise<void> => {
  await page.locator(`#node-config-dialog-${button}`).click();
  await environmentForm(page).waitFor({ state: 'detached' });
  await standsStill(page);
};

/** Clicks what opens a window, and returns the window. */
export const windowFrom = async (page: Page, button: Locator): Promise<Page> => {
  const [opened] = await Promise.all([page.context().waitForEvent('page'), button.click()]);
  return opened;
};
