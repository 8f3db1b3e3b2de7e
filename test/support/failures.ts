import { openPages } from './browser';

/** What a person would have seen when a test failed: a browser's own message only names what was waited for. */
export const mochaHooks = {
  async afterEach(this: Mocha.Context): Promise<void> {
    if (this.currentTest?.state !== 'failed') return;
    for (const page of openPages()) {
      const shown = await page
        .evaluate<string>(
          `([...document.querySelectorAll('.red-ui-tray')].at(-1) ?? document.body).innerText`,
        )
        .catch(String);
      console.log(`The page ${page.url()} showed:\n${shown.slice(0, 2000).replace(/^/gm, '  | ')}`);
    }
  },
};
