import { strict as assert } from 'node:assert';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Locator, Page } from 'playwright-core';
import { setTheme, themesOf, violations } from '../support/editor/looks';
import {
  beginWaits,
  environments,
  forbidden,
  hourly,
  numbered,
  openSidebar,
  pageMemory,
  processMemory,
  sendNodes,
  waitNodes,
  waitNumber,
  type How,
  type SidebarPage,
} from '../support/editor/sidebar';
import { closeEnvironment, dialogReady } from '../support/editor/setup';
import { launchBrowser, openPages, type TestBrowser } from '../support/browser';
import { root, type Version } from '../support/installation';
import { adminAuth, startRed, type FlowNode, type RealRed } from '../support/node-red';

/**
 * `npm run proof -- sidebar`: every action of the sidebar, by mouse and by keyboard, for each kind of user, with many
 * waits.
 */

const waits = Number(process.argv[2] ?? 100_000);
const versions = (process.argv[3] ?? '5,4').split(',').map(Number) as Version[];
const textsPerSecond = Number(process.argv[4] ?? 300);

const hows: readonly How[] = ['mouse', 'Enter', 'Space'];
const text = 'Your review is due.';

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Mine' },
  { id: 'other', type: 'tab', label: 'Other' },
  ...environments('Play'),
  ...waitNodes(hourly),
  { id: 'failed', type: 'test-port', z: 'tab', name: 'failed', x: 500, y: 140, wires: [[]] },
  ...sendNodes(['env', 'slow', 'quiet']),
];

const password = adminAuth.users[0]?.password;
const users = [
  { username: 'admin', password, permissions: '*' },
  // May text, but not deploy.
  { username: 'clerk', password, permissions: ['read', 'advisor-texting.write'] },
  { username: 'reader', password, permissions: 'read' },
];

/** One person's editor, with the sidebar open, and how long each of their actions took. */
class Desk {
  readonly took = new Map<string, number>();
  private readonly page: Page;

  private constructor(
    readonly red: RealRed,
    readonly sidebar: SidebarPage,
    readonly errors: readonly string[],
  ) {
    this.page = sidebar.page;
  }

  static async open(red: RealRed, browser: TestBrowser, user: string): Promise<Desk> {
    const { sidebar, errors } = await openSidebar(red, browser, { user, name: 'Play' });
    await sidebar.part('waits').locator('li').first().waitFor();
    return new Desk(red, sidebar, errors);
  }

  private async timed(what: string, work: () => Promise<unknown>): Promise<void> {
    const from = performance.now();
    await work();
    this.took.set(what, Math.max(this.took.get(what) ?? 0, performance.now() - from));
  }

  private async popup(target: Locator, how: How): Promise<void> {
    const [window] = await Promise.all([
      this.page.context().waitForEvent('page'),
      this.sidebar.press(target, how),
    ]);
    await window.close();
  }

  /** Clicks, reconsiders, and then does it after all. */
  private async confirm(row: Locator, name: string, how: How): Promise<void> {
    const { sidebar, page } = this;
    await sidebar.press(sidebar.named(row, name), how);
    await page.keyboard.press('Escape');
    await sidebar.named(row, name).waitFor();
    await sidebar.confirm(row, name, how);
  }

  /** What everybody may do. */
  async read(how: How): Promise<void> {
    const { page, sidebar } = this;
    const list = sidebar.part('waits');
    const press = (within: Locator, name: string): Promise<void> =>
      sidebar.press(sidebar.named(within, name), how);
    await this.timed('turn the page', async () => {
      await press(list, 'Next page');
      await list.getByText('21 – 40').waitFor();
    });
    await this.timed('turn back', async () => {
      await press(list, 'Previous page');
      await list.getByText('1 – 20').waitFor();
    });
    await page.evaluate(`RED.workspaces.show('other')`);
    await this.timed('show the node', () => press(list.locator('li').first(), 'Show the node'));
    assert.equal(await page.evaluate('RED.workspaces.active()'), 'tab');
    const failure = sidebar.row('failures', forbidden.slice(-4)).first();
    await this.timed('copy the trace id', async () => {
      await press(failure, 'Copy the trace id');
      await page.locator('.red-ui-notification', { hasText: 'Copied.' }).first().waitFor();
    });
    const facts = sidebar.part('service').locator('ul');
    const summary = sidebar.part('service').locator('summary');
    await sidebar.press(summary, how);
    await facts.waitFor({ state: 'hidden' });
    await sidebar.press(summary, how);
    await facts.waitFor();
    await this.timed('download a bundle', async () => {
      const [bundle] = await Promise.all([
        page.waitForEvent('download'),
        press(sidebar.part('service'), 'Download a support bundle'),
      ]);
      assert.equal(bundle.suggestedFilename(), 'advisor-texting-bundle.json');
    });
    await this.timed('open the environment', async () => {
      await press(sidebar.section('Office'), 'Open the environment');
      await dialogReady(page, 'environment');
    });
    await closeEnvironment(page, 'cancel');
  }

