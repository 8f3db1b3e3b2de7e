import { strict as assert } from 'node:assert';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Locator, Page } from 'playwright-core';
import { setTheme, themesOf, violations } from '../editor/looks';
import { closeEnvironment, dialogReady } from '../editor/support';
import { launchBrowser, type TestBrowser } from '../support/browser';
import { root, type Version } from '../support/installation';
import { adminAuth, adminPassword, startRed, type FlowNode, type RealRed } from '../support/node-red';

/** `npm run sidebar`: every action of the sidebar, by mouse and by keyboard, for each as they may, with many waits. */

const waits = Number(process.argv[2] ?? 100_000);
const versions = (process.argv[3] ?? '5,4').split(',').map(Number) as Version[];
const textsPerSecond = Number(process.argv[4] ?? 300);

type How = 'mouse' | 'Enter' | 'Space';
const hows: readonly How[] = ['mouse', 'Enter', 'Space'];
const waitNumber = (n: number): string => `+1202${String(n).padStart(7, '0')}`;
const numbered = (n: number): string => `+1206555${String(n).padStart(4, '0')}`;
const forbidden = '+12025550172';
const perMessage = 10_000;
const patience = 120_000;

const hours = (count: number): string => new Date(Date.now() + count * 3_600_000).toISOString().slice(11, 16);

const sender = (environment: string, y: number): FlowNode[] => [
  {
    id: `to ${environment}`,
    type: 'test-port',
    z: 'tab',
    name: `text ${environment}`,
    x: 100,
    y,
    wires: [[`send ${environment}`]],
  },
  {
    id: `send ${environment}`,
    type: 'advisor-send-text',
    z: 'tab',
    environment,
    x: 300,
    y,
    wires: [[], ['failed'], []],
  },
];

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Mine' },
  { id: 'other', type: 'tab', label: 'Other' },
  { id: 'env', type: 'advisor-environment', name: 'Play', service: 'simulator' },
  { id: 'slow', type: 'advisor-environment', name: 'Slow', service: 'simulator', requestsPerSecond: 0.001 },
  {
    id: 'quiet',
    type: 'advisor-environment',
    name: 'Quiet',
    service: 'simulator',
    textFrom: hours(8),
    textUntil: hours(10),
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
  { id: 'in', type: 'test-port', z: 'tab', name: 'in', x: 100, y: 40, wires: [['waiting']] },
  {
    id: 'waiting',
    type: 'advisor-check-consent',
    z: 'tab',
    name: 'my wait',
    environment: 'env',
    mode: 'wait',
    // What is looked at is the sidebar, and not the simulator that answers polls beside it.
    pollEvery: 3600,
    pollFor: 3600,
    thenEvery: 3600,
    x: 300,
    y: 40,
    wires: [[], [], []],
  },
  { id: 'failed', type: 'test-port', z: 'tab', name: 'failed', x: 500, y: 140, wires: [[]] },
  ...['env', 'slow', 'quiet'].flatMap((environment, at) => sender(environment, 140 + 60 * at)),
];

const password = adminAuth.users[0]?.password;
const users = [
  { username: 'admin', password, permissions: '*' },
  // May text, and not deploy.
  { username: 'clerk', password, permissions: ['read', 'advisor-texting.write'] },
  { username: 'reader', password, permissions: 'read' },
];

/** One person's editor, with the sidebar open. */
class Desk {
  private constructor(
    readonly red: RealRed,
    readonly page: Page,
    readonly errors: readonly string[],
    readonly user: string,
  ) {}

  static async open(red: RealRed, browser: TestBrowser, user: string): Promise<Desk> {
    const { page, errors } = await browser.open({ viewport: { width: 1280, height: 1000 } });
    page.setDefaultTimeout(patience);
    await page.goto(`${red.adminUrl}/`);
    await page.locator('#node-dialog-login-username').fill(user);
    await page.locator('#node-dialog-login-password').fill(adminPassword);
    await page.locator('#node-dialog-login-submit').click();
    await page.locator('.red-ui-flow-node').first().waitFor();
    const desk = new Desk(red, page, errors, user);
    await page.evaluate(`RED.sidebar.show('advisor-texting')`);
    await desk.part('waits').locator('li').first().waitFor();
    return desk;
  }

