import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import type { Locator, Page, Request } from 'playwright-core';
import type { StateView } from '../../simulator';
import { Phones } from '../support/examples/setup';
import { isLong, itInLongRun, versions } from '../support/extent';
import { root } from '../support/installation';
import type { FlowNode } from '../support/node-red';
import { numbers } from '../support/numbers';
import { setTheme, themesOf, violations } from '../support/editor/looks';
import {
  acceptsDeploy,
  environments,
  forbidden,
  unasked,
  numbered,
  sendNodes,
  SidebarPage,
  silent,
  waitNodes,
  type How,
} from '../support/editor/sidebar';
import { closeEnvironment, dialogReady, startEditor, type StartedEditor } from '../support/editor/setup';

const { landline } = numbers;

/** Two instances of a subflow that has an environment, and nodes with it and with one outside. */
const subflow: FlowNode[] = [
  {
    id: 'sub',
    type: 'subflow',
    name: 'Branch',
    in: [{ x: 40, y: 40, wires: [{ id: 'inside' }, { id: 'outside' }] }],
    out: [],
  },
  { id: 'branch', type: 'advisor-environment', z: 'sub', name: 'Own', service: 'simulator' },
  ...['inside', 'outside'].map((id, at) => ({
    id,
    type: 'advisor-check-consent',
    z: 'sub',
    name: `wait ${id}`,
    environment: id === 'inside' ? 'branch' : 'env',
    mode: 'wait',
    x: 200,
    y: 40 + 60 * at,
    wires: [[], [], []],
  })),
  ...['North', 'South'].flatMap((name, at) => [
    { id: name, type: 'subflow:sub', z: 'other', name, x: 300, y: 40 + 60 * at, wires: [] },
    { id: `to${name}`, type: 'test-port', z: 'other', name, x: 100, y: 40 + 60 * at, wires: [[name]] },
  ]),
];

const { refreshToken: _, ...credentials } = environments('').at(-1)?.['credentials'] as Record<
  string,
  string
>;

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Mine' },
  { id: 'other', type: 'tab', label: 'Other' },
  ...environments('Play <b>'),
  ...environments('')
    .slice(-1)
    .map((node) => ({ ...node, id: 'fresh', name: 'Fresh', service: 'production', credentials })),
  { id: 'empty', type: 'advisor-environment', name: 'Empty', service: 'production' },
  ...waitNodes({ wires: [['out'], ['out'], ['out']] }),
  { id: 'out', type: 'test-port', z: 'tab', name: 'out', x: 500, y: 40, wires: [[]] },
  ...sendNodes(['env', 'slow', 'quiet']),
  { id: 'failed', type: 'test-port', z: 'tab', name: 'failed', x: 500, y: 140, wires: [[]] },
  ...['office', 'empty', 'fresh'].map((environment, at) => ({
    id: `send ${environment}`,
    type: 'advisor-send-text',
    z: 'tab',
    environment,
    x: 300,
    y: 320 + 60 * at,
    wires: [[], [], []],
  })),
  { id: 'to office', type: 'test-port', z: 'tab', name: 'office', x: 100, y: 320, wires: [['send office']] },
  { id: 'to block', type: 'test-port', z: 'tab', name: 'block', x: 100, y: 440, wires: [['block']] },
  {
    id: 'block',
    type: 'advisor-do-not-text',
    z: 'tab',
    environment: 'env',
    operation: 'block',
    x: 300,
    y: 440,
    wires: [[], [], []],
  },
  ...subflow,
];

