import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import type { APIResponse, Page } from 'playwright-core';
import { launchBrowser, type TestBrowser } from '../support/browser';
import { isLong, itInLongRun } from '../support/extent';
import { root } from '../support/installation';
import { adminAuth, startRed, type FlowNode, type RealRed } from '../support/node-red';
import { toldIn } from '../support/numbers';
import { setTheme, violations } from '../support/editor/looks';
import {
  acceptsDeploy,
  environments,
  forbidden,
  unasked,
  numbered,
  openSidebar,
  sendNodes,
  silent,
  waitNodes,
  type SidebarPage,
} from '../support/editor/sidebar';
import { until } from '../support/until';

const password = adminAuth.users[0]?.password;
const hostile = '<img src=x onerror="window.hacked=1">';
const unseen = '\u009b2J\u202e';
const languages = (
  [
    ['en-US', 'right'],
    ['de', 'left'],
    ['es-ES', 'right'],
    ['ja', 'left'],
  ] as const
).filter(([language]) => isLong || language === 'en-US');

const wires = [['out'], ['out'], ['out']];

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Mine' },
  { id: 'other', type: 'tab', label: 'Other' },
  ...environments(`Play ${hostile}`).filter(({ id }) => id === 'env' || id === 'slow'),
  ...waitNodes({ name: `waiting ${hostile}`, wires }),
  { id: 'elsewhere', type: 'test-port', z: 'other', name: 'elsewhere', x: 100, y: 40, wires: [['resting']] },
  ...waitNodes({ id: 'resting', z: 'other', name: `resting ${hostile}`, wires }).slice(1),
  { id: 'out', type: 'test-port', z: 'tab', name: 'out', x: 500, y: 40, wires: [[]] },
  ...sendNodes(['env', 'slow'], wires),
];

/** Makes the sidebar read all environments. */
const comesIntoView = `document.dispatchEvent(new Event('visibilitychange'))`;

/** What the editor itself needs. */
const editorOnly = ['flows', 'settings', 'nodes', 'plugins', 'library', 'icons', 'context', 'status'].map(
  (what) => `${what}.read`,
);

