import { rmSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import type { Locator, Page } from 'playwright-core';
import { startSimulator, type Simulator } from '../../simulator';
import { adminAuth } from '../support/auth/real';
import { decideFrom, enter } from '../support/auth/real';
import { decide } from '../support/auth/setup';
import { versions } from '../support/extent';
import { launchBrowser, type TestBrowser } from '../support/browser';
import { type FlowNode, type RealRed, startRed } from '../support/node-red';
import { numbers } from '../support/numbers';
import { until } from '../support/until';
import { ragged } from '../support/editor/looks';
import {
  closeEnvironment,
  closeNode,
  dialogReady,
  type Editor,
  environmentForm,
  openEditor,
  openEnvironment,
  openNode,
  saved,
  windowFrom,
} from '../support/editor/setup';

const hostile = '<img src=x onerror="window.hacked=1">';
const { consented } = numbers;

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Test' },
  { id: 'simulated', type: 'advisor-environment', name: 'Phones', service: 'simulator' },
  { id: 'in', type: 'test-port', z: 'tab', name: 'in', x: 100, y: 60, wires: [['send']] },
  { id: 'send', type: 'advisor-send-text', z: 'tab', x: 300, y: 60, wires: [['out'], ['out'], ['out']] },
  { id: 'out', type: 'test-port', z: 'tab', name: 'out', x: 500, y: 60, wires: [] },
  { id: 'ask', type: 'test-port', z: 'tab', name: 'ask', x: 100, y: 120, wires: [['wait']] },
  {
    id: 'wait',
    type: 'advisor-check-consent',
    z: 'tab',
    x: 300,
    y: 120,
    environment: 'simulated',
    mode: 'wait',
    wires: [[], [], []],
  },
  { id: 'sub', type: 'subflow', name: 'Wait', in: [{ x: 50, y: 50, wires: [{ id: 'inside' }] }], out: [] },
  {
    id: 'inside',
    type: 'advisor-check-consent',
    z: 'sub',
    x: 200,
    y: 50,
    environment: 'simulated',
    mode: 'wait',
    wires: [[], [], []],
  },
  { id: 'ask-inside', type: 'test-port', z: 'tab', name: 'ask inside', x: 100, y: 180, wires: [['use']] },
  { id: 'use', type: 'subflow:sub', z: 'tab', x: 300, y: 180, wires: [] },
];

