import type { Locator, Page } from 'playwright-core';

/** The nodes that the palette shows, in order. */
export const shownInPalette = (page: Page): Promise<string[]> =>
  page.evaluate(
    `[...document.querySelectorAll('.red-ui-palette-node')]
      .filter((node) => node.dataset.filter !== 'true')
      .map((node) => node.dataset.paletteLabel)`,
  );

/** Types into the palette's search box, waits until it has taken effect, and returns what is left. */
export const searchPalette = async (page: Page, words: string): Promise<string[]> => {
  const box = page.locator('#red-ui-palette-search input').first();
  await box.fill('');
  await box.pressSequentially(words);
  await page.waitForFunction(
    `[...document.querySelectorAll('.red-ui-palette-node')].every(({ dataset }) =>
      (dataset.paletteLabel + ' ' + dataset.paletteType).toLowerCase().includes('${words}')
        === (dataset.filter !== 'true'))`,
  );
  return shownInPalette(page);
};

/** Drags a node from the palette to a place on the canvas, as a person would, and returns its id. */
export const dragFromPalette = async (page: Page, type: string, x: number, y: number): Promise<string> => {
  const node = page.locator(`.red-ui-palette-node[data-palette-type="${type}"]`);
  await node.scrollIntoViewIfNeeded();
  const from = await node.boundingBox();
  const chart = await page.locator('#red-ui-workspace-chart').boundingBox();
  if (!from || !chart) throw new Error(`${type} is not in the palette.`);
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
  await page.mouse.down();
  await page.mouse.move(chart.x + x, chart.y + y, { steps: 6 });
  await page.mouse.up();
  await page.waitForFunction(`RED.nodes.filterNodes({ type: '${type}' }).length > 0`);
  return page.evaluate<string>(`RED.nodes.filterNodes({ type: '${type}' })[0].id`);
};

/** The box of a typed input that is in use. */
export const boxOf = (page: Page, field: string): Locator =>
  page
    .locator(`#node-input-${field} + .red-ui-typedInput-container`)
    .locator('.red-ui-typedInput-input:visible, .advisor-box:visible');

/** Chooses where a value comes from in the menu of its typed input. */
export const chooseType = async (page: Page, field: string, type: string): Promise<void> => {
  await page
    .locator(`#node-input-${field} + .red-ui-typedInput-container .red-ui-typedInput-type-select`)
    .click();
  await page.locator(`.red-ui-typedInput-options:visible a[value="${type}"]`).click();
  await page.waitForFunction(`$('#node-input-${field}').typedInput('type') === '${type}'`);
};

export const enter = async (page: Page, field: string, type: string, value: string): Promise<void> => {
  await chooseType(page, field, type);
  await boxOf(page, field).fill(value);
};

/** Every output to the node of this id, and the node after `from`. */
export const wire = (page: Page, from: string, id: string, to: string): Promise<void> =>
  page.evaluate(`(() => {
    const [from, node, to] = ['${from}', '${id}', '${to}'].map((id) => RED.nodes.node(id));
    RED.nodes.addLink({ source: from, sourcePort: 0, target: node });
    for (let port = 0; port < node.outputs; port += 1) {
      RED.nodes.addLink({ source: node, sourcePort: port, target: to });
    }
    RED.nodes.dirty(true);
  })()`);
