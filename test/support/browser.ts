import { chromium } from 'playwright-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';

/**
 * The popups of the address bar are pages that each window loads, which takes more CPU time than most of
 * ours. The others are what Playwright turns off: Chromium uses only the last list it gets.
 */
const featuresOff = [
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'AimEnabled',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'ThirdPartyStoragePartitioning',
];
const flags = [
  `--disable-features=${featuresOff.join(',')}`,
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * Nothing slides or fades: a click on a moving element may miss. The editor does not load its library for diagrams, which
 * takes a quarter of the cost of opening it.
 */
const still = `addEventListener('DOMContentLoaded', () => {
  if (window.jQuery) jQuery.fx.off = true;
  if (window.RED?.editor?.mermaid) RED.editor.mermaid.render = async () => [];
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('*, ::before, ::after { transition: none !important; animation: none !important; }');
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
})`;

export interface OpenPage {
  readonly page: Page;
  /** Console errors (failed requests among them) and uncaught exceptions, in the order they happened. */
  readonly errors: readonly string[];
}

export interface TestBrowser {
  readonly browser: Browser;
  /** A page in its own context (no shared cookies or storage). */
  open(options?: BrowserContextOptions): Promise<OpenPage>;
  close(): Promise<void>;
}

/** Collects what a person would see in red in the developer tools. */
export const collectErrors = (page: Page): string[] => {
  const errors: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(`${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => errors.push(error.stack ?? error.message));
  return errors;
};

const browsers = new Set<Browser>();

export const openPages = (): Page[] =>
  [...browsers].flatMap((browser) => browser.contexts().flatMap((context) => context.pages()));

export const launchBrowser = async (): Promise<TestBrowser> => {
  const { chromiumPath } = await import('../../scripts/programs.mjs');
  const browser = await chromium.launch({ executablePath: chromiumPath(), args: flags });
  browsers.add(browser);
  browser.once('disconnected', () => browsers.delete(browser));
  return {
    browser,
    async open(options = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
      await context.addInitScript(still);
      const page = await context.newPage();
      // Below mocha's own limit, so that a failure names what was waited for.
      page.setDefaultTimeout(20_000);
      return { page, errors: collectErrors(page) };
    },
    close: () => browser.close(),
  };
};