  section(name = 'Play'): Locator {
    return this.page.locator('.advisor-sidebar').getByRole('region', { name, exact: true });
  }
  part(name: string, environment?: string): Locator {
    return this.section(environment).locator(`.advisor-side-${name}`);
  }
  row(name: string, text: string, environment?: string): Locator {
    return this.part(name, environment).locator('li', { hasText: text });
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

  /** What has to be pressed twice. */
  async confirm(row: Locator, name: string, how: How): Promise<void> {
    await this.press(this.named(row, name), how);
    await this.page.keyboard.press('Escape');
    await this.named(row, name).waitFor();
    await this.press(this.named(row, name), how);
    await this.press(this.named(row, 'Press again to do it'), how);
    await row.waitFor({ state: 'detached' });
  }

  async popup(target: Locator, how: How): Promise<void> {
    const [window] = await Promise.all([this.page.context().waitForEvent('page'), this.press(target, how)]);
    await window.close();
  }

  async find(text: string): Promise<void> {
    await this.part('waits').locator('input').fill(text);
  }

  /** What everybody may do. */
  async read(how: How): Promise<void> {
    const { page } = this;
    const list = this.part('waits');
    await this.press(this.named(list, 'Further ones'), how);
    await list.getByText('21 – 40').waitFor();
    await this.press(this.named(list, 'Earlier ones'), how);
    await list.getByText('1 – 20').waitFor();
    await page.evaluate(`RED.workspaces.show('other')`);
    await this.press(this.named(list.locator('li').first(), 'Show the node'), how);
    assert.equal(await page.evaluate('RED.workspaces.active()'), 'tab');
    const failure = this.part('failures')
      .locator('li', { hasText: forbidden.slice(-4) })
      .first();
    await this.press(this.named(failure, 'Copy the trace id'), how);
    await page.locator('.red-ui-notification', { hasText: 'Copied.' }).first().waitFor();
    const facts = this.part('service').locator('ul');
    const summary = this.part('service').locator('summary');
    await this.press(summary, how);
    await facts.waitFor({ state: 'hidden' });
    await this.press(summary, how);
    await facts.waitFor();
    const [bundle] = await Promise.all([
      page.waitForEvent('download'),
      this.press(this.named(this.part('service'), 'Download a support bundle'), how),
    ]);
    assert.equal(bundle.suggestedFilename(), 'advisor-texting-bundle.json');
    await this.press(this.named(this.section('Office'), 'Open the environment'), how);
    await dialogReady(page, 'environment');
    await closeEnvironment(page, 'cancel');
  }

  /** What needs the permission to write, on people of their own. */
  async write(how: How, wait: number): Promise<void> {
    const { page, red } = this;
    await this.find(waitNumber(wait));
    const row = this.row('waits', waitNumber(wait));
    await row.waitFor();
    const checked = page.waitForResponse(/\/check$/);
    await this.press(this.named(row, 'Check now'), how);
    assert.equal((await checked).status(), 200);
    await this.confirm(row, 'Cancel', how);
    await page.locator('.advisor-side-waits input').first().press('Escape');
    await this.part('waits').getByText('1 – 20').waitFor();

    await red.send('text slow', { phone: [1, 2, 3].map((n) => numbered(10 * wait + n)), text: 'x' });
    const list = this.part('lists', 'Slow').locator('li');
    await list.waitFor();
    await this.confirm(list, 'Stop', how);
    const held = '+18005550100';
    await red.send('text quiet', { phone: held, text: 'x' });
    await this.row('held', held, 'Quiet').waitFor();
    await this.confirm(this.row('held', held, 'Quiet'), 'Cancel', how);

    await this.popup(this.named(this.section(), 'Open the phones'), how);
    const advisor = this.part('advisors', 'Office').locator('li');
    await this.popup(this.named(advisor, 'Authorize'), how);
    const linked = page.waitForResponse(/office\/link$/);
    await this.press(this.named(advisor, 'Copy link'), how);
    assert.equal((await linked).status(), 200);
  }

  /** The tab key comes by everything that can be pressed, in the order in which it is read. */
  async tabs(): Promise<void> {
    const { page } = this;
    const all = await page.evaluate<number>(`(() => {
      const bar = document.querySelector('.advisor-sidebar');
      window.stops = [...bar.querySelectorAll('summary, button:enabled, input, a')]
        .filter((one) => one.offsetParent !== null);
      window.stops[0].focus();
      return window.stops.length;
    })()`);
    for (let at = 1; at < Math.min(all, 60); at++) {
      await page.keyboard.press('Tab');
      const isNext = await page.evaluate(`document.activeElement === window.stops[${String(at)}]`);
      assert.ok(isNext, `the tab key misses stop ${String(at)}`);
    }
  }
}

/** A Node-RED that takes up very much has no time for a connection. */
const total = async (red: RealRed): Promise<number> => {
  try {
    const { json } = await red.request('GET', 'advisor-texting/env/waits?pageSize=1');
    return (json as { pageInfo: { totalRecord: number } }).pageInfo.totalRecord;
  } catch {
    return 0;
  }
};

const anonymous = (red: RealRed): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(join('/proc', String(red.pid), 'status'), 'utf8'))?.[1]) / 1024;

