import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import type { Locator, Page } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../support/browser';
import { root } from '../support/installation';
import { adminAuth, adminPassword, startRed, type FlowNode, type RealRed } from '../support/node-red';
import { setTheme, violations } from './looks';
import { forbidden, never, numbered, sendNodes, silent, wide } from './sidebar';

const password = adminAuth.users[0]?.password;
const hostile = '<img src=x onerror="window.hacked=1">';
const languages = [
  ['en-US', 'right'],
  ['de', 'left'],
  ['es-ES', 'right'],
  ['ja', 'left'],
] as const;

const wait = (id: string, z: string, environment = 'env'): FlowNode => ({
  id,
  type: 'advisor-check-consent',
  z,
  name: `${id} ${hostile}`,
  environment,
  mode: 'wait',
  x: 300,
  y: 40,
  wires: [['out'], ['out'], ['out']],
});

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Mine' },
  { id: 'other', type: 'tab', label: 'Other' },
  { id: 'env', type: 'advisor-environment', name: `Play ${hostile}`, service: 'simulator' },
  { id: 'slow', type: 'advisor-environment', name: 'Slow', service: 'simulator', requestsPerSecond: 0.001 },
  { id: 'in', type: 'test-port', z: 'tab', name: 'in', x: 100, y: 40, wires: [['waiting']] },
  wait('waiting', 'tab'),
  { id: 'elsewhere', type: 'test-port', z: 'other', name: 'elsewhere', x: 100, y: 40, wires: [['resting']] },
  wait('resting', 'other'),
  { id: 'out', type: 'test-port', z: 'tab', name: 'out', x: 500, y: 40, wires: [[]] },
  ...sendNodes(['env', 'slow'], [['out'], ['out'], ['out']]),
];

/** What the editor itself needs. */
const editorOnly = ['flows', 'settings', 'nodes', 'plugins', 'library', 'icons', 'context', 'status'].map(
  (what) => `${what}.read`,
);

