import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Locator, Page } from 'playwright-core';
import type { TestBrowser } from '../browser';
import { adminPassword, type FlowNode, type RealRed } from '../node-red';
import { numbers } from '../numbers';

export const { silent, unasked } = numbers;
export const forbidden = '+12025550172';
export const numbered = (n: number): string => `+1206555${String(n).padStart(4, '0')}`;
/** A number for each of very many waits. */
export const waitNumber = (n: number): string => `+1202${String(n).padStart(7, '0')}`;

const inHours = (count: number): string =>
  new Date(Date.now() + count * 3_600_000).toISOString().slice(11, 16);

/**
 * One that works, one as good as stopped, one whose text hours are far from now, and one that needs an authorization.
 */
export const environments = (name: string): FlowNode[] => [
  { id: 'env', type: 'advisor-environment', name, service: 'simulator' },
  { id: 'slow', type: 'advisor-environment', name: 'Slow', service: 'simulator', requestsPerSecond: 0.001 },
  {
    id: 'quiet',
    type: 'advisor-environment',
    name: 'Quiet',
    service: 'simulator',
    textFrom: inHours(8),
    textUntil: inHours(10),
    outsideHours: 'hold',
    timeZone: 'UTC',
  },
  {
    id: 'office',
    type: 'advisor-environment',
    name: 'Office',
    service: 'sandbox',
    baseUrl: 'http://127.0.0.1:9/v1',
    authUrl: 'http://127.0.0.1:9/authorize',
    tokenUrl: 'http://127.0.0.1:9/token',
    redirectUri: 'http://127.0.0.1:9/advisor-texting/callback',
    grant: 'authorization_code',
    scopes: ['text.messaging.write'],
    credentials: { clientId: 'id', clientSecret: 'secret', apiKey: 'key', refreshToken: 'seed' },
  },
];

/** An input, named `in`, to a node that waits for consent. */
export const waitNodes = (changes: object = {}): FlowNode[] => [
  { id: 'in', type: 'test-port', z: 'tab', name: 'in', x: 100, y: 40, wires: [['waiting']] },
  {
    id: 'waiting',
    type: 'advisor-check-consent',
    z: 'tab',
    name: 'my wait',
    environment: 'env',
    mode: 'wait',
    x: 300,
    y: 40,
    wires: [[], [], []],
    ...changes,
  },
];

/** For very many waits: the sidebar is under test, not the simulator that answers polls beside it. */
export const hourly = { pollEvery: 3600, pollFor: 3600, thenEvery: 3600 };

/** An input to a send node in each of these environments, named `text <environment>`. */
export const sendNodes = (
  of: readonly string[],
  wires: readonly (readonly string[])[] = [[], ['failed'], []],
): FlowNode[] =>
  of.flatMap((environment, place) => [
    {
      id: `to ${environment}`,
      type: 'test-port',
      z: 'tab',
      name: `text ${environment}`,
      x: 100,
      y: 140 + 60 * place,
      wires: [[`send ${environment}`]],
    },
    {
      id: `send ${environment}`,
      type: 'advisor-send-text',
      z: 'tab',
      name: `my send ${environment}`,
      environment,
      x: 300,
      y: 140 + 60 * place,
      wires,
    },
  ]);

/** As somebody who accepts what another has deployed. */
export const acceptsDeploy = `$.getJSON('flows').then((flows) => {
  RED.nodes.clear();
  RED.nodes.import(flows.flows ?? flows);
  RED.nodes.version(flows.rev);
  RED.events.emit('deploy');
})`;

export type How = 'mouse' | 'Enter' | 'Space';

/** The sidebar as a person uses it; `name` is the default environment. */
export class SidebarPage {
  readonly element: Locator;

  constructor(
    readonly page: Page,
    private readonly name: string,
  ) {
    this.element = page.locator('.advisor-sidebar');
  }

