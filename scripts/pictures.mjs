import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { register } from 'tsx/cjs/api';
import { at } from './build/folders.mjs';
import { flows } from './pictures/flows.mjs';
import { pictures, themes } from './pictures/list.mjs';
import { begin, openStage, show } from './pictures/stage.mjs';

/** Pictures for the docs, taken of the packed product in a real Node-RED, so that they are always true. */
register();
const require = createRequire(import.meta.url);
const { startRed } = require(at('test', 'support', 'node-red.ts'));
const { launchBrowser } = require(at('test', 'support', 'browser.ts'));

const folder = at('docs', 'pictures');
const wanted = process.argv.slice(2);
const chosen = pictures.filter(({ name }) => wanted.length === 0 || wanted.includes(name));

/** The bounds of all nodes, with a margin for their ports and statuses. */
const flowBounds = async (page) => {
  const boxes = await Promise.all(
    (await page.locator('.red-ui-flow-node').all()).map((node) => node.boundingBox()),
  );
  const left = Math.min(...boxes.map((box) => box.x)) - 24;
  const top = Math.min(...boxes.map((box) => box.y)) - 20;
  return {
    x: left,
    y: top,
    width: Math.max(...boxes.map((box) => box.x + box.width)) + 24 - left,
    height: Math.max(...boxes.map((box) => box.y + box.height)) + 40 - top,
  };
};

/** The bounds of the topmost dialog, down to the last of its rows. */
const dialogBounds = async (page) => {
  const tray = await page.locator('.red-ui-tray').last().boundingBox();
  const header = await page.locator('.red-ui-tray-header').last().boundingBox();
  const form = await page.locator('.advisor-form').last().boundingBox();
  const { x, y, width } = header;
  return { x, y, width, height: Math.min(tray.y + tray.height, form.y + form.height + 12) - y };
};

const grown = ({ x, y, width, height }, margin) => ({
  x: x - margin,
  y: y - margin,
  width: width + 2 * margin,
  height: height + 2 * margin,
});

const clipOf = async (page, { of, margin = 0 }) => {
  if (of === 'page') return undefined;
  if (of === 'flow') return flowBounds(page);
  if (of === 'dialog') return dialogBounds(page);
  return grown(await page.locator(of).last().boundingBox(), margin);
};

mkdirSync(folder, { recursive: true });
if (wanted.length === 0) for (const name of readdirSync(folder)) rmSync(at('docs', 'pictures', name));
const [red, browser] = await Promise.all([startRed({ version: 5, isWhole: true, flows }), launchBrowser()]);
try {
  const stages = [];
  for (const theme of themes) stages.push([theme, await openStage(browser, red, theme)]);
  await begin(stages[0][1]);
  for (const [theme, stage] of stages)
    for (const picture of chosen)
      await show(stage, picture, async (page) => {
        // The mouse is moved away, and transitions finish.
        await page.mouse.move(2, page.viewportSize().height - 2);
        await page.waitForTimeout(700);
        const path = at('docs', 'pictures', `${picture.name}-${theme}.png`);
        await page.screenshot({ path, clip: await clipOf(page, picture), animations: 'disabled' });
        console.log(
          `docs/pictures/${picture.name}-${theme}.png  ${Math.round(statSync(path).size / 1024)} kB`,
        );
      });
} finally {
  await browser.close();
  await red.close();
}