describe('the sidebar, for each as they may', function () {
  this.timeout(240_000);
  let red: RealRed;
  let browser: TestBrowser;
  let admin: Page;

  before(async () => {
    const users = [
      { username: 'admin', password, permissions: '*' },
      { username: 'reader', password, permissions: 'read' },
      { username: 'outsider', password, permissions: editorOnly },
    ];
    [red, browser] = await Promise.all([
      startRed({ version: 5, flows, settings: { adminAuth: { type: 'credentials', users } } }),
      launchBrowser(),
    ]);
    await red.login();
    await red.send('in', { phone: [{ phone: silent, name: hostile }, { phone: never }] });
    await red.send('elsewhere', { phone: numbered(1) });
    await red.send('text env', { phone: forbidden, text: 'confidential' });
    await red.send('text slow', { phone: [2, 3, 4].map(numbered), text: 'confidential' });
    admin = await editorOf('admin', 'en-US', (page) => page.clock.install());
  });
  after(async () => {
    await browser.close();
    await red.close();
  });

  /** The editor of somebody, in a language, with the sidebar on a side, open. */
  const editorOf = async (
    user: string,
    language = 'en-US',
    opened: (page: Page) => Promise<unknown> = () => Promise.resolve(),
  ): Promise<Page> => {
    const { page } = await browser.open({ locale: language, viewport: { width: 1280, height: 1000 } });
    page.setDefaultTimeout(60_000);
    await opened(page);
    await page.goto(`${red.adminUrl}/`);
    await page.locator('#node-dialog-login-username').fill(user);
    await page.locator('#node-dialog-login-password').fill(adminPassword);
    await page.locator('#node-dialog-login-submit').click();
    await page.locator('.red-ui-flow-node').first().waitFor();
    await page.evaluate(`RED.sidebar.show('advisor-texting')`);
    return page;
  };
  const section = (page: Page, name = `Play ${hostile}`): Locator =>
    page.locator('.advisor-sidebar').getByRole('region', { name, exact: true });
  const part = (page: Page, name: string, environment?: string): Locator =>
    section(page, environment).locator(`.advisor-side-${name}`);
  const rowOf = (page: Page, text: string): Locator => part(page, 'waits').locator('li', { hasText: text });
  const named = (within: Locator, name: string): Locator => within.getByRole('button', { name, exact: true });

  it('shows a reader the last four digits and no button that fails', async () => {
    const page = await editorOf('reader');
    const refused: string[] = [];
    page.on('response', (response) => {
      if (response.url().includes('advisor-texting/') && response.status() >= 400)
        refused.push(response.url());
    });
    await rowOf(page, '…0111').waitFor();
    await part(page, 'failures').locator('li', { hasText: '…0172' }).waitFor();
    await part(page, 'lists', 'Slow').locator('li', { hasText: '/ 3' }).waitFor();
    const shown = (await page.locator('.advisor-sidebar').textContent()) ?? '';
    should(shown).not.match(/555|confidential/);
    should(await rowOf(page, '…0111').locator('strong').textContent()).equal('…0111');
    const names = await page
      .locator('.advisor-sidebar button:visible')
      .evaluateAll((buttons) => buttons.map((each) => each.ariaLabel ?? each.textContent));
    should([...new Set(names)].toSorted()).deepEqual([
      'Copy the trace id',
      'Download a support bundle',
      'Open the environment',
      'Show the node',
    ]);
    should(await page.locator('.advisor-sidebar input:visible').count()).equal(0);
    const [bundle] = await Promise.all([
      page.waitForEvent('download'),
      named(part(page, 'service'), 'Download a support bundle').click(),
    ]);
    should(bundle.suggestedFilename()).equal('advisor-texting-bundle.json');
    should(refused).be.empty();

    // What somebody else cancels goes from this one's screen, too.
    await named(rowOf(admin, never), 'Cancel').click();
    await named(rowOf(admin, never), 'Press again to do it').click();
    await rowOf(page, '…0112').waitFor({ state: 'detached' });
    await page.context().close();
  });

  it('asks nothing for who may not read, and says so', async () => {
    const asked: string[] = [];
    const page = await editorOf('outsider', 'en-US', async (opened) => {
      opened.on('request', (request) => {
        if (/advisor-texting\/\w+\/\w/.test(new URL(request.url()).pathname)) asked.push(request.url());
      });
    });
    await page.locator('.advisor-sidebar').getByText('not allowed to do this').waitFor();
    should(await page.locator('.advisor-sidebar section').count()).equal(0);
    should(asked).be.empty();
    await page.context().close();
  });

  it('follows rights that change while it is open', async () => {
    await red.login('reader');
    const reading = red.token ?? '';
    await red.login();
    await rowOf(admin, silent).waitFor();
    const as = (token: string): Promise<unknown> =>
      admin.route('**/advisor-texting/**', (route) =>
        route.continue({ headers: { ...route.request().headers(), authorization: `Bearer ${token}` } }),
      );
    await as(reading);
    await red.send('in', { phone: numbered(10) });
    await rowOf(admin, '…0010').waitFor();
    await rowOf(admin, '…0111').waitFor();
    should(await rowOf(admin, silent).count()).equal(0);
    should(await named(section(admin), 'Cancel').count()).equal(0);
    await admin.unroute('**/advisor-texting/**');
    await red.send('in', { phone: numbered(11) });
    await named(rowOf(admin, numbered(11)), 'Cancel').waitFor();
    await as('nobody');
    await red.send('in', { phone: numbered(12) });
    await section(admin).getByText('not allowed to do this').waitFor();
    should(await part(admin, 'waits').locator('li').count()).equal(0);
    await admin.unroute('**/advisor-texting/**');
    await red.send('in', { phone: numbered(13) });
    await named(rowOf(admin, numbered(13)), 'Cancel').waitFor();
  });

  it('takes no name, number or answer for markup', async () => {
    await admin.route('**/check', (route) =>
      route.fulfill({
        status: 400,
        contentType: 'application/json',
        body: JSON.stringify({ message: hostile }),
      }),
    );
    await named(rowOf(admin, silent), 'Check now').click();
    await admin.locator('.red-ui-notification', { hasText: 'onerror' }).waitFor();
    await admin.unroute('**/check');
    await rowOf(admin, hostile).waitFor();
    should(await admin.evaluate('window.hacked')).equal(undefined);
    should(await admin.locator('.advisor-sidebar img, .red-ui-notification img').count()).equal(0);
  });

  it('goes on by itself when Node-RED was restarted', async () => {
    await rowOf(admin, silent).waitFor();
    await red.restart();
    await red.login();
    await red.send('in', { phone: numbered(20) });
    await rowOf(admin, numbered(20)).waitFor();
    should(await rowOf(admin, silent).count()).equal(1);
    await section(admin).getByRole('alert').waitFor({ state: 'hidden' });
  });

  it('shows what is new though the clock of the browser was set back', async () => {
    await rowOf(admin, silent).waitFor();
    const now = await admin.evaluate<number>('Date.now()');
    await admin.clock.setSystemTime(now - 3_600_000);
    await red.send('in', { phone: numbered(21) });
    await rowOf(admin, numbered(21)).waitFor();
    await admin.clock.setSystemTime(Date.now());
  });

  for (const [language, side] of languages) {
    it(`speaks ${language} on the ${side}, in no more room than there is, in light and dark`, async () => {
      await red.request('POST', 'settings/user', {
        editor: {
          sidebar: {
            state: {
              v: 4,
              tabs: [],
              primary: {
                width: 300,
                top: { tabs: ['info', ...(side === 'right' ? ['advisor-texting'] : [])], active: 'info' },
                bottom: { tabs: [], hidden: true },
              },
              secondary: {
                width: 210,
                top: { tabs: ['explorer', ...(side === 'left' ? ['advisor-texting'] : [])] },
                bottom: { tabs: ['palette'], hidden: true },
              },
            },
          },
        },
      });
      const page = language === 'en-US' ? admin : await editorOf('admin', language);
      const file = readFileSync(join(root, 'locales', language, 'dialogs.json'), 'utf8');
      const { sidebar: words } = JSON.parse(file) as { sidebar: Record<string, string> };
      await rowOf(page, silent).waitFor();
      const place = await page.evaluate(
        `document.querySelector('.advisor-sidebar').getBoundingClientRect().left < innerWidth / 2`,
      );
      should(place).equal(side === 'left');
      const headings = await section(page).locator('summary > span:first-child').allTextContents();
      should(headings).deepEqual(
        ['waiting', 'lists', 'held', 'failures', 'advisors', 'service'].map((name) => words[name]),
      );
      for (const name of ['check', 'cancel', 'show'])
        should(await named(rowOf(page, silent), words[name] ?? '').count()).equal(1);
      for (const theme of ['light', 'dark'] as const) {
        await setTheme(page, theme);
        should(await violations(page, '.advisor-sidebar')).deepEqual([]);
      }
      should(await wide(page)).deepEqual([]);
      mkdirSync(join(root, 'test', 'output'), { recursive: true });
      const path = join(root, 'test', 'output', `sidebar-${language}.png`);
      await page.screenshot({ path, animations: 'disabled' });
      if (page !== admin) await page.context().close();
    });
  }

  it('says which waits rest since their flow is disabled, and that an environment is', async () => {
    await red.deploy(
      flows.map((node) =>
        node.id === 'other' ? { ...node, disabled: true } : node.id === 'slow' ? { ...node, d: true } : node,
      ),
    );
    // As whoever takes over what somebody else has deployed.
    await admin.evaluate(`$.getJSON('flows').then((flows) => {
      RED.nodes.clear();
      RED.nodes.import(flows.flows ?? flows);
      RED.nodes.version(flows.rev);
      RED.events.emit('deploy');
    })`);
    const resting = rowOf(admin, numbered(1));
    await resting.getByText('not checked').waitFor();
    for (const name of ['Check now', 'Cancel']) should(await named(resting, name).isDisabled()).be.true();
    await named(resting, 'Show the node').click();
    should(await admin.evaluate('RED.workspaces.active()')).equal('other');
    // Removed and not deployed: there is nothing to show.
    await admin.evaluate(`RED.nodes.remove('resting')`);
    await red.send('in', { phone: numbered(25) });
    await rowOf(admin, numbered(25)).waitFor();
    await named(resting, 'Show the node').waitFor({ state: 'hidden' });
    await section(admin, 'Slow').getByText('This environment is disabled').waitFor();
  });

  it('reads an environment no longer that was removed while it was read, and keeps the focus', async () => {
    const page = admin;
    await section(page, 'Slow').waitFor();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route('**/advisor-texting/slow/**', async (route) => {
      await held;
      await route.continue();
    });
    const reading = page.waitForRequest(/advisor-texting\/slow\//);
    await red.send('in', { phone: numbered(30) });
    await reading;
    await section(page, 'Slow').locator('summary').first().focus();
    await page.evaluate(`(() => {
      for (const id of ['send slow', 'slow']) RED.nodes.remove(id);
      RED.events.emit('deploy');
    })()`);
    await section(page, 'Slow').waitFor({ state: 'detached' });
    should(await page.locator('.advisor-sidebar :focus').count()).equal(1);
    const answered = page.waitForResponse(/advisor-texting\/slow\//);
    release();
    await (await answered).finished();
    const asked: string[] = [];
    page.on('request', (request) => {
      // What waits in a node that is removed is asked by the warning about that.
      if (/advisor-texting\/slow\/(?!pending)/.test(request.url())) asked.push(request.url());
    });
    // Longer than from one reading to the next.
    const read = page.waitForResponse(/advisor-texting\/env\/waits/);
    await page.clock.fastForward(70_000);
    await (await read).finished();
    should(asked).be.empty();
  });
});