  section(name = this.name): Locator {
    return this.element.getByRole('region', { name, exact: true });
  }
  part(name: string, environment?: string): Locator {
    return this.section(environment).locator(`.advisor-side-${name}`);
  }
  row(name: string, text: string, environment?: string): Locator {
    return this.part(name, environment).locator('li', { hasText: text });
  }
  wait(text: string, environment?: string): Locator {
    return this.row('waits', text, environment);
  }
  named(within: Locator, name: string): Locator {
    return within.getByRole('button', { name, exact: true });
  }

  async press(target: Locator, how: How): Promise<void> {
    if (how === 'mouse') await target.click();
    else {
      await target.focus();
      await this.page.keyboard.press(how);
    }
  }

  /** Clicks twice what asks for confirmation. */
  async confirm(row: Locator, name: string, how: How = 'mouse'): Promise<void> {
    await this.press(this.named(row, name), how);
    await this.press(this.named(row, 'Press again to confirm'), how);
    await row.waitFor({ state: 'detached' });
  }

  /** Opens an environment without activity. */
  async unfold(name: string): Promise<void> {
    const heading = this.section(name).locator('.advisor-side-heading');
    if ((await heading.getAttribute('aria-expanded')) !== 'true') await heading.click();
  }

  show(): Promise<unknown> {
    return this.page.evaluate(`RED.sidebar.show('advisor-texting')`);
  }

  /** What reaches beyond the right edge. */
  wide(): Promise<string[]> {
    return this.page.evaluate(`(() => {
      const bar = document.querySelector('.advisor-sidebar');
      const edge = bar.getBoundingClientRect().left + bar.clientWidth;
      return [...bar.querySelectorAll('*')].filter((one) => one.offsetParent !== null)
        .filter((one) => one.getBoundingClientRect().right > edge + 0.5)
        .map((one) => one.outerHTML.slice(0, 120));
    })()`);
  }
}

/** The editor of a logged-in user, with the sidebar open. */
export const openSidebar = async (
  red: RealRed,
  browser: TestBrowser,
  {
    user,
    name,
    language = 'en-US',
  }: { readonly user: string; readonly name: string; readonly language?: string },
  opened: (page: Page) => Promise<unknown> = () => Promise.resolve(),
): Promise<{ readonly sidebar: SidebarPage; readonly errors: readonly string[] }> => {
  const { page, errors } = await browser.open({ locale: language, viewport: { width: 1280, height: 1000 } });
  page.setDefaultTimeout(120_000);
  await opened(page);
  await page.goto(`${red.adminUrl}/`);
  await page.locator('#node-dialog-login-username').fill(user);
  await page.locator('#node-dialog-login-password').fill(adminPassword);
  await page.locator('#node-dialog-login-submit').click();
  await page.locator('.red-ui-flow-node').first().waitFor();
  const sidebar = new SidebarPage(page, name);
  await sidebar.show();
  return { sidebar, errors };
};

export const waitCount = async (red: RealRed): Promise<number> => {
  const { json } = await red.request('GET', 'advisor-texting/env/waits?pageSize=1');
  return (json as { pageInfo: { totalRecord: number } }).pageInfo.totalRecord;
};

const perMessage = 10_000;

/** Starts so many waits, by lists, and resolves when all are saved. */
export const beginWaits = async (red: RealRed, from: number, to: number): Promise<void> => {
  const before = await waitCount(red);
  for (let first = from; first < to; first += perMessage) {
    const length = Math.min(perMessage, to - first);
    await red.send('in', { phone: Array.from({ length }, (_, n) => waitNumber(first + n)) });
    // Lists that come faster than they can be saved are rejected at some point, as `queue_full`. A Node-RED
    // that is this busy has no time for a connection.
    while ((await waitCount(red).catch(() => 0)) < before + first - from + length) await pause(100);
  }
};

/**
 * Megabytes of the process alone: pages of the store's file, which the system can drop at any time, are not counted.
 */
export const processMemory = ({ pid }: RealRed): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(join('/proc', String(pid), 'status'), 'utf8'))?.[1]) * 0.001024;

/** Megabytes of the page that are in use. */
export const pageMemory = async (page: Page): Promise<number> => {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize / 1_000_000;
};