describe('the sidebar, for each kind of user', function () {
  this.timeout(240_000);
  let red: RealRed;
  let browser: TestBrowser;
  let admin: SidebarPage;

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
    await red.send('in', { phone: [{ phone: silent, name: `${hostile}${unseen}` }, { phone: unasked }] });
    await red.send('elsewhere', { phone: numbered(1) });
    await red.send('text env', { phone: forbidden, text: 'confidential' });
    await red.send('text slow', { phone: [2, 3, 4].map(numbered), text: 'confidential' });
    admin = await editorOf('admin', 'en-US', (page) => page.clock.install());
  });
  after(async () => {
    await browser.close();
    await red.close();
  });

  const editorOf = async (
    user: string,
    language = 'en-US',
    opened?: (page: Page) => Promise<unknown>,
  ): Promise<SidebarPage> => {
    const { sidebar } = await openSidebar(red, browser, { user, name: `Play ${hostile}`, language }, opened);
    return sidebar;
  };

  it('shows a reader the last four digits and no button that would fail', async () => {
    const sidebar = await editorOf('reader');
    const { page } = sidebar;
    const refused: string[] = [];
    page.on('response', (response) => {
      if (response.url().includes('advisor-texting/') && response.status() >= 400)
        refused.push(response.url());
    });
    await sidebar.wait('…0111').waitFor();
    await sidebar.part('failures').locator('li', { hasText: '…0172' }).waitFor();
    await sidebar.part('lists', 'Slow').locator('li', { hasText: '/ 3' }).waitFor();
    const shown = (await sidebar.element.textContent()) ?? '';
    const phones = [silent, unasked, forbidden, ...[1, 2, 3, 4].map(numbered)];
    should(toldIn(shown, phones)).be.empty();
    should(shown).not.containEql('confidential');
    should(await sidebar.wait('…0111').locator('strong').textContent()).equal('…0111');
    const names = await page
      .locator('.advisor-sidebar button:visible:not(.advisor-side-heading)')
      .evaluateAll((buttons) => buttons.map((each) => each.ariaLabel ?? each.textContent));
    should([...new Set(names)].toSorted()).deepEqual([
      'Download a support bundle',
      'Open the environment',
      'Show the node',
    ]);
    should(await page.locator('.advisor-sidebar input:visible').count()).equal(0);
    const [bundle] = await Promise.all([
      page.waitForEvent('download'),
      sidebar.named(sidebar.part('service'), 'Download a support bundle').click(),
    ]);
    should(bundle.suggestedFilename()).equal('advisor-texting-bundle.json');
    const file = readFileSync(await bundle.path(), 'utf8');
    const { versions, environment, settings, failures } = JSON.parse(file) as Record<string, object>;
    should(environment).equal('env');
    should(versions).have.properties('package', 'nodeRed', 'node');
    should(settings).containEql({ service: 'simulator' });
    should(failures).matchAny({ code: /^\w+$/, phone: '…0172', traceId: null });
    should(toldIn(file, phones)).be.empty();
    should(file).not.match(/confidential|onerror|only for tests/);
    should(refused).be.empty();

    // What somebody else cancels disappears from this screen, too.
    await admin.confirm(admin.wait(unasked), 'Cancel');
    await sidebar.wait('…0112').waitFor({ state: 'detached' });
    await page.context().close();
  });

  it('requests nothing for users who may not read, and says so', async () => {
    const asked: string[] = [];
    const { page, element } = await editorOf('outsider', 'en-US', async (opened) => {
      opened.on('request', (request) => {
        if (/advisor-texting\/\w+\/\w/.test(new URL(request.url()).pathname)) asked.push(request.url());
      });
    });
    await element.getByText('you do not have permission').waitFor();
    should(await element.locator('section:visible').count()).equal(0);
    should(asked).be.empty();
    await page.context().close();
  });

  it('follows permissions that change while it is open', async () => {
    await red.login('reader');
    const reading = red.token ?? '';
    await red.login();
    await admin.wait(silent).waitFor();
    const as = (token: string): Promise<unknown> =>
      admin.page.route('**/advisor-texting/**', (route) =>
        route.continue({ headers: { ...route.request().headers(), authorization: `Bearer ${token}` } }),
      );
    await as(reading);
    await red.send('in', { phone: numbered(10) });
    await admin.wait('…0010').waitFor();
    await admin.wait('…0111').waitFor();
    // A read that was under way has seen both permissions; the next one has not.
    await until(
      async () => (await admin.named(admin.section(), 'Cancel').count()) === 0,
      'A sidebar without buttons',
    );
    should(await admin.wait(silent).count()).equal(0);
    await admin.page.unroute('**/advisor-texting/**');
    await red.send('in', { phone: numbered(11) });
    await admin.named(admin.wait(numbered(11)), 'Cancel').waitFor();
    await as('nobody');
    await red.send('in', { phone: numbered(12) });
    await admin.section().getByText('you do not have permission').waitFor();
    should(await admin.part('waits').locator('li').count()).equal(0);
    await admin.page.unroute('**/advisor-texting/**');
    await red.send('in', { phone: numbered(13) });
    await admin.named(admin.wait(numbered(13)), 'Cancel').waitFor();
  });

  it('shows no name, number or answer as markup', async () => {
    await admin.page.route('**/check', (route) =>
      route.fulfill({
        status: 400,
        contentType: 'application/json',
        body: JSON.stringify({ message: `${hostile}${unseen}` }),
      }),
    );
    await admin.named(admin.wait(silent), 'Check now').click();
    await admin.page.locator('.red-ui-notification', { hasText: 'onerror' }).waitFor();
    await admin.page.unroute('**/check');
    await admin.wait(hostile).waitFor();
    for (const shown of await admin.page.locator('.advisor-sidebar, .red-ui-notification').allTextContents())
      should(shown).not.match(/[\u009b\u202e]/);
    should(await admin.page.evaluate('window.hacked')).equal(undefined);
    should(await admin.page.locator('.advisor-sidebar img, .red-ui-notification img').count()).equal(0);
  });

  it('recovers by itself when Node-RED was restarted', async () => {
    await admin.wait(silent).waitFor();
    await red.restart();
    await red.login();
    await red.send('in', { phone: numbered(20) });
    await admin.wait(numbered(20)).waitFor();
    should(await admin.wait(silent).count()).equal(1);
    await admin.section().getByRole('alert').waitFor({ state: 'hidden' });
  });

  it('shows what is new though the clock of the browser was set back', async () => {
    await admin.wait(silent).waitFor();
    const now = await admin.page.evaluate<number>('Date.now()');
    await admin.page.clock.setSystemTime(now - 3_600_000);
    await red.send('in', { phone: numbered(21) });
    await admin.wait(numbered(21)).waitFor();
    await admin.page.clock.setSystemTime(Date.now());
  });

  itInLongRun(
    'reads a few times for a hundred notifications, and draws nothing if nothing is new',
    async () => {
      const { page } = admin;
      await admin.wait(silent).waitFor();
      // The next answer of each route, from then on: meanwhile nothing is new.
      const answers = new Map<string, Promise<APIResponse>>();
      let readings = 0;
      await page.route('**/advisor-texting/env/*', async (route) => {
        const { pathname, search } = new URL(route.request().url());
        const asked = pathname + search.replace(/_=\d+/, '');
        const answer = answers.get(asked) ?? route.fetch();
        answers.set(asked, answer);
        if (pathname.endsWith('/service')) readings += 1;
        await route.fulfill({ response: await answer });
      });
      // Today may end meanwhile.
      await page.clock.setFixedTime(Date.now());
      const readAfter = async (event: string): Promise<void> => {
        const read = page.waitForResponse(/env\/waits/);
        await page.evaluate(event);
        await (await read).finished();
      };
      // The second starts when the first is shown.
      await readAfter(comesIntoView);
      await readAfter(comesIntoView);
      await page.evaluate(`(() => {
      window.drawn = [];
      new MutationObserver((changes) => window.drawn.push(...changes.map(({ target }) => target.outerHTML)))
        .observe([...document.querySelectorAll('.advisor-sidebar section')]
          .find((each) => each.ariaLabel.startsWith('Play')),
          { subtree: true, childList: true, characterData: true, attributes: true });
    })()`);
      readings = 0;
      await readAfter(`for (let n = 0; n < 100; n++) RED.events.emit('deploy')`);
      await readAfter(comesIntoView);
      should(await page.evaluate('window.drawn')).deepEqual([]);
      should(readings).be.within(2, 99);
      await page.unroute('**/advisor-texting/env/*');
      await page.clock.setSystemTime(Date.now());
      // What is new is drawn.
      await red.send('in', { phone: numbered(22) });
      await admin.wait(numbered(22)).waitFor();
      should((await page.evaluate<string[]>('window.drawn')).length).be.above(0);
    },
  );

  it('shows the date of a clock of the simulator that was moved to another day, and of what is on another day by it', async () => {
    const { page } = admin;
    const clock = Date.now() + 3 * 86_400_000;
    await page.route(/env\/service/, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...((await response.json()) as object), clock } });
    });
    // How far the clock is ahead is known after a reading, so a later one is drawn with it.
    for (let reading = 0; reading < 4; reading += 1) {
      const read = page.waitForResponse(/env\/waits/);
      await page.evaluate(comesIntoView);
      await (await read).finished();
    }
    const shown = await admin.row('service', 'simulator clock').textContent();
    should(shown).match(/simulator clock [A-Z][a-z]{2}\s\d+,\s\d/);
    should(await admin.wait(silent).textContent()).match(/next check [A-Z][a-z]{2}\s\d+,\s\d/);
    await page.unroute(/env\/service/);
  });

  /** Everything that can be wrong at once. */
  const unwell = async (page: Page): Promise<void> => {
    const soon = Date.now() + 3_600_000;
    const left = { items: 1, waits: 200 };
    const trouble = { store: null, left, trouble: 'The disk is full.', lateBy: 95_000, pausedUntil: soon };
    const advisors = [
      { advisor: 'anna', state: 'authorize_again', expiresAt: soon },
      { advisor: 'eve', state: 'confirm', expiresAt: null },
      { advisor: 'zoe', state: 'authorized', expiresAt: soon },
    ];
    await page.route(/env\/(service|advisors)/, (route) =>
      route.fulfill({
        json: route.request().url().includes('/service')
          ? { service: 'sandbox', queued: null, fault: null, clock: null, mayWrite: true, ...trouble }
          : { data: advisors, pageInfo: { page: 1, pageSize: 20, totalRecord: 3 } },
      }),
    );
    await page.evaluate(comesIntoView);
  };
  /** One of our strings, with anything in its placeholders. */
  const saying = (words = ''): RegExp =>
    new RegExp(
      words
        .split(/__\w+__/)
        .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
        .join('.+'),
    );

  for (const [language, side] of languages) {
    it(`says in ${language} on the ${side} what is wrong, within the available room${isLong ? ', in light and dark' : ''}`, async () => {
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
      const sidebar = language === 'en-US' ? admin : await editorOf('admin', language);
      const { page } = sidebar;
      const file = readFileSync(join(root, 'locales', language, 'dialogs.json'), 'utf8');
      const { sidebar: words } = JSON.parse(file) as { sidebar: Record<string, string> };
      await sidebar.wait(silent).waitFor();
      const place = await page.evaluate(
        `document.querySelector('.advisor-sidebar').getBoundingClientRect().left < innerWidth / 2`,
      );
      should(place).equal(side === 'left');
      const headings = await sidebar.section().locator('summary > span:first-child').allTextContents();
      should(headings).deepEqual(
        ['waiting', 'lists', 'held', 'failures', 'advisors', 'service'].map((name) => words[name]),
      );
      for (const name of ['check', 'cancel', 'show'])
        should(await sidebar.named(sidebar.wait(silent), words[name] ?? '').count()).equal(1);
      await unwell(page);
      await sidebar.section().getByText('The disk is full.').waitFor();
      await sidebar.part('advisors').getByText('zoe').waitFor();
      const alarm = (await sidebar.section().getByRole('status').first().textContent()) ?? '';
      for (const name of ['paused', 'late']) should(alarm).match(saying(words[name]));
      should(await sidebar.part('service').textContent()).match(saying(words['left']));
      const states = await sidebar.part('advisors').locator('li').allTextContents();
      for (const [at, name] of ['authorizeAgain', 'confirm', 'authorized', 'expires'].entries())
        should(states[Math.min(at, 2)]).match(saying(words[name]));
      should(states[0]).not.match(saying(words['expires']));
      for (const name of ['authorize', 'link'])
        should(await sidebar.named(sidebar.part('advisors'), words[name] ?? '').count()).equal(3);
      for (const theme of isLong ? (['light', 'dark'] as const) : (['dark'] as const)) {
        await setTheme(page, theme);
        should(await violations(page, '.advisor-sidebar')).deepEqual([]);
      }
      should(await sidebar.wide()).deepEqual([]);
      if (isLong) {
        mkdirSync(join(root, 'test', 'output'), { recursive: true });
        const path = join(root, 'test', 'output', `sidebar-${language}.png`);
        await page.screenshot({ path, animations: 'disabled' });
      }
      await page.unroute(/env\/(service|advisors)/);
      if (sidebar !== admin) await page.context().close();
    });
  }

  it('says which waits pause because their node is disabled or deleted, cancels them, and says that an environment is disabled', async () => {
    await red.deploy(
      flows.map((node) =>
        node.id === 'other' ? { ...node, disabled: true } : node.id === 'slow' ? { ...node, d: true } : node,
      ),
    );
    await admin.page.evaluate(acceptsDeploy);
    const resting = admin.wait(numbered(1));
    await resting.getByText('Enable the node and deploy to continue.').waitFor();
    should(await admin.named(resting, 'Check now').isVisible()).be.false();
    await admin.named(resting, 'Show the node').click();
    should(await admin.page.evaluate('RED.workspaces.active()')).equal('other');
    // There is nothing to show any more.
    await admin.page.evaluate(`RED.nodes.remove('resting')`);
    await red.send('in', { phone: numbered(25) });
    await admin.wait(numbered(25)).waitFor();
    await resting.getByText(/node was deleted.*Undo.*Seven days after the deletion/).waitFor();
    should(await admin.named(resting, 'Show the node').isVisible()).be.false();
    await admin.confirm(resting, 'Cancel');
    await admin.section('Slow').getByText('This environment is disabled').waitFor();
  });

  it('lists equal failures as often as they are counted, and names a deleted node as such', async () => {
    const rows = admin.part('failures').locator('li');
    await rows.first().waitFor();
    const before = await rows.count();
    await admin.page.route(/env\/failures/, async (route) => {
      const response = await route.fetch();
      const { data: all, advice, ...rest } = (await response.json()) as { data: object[]; advice: string[] };
      const data = all.map((failure) => ({ ...failure, node: { id: 'gone', name: '' } }));
      const twice = <T>([first, ...others]: readonly T[]): (T | undefined)[] => [first, first, ...others];
      const pageInfo = { page: 1, pageSize: 20, totalRecord: data.length + 1 };
      await route.fulfill({ json: { ...rest, data: twice(data), advice: twice(advice), pageInfo } });
    });
    await admin.page.evaluate(comesIntoView);
    await rows.nth(before).waitFor();
    should(await admin.part('failures').locator('summary').textContent()).endWith(String(before + 1));
    should(await rows.first().textContent()).match(/M · deleted node · \+/);
    await admin.page.unroute(/env\/failures/);
  });

  it('shows in one line what was cancelled together, and no label with a text that was not sent', async () => {
    const rows = admin.part('failures').locator('li');
    await admin.page.evaluate(`(() => {
      const { name, text, textType } = RED.nodes.node('send env');
      window.before = { name, text, textType };
      Object.assign(RED.nodes.node('send env'), { name: '', text: 'written later', textType: 'str' });
    })()`);
    await admin.page.route(/env\/failures\?gathered=true/, async (route) => {
      const response = await route.fetch();
      const { data, advice, ...rest } = (await response.json()) as { data: object[]; advice: string[] };
      const stopped = { ...data[0], code: 'cancelled', count: 1259, node: { id: 'send env', name: '' } };
      await route.fulfill({ json: { ...rest, data: [stopped], advice: advice.slice(0, 1) } });
    });
    await admin.page.evaluate(comesIntoView);
    await rows.first().getByText('send text (SMS) · 1,259 recipients').waitFor();
    await admin.page.unroute(/env\/failures\?gathered=true/);
    await admin.page.evaluate(`Object.assign(RED.nodes.node('send env'), window.before) && undefined`);
  });

  it('stops reading an environment that was removed while it was read, and keeps the focus', async () => {
    const sidebar = admin;
    const { page } = sidebar;
    await sidebar.section('Slow').waitFor();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route('**/advisor-texting/slow/**', async (route) => {
      await held;
      await route.continue();
    });
    const reading = page.waitForRequest(/advisor-texting\/slow\//);
    await page.evaluate(comesIntoView);
    await reading;
    await sidebar.section('Slow').locator('.advisor-side-heading').focus();
    await page.evaluate(`(() => {
      for (const id of ['send slow', 'slow']) RED.nodes.remove(id);
      RED.events.emit('deploy');
    })()`);
    await sidebar.section('Slow').waitFor({ state: 'detached' });
    should(await page.locator('.advisor-sidebar :focus').count()).equal(1);
    const answered = page.waitForResponse(/advisor-texting\/slow\//);
    release();
    await (await answered).finished();
    const asked: string[] = [];
    page.on('request', (request) => {
      // The warning about a removed node asks about its waits.
      if (/advisor-texting\/slow\/(?!pending)/.test(request.url())) asked.push(request.url());
    });
    // Longer than the interval between two reads.
    const read = page.waitForResponse(/advisor-texting\/env\/waits/);
    await page.clock.fastForward(70_000);
    await (await read).finished();
    should(asked).be.empty();
  });

  it('shows no wait as alive, and no failure of the simulator, when the environment is production and incomplete', async () => {
    await red.deploy(
      flows.map((node) => (node.id === 'env' ? { ...node, service: 'production', name: 'Real' } : node)),
    );
    await admin.page.evaluate(acceptsDeploy);
    const real = admin.section('Real');
    await real.getByText(/until the environment is complete\. Unfinished .* are then cancelled\.$/).waitFor();
    await admin.part('failures', 'Real').locator('li').first().waitFor({ state: 'detached' });
    should(await admin.part('waits', 'Real').isVisible()).be.false();
    should(await real.textContent()).not.match(/next check/);
    should(await admin.part('service', 'Real').textContent()).not.match(/store/);
    await admin.part('advisors', 'Real').getByText('Nobody has authorized yet').waitFor();
  });

  it('names no service where a variable that is not set decides it', async () => {
    await red.deploy(
      flows.map((node) => (node.id === 'env' ? { ...node, service: '${NOT_SET}', name: 'Real' } : node)),
    );
    await admin.page.evaluate(acceptsDeploy);
    await admin.part('service', 'Real').getByText('No service is chosen yet').waitFor();
  });
});
