import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { isLong } from '../extent';
import { root } from '../installation';

const output = join(root, 'test', 'output');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

export type Theme = 'light' | 'dark';

/** Node-RED 4.1 has no dark theme; that of 5 is part of the long run. */
export const themesOf = (version: 4 | 5): readonly Theme[] =>
  version === 5 && isLong ? ['light', 'dark'] : ['light'];

export const setTheme = async (page: Page, theme: Theme): Promise<void> => {
  await page.emulateMedia({ colorScheme: theme });
  await page.evaluate(
    `document.documentElement.classList.toggle('nr-theme-dark', ${String(theme === 'dark')})`,
  );
};

/** Kept for a person to look at, in the long run. */
export const keepPicture = async (page: Page, name: string): Promise<void> => {
  if (!isLong) return;
  mkdirSync(output, { recursive: true });
  await page
    .locator('.red-ui-tray')
    .last()
    .screenshot({ path: join(output, `${name}.png`), animations: 'disabled' });
};

/** What axe finds serious or critical, in the open form or elsewhere. */
export const violations = async (page: Page, where = '.advisor-form'): Promise<string[]> => {
  if (!(await page.evaluate<boolean>(`typeof axe !== 'undefined'`))) await page.evaluate(axe);
  return page.evaluate<string[]>(`axe
    .run('${where}', { resultTypes: ['violations'] })
    .then(({ violations }) => violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.target + ' ' + node.failureSummary)))`);
};

/** Controls in the open form that have no name for a screen reader. */
export const nameless = (page: Page): Promise<string[]> =>
  page.evaluate(`[...[...document.querySelectorAll('.advisor-form')].at(-1)
      .querySelectorAll('input, select, textarea, button, a, summary, [role=button]')]
    .filter((one) => one.offsetParent !== null)
    .filter((one) => !(one.getAttribute('aria-label') || one.title || one.textContent.trim()
      || [...(one.labels || [])].some((label) => label.textContent.trim())
      || document.getElementById(one.getAttribute('aria-labelledby'))?.textContent.trim()))
    .map((one) => one.outerHTML)`);

/** What reaches beyond the right edge of the fields, and words that are broken in labels, in the open form. */
export const ragged = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const form = [...document.querySelectorAll('.advisor-form')].at(-1);
    const edge = form.getBoundingClientRect().right - 6;
    const shown = (selector) => [...form.querySelectorAll(selector)].filter((one) => one.offsetParent !== null);
    const wide = shown('input, select, textarea, button, .red-ui-typedInput-container, span, small, code')
      .filter((one) => one.getBoundingClientRect().right > edge + 0.5)
      .map((one) => 'wide: ' + one.outerHTML.slice(0, 120));
    const broken = shown('label, label > span, .advisor-caption > span').flatMap((label) => {
      const texts = [...label.childNodes].filter((child) => child.nodeType === Node.TEXT_NODE);
      return texts.flatMap((text) => [...text.data.matchAll(/[^\\s-]+/g)].filter(({ 0: word, index }) => {
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        return range.getClientRects().length > 1;
      }).map(([word]) => 'broken: ' + word));
    });
    return [...wide, ...broken];
  })()`);

/** Labels in the open form that touch their icon or their field. */
export const touchingLabels = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const form = [...document.querySelectorAll('.advisor-form')].at(-1);
    const shown = [...form.querySelectorAll('label > span, .advisor-caption > span')]
      .filter((one) => one.offsetParent !== null);
    const gap = (one) => {
      const range = document.createRange();
      range.selectNodeContents(one);
      const words = range.getBoundingClientRect();
      const icon = one.previousElementSibling?.getBoundingClientRect();
      const field = one.closest('.form-row').querySelector('select, input, .red-ui-typedInput-container');
      const box = field.getBoundingClientRect();
      const isBeside = box.top < words.bottom && box.left > words.left;
      return { after: icon ? words.left - icon.right : 9, before: isBeside ? box.left - words.right : 9 };
    };
    return shown.filter((one) => gap(one).after < 2 || gap(one).before < 5)
      .map((one) => one.textContent + JSON.stringify(gap(one)));
  })()`);

/** Buttons in the sidebar that touch another one. */
export const touchingButtons = (page: Page): Promise<string[]> =>
  page.evaluate(`(() => {
    const boxes = [...document.querySelectorAll('.advisor-sidebar button')]
      .filter((one) => one.offsetParent !== null)
      .map((one) => ({ one, box: one.getBoundingClientRect() }));
    const apart = (a, b) =>
      Math.max(a.left - b.right, b.left - a.right, a.top - b.bottom, b.top - a.bottom);
    return boxes.flatMap(({ one, box }, at) => boxes.slice(at + 1)
      .filter((other) => apart(box, other.box) < 3)
      .map((other) => [one, other.one].map((each) => each.ariaLabel || each.textContent).join(' | ')));
  })()`);