/** How an open sidebar bears very many events. */
const underLoad = async (desk: Desk): Promise<void> => {
  const { page, red } = desk;
  const heap = async (): Promise<number> => {
    const session = await page.context().newCDPSession(page);
    await session.send('HeapProfiler.collectGarbage');
    const { usedSize } = await session.send('Runtime.getHeapUsage');
    await session.detach();
    return usedSize / 1024 / 1024;
  };
  const [heapBefore, memoryBefore] = [await heap(), anonymous(red)];
  let requests = 0;
  page.on('request', (request) => {
    if (/advisor-texting\/\w+\/\w/.test(request.url())) requests += 1;
  });
  await page.evaluate(`(() => {
    window.told = 0;
    RED.comms.subscribe('advisor-texting/changed', () => window.told++);
    window.longest = 0;
    window.blocked = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) {
        window.longest = Math.max(window.longest, duration);
        window.blocked += duration - 50;
      }
    }).observe({ type: 'longtask' });
  })()`);
  const began = Date.now();
  let sent = 0;
  let slowest = 0;
  while (Date.now() - began < 20_000) {
    const due = Math.floor(((Date.now() - began) / 1000) * textsPerSecond) - sent;
    const sending = Array.from({ length: due }, () =>
      red.send('text env', { phone: `+447${String(sent++).padStart(9, '0')}`, text: 'x' }),
    );
    await Promise.all(sending);
    const from = performance.now();
    await page.locator('.advisor-side-waits input').first().press('ArrowLeft');
    slowest = Math.max(slowest, performance.now() - from);
    await pause(100);
  }
  const measured = await page.evaluate<{ told: number; longest: number; blocked: number }>(
    `({ told: window.told, longest: window.longest, blocked: window.blocked })`,
  );
  const seconds = (Date.now() - began) / 1000;
  const per = (count: number): string => (count / seconds).toFixed(1);
  console.log(
    `  ${per(sent)} texts a second for ${seconds.toFixed(0)} s: the editor is told ${per(measured.told)} times and asks ${per(requests)} times a second;` +
      ` it is busy for ${Math.round(measured.longest).toString()} ms at most (beyond 50 ms: ${((100 * measured.blocked) / (seconds * 1000)).toFixed(1)} % of the time),` +
      ` a key takes ${Math.round(slowest).toString()} ms at most;` +
      ` page ${heapBefore.toFixed(0)} → ${(await heap()).toFixed(0)} MB, process ${memoryBefore.toFixed(0)} → ${anonymous(red).toFixed(0)} MB`,
  );
  assert.ok(measured.told <= 1.2 * seconds + 2, 'the runtime tells of changes once a second at most');
};

const run = async (version: Version): Promise<void> => {
  console.log(`Node-RED ${String(version)}, ${waits.toLocaleString('en-US')} waits`);
  const settings = { adminAuth: { type: 'credentials', users } };
  const [red, browser] = await Promise.all([startRed({ version, flows: [], settings }), launchBrowser()]);
  try {
    await red.login();
    // Credentials come with a deploy alone.
    await red.deploy(flows);
    for (let first = 0; first < waits; first += perMessage) {
      const length = Math.min(perMessage, waits - first);
      await red.send('in', { phone: Array.from({ length }, (_, n) => waitNumber(first + n)) });
    }
    while ((await total(red)) < waits) await pause(200);
    await red.send('text env', { phone: forbidden, text: 'x' });

    let next = waits - 1;
    for (const { username } of users) {
      const desk = await Desk.open(red, browser, username);
      const mayWrite = username !== 'reader';
      for (const how of hows) {
        const from = performance.now();
        await desk.read(how);
        if (mayWrite) await desk.write(how, next--);
        console.log(`  ${username}, ${how}: ${((performance.now() - from) / 1000).toFixed(1)} s`);
      }
      await desk.tabs();
      const shown = (await desk.page.locator('.advisor-sidebar').textContent()) ?? '';
      assert.equal(/\+1202\d{7}/.test(shown), mayWrite, 'numbers show in full to who may write alone');
      const buttons = await desk.section().getByRole('button', { name: 'Cancel' }).count();
      assert.equal(buttons > 0, mayWrite);
      for (const theme of themesOf(version)) {
        await setTheme(desk.page, theme);
        assert.deepEqual(await violations(desk.page, '.advisor-sidebar'), []);
        const path = join(root, 'test', 'output', `sidebar-many-${String(version)}-${username}-${theme}.png`);
        await desk.page.screenshot({ path, animations: 'disabled' });
      }
      await setTheme(desk.page, 'light');
      // The authorization page of this service is nowhere, and before the login there are no settings.
      assert.deepEqual(
        desk.errors.filter((error) => !/127\.0\.0\.1:9\/|reading 'html'|401.*\/settings/.test(error)),
        [],
      );
      await desk.page.context().close();
    }
    await underLoad(await Desk.open(red, browser, 'admin'));
  } finally {
    await browser.close();
    await red.close();
  }
};

const main = async (): Promise<void> => {
  for (const version of versions) await run(version);
  console.log('Every action did what it says.');
};

main().catch((fault: unknown) => {
  console.error(fault);
  process.exitCode = 1;
});
