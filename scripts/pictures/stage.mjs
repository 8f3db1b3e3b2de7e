/**
 * Shows the product at work, one picture after the other: for `npm run pictures`, and for the test that each picture
 * can be taken.
 */
const nodeOf = (page, id) => page.locator(`.red-ui-flow-node[id="${id}"]`);

const waitForAll = (page, selectors) =>
  Promise.all(selectors.map((selector) => page.locator(selector).first().waitFor()));

const closeTray = async (page, button) => {
  await page.locator(button).click();
  await page.locator(button).waitFor({ state: 'detached' });
};

/** The layout with the texting tab alone in its sidebar. */
const undivided = {
  v: 4,
  tabs: [],
  primary: {
    width: 300,
    top: { tabs: ['info', 'advisor-texting'], active: 'advisor-texting' },
    bottom: { tabs: [], hidden: true },
  },
  secondary: { width: 210, top: { tabs: ['explorer'] }, bottom: { tabs: ['palette'], hidden: true } },
};

/**
 * Each opens a part of the product in the editor's page; it returns the page to look at, and a function that leaves it.
 */
const openers = {
  flow: async ({ page }) => ({ page, leave: async () => {} }),

  phones: async ({ page, url }) => {
    const phones = await page.context().newPage();
    await phones.goto(`${url}/advisor-texting/simulator/`);
    await phones.locator('#live[data-state=live]').waitFor();
    return { page: phones, leave: () => phones.close() };
  },

  palette: async ({ page }, words) => {
    const filter = page.locator('#red-ui-palette-search input');
    await filter.pressSequentially(words);
    return { page, leave: () => filter.fill('') };
  },

  node: async ({ page }, id) => {
    await nodeOf(page, id).dblclick();
    return { page, leave: () => closeTray(page, '#node-dialog-cancel') };
  },

  environment: async ({ page }, id) => {
    await page.evaluate(`RED.editor.editConfig('', 'advisor-environment', '${id}')`);
    return { page, leave: () => closeTray(page, '#node-config-dialog-cancel') };
  },

  sidebar: async ({ page, url }) => {
    // Node-RED 5 divides its sidebars in two, and stores the layout for each user.
    const editor = await page.context().newPage();
    await editor.setViewportSize(page.viewportSize());
    await editor.goto(url);
    await editor.evaluate(
      `fetch('settings/user', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: ${JSON.stringify(JSON.stringify({ editor: { sidebar: { state: undivided } } }))},
      })`,
    );
    await editor.goto(url);
    await nodeOf(editor, 'inject').waitFor();
    await editor.evaluate(`RED.sidebar.show('advisor-texting')`);
    return { page: editor, leave: () => editor.close() };
  },

  import: async ({ page }) => {
    await page.evaluate(`RED.actions.invoke('core:show-examples-import-dialog')`);
    await page.locator('.red-ui-treeList-label:visible', { hasText: '@advisor-texting' }).first().click();
    // The tree shows its spinner until some time after it has opened.
    await page.locator('.red-ui-treeList-spinner').first().waitFor({ state: 'detached' });
    return { page, leave: () => page.keyboard.press('Escape') };
  },
};

/** Opens the editor in a theme; the phones page follows the browser's. */
export const openStage = async (browser, red, colorScheme) => {
  const { page } = await browser.open({ colorScheme, deviceScaleFactor: 1 });
  await page.goto(red.url);
  await nodeOf(page, 'inject').waitFor();
  await page.evaluate(`RED.settings.setLocal('view-dark-theme', '${colorScheme}')`);
  await page.reload();
  await nodeOf(page, 'inject').waitFor();
  return { page, url: red.url };
};

/** Starts the flow: Grace has been asked and has not answered. */
export const begin = async ({ page }) => {
  await nodeOf(page, 'inject').locator('.red-ui-flow-node-button-button').click();
  await nodeOf(page, 'check-consent').locator('text=/waiting/').waitFor();
};

/** Opens what a picture shows, waits until all of it is visible, calls `look`, and leaves. */
export const show = async (stage, picture, look) => {
  const viewport = picture.viewport ?? { width: 1280, height: 800 };
  await stage.page.setViewportSize(viewport);
  const [how, ...what] = picture.open;
  const { page, leave } = await openers[how](stage, ...what);
  await page.setViewportSize(viewport);
  await waitForAll(page, picture.shows);
  await look?.(page);
  await leave();
};
