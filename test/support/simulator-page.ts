import { join } from 'node:path';
import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import should from 'should';
import { startSimulator } from '../../simulator';
import type { Simulator, SimulatorOptions } from '../../simulator';
import type { SimulatorState } from '../../simulator/page/shape';
import { launchBrowser } from './browser';
import type { OpenPage, TestBrowser } from './browser';
import { builtBefore, root } from './installation';

const buildSimulatorPage = async (): Promise<void> => {
  if (builtBefore) return;
  const { buildPage } = await import('../../scripts/page.mjs');
  await buildPage(join(root, 'dist', 'simulator', 'page'));
};

/** The simulator and a browser for its page. */
export class Bench {
  private readonly opened: OpenPage[] = [];
  private readonly expected: RegExp[] = [];

  private constructor(
    public simulator: Simulator,
    private readonly browser: TestBrowser,
  ) {}

  static async start(browser: TestBrowser, options: SimulatorOptions = {}): Promise<Bench> {
    return new Bench(await startSimulator(options), browser);
  }

  /** Fails to compile when the simulator no longer sends what the page reads. */
  get shown(): SimulatorState {
    return this.simulator.state();
  }

  async open(options: BrowserContextOptions = {}, url = this.simulator.url): Promise<Page> {
    const opened = await this.browser.open(options);
    this.opened.push(opened);
    await opened.page.goto(url);
    await opened.page.locator('#live[data-state=live]').waitFor();
    return opened.page;
  }

  /** Console errors of the pages. */
  get errors(): string[] {
    return this.opened
      .flatMap(({ errors }) => errors)
      .filter((error) => !this.expected.some((pattern) => pattern.test(error)));
  }

  /** Errors that a test provokes. */
  forgive(pattern: RegExp): void {
    this.expected.push(pattern);
  }

  /** The simulator stops and restarts at the same address, knowing nothing. */
  async restart(meanwhile: () => Promise<void>): Promise<void> {
    this.forgive(/net::ERR_/);
    const port = Number(new URL(this.simulator.url).port);
    await this.simulator.close();
    await meanwhile();
    this.simulator = await startSimulator({ port });
  }

  async close(): Promise<void> {
    await Promise.all(this.opened.map(({ page }) => page.context().close()));
    await this.simulator.close();
  }

  /** A request of the contract, as an advisor's client sends it. */
  async call(method: string, path: string, body?: unknown, advisor = 'default'): Promise<Response> {
    return fetch(`${this.simulator.baseUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.simulator.accessToken(advisor)}`,
        'x-api-key': this.simulator.credentials.apiKey,
        'content-type': 'application/json',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  async send(phone: string, text: string, more: object = {}, advisor = 'default'): Promise<unknown> {
    return (await this.call('POST', '/text/messaging/messages', { phone, text, ...more }, advisor)).json();
  }

  async askConsent(phone: string, advisor = 'default'): Promise<unknown> {
    const body = { phoneNumbers: [phone] };
    return (await this.call('POST', '/text/messaging/consent-requests', body, advisor)).json();
  }

  async consent(phone: string): Promise<string> {
    const answer = await this.call('GET', `/text/messaging/consents?phone=${encodeURIComponent(phone)}`);
    return ((await answer.json()) as { state: string }).state;
  }
}

/**
 * For a block of tests: one browser, and for each test a simulator. A test that leaves an error in a browser's console
 * has failed.
 */
export const benchForEach = (options: SimulatorOptions = {}): (() => Bench) => {
  let browser: TestBrowser;
  let bench: Bench;
  before(async () => {
    await buildSimulatorPage();
    browser = await launchBrowser();
  });
  beforeEach(async () => {
    bench = await Bench.start(browser, options);
  });
  afterEach(async () => {
    await bench.close();
    should(bench.errors).eql([]);
  });
  after(async () => {
    await browser.close();
  });
  return () => bench;
};

/** The same, with the page open. */
export const pageForEach = (
  options: SimulatorOptions = {},
): { readonly bench: Bench; readonly page: Page } => {
  const bench = benchForEach(options);
  let page: Page;
  beforeEach(async () => {
    page = await bench().open();
  });
  return {
    get bench() {
      return bench();
    },
    get page() {
      return page;
    },
  };
};

/** The phone of a number, as drawn on the page. */
export const phoneOf = (page: Page, readable: string): Locator =>
  page.locator('article', { hasText: readable });