  /** What needs the permission to write, each on their own people. */
  async write(how: How, wait: number): Promise<void> {
    const { page, red, sidebar } = this;
    const press = (within: Locator, name: string): Promise<void> =>
      sidebar.press(sidebar.named(within, name), how);
    const search = sidebar.part('waits').locator('input');
    const row = sidebar.wait(waitNumber(wait));
    await this.timed('find a number', async () => {
      await search.fill(waitNumber(wait));
      await row.waitFor();
    });
    await this.timed('check now', async () => {
      const checked = page.waitForResponse(/\/check$/);
      await press(row, 'Check now');
      assert.equal((await checked).status(), 200);
    });
    await this.timed('cancel', () => this.confirm(row, 'Cancel', how));
    await this.timed('clear the search', async () => {
      await search.press('Escape');
      await sidebar.part('waits').getByText('1 – 20').waitFor();
    });
    const list = sidebar.part('lists', 'Slow').locator('li');
    await this.timed('see a list', async () => {
      await red.send('text slow', { phone: [1, 2, 3].map((n) => numbered((10 * wait + n) % 10_000)), text });
      await list.waitFor();
    });
    await this.timed('stop it', () => this.confirm(list, 'Stop', how));
    const phone = '+18005550100';
    const held = sidebar.row('held', phone, 'Quiet');
    await this.timed('see a held text', async () => {
      await red.send('text quiet', { phone, text });
      await held.waitFor();
    });
    await this.timed('cancel it', () => this.confirm(held, 'Cancel', how));
    await this.timed('open the phones', () =>
      this.popup(sidebar.named(sidebar.section(), 'Open the phones'), how),
    );
    await sidebar.unfold('Office');
    const advisor = sidebar.part('advisors', 'Office').locator('li');
    await this.timed('authorize', () => this.popup(sidebar.named(advisor, 'Authorize'), how));
    await this.timed('copy a link', async () => {
      const linked = page.waitForResponse(/office\/link$/);
      await press(advisor, 'Copy link');
      assert.equal((await linked).status(), 200);
    });
  }