for (const version of versions) {
  describe(`the dialog of the environment in Node-RED ${version.toString()}`, function () {
    this.timeout(180_000);
    let simulator: Simulator;
    let red: RealRed;
    let browser: TestBrowser;
    let editor: Editor;
    let page: Page;
    let environment: string;

    before(async () => {
      [simulator, red, browser] = await Promise.all([
        startSimulator(),
        startRed({ version, flows, settings: { adminAuth, httpAdminRoot: '/red' } }),
        launchBrowser(),
      ]);
      simulator.change({ redirectUris: [`${red.adminUrl}/advisor-texting/callback`] });
      await red.login('admin', 'admin');
      editor = await openEditor(red, browser, 'admin');
      page = editor.page;
    });

    after(async () => {
      await browser.close();
      await red.close();
      await simulator.close();
    });

    const field = (name: string): Locator => page.locator(`#node-config-input-${name}`);
    const card = (advisor: string): Locator =>
      page.locator('.advisor-card').filter({
        has: page.locator('.advisor-card-header > strong').getByText(advisor, { exact: true }),
      });
    const press = (advisor: string, words: string): Locator =>
      card(advisor).getByRole('button', { name: words, exact: true });
    const stateOf = (advisor: string, words: string): Promise<void> =>
      card(advisor).locator('.advisor-state').getByText(words, { exact: true }).waitFor();
    const factsOf = async (advisor: string): Promise<string> =>
      (await card(advisor).locator('.advisor-facts').textContent()) ?? '';
    const add = async (advisor: string): Promise<void> => {
      await page.getByLabel('Key of another advisor').fill(advisor);
      await page.getByLabel('Key of another advisor').press('Enter');
    };
    /** Requests the authorization page with popups blocked, and returns its address. */
    const blockedLink = async (advisor: string, words: string): Promise<string> => {
      await page.evaluate('window.realOpen = window.open; window.open = () => null');
      await press(advisor, words).click();
      const link = card(advisor).getByRole('link', { name: 'Open the authorization page' });
      const url = await link.getAttribute('href');
      await page.evaluate('window.open = window.realOpen');
      (await card(advisor).locator('.advisor-panel').textContent())?.should.match(/blocked the window/);
      return url ?? '';
    };

    it('needs nothing for the simulator, and opens its phones', async () => {
      await openEnvironment(page, 'simulated');
      const badge = page.locator('.advisor-badge');
      (await badge.textContent())?.should.match(/Simulator: nobody is really texted/);
      // Its name, and the recipients' country and zone.
      (await environmentForm(page).locator('input:visible, .advisor-card:visible').count()).should.equal(3);
      const phones = await windowFrom(page, badge.getByRole('button', { name: 'Open the phones' }));
      await phones.waitForURL(/\/red\/advisor-texting\/simulator\/.*[?&]lang=en/);
      await phones.getByText('Nobody', { exact: false }).first().waitFor();
      await phones.close();
      await closeEnvironment(page, 'cancel');
    });

    it('shows permissions as the service names them, and rejects an invalid prefix or proxy', async () => {
      await openEnvironment(page, 'simulated');
      await field('service').selectOption('sandbox');
      const form = environmentForm(page);
      const codes = (): Promise<string[]> => form.locator('.advisor-ticks code').allTextContents();
      (await codes()).should.containDeep(['text.messaging.write', 'core.contacts.read', 'openid']);
      await form.locator('.advisor-advanced summary').click();
      await field('corePrefix').fill('acme-crm');
      await field('textPrefix').fill('acme-sms');
      (await codes()).should.eql([
        'openid',
        'acme-sms.messaging.write',
        'acme-sms.messaging.read',
        'acme-crm.contacts.read',
        'acme-crm.contacts.write',
        'acme-crm.content.read',
        'offline_access',
      ]);
      await field('corePrefix').fill('a/b');
      await form.getByText('Enter one word without slashes').waitFor();
      await field('corePrefix').fill('');
      (await codes()).should.containDeep(['core.contacts.read']);
      await field('proxy').fill('http://ann:secret@proxy.example:3128');
      await form.getByText('Anyone who can see the flow would see').waitFor();
      await field('proxy').fill('http://${USER}:${PASSWORD}@proxy.example:3128');
      await form.getByText('Anyone who can see the flow would see').waitFor({ state: 'hidden' });
      await closeEnvironment(page, 'cancel');
    });

    it('offers text hours: each says what it means, and is shown again when reopened', async function () {
      this.timeout(240_000);
      const choice = field('textHours');
      const note = page.locator('.form-row', { has: choice }).locator('.advisor-hint');
      const byTheirClock = (hours: string): RegExp =>
        new RegExp(
          `^${hours} in the recipient’s time zone.*as of [A-Z]\\w+ 20\\d\\d.* not legal advice: ask `,
        );
      const presets = [
        ['8 to 21 (federal)', '08:00', '21:00', byTheirClock('8:00 to 21:00')],
        ['8 to 20 (strictest states)', '08:00', '20:00', byTheirClock('8:00 to 20:00')],
        [
          'custom',
          '20:30',
          '06:15',
          /^Two times in the recipient’s time zone.*span midnight.*not legal advice: ask /,
        ],
        ['any time', '', '', /^People are texted and asked for consent at any hour\.$/],
      ] as const;
      const shows = async ([words, from, end, meaning]: (typeof presets)[number]): Promise<void> => {
        should(await choice.locator('option:checked').textContent()).equal(words);
        should(await note.textContent()).match(meaning);
        should([await field('textFrom').inputValue(), await field('textUntil').inputValue()]).deepEqual([
          from,
          end,
        ]);
        should(await field('textFrom').isVisible()).equal(words === 'custom');
        should(await field('outsideHours').isVisible()).equal(words !== 'any time');
      };
      await openEnvironment(page, 'simulated');
      for (const preset of presets) {
        const [words, textFrom, textUntil] = preset;
        if (words === 'custom') await choice.selectOption('any time');
        await choice.selectOption(words);
        if (words === 'custom') {
          should([await field('textFrom').inputValue(), await field('textUntil').inputValue()]).deepEqual([
            '08:00',
            '21:00',
          ]);
          const mistake = page.locator('#node-config-input-textUntil-error');
          await field('textFrom').fill('');
          await mistake.getByText('Set two different times').waitFor();
          await field('textUntil').fill('');
          await note.getByText('at any hour').waitFor();
          should(await mistake.textContent()).equal('');
          await field('textFrom').fill(textFrom);
          await field('textUntil').fill('6');
          await field('textUntil').blur();
          should(await field('textUntil').inputValue()).equal('06:00');
          await field('textUntil').fill(textUntil);
        }
        await shows(preset);
        await closeEnvironment(page, 'ok');
        should(await saved(page, 'simulated')).containEql({ textFrom, textUntil });
        await openEnvironment(page, 'simulated');
        await shows(preset);
      }
      await closeEnvironment(page, 'cancel');
    });

    it("is the other nodes' environment for a node that is dragged in, whose dialog opens the phones, too", async () => {
      const chosen = (type: string): Promise<string> =>
        page.evaluate(`RED.view.createNode('${type}', 300, 300).node.environment`);
      should(await chosen('advisor-contact')).equal('simulated');
      await openNode(page, 'wait');
      const badge = page.locator('.advisor-badge');
      const phones = await windowFrom(page, badge.getByRole('button', { name: 'Open the phones' }));
      await phones.waitForURL('**/red/advisor-texting/simulator/**');
      await phones.close();
      await closeNode(page, 'cancel');
    });

    for (const [what, id, port] of [
      ['a node', 'wait', 'ask'],
      ['a use of a subflow', 'use', 'ask inside'],
      ['a node inside a subflow', 'inside', 'ask inside'],
    ] as const) {
      it(`says, when ${what} is disabled, what pauses without it, and who waits`, async () => {
        const waiting = `advisor-texting/simulated/pending?node=other&node=${id}`;
        const count = async (): Promise<unknown> =>
          ((await red.request('GET', waiting)).json as { count: number }).count;
        const contact = { phone: '+12145550104', name: 'Ada' };
        await red.send(port, { phone: '+12145550104', contact });
        await until(async () => (await count()) === 1);
        const disable = (is: boolean): Promise<unknown> =>
          page.evaluate(`(() => {
            const node = RED.nodes.node('${id}');
            node.d = ${String(is)};
            RED.events.emit('nodes:change', node);
          })()`);
        await disable(true);
        const told = page.locator('.red-ui-notification', {
          hasText: 'unfinished work: 1 wait for consent.',
        });
        await told.waitFor();
        should(await told.textContent()).match(/dropped after seven days\. Waiting for consent: Ada\./);
        await disable(false);
        // It would close on its own after 20 seconds.
        await told.waitFor({ state: 'detached', timeout: 10_000 });
        await red.send(port, { reset: true });
        await until(async () => (await count()) === 0);
      });
    }

    it('says, when a node is moved into a subflow or out of it, what pauses until that is undone', async () => {
      const pending = async (): Promise<unknown> =>
        ((await red.request('GET', 'advisor-texting/simulated/pending')).json as { count: number }).count;
      const work = page
        .locator('.red-ui-notification', { hasText: 'move into or out of a subflow' })
        .filter({ hasText: 'unfinished work: 1 wait for consent.' });
      await red.send('ask', { phone: '+12145550104' });
      await until(async () => (await pending()) === 1);
      await page.evaluate(`RED.view.select({ nodes: [RED.nodes.node('wait')] })`);
      await page.evaluate(`RED.actions.invoke('core:convert-to-subflow')`);
      await work.waitFor();
      await page.evaluate('RED.history.pop()');
      await work.waitFor({ state: 'detached', timeout: 10_000 });

      await red.send('ask inside', { phone: '+12145550104' });
      await until(async () => (await pending()) === 2);
      for (const [id, away, home] of [
        ['wait', 'sub', 'tab'],
        ['inside', 'tab', 'sub'],
      ] as const) {
        // Node-RED keeps the id of a node that is cut and pasted.
        await page.evaluate(`RED.events.emit('nodes:remove', RED.nodes.node('${id}'))`);
        await work.waitFor();
        const paste = (z: string): Promise<unknown> =>
          page.evaluate(`RED.events.emit('nodes:add', { ...RED.nodes.node('${id}'), z: '${z}' })`);
        await paste(away);
        should(await work.isVisible()).be.true();
        await paste(home);
        await work.waitFor({ state: 'detached', timeout: 10_000 });
      }
      for (const port of ['ask', 'ask inside']) await red.send(port, { reset: true });
      await until(async () => (await pending()) === 0);
    });

    it('says, when a node with unsent texts is disabled, which of them are then not sent', async () => {
      const unsent = { count: 2, waits: 0, people: [] };
      await page.route('**/simulated/pending*', (route) => route.fulfill({ json: unsent }));
      const disable = (is: boolean): Promise<unknown> =>
        page.evaluate(`(() => {
          const node = RED.nodes.node('wait');
          node.d = ${String(is)};
          RED.events.emit('nodes:change', node);
        })()`);
      await disable(true);
      const told = page.locator('.red-ui-notification', { hasText: '2 unsent texts or requests' });
      await told.getByText('overdue by more than the environment’s “Resume within”').waitFor();
      await page.unroute('**/simulated/pending*');
      await disable(false);
      await told.waitFor({ state: 'detached', timeout: 10_000 });
    });

    it('has nodes that mention keys and how long they are remembered only if texts are sent once', async () => {
      await openNode(page, 'send');
      await page.locator('.advisor-advanced summary').click();
      const rememberFor = page.locator('[data-field=onceFor]');
      const hint = page.locator('[data-field=onceKey] > .advisor-hint');
      await page.locator('[data-field=onceKey]').waitFor();
      should([await rememberFor.isVisible(), await hint.isVisible()]).eql([false, false]);
      await page.evaluate(`$('#node-input-onceKey').typedInput('type', 'text')`);
      await rememberFor.waitFor();
      await hint.filter({ hasText: /^A second identical text to the same number/ }).waitFor();
      await page.evaluate(`$('#node-input-onceKey').typedInput('type', 'msg')`);
      await hint
        .filter({ hasText: /^A second text from this node with the same key to the same number/ })
        .waitFor();
      await closeNode(page, 'cancel');
    });

    it('says what is cancelled before it is pointed elsewhere, and only then', async () => {
      await red.send('ask', { phone: ['+12145550104', '+12155550105'] });
      const pending = async (): Promise<unknown> =>
        ((await red.request('GET', 'advisor-texting/simulated/pending')).json as { count: number }).count;
      await until(async () => (await pending()) === 2);
      await openEnvironment(page, 'simulated');
      const note = environmentForm(page).getByText('has unfinished work: 2 waits for consent.');
      should(await note.count()).equal(0);
      await field('service').selectOption('sandbox');
      await note.waitFor();
      const [, ...named] =
        / Waiting for consent: (\S+) and (\S+)\.$/.exec((await note.textContent()) ?? '') ?? [];
      should(named.sort()).eql(['+12145550104', '+12155550105']);
      await field('service').selectOption('simulator');
      await note.waitFor({ state: 'hidden' });
      await closeEnvironment(page, 'cancel');
      await red.send('ask', { reset: true });
      await until(async () => (await pending()) === 0);
      await openEnvironment(page, 'simulated');
      await field('service').selectOption('sandbox');
      await page.locator('.advisor-badge.advisor-sandbox').waitFor();
      should(await note.count()).equal(0);
      await closeEnvironment(page, 'cancel');
    });

    it("says that the sandbox's settings are not those of production", async () => {
      const set = (service: string, baseUrl: string): Promise<unknown> =>
        page.evaluate(
          `Object.assign(RED.nodes.node('simulated'), ${JSON.stringify({ service, baseUrl })}) && undefined`,
        );
      await set('sandbox', 'https://sandbox.example/v1');
      await openEnvironment(page, 'simulated');
      const note = environmentForm(page).getByText('still belong to the sandbox');
      should(await note.count()).equal(0);
      await field('service').selectOption('production');
      await note.waitFor();
      await field('baseUrl').fill('https://production.example/v1');
      await note.waitFor({ state: 'hidden' });
      await closeEnvironment(page, 'cancel');
      await set('simulator', '');
    });

    it('authorizes before the first deploy, from the contents of the form', async () => {
      await openNode(page, 'send');
      await page
        .locator('#node-input-btn-environment-add, #node-input-lookup-environment-add')
        .first()
        .click();
      await dialogReady(page, 'environment');
      await field('service').selectOption('production');
      (await environmentForm(page).locator('.advisor-badge').textContent())?.should.match(
        /real people are texted/,
      );
      await field('service').selectOption('sandbox');
      (await field('redirectUri').inputValue()).should.equal(`${red.adminUrl}/advisor-texting/callback`);
      await stateOf('default', 'Not authorized yet');

      await press('default', 'Authorize').click();
      await card('default').getByText('fill in Authorization address').waitFor();

      const { baseUrl, authUrl, tokenUrl, credentials } = simulator;
      for (const [name, value] of Object.entries({ baseUrl, authUrl, tokenUrl, ...credentials })) {
        await field(name).fill(value);
      }
      const approval = await windowFrom(page, press('default', 'Authorize'));
      await approval.locator('button[value=approve]').waitFor();
      should(await approval.evaluate('window.opener')).be.null();
      await approval.locator('button[value=approve]').click();
      await approval.getByText('You can close this window').waitFor();
      await approval.close();
      await stateOf('default', 'Authorized');
      const facts = await factsOf('default');
      facts.should.match(/Signed in as Alex Morgan/);
      facts.should.match(/Granted: send and schedule texts/);
      facts.should.match(/refreshed automatically/);
      facts.should.match(/Last refreshed/);

      await add('ivy');
      await press('ivy', 'Copy link').click();
      await card('ivy').getByText('not deployed: deploy it').waitFor();
      await closeEnvironment(page);
      await closeNode(page);
      environment = await page.evaluate(`RED.nodes.node('send').environment`);
    });

    it('keeps the authorization over a deploy and a restart, so that texts go out', async () => {
      const from = red.lines.length;
      await page.locator('#red-ui-header-button-deploy').click();
      await red.logged(/Started (modified )?(flows|nodes)/, { from });
      await red.restart();
      await red.send('in', { phone: consented, text: 'Hello' });
      const [msg] = await red.messages('out');
      (msg?.['payload'] as object).should.have.property('messageId');
      simulator.ledger
        .entries()
        .filter(({ endpoint }) => endpoint === 'sendMessage')
        .length.should.equal(1);
    });

    it('shows a link when the browser blocks the window, and updates by itself', async () => {
      await openEnvironment(page, environment);
      await stateOf('default', 'Authorized');
      // It was added before the deploy that its link needs.
      await stateOf('ivy', 'Not authorized yet');
      await add('ann');
      const { back, cookie } = await decideFrom(await blockedLink('ann', 'Authorize'), 'jordan');
      (await fetch(back, { headers: { cookie } })).status.should.equal(200);
      await stateOf('ann', 'Authorized');
      (await factsOf('ann')).should.match(/Jordan Blake/);
    });

    it('lets only this browser finish what was started in it, even against a page of another site', async () => {
      await field('authUrl').fill(simulator.authUrl.replace('127.0.0.1', 'localhost'));
      await add('eve');
      const approval = await windowFrom(page, press('eve', 'Authorize'));
      await approval.locator('button[value=approve]').waitFor();
      const [cookie] = (await page.context().cookies()).filter(({ name }) => name === 'advisor-texting');
      should(cookie).containEql({ httpOnly: true, sameSite: 'Lax', path: '/' });

      const other = await browser.open();
      await other.page.goto((await decide(approval.url())).href);
      await other.page.getByText('Return to the browser you started in').waitFor();
      await other.page.context().close();

      await approval.locator('button[value=approve]').click();
      await approval.getByText('You can close this window').waitFor();
      await approval.close();
      await stateOf('eve', 'Authorized');
      await press('eve', 'Disconnect').click();
      await card('eve').locator('.advisor-panel').getByRole('button', { name: 'Disconnect' }).click();
      await stateOf('eve', 'Not authorized yet');
      await field('authUrl').fill(simulator.authUrl);
    });

    it('says what happened when a window was closed or access was denied in it', async () => {
      await add('zoe');
      const closed = await windowFrom(page, press('zoe', 'Authorize'));
      await closed.locator('button[value=approve]').waitFor();
      await card('zoe').getByText('Finish in the window').waitFor();
      await closed.close();
      await card('zoe').getByText('closed before anything was authorized').waitFor();
      const denied = await windowFrom(page, press('zoe', 'Authorize'));
      await denied.locator('button[value=deny]').click();
      await denied.getByText('Access was denied').first().waitFor();
      await card('zoe').getByText('Access was denied in the window').waitFor();
      await denied.close();
      await stateOf('zoe', 'Not authorized yet');
    });

    it('finishes with a pasted address', async () => {
      await add('bob');
      const { back } = await decideFrom(await blockedLink('bob', 'Authorize'), 'riley');
      await press('bob', 'Paste the address').click();
      const box = page.getByLabel('The address where the browser ended up');
      await box.fill(`${red.adminUrl}/advisor-texting/callback?state=nonsense&code=x`);
      await box.press('Enter');
      await card('bob').getByText('Nothing was changed').waitFor();
      await press('bob', 'Paste the address').click();
      await box.fill(back.href);
      await box.press('Enter');
      await stateOf('bob', 'Authorized');
    });

    it('offers a link for an advisor without a login', async () => {
      await press('bob', 'Copy link').click();
      const url = await page.getByLabel('Link for the advisor').inputValue();
      url.should.startWith(`${red.adminUrl}/advisor-texting/link/`);
      (await enter(url)).address.should.startWith(simulator.authUrl);
    });

    it('waits for a confirmation when somebody else signs in', async () => {
      const { back, cookie } = await decideFrom(await blockedLink('bob', 'Authorize again'), hostile);
      (await fetch(back, { headers: { cookie } })).status.should.equal(200);
      await stateOf('bob', 'Confirm the change');
      const facts = await factsOf('bob');
      facts.should.match(/Riley Chen authorized first/);
      facts.should.containEql(`now ${hostile} has signed in`);
      should(await card('bob').locator('.advisor-panel').textContent()).equal('');
      await press('bob', 'Confirm').click();
      await stateOf('bob', 'Authorized');
      (await factsOf('bob')).should.containEql(`Signed in as ${hostile}`);
    });

    it('warns of two advisors for whom the same person has authorized, and shows what a key disguises', async () => {
      const [key, shown] = ['carl\u202e', String.raw`carl\u202e`];
      (await factsOf('bob')).should.not.match(/also authorized/);
      await add(key);
      const { back, cookie } = await decideFrom(await blockedLink(shown, 'Authorize'), hostile);
      (await fetch(back, { headers: { cookie } })).status.should.equal(200);
      await card(shown).getByText(`${hostile} has also authorized as “bob”`).waitFor();
      await card('bob').getByText(`${hostile} has also authorized as “${shown}”`).waitFor();
      (await factsOf('ann')).should.not.match(/also authorized/);
      await press(shown, 'Disconnect').click();
      const question = card(shown).locator('.advisor-panel');
      (await question.textContent())?.should.containEql(shown);
      await question.getByRole('button', { name: 'Disconnect' }).click();
      await card('bob').getByText('has also authorized').waitFor({ state: 'detached' });
    });

    it('asks before it disconnects', async () => {
      await press('bob', 'Disconnect').click();
      (await page.evaluate('document.activeElement.textContent'))?.should.equal('Keep');
      await page.keyboard.press('Enter');
      await stateOf('bob', 'Authorized');
      await press('bob', 'Disconnect').click();
      await card('bob').locator('.advisor-panel').getByRole('button', { name: 'Disconnect' }).click();
      await stateOf('bob', 'Not authorized yet');
    });

    it('tests the connection, with a tick, a cross or a dash for each part, in sight', async () => {
      const results = card('default').locator('.advisor-results > li');
      const ticks = (): Promise<(string | null)[]> =>
        results.locator('.fa').evaluateAll((icons) => icons.map((icon) => icon.getAttribute('aria-label')));
      await press('default', 'Test connection').evaluate((button) => {
        button.scrollIntoView({ block: 'end' });
        (button as HTMLElement).click();
      });
      await results.nth(5).waitFor();
      (await ticks()).should.eql(Array(6).fill('OK'));
      const inSight = await results.nth(5).evaluate(
        (row) =>
          new Promise<number>((resolve) => {
            new IntersectionObserver(([entry]) => {
              resolve(entry?.intersectionRatio ?? 0);
            }).observe(row);
          }),
      );
      should(inSight).be.above(0.9);
      await field('apiKey').fill('wrong');
      await results.first().waitFor({ state: 'detached' });
      await press('default', 'Test connection').click();
      await results.filter({ hasText: 'correct it' }).waitFor();
      (await ticks()).should.eql(['OK', 'OK', 'problem', 'OK', 'not tested', 'not tested']);
    });

    it('shows all of a finding, however long the names are that it proposes', async () => {
      const message = `Set {${'"content.pageSize":"perPage",'.repeat(9)}}`;
      const isTest = /advisor-texting\/[^/]+\/test$/;
      await page.route(isTest, (route) => route.fulfill({ json: [{ check: 'names', ok: false, message }] }));
      await press('default', 'Test connection').click();
      await card('default').locator('.advisor-results').getByText('content.pageSize').waitFor();
      (await ragged(page)).should.eql([]);
      await page.unroute(isTest);
    });

    it('shows what was not granted', async () => {
      await page.route('**/advisors?*', async (route) => {
        const answer = await route.fetch();
        const list = (await answer.json()) as object[];
        await route.fulfill({ json: list.map((one) => ({ ...one, missingScopes: ['core.content.read'] })) });
      });
      await card('default').getByText('Not granted: search the content library.').waitFor();
      await page.unroute('**/advisors?*');
    });

    it('shows names as text', async () => {
      await add(hostile);
      await stateOf(hostile, 'Not authorized yet');
      should(await page.evaluate('window.hacked')).be.undefined();
    });

    it('says what to do when the login has expired', async () => {
      await page.route('**/advisors?*', (route) => route.fulfill({ status: 401, body: 'Unauthorized' }));
      await page.getByText('You are not logged in, or you do not have permission').first().waitFor();
      await page.unroute('**/advisors?*');
      await page.getByText('You are not logged in').first().waitFor({ state: 'hidden' });
    });

    it('gives the browser no secret', async () => {
      const texts = [
        await page.content(),
        (await red.request('GET', `credentials/advisor-environment/${environment}`)).text,
      ].join();
      for (const secret of [simulator.credentials.clientSecret, simulator.credentials.apiKey]) {
        texts.should.not.containEql(secret);
      }
      (await field('clientSecret').inputValue()).should.equal('__PWRD__');
      await closeEnvironment(page, 'cancel');
    });

    it('says that the store was lost, and lets somebody confirm the empty one', async () => {
      const service = async (): Promise<{ isStoreLost: boolean }> =>
        (await red.request('GET', `advisor-texting/${environment}/service`)).json as { isStoreLost: boolean };
      await red.stop();
      rmSync(join(red.userDir, 'advisor-texting'), { recursive: true });
      await red.run();
      await openEnvironment(page, environment);
      const note = page
        .locator('.advisor-warning')
        .filter({ hasText: 'The store of this environment is gone' });
      await note.getByRole('button', { name: 'Confirm the empty store', exact: true }).click();
      await page.getByText('Confirmed: texting resumes.', { exact: true }).waitFor();
      should((await service()).isStoreLost).be.false();
      await closeEnvironment(page, 'cancel');
    });

    it('leaves no error in the console except the rejections that it shows', () => {
      // While Node-RED restarts, the editor itself tries to reach it.
      const others = editor.errors.filter((line) => !/status of 40[01]|ERR_CONNECTION_REFUSED/.test(line));
      others.should.eql([]);
    });
  });
}