for (const version of versions) {
  describe(`the sidebar in Node-RED ${String(version)}`, function () {
    this.timeout(240_000);
    // One key in each version: both press a button.
    const key = version === 4 ? 'Enter' : 'Space';
    let editor: StartedEditor;
    let sidebar: SidebarPage;
    /** How often each environment was read. */
    const readings = new Map<string, number>();

    before(async () => {
      // Credentials come only with a deploy.
      editor = await startEditor(version, flows, (red) => red.deploy(flows));
      editor.page.setDefaultTimeout(60_000);
      editor.page.on('request', (request) => {
        const id = /\/advisor-texting\/(\w+)\/service$/.exec(new URL(request.url()).pathname)?.[1];
        if (id !== undefined) readings.set(id, (readings.get(id) ?? 0) + 1);
      });
      sidebar = new SidebarPage(editor.page, 'Play <b>');
      await sidebar.show();
      await sidebar.element.locator('.advisor-side-name').first().waitFor();
    });
    after(async () => {
      await editor.close();
    });

    /** The name of the focused element. */
    const focused = (): Promise<string> =>
      editor.page.evaluate(`document.activeElement.ariaLabel || document.activeElement.textContent`);
    const picture = async (name: string): Promise<void> => {
      if (!isLong) return;
      const folder = join(root, 'test', 'output');
      mkdirSync(folder, { recursive: true });
      const path = join(folder, `sidebar-${String(version)}-${name}.png`);
      await sidebar.element.screenshot({ path, animations: 'disabled' });
    };

    it('shows by itself who waits, what failed and what to do about it, as text', async () => {
      const { red } = editor;
      await red.send('in', { phone: [{ phone: silent, name: 'Ada <i>' }, { phone: unasked }] });
      await sidebar.wait('Ada <i>').waitFor();
      await sidebar.wait(unasked).waitFor();
      should(await sidebar.wait('Ada <i>').textContent()).match(
        /^Ada <i>\+12025550111 · Default advisor · since .* · next check .* · until /,
      );
      await red.send('text env', { phone: [landline, forbidden], text: 'confidential' });
      const failures = sidebar.part('failures');
      const refused = failures.locator('li', { hasText: landline });
      await refused.waitFor();
      should(await refused.textContent()).match(/^refused.*my send env · \+12025550115.*landline/);
      const unpermitted = failures.locator('li', { hasText: forbidden });
      await unpermitted.waitFor();
      should(await unpermitted.textContent()).match(/^no permission.*uthorize again.*Trace id: \w+/);
      should(await unpermitted.locator('strong').getAttribute('title')).equal('forbidden');
      should(await sidebar.element.textContent()).not.containEql('confidential');
      const advisors = sidebar.part('advisors').locator('li');
      should(await advisors.textContent()).match(/Default advisor.*authorized/);
      const service = sidebar.part('service');
      await service.getByText('0 queued').waitFor();
      should(await service.textContent()).match(/Simulator.*0 queued.*on this machine.*simulator clock/);
    });

    it('says on a production node that nobody has authorized', async () => {
      const status = editor.page.locator('[id="send fresh"] .red-ui-flow-node-status-label');
      await status.getByText('not authorized', { exact: true }).waitFor();
      await sidebar.unfold('Fresh');
      await sidebar.part('advisors', 'Fresh').getByText('Nobody has authorized yet').waitFor();
    });

    it('writes every time alike and by the clock of the simulator, and follows when that is moved', async () => {
      const { red } = editor;
      const phones = await Phones.open(red);
      const next = async (): Promise<string> =>
        / next check (.+?) · /.exec((await sidebar.wait(silent).textContent()) ?? '')?.[1] ?? '';
      const before = await next();
      await phones.advance(3 * 3600);
      await sidebar.wait(silent).getByText(`next check ${before} `).waitFor({ state: 'detached' });
      const { now: from } = (await phones.control('GET', 'state')) as StateView;
      await red.send('in', { phone: [numbered(50), numbered(52)] });
      await red.send('text env', { phone: numbered(51).slice(0, -1), text: 'x' });
      const minutes = Array.from({ length: 10 }, (_, n) =>
        new Date(from + n * 60_000).toLocaleTimeString('en-US', { timeStyle: 'short' }),
      );
      const inTime = { hasText: new RegExp(minutes.join('|').replaceAll(/\s/g, '\\s')) };
      const list = sidebar.row('lists', 'my wait').filter(inTime);
      for (const row of [
        sidebar.wait(numbered(50)),
        sidebar.row('failures', numbered(51).slice(0, -1)),
        list,
        sidebar.row('service', 'simulator clock'),
      ])
        await row.filter(inTime).waitFor();
      const shown = (await sidebar.element.textContent()) ?? '';
      const times = shown.match(/\d+:\d\d(\s\w\w)?/g) ?? [];
      should(times.length).be.above(8);
      should(times.filter((time) => !/^[1-9]\d?:\d\d\s[AP]M$/.test(time))).deepEqual([]);
      await sidebar.confirm(list, 'Stop');
      await red.messages('out', 2);
      red.arrived.length = 0;
    });

    it('shows an incomplete environment, with what to do, beside the others', async () => {
      const empty = sidebar.section('Empty');
      should(await empty.getByRole('alert').textContent()).match(
        /address.*Nothing is checked or sent until the environment is complete\. .* cancelled\.$/i,
      );
      await sidebar.section('Branch › Own').waitFor();
    });

    it('shows the waits of each instance of a subflow, and checks and cancels the right one', async () => {
      const { red, page } = editor;
      const own = 'Branch › Own';
      await red.send('North', { phone: numbered(1) });
      await red.send('South', { phone: numbered(2) });
      for (const n of [1, 2]) {
        for (const environment of [own, 'Play <b>']) {
          const row = sidebar.wait(numbered(n), environment);
          await row.waitFor();
          should(await row.textContent()).match(/next check/);
          const checked = page.waitForResponse(/\/check$/);
          await sidebar.named(row, 'Check now').click();
          should((await checked).status()).equal(200);
        }
        await sidebar.named(sidebar.wait(numbered(n), own), 'Show the node').click();
        should(await page.evaluate('RED.workspaces.active()')).equal('sub');
      }
      await sidebar.confirm(sidebar.wait(numbered(2), own), 'Cancel');
      should(await sidebar.wait(numbered(1), own).count()).equal(1);
      should(await sidebar.wait(numbered(2)).count()).equal(1);
      await page.evaluate(`RED.workspaces.show('tab')`);
    });

    it('puts environments with activity first, and folds the others', async () => {
      // Nothing moves under somebody's mouse.
      await editor.page.mouse.move(0, 0);
      await editor.page.evaluate('document.activeElement.blur()');
      await editor.page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
      const names = sidebar.element.locator('.advisor-side-name');
      await names.nth(1).getByText('Branch › Own').waitFor();
      should(await names.first().textContent()).equal('Play <b>');
      for (const name of ['Slow', 'Quiet', 'Office']) {
        should(await sidebar.part('service', name).isVisible()).be.false();
        should(await sidebar.section(name).textContent()).containEql('idle');
      }
      await sidebar.unfold('Quiet');
      await sidebar.part('service', 'Quiet').locator('li').first().waitFor();
      // Without activity, nothing is open.
      should(await sidebar.part('lists', 'Quiet').getAttribute('open')).be.null();
      should(await sidebar.part('waits').getAttribute('open')).not.be.null();
    });

    it('shows the do-not-text list, searches it, and removes people after a confirmation', async () => {
      const { red, page } = editor;
      const phones = [
        { phone: numbered(40), reason: 'wrote STOP' },
        { phone: numbered(41), reason: 'moved away' },
      ];
      await red.send('block', { phone: phones });
      const list = sidebar.element.getByRole('region', { name: 'Do not text (simulator)', exact: true });
      const row = (text: string): Locator => list.locator('li', { hasText: text });
      await list.locator('summary', { hasText: '2' }).click();
      should(await row(numbered(40)).textContent()).match(/since .* · wrote STOP/);
      const search = list.getByLabel('Search by number or reason');
      await search.fill('moved');
      await row(numbered(40)).waitFor({ state: 'detached' });
      await search.fill(numbered(40));
      await row(numbered(41)).waitFor({ state: 'detached' });
      await sidebar.named(row(numbered(40)), 'Take off the list').click();
      const sure = sidebar.named(
        row(numbered(40)),
        'May this person be texted again? Press again to confirm',
      );
      const removed = page.waitForResponse((answer) => answer.request().method() === 'DELETE');
      await sure.click();
      should((await removed).status()).equal(200);
      await row(numbered(40)).waitFor({ state: 'detached' });
      await page
        .locator('.red-ui-notification', { hasText: `${numbered(40)} can be texted again` })
        .waitFor();
      await search.fill('');
      await row(numbered(41)).waitFor();
      should(await list.locator('li').count()).equal(1);
      await list.locator('summary').click();
    });

    it('finds a number and a name, and keeps the focus', async () => {
      const { page } = editor;
      const search = sidebar.section().getByLabel('Search by number or name');
      await search.fill('0112');
      await sidebar.wait(silent).waitFor({ state: 'detached' });
      should(await sidebar.wait(unasked).count()).equal(1);
      await search.fill('ADA');
      await sidebar.wait(silent).waitFor();
      await sidebar.wait(unasked).waitFor({ state: 'detached' });
      await search.fill('Zoe');
      await sidebar.section().getByText('Nobody found.').waitFor();
      await page.keyboard.press('Escape');
      await sidebar.wait(silent).waitFor();
      should(await search.inputValue()).equal('');
      const button = sidebar.named(sidebar.wait(silent), 'Show the node');
      await button.focus();
      await editor.red.send('in', { phone: '+12065550012' });
      await sidebar.wait('+12065550012').waitFor();
      should(await button.evaluate((element) => element === document.activeElement)).be.true();
      // By the tab key, in reading order.
      await search.focus();
      const order: string[] = [];
      for (let n = 0; n < 4; n++) {
        await page.keyboard.press('Tab');
        order.push(await focused());
      }
      should(order).deepEqual(['Check now', 'Cancel', 'Show the node', 'Check now']);
    });

    it('cancels nobody on a double click or a key that is held down', async () => {
      const { page } = editor;
      const cancel = sidebar.named(sidebar.wait(unasked), 'Cancel');
      const asking = sidebar.named(sidebar.wait(unasked), 'Press again to confirm');
      const deleted: string[] = [];
      const note = (request: Request): void => {
        if (request.method() === 'DELETE') deleted.push(request.url());
      };
      page.on('request', note);
      await cancel.dblclick();
      await asking.waitFor();
      await page.keyboard.press('Escape');
      await cancel.focus();
      for (let n = 0; n < 5; n++) await page.keyboard.down('Enter');
      await page.keyboard.up('Enter');
      await asking.waitFor();
      await page.keyboard.press('Escape');
      await cancel.waitFor();
      page.off('request', note);
      should(deleted).be.empty();
    });

    it('does everything by mouse and by keyboard, and nothing unintended', async () => {
      const { red, page } = editor;
      const hows = ['mouse', key] as const;
      await red.send('in', { phone: hows.map((_, at) => numbered(10 + at)) });
      for (const [at, how] of hows.entries()) {
        const row = sidebar.wait(numbered(10 + at));
        await row.waitFor();
        const checked = page.waitForResponse(/\/check$/);
        await sidebar.press(sidebar.named(row, 'Check now'), how);
        should((await checked).status()).equal(200);
        await page.evaluate(`RED.workspaces.show('other')`);
        await sidebar.press(sidebar.named(row, 'Show the node'), how);
        should(await page.evaluate('RED.workspaces.active()')).equal('tab');
        await sidebar.press(sidebar.named(row, 'Cancel'), how);
        await sidebar.named(row, 'Press again to confirm').waitFor();
        await page.keyboard.press('Escape');
        await sidebar.confirm(row, 'Cancel', how);
        const inside = await page.evaluate<boolean>(
          `document.querySelector('.advisor-side-waits').contains(document.activeElement)`,
        );
        if (how !== 'mouse') should(inside).be.true();
        const failure = sidebar.part('failures').locator('li', { hasText: forbidden });
        await sidebar.press(sidebar.named(failure, 'Copy the trace id'), how);
        await page.locator('.red-ui-notification', { hasText: 'Copied.' }).first().waitFor();
        await sidebar.unfold('Slow');
        const summary = sidebar.part('service', 'Slow').locator('summary');
        const facts = sidebar.part('service', 'Slow').locator('ul');
        await sidebar.press(summary, how);
        await facts.waitFor({ state: 'hidden' });
        await sidebar.press(summary, how === 'mouse' ? how : 'Space');
        await facts.waitFor();
        await sidebar.press(sidebar.named(sidebar.section('Office'), 'Open the environment'), how);
        await dialogReady(page, 'environment');
        await closeEnvironment(page, 'cancel');
      }
      const told = await red.messages('out', hows.length);
      should(told.map(({ phone }) => phone)).deepEqual(hows.map((_, at) => numbered(10 + at)));
    });

    it('stops a list in progress, by mouse and by keyboard', async () => {
      const { red } = editor;
      for (const how of ['mouse', key] as const) {
        await red.send('text slow', { phone: [numbered(20), numbered(21), numbered(22)], text: 'x' });
        const list = sidebar.part('lists', 'Slow').locator('li');
        await list.waitFor();
        should(await list.textContent()).match(/my send slow\d \/ 3/);
        should(await list.getByRole('progressbar').getAttribute('max')).equal('3');
        await sidebar.confirm(list, 'Stop', how);
      }
    });

    it('shows what is held and until when, and cancels it, by mouse and by keyboard', async () => {
      const { red } = editor;
      const held = sidebar.part('held', 'Quiet');
      const hows = ['mouse', 'Enter'] as const;
      // The environment's zone applies to a number that implies none.
      const phones = hows.map((_, at) => `+1800555010${String(at)}`);
      const contact = { phone: '800 555 0100', firstName: 'Grace', lastName: '<i>' };
      await red.send('text quiet', { phone: phones[0], text: 'confidential', contact });
      await red.send('text quiet', { phone: phones[1], text: 'confidential' });
      const told = (await red.messages('failed', 0)).length;
      for (const [at, how] of hows.entries()) {
        const row = held.locator('li', { hasText: phones[at] ?? '' });
        await row.waitFor();
        should(await row.textContent()).match(
          /my send quiet · Default advisor · since .* · to be sent .*[\dM]\sUTC/,
        );
        should(await row.locator('strong').textContent()).equal(at === 0 ? 'Grace <i>' : phones[at]);
        should(await row.textContent()).not.match(/confidential/);
        await sidebar.confirm(row, 'Cancel', how);
      }
      const cancelled = (await red.messages('failed', told + hows.length, 60_000)).slice(told);
      should(cancelled.map(({ phone }) => phone)).deepEqual(phones);
      should(cancelled.every(({ error }) => (error as { code: string }).code === 'cancelled')).be.true();
    });

    it('opens the phones and the authorization page, and copies a link, by mouse and by keyboard', async () => {
      const { page } = editor;
      const opened = async (target: Locator, how: How): Promise<Page> => {
        const [window] = await Promise.all([page.context().waitForEvent('page'), sidebar.press(target, how)]);
        return window;
      };
      await sidebar.unfold('Office');
      const advisor = sidebar.part('advisors', 'Office').locator('li');
      for (const how of ['mouse', key] as const) {
        const phones = sidebar.named(sidebar.section(), 'Open the phones');
        const shown = await opened(phones, how);
        await shown.waitForURL(/advisor-texting\/simulator\/.*&lang=en/, { waitUntil: 'commit' });
        await shown.close();
        const asked = page.waitForResponse(/office\/authorize$/);
        const asking = await opened(sidebar.named(advisor, 'Authorize'), how);
        should(((await (await asked).json()) as { url: string }).url).match(/response_type=code/);
        await asking.close();
        const linked = page.waitForResponse(/office\/link$/);
        await sidebar.press(sidebar.named(advisor, 'Copy link'), how);
        should(((await (await linked).json()) as { url: string }).url).match(/advisor-texting\/link\//);
      }
    });

    it('turns pages, by mouse and by keyboard', async () => {
      const { red } = editor;
      await red.send('in', { phone: Array.from({ length: 30 }, (_, n) => numbered(100 + n)) });
      const waits = sidebar.part('waits');
      const shown = (first: number): Promise<void> =>
        waits.getByText(new RegExp(`^${String(first)} – `)).waitFor();
      await shown(1);
      should(await waits.locator('li').count()).equal(20);
      await sidebar.press(sidebar.named(waits, 'Next page'), 'mouse');
      await shown(21);
      // There are no further ones: the focus does not stay on a disabled button.
      should(await focused()).equal('Previous page');
      await sidebar.press(sidebar.named(waits, 'Previous page'), key);
      await shown(1);
      should(await focused()).equal('Next page');
    });

    itInLongRun('reads the environments that have changed, and leaves the others alone', async () => {
      const { red, page } = editor;
      const before = readings.get('empty') ?? 0;
      should(before).be.above(0);
      const from = Date.now();
      for (let n = 0; n < 6; n++) {
        const read = page.waitForRequest(/\/env\/service/);
        await red.send('in', { phone: numbered(60 + n) });
        await read;
      }
      // Where nothing changes, it looks once a minute.
      const minutes = Math.ceil((Date.now() - from) / 60_000);
      should((readings.get('empty') ?? 0) - before).be.belowOrEqual(minutes);
    });

    it('continues over a deploy that renames its node and removes environments, and counts what pauses there', async () => {
      const { red, page } = editor;
      await red.send('text quiet', { phone: '+18005550109', text: 'x' });
      await sidebar.part('held', 'Quiet').locator('li').waitFor();
      const paused = page.getByText('Paused because a node or an environment was deleted or disabled: 1 (');
      should(await paused.isVisible()).be.false();
      await red.deploy(flows.map((node) => (node.id === 'send quiet' ? { ...node, d: true } : node)));
      await page.evaluate(acceptsDeploy);
      await paused.waitFor();
      should(await paused.textContent()).match(
        /overdue by more than the environment’s “Resume within” are not sent/,
      );
      await red.deploy(flows);
      await page.evaluate(acceptsDeploy);
      await paused.waitFor({ state: 'hidden' });
      const changed = flows
        .filter(({ id }) => !['empty', 'send empty', 'quiet'].includes(id))
        .map((node) => (node.id === 'send env' ? { ...node, name: 'renamed' } : node));
      await red.deploy(changed, 'nodes');
      await page.evaluate(acceptsDeploy);
      await sidebar.section('Empty').waitFor({ state: 'detached' });
      await paused.waitFor();
      await sidebar.part('failures').locator('li', { hasText: 'renamed' }).first().waitFor();
      should(await sidebar.wait(silent).count()).equal(1);
    });

    it('does not ask about an environment before its first deploy, and says so', async () => {
      const { page } = editor;
      await page.evaluate(
        `RED.nodes.import([{ id: 'later', type: 'advisor-environment', name: 'Later' }]) && undefined`,
      );
      const later = sidebar.section('Later').getByText('This environment is not deployed yet.');
      await later.waitFor();
      const before = editor.errors.filter((error) => error.includes('/later/'));
      should([before, readings.get('later')]).deepEqual([[], undefined]);
      await editor.red.deploy([
        ...(await editor.red.flows()),
        { id: 'later', type: 'advisor-environment', name: 'Later' },
      ]);
      await page.evaluate(acceptsDeploy);
      await later.waitFor({ state: 'hidden' });
      should(readings.get('later')).be.above(0);
    });

    it('puts a service that texts real people before the simulators, and shows a failure without a number', async () => {
      const { red, page } = editor;
      await page.mouse.move(0, 0);
      await page.evaluate('document.activeElement.blur()');
      await red.send('text env', { phone: '', text: 'x' });
      const row = sidebar.part('failures').locator('li').first();
      await row.getByText('There is no phone number in').waitFor();
      should(await row.locator('.advisor-side-facts').first().textContent()).match(/[^ ·]$/);
      await red.send('office', { phone: '', text: 'x' });
      const first = sidebar.element.locator('.advisor-side-name').first();
      await first.getByText('Office').waitFor();
      // A line parts both lists from the environment above them, to which they do not belong.
      for (const name of ['Do not text', 'Do not text (simulator)']) {
        const list = sidebar.element.getByRole('region', { name, exact: true });
        should(await list.evaluate((part) => getComputedStyle(part).borderTopWidth)).equal('1px');
      }
    });

    for (const theme of themesOf(version)) {
      it(`is accessible in the ${theme} theme, and shows nothing in red`, async () => {
        await setTheme(editor.page, theme);
        should(await violations(editor.page, '.advisor-sidebar')).deepEqual([]);
        should(await sidebar.wide()).deepEqual([]);
        await picture(theme);
        // The deploy may have removed them while they were read.
        should(editor.errors.filter((error) => !/advisor-texting\/(empty|quiet)\//.test(error))).deepEqual(
          [],
        );
      });
    }
  });
}