  /** The tab key reaches everything that can be pressed, in reading order. */
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

/** What the page has done, as its browser counts it. */
interface Work {
  /** Seconds that its only thread was busy, with scripts and with everything. */
  readonly script: number;
  readonly all: number;
  readonly longest: number;
  readonly told: number;
  readonly requests: number;
  /** Parts of the sidebar that were changed. */
  readonly changes: number;
  readonly slowestKey: number;
}

const textFor = async (desk: Desk, ms: number): Promise<Work> => {
  const { page } = desk.sidebar;
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  const busy = async (): Promise<{ script: number; all: number }> => {
    const { metrics } = await session.send('Performance.getMetrics');
    const of = (name: string): number => metrics.find((each) => each.name === name)?.value ?? 0;
    return { script: of('ScriptDuration'), all: of('TaskDuration') };
  };
  let requests = 0;
  const note = (request: { url(): string }): void => {
    if (/advisor-texting\/\w+\/\w/.test(request.url())) requests += 1;
  };
  page.on('request', note);
  await page.evaluate('Object.assign(window.seen, { told: 0, longest: 0, changes: 0 })');
  const before = await busy();
  const began = Date.now();
  let sent = 0;
  let slowestKey = 0;
  while (Date.now() - began < ms) {
    const due = Math.floor(((Date.now() - began) / 1000) * textsPerSecond) - sent;
    const sending = Array.from({ length: due }, () =>
      desk.red.send('text env', { phone: `+447${String(texted++).padStart(9, '0')}`, text }),
    );
    sent += due;
    await Promise.all(sending);
    const from = performance.now();
    await page.keyboard.press('ArrowLeft');
    slowestKey = Math.max(slowestKey, performance.now() - from);
    await pause(100);
  }
  const after = await busy();
  page.off('request', note);
  await session.detach();
  const seen = await page.evaluate<Pick<Work, 'told' | 'longest' | 'changes'>>('({ ...window.seen })');
  const [script, all] = [after.script - before.script, after.all - before.all];
  return { ...seen, script, all, requests, slowestKey };
};
let texted = 0;

/** How the editor copes with very many events, alternately with the sidebar and with another tab open. */
const underLoad = async (desk: Desk): Promise<void> => {
  const { sidebar, red } = desk;
  const { page } = sidebar;
  await page.evaluate(`(() => {
    window.seen = { told: 0, longest: 0, changes: 0 };
    RED.comms.subscribe('advisor-texting/changed', () => window.seen.told++);
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.seen.longest = Math.max(window.seen.longest, duration);
    }).observe({ type: 'longtask' });
    new MutationObserver((changes) => (window.seen.changes += changes.length)).observe(
      document.querySelector('.advisor-sidebar'),
      { subtree: true, childList: true, characterData: true, attributes: true },
    );
  })()`);
  const before = { page: await pageMemory(page), process: processMemory(red) };
  const seconds = 10;
  const totals: Record<'open' | 'closed', Work[]> = { open: [], closed: [] };
  for (let round = 0; round < 2; round++)
    for (const side of ['closed', 'open'] as const) {
      await (side === 'open' ? sidebar.show() : page.evaluate(`RED.sidebar.show('info')`));
      await page.locator('#red-ui-workspace-chart').focus();
      // What was being read is shown.
      await pause(3000);
      totals[side].push(await textFor(desk, seconds * 1000));
    }
  const sum = (side: 'open' | 'closed', name: keyof Work): number =>
    totals[side].reduce((all, work) => all + work[name], 0);
  const most = (side: 'open' | 'closed', name: keyof Work): number =>
    Math.max(...totals[side].map((work) => work[name]));
  for (const side of ['closed', 'open'] as const) {
    const per = (name: keyof Work): string => (sum(side, name) / (2 * seconds)).toFixed(1);
    const share = (name: 'script' | 'all'): string =>
      `${((100 * sum(side, name)) / (2 * seconds)).toFixed(1)} %`;
    console.log(
      `  ${String(textsPerSecond)} texts a second, ${side}: told ${per('told')}, asks ${per('requests')}, changes ${per('changes')} times a second;` +
        ` busy ${share('all')} of the time (scripts ${share('script')}), ${Math.round(most(side, 'longest')).toString()} ms at most;` +
        ` a key takes ${Math.round(most(side, 'slowestKey')).toString()} ms at most`,
    );
  }
  console.log(
    `  open against closed: ${(sum('open', 'all') / sum('closed', 'all')).toFixed(2)} times as busy;` +
      ` page ${before.page.toFixed(0)} → ${(await pageMemory(page)).toFixed(0)} MB, process ${before.process.toFixed(0)} → ${processMemory(red).toFixed(0)} MB`,
  );
  assert.equal(sum('closed', 'requests'), 0, 'a sidebar that is not seen asks nothing');
  assert.equal(sum('closed', 'changes'), 0, 'nor does it draw');
};

const run = async (version: Version): Promise<void> => {
  mkdirSync(join(root, 'test', 'output'), { recursive: true });
  console.log(`Node-RED ${String(version)}, ${waits.toLocaleString('en-US')} waits`);
  const settings = { adminAuth: { type: 'credentials', users } };
  const [red, browser] = await Promise.all([
    startRed({ version, isWhole: true, flows: [], settings }),
    launchBrowser(),
  ]);
  try {
    await red.login();
    // Credentials come only with a deploy.
    await red.deploy(flows);
    const idle = processMemory(red);
    const began = performance.now();
    await beginWaits(red, 0, waits);
    console.log(
      `  all wait after ${((performance.now() - began) / 1000).toFixed(1)} s; process ${idle.toFixed(0)} → ${processMemory(red).toFixed(0)} MB`,
    );
    await red.send('text env', { phone: forbidden, text });

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
      const slow = [...desk.took].toSorted(([, one], [, other]) => other - one).slice(0, 6);
      console.log(`  slowest: ${slow.map(([what, ms]) => `${what} ${(ms / 1000).toFixed(1)} s`).join(', ')}`);
      await desk.tabs();
      const { page, element } = desk.sidebar;
      const shown = (await element.textContent()) ?? '';
      assert.equal(/\+1202\d{7}/.test(shown), mayWrite, 'numbers show in full to who may write alone');
      const buttons = await desk.sidebar.section().getByRole('button', { name: 'Cancel' }).count();
      assert.equal(buttons > 0, mayWrite);
      for (const theme of themesOf(version)) {
        await setTheme(page, theme);
        assert.deepEqual(await violations(page, '.advisor-sidebar'), []);
        const path = join(root, 'test', 'output', `sidebar-many-${String(version)}-${username}-${theme}.png`);
        await page.screenshot({ path, animations: 'disabled' });
      }
      await setTheme(page, 'light');
      // The authorization page of this service does not exist, and before the login there are no settings.
      assert.deepEqual(
        desk.errors.filter((error) => !/127\.0\.0\.1:9\/|reading 'html'|401.*\/settings/.test(error)),
        [],
      );
      await page.context().close();
    }
    await underLoad(await Desk.open(red, browser, 'admin'));
  } catch (fault) {
    for (const [at, page] of openPages().entries())
      await page
        .screenshot({ path: join(root, 'test', 'output', `sidebar-failed-${String(at)}.png`) })
        .catch(() => undefined);
    throw fault;
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
