import should from 'should';
import { isLong, itInLongRun } from '../../support/extent';
import type { FlowNode } from '../../support/node-red';
import { boxOf, chooseType } from '../../support/editor/canvas';
import { keepPicture, nameless, ragged, setTheme, themesOf, violations } from '../../support/editor/looks';
import { statesOf } from '../../support/editor/states';
import {
  closeEnvironment,
  closeNode,
  environmentForm,
  labelOf,
  openEnvironment,
  openNode,
  saved,
  triangle,
} from '../../support/editor/setup';
import { editor, inSharedEditor, page } from '../../support/editor/shared';

/** Axe looks at all dialogs in the long run: it takes a second for each, and four for a list of time zones. */
const flowTypes = ['send-text', 'request-consent', 'check-consent', 'contact', 'group', 'content'];

/** Nodes as in a flow of an older version: hardly a property saved. */
const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Forms' },
  { id: 'environment', type: 'advisor-environment', service: 'simulator' },
  {
    id: 'itself',
    type: 'advisor-environment',
    name: 'Itself',
    service: 'sandbox',
    grant: 'client_credentials',
  },
  { id: 'real', type: 'advisor-environment', name: 'Real', service: 'production' },
  ...[...flowTypes, 'activity'].map((name, index) => ({
    id: name,
    type: `advisor-${name}`,
    z: 'tab',
    x: 300,
    y: 60 + 80 * index,
    environment: 'environment',
    wires: [],
  })),
];

export const dialogs = inSharedEditor('the dialogs in', flows, (version) => {
  const problem = (field: string): Promise<string | null> =>
    page.locator(`[data-field=${field}] .advisor-error`).textContent();
  const badge = (): Promise<string | null> =>
    page.locator('.advisor-badge-line strong').first().textContent();

  it('accept a flow of an older version as it is: defaults, and no red triangle', async () => {
    for (const id of ['environment', ...flowTypes]) (await triangle(page, id)).should.eql([]);
  });

  /** As a dialog opens: nothing is wrong, named by its key, or cut off. */
  const isInOrder = async (): Promise<void> => {
    (await page.locator('.advisor-form .advisor-error:visible').allTextContents()).should.eql([]);
    (await page.locator('.advisor-form [data-i18n]:visible').allTextContents()).forEach((text) => {
      text.should.not.match(/^(label|hint|option|unit|row)\./);
    });
    (await badge())?.should.match(/^Simulator: /);
    (await ragged(page)).should.eql([]);
  };

  // The lighter theme of 5 is that of 4.
  for (const theme of isLong ? themesOf(version) : (['dark'] as const)) {
    it(`open for every node in the ${theme} theme, complete, in words and accessible`, async () => {
      await setTheme(page, theme);
      for (const name of flowTypes) {
        await openNode(page, name);
        await isInOrder();
        (await violations(page)).should.eql([]);
        await keepPicture(page, `${version.toString()}-${theme}-${name}`);
        await closeNode(page, 'cancel');
      }
      await openEnvironment(page, 'real');
      (await violations(page)).should.eql([]);
      (await ragged(page)).should.eql([]);
      await keepPicture(page, `${version.toString()}-${theme}-environment`);
      await closeEnvironment(page, 'cancel');
      await setTheme(page, 'light');
    });
  }

  itInLongRun('stay accessible and labelled, whatever is chosen, open or wrong in them', async () => {
    await setTheme(page, version === 5 ? 'dark' : 'light');
    for (const [id, states] of Object.entries(statesOf)) {
      const isEnvironment = id === 'real';
      await (isEnvironment ? openEnvironment : openNode)(page, id);
      if (isEnvironment) (await ragged(page)).should.eql([]);
      else await isInOrder();
      for (const [what, enterState] of Object.entries(states)) {
        await enterState(page);
        const found = {
          violations: await violations(page),
          nameless: await nameless(page),
        };
        should({ id, what, ...found }).eql({ id, what, violations: [], nameless: [] });
      }
      await (isEnvironment ? closeEnvironment : closeNode)(page, 'cancel');
    }
    await setTheme(page, 'light');
  });

  it('fill in what an older flow lacks when it is saved', async () => {
    await openNode(page, 'check-consent');
    should(await page.locator('#node-input-phoneField').getAttribute('placeholder')).equal('phone');
    await closeNode(page);
    await openNode(page, 'contact');
    await closeNode(page);
    (await saved(page, 'check-consent')).should.containEql({
      mode: 'once',
      pollEvery: 30,
      giveUpAfter: 86400,
    });
    (await saved(page, 'contact')).should.containEql({
      operation: 'search',
      contactType: 'msg',
      merge: true,
      fields: [],
      pageSize: 50,
    });
  });

  it('request no more with client credentials than the flow did when it is saved', async () => {
    await openEnvironment(page, 'itself');
    await closeEnvironment(page);
    (await saved(page, 'itself')).should.containEql({
      grant: 'client_credentials',
      scopes: ['text.messaging.write', 'text.messaging.read'],
    });
  });

  it('say what to fix while one types, and the same on the red triangle', async () => {
    await openNode(page, 'send-text');
    await chooseType(page, 'phone', 'str');
    (await boxOf(page, 'phone').inputValue()).should.equal('');
    await boxOf(page, 'phone').fill('grace');
    await boxOf(page, 'phone').press('End');
    (await problem('phone'))?.should.match(/^This is not a phone number: enter one such as \+/);
    await boxOf(page, 'phone').fill('512 555 0142');
    await boxOf(page, 'phone').press('End');
    (await problem('phone'))?.should.match(/^Start the number with \+/);
    await page.locator('#node-input-environment').selectOption('real');
    (await problem('environment'))?.should.match(/incomplete/);
    (await problem('phone'))?.should.match(/^Start the number with \+/);
    await page.locator('#node-input-environment').selectOption('environment');
    (await problem('phone'))?.should.match(/^Start the number with \+/);
    (await boxOf(page, 'phone').getAttribute('aria-invalid'))?.should.equal('true');
    await closeNode(page);
    (await triangle(page, 'send-text')).join().should.match(/Start the number with \+/);
    await openNode(page, 'send-text');
    await chooseType(page, 'phone', 'msg');
    (await boxOf(page, 'phone').inputValue()).should.equal('phone');
    await boxOf(page, 'phone').press('End');
    (await problem('phone'))?.should.equal('');
    await closeNode(page);
    (await triangle(page, 'send-text')).should.eql([]);
  });

  it('accept a text of several lines and count its segments', async () => {
    await openNode(page, 'send-text');
    await chooseType(page, 'text', 'str');
    const count = page.locator('.advisor-count');
    await boxOf(page, 'text').fill('Dear Ann,\n\nsee you on Friday.');
    (await count.textContent())?.should.equal('29 of 160 characters · SMS segments: 1.');
    await boxOf(page, 'text').fill('Hi {{firstName}} 😀');
    (await count.textContent())?.should.match(/^At least 6 characters.*at least 1.*because of 😀/);
    for (const single of ['{first name}', '[name]']) {
      await boxOf(page, 'text').fill(`Hi ${single}, see {{town}}`);
      (await count.textContent())?.should.endWith(
        ` ${single} is sent as it is: to fill in a field, write {{name}}.`,
      );
    }
    await boxOf(page, 'text').fill('Dear Ann,\n\nsee you on Friday.');
    await closeNode(page);
    (await saved(page, 'send-text')).should.containEql({
      text: 'Dear Ann,\n\nsee you on Friday.',
      textType: 'str',
    });
    await openNode(page, 'send-text');
    (await boxOf(page, 'text').inputValue()).should.equal('Dear Ann,\n\nsee you on Friday.');
    await closeNode(page);
    (await labelOf(page, 'send-text')).should.equal('text “Dear Ann, see you…”');
  });

  it('accept a date and time from a picker, as the same moment everywhere', async () => {
    await openNode(page, 'send-text');
    await page.locator('#node-input-schedule').selectOption('at');
    await chooseType(page, 'deliveryDate', 'str');
    (await problem('deliveryDate'))?.should.match(/fill this in/);
    await boxOf(page, 'deliveryDate').fill('2020-01-31T09:00');
    (await problem('deliveryDate'))?.should.match(/has passed/);
    await boxOf(page, 'deliveryDate').fill('2040-01-31T09:00');
    (await problem('deliveryDate'))?.should.equal('');
    await closeNode(page);
    const { deliveryDate } = await saved(page, 'send-text');
    String(deliveryDate).should.match(/^2040-01-31T09:00:00[+-]\d\d:\d\d$/);
    (await labelOf(page, 'send-text')).should.match(/^text “Dear Ann, see you…” on .*31, 2040.*0?9/);
  });

  it('offer the zone of a date, and show it again when they are reopened', async () => {
    const zone = page.locator('.advisor-zone select');
    await openNode(page, 'send-text');
    await zone.selectOption('Asia/Tokyo');
    await closeNode(page);
    (await saved(page, 'send-text')).should.containEql({ deliveryDate: '2040-01-31T09:00:00+09:00' });
    await openNode(page, 'send-text');
    (await boxOf(page, 'deliveryDate').inputValue()).should.equal('2040-01-31T09:00');
    (await zone.inputValue()).should.equal('+09:00');
    await zone.selectOption('');
    await page
      .locator('.advisor-zone', { hasText: 'The time zone is applied when a message arrives' })
      .waitFor();
    await closeNode(page);
    (await saved(page, 'send-text')).should.containEql({ deliveryDate: '2040-01-31T09:00' });
  });

  it('offer the zone of the environment first, even of one that is chosen meanwhile', async () => {
    await page.evaluate(`RED.nodes.node('itself').timeZone = 'Pacific/Honolulu'`);
    await openNode(page, 'send-text');
    const first = page.locator('.advisor-zone select option').first();
    (await first.textContent())?.should.match(/\(this browser\)$/);
    await page.locator('#node-input-environment').selectOption('itself');
    (await first.textContent())?.should.equal('Pacific/Honolulu (the environment)');
    await page.locator('.advisor-zone select').selectOption('Pacific/Honolulu');
    await closeNode(page);
    (await saved(page, 'send-text')).should.containEql({ deliveryDate: '2040-01-31T09:00:00-10:00' });
    (await labelOf(page, 'send-text')).should.match(/ on Jan 31, 2040, 0?9:00/);
    await openNode(page, 'send-text');
    await page.locator('#node-input-environment').selectOption('environment');
    await closeNode(page);
  });

  it("keep a date that only the flow's machine knows", async () => {
    await page.evaluate(`RED.nodes.node('send-text').deliveryDate = '\${WHEN}'`);
    await openNode(page, 'send-text');
    (await boxOf(page, 'deliveryDate').inputValue()).should.equal('${WHEN}');
    await page.locator('#node-input-schedule').selectOption('now');
    await closeNode(page);
    (await saved(page, 'send-text')).should.containEql({ deliveryDate: '${WHEN}', schedule: 'now' });
  });

  it('show only the fields that apply, and four numbers only on request', async () => {
    await openNode(page, 'check-consent');
    (await page.locator('#node-input-pace').isHidden()).should.be.true();
    await page.locator('#node-input-mode').selectOption('wait');
    (await page.locator('#node-input-pace option:checked').textContent())?.should.match(
      /as the service recommends/,
    );
    (await page.locator('[data-field=pollEvery]').isHidden()).should.be.true();
    await page.locator('#node-input-pace').selectOption('custom');
    (await page.locator('[data-field=giveUpAfter]').textContent())?.should.match(/= 1 day/);
    await page.locator('#node-input-pollEvery').fill('5');
    await closeNode(page);
    (await saved(page, 'check-consent')).should.containEql({ mode: 'wait', pollEvery: 5, thenEvery: 300 });
    (await labelOf(page, 'check-consent')).should.equal('wait for consent');
  });

  it('say of an id what it is the id of', async () => {
    const hint = page.locator('[data-field=itemId] .advisor-hint');
    await openNode(page, 'activity');
    await page.locator('#node-input-operation').selectOption('cancel');
    (await hint.textContent())?.should.match(/wait, a queued item or a list/);
    await page.locator('#node-input-operation').selectOption('check');
    (await hint.textContent())?.should.not.match(/queue/);
    await closeNode(page, 'cancel');
  });

  it('leave no doubt whether real people are texted', async () => {
    await openNode(page, 'send-text');
    await page.locator('#node-input-environment').selectOption('real');
    (await badge())?.should.equal('Production: real people are texted');
    (await problem('environment'))?.should.match(/incomplete/);
    await page.locator('#node-input-environment').selectOption('environment');
    (await badge())?.should.equal('Simulator: nobody is really texted');
    await closeNode(page, 'cancel');
  });

  it('ask for what a real service needs, and accept a variable for the choice', async () => {
    await openEnvironment(page, 'environment');
    const field = (name: string) => page.locator(`#node-config-input-${name}`);
    (await field('baseUrl').isHidden()).should.be.true();
    await field('service').selectOption('sandbox');
    (await problem('baseUrl'))?.should.match(/fill this in/);
    for (const name of ['baseUrl', 'authUrl', 'tokenUrl'])
      await field(name).fill('https://service.example/v1');
    await page.getByLabel('I know that real people may be texted').check();
    await page.locator('.advisor-advanced > summary').click();
    await field('timeout').fill('45');
    await page.locator('#node-config-input-scopes-entry-others').fill('maker.extra');
    await closeEnvironment(page);
    (await triangle(page, 'environment')).join().should.match(/Client ID: fill this in/);
    await openEnvironment(page, 'environment');
    for (const name of ['clientId', 'clientSecret', 'apiKey']) await field(name).fill('x');
    await closeEnvironment(page);
    (await triangle(page, 'environment')).should.eql([]);
    await openEnvironment(page, 'environment');
    await field('service').selectOption({ index: 3 });
    await page.locator('#node-config-input-service-variable').fill('${SERVICE}');
    await page.getByLabel('I know that real people may be texted').check();
    await closeEnvironment(page);
    const environment = await saved(page, 'environment');
    environment.should.containEql({ service: '${SERVICE}', timeout: 45, names: {} });
    (environment['scopes'] as string[]).should.containEql('maker.extra').and.containEql('offline_access');
    await environmentForm(page).waitFor({ state: 'detached' });
  });

  it('show a direction only for an order, and an advisor only if there may be several', async () => {
    const shown = (field: string): Promise<boolean> => page.locator(`[data-field=${field}]`).isVisible();
    await openNode(page, 'contact');
    await page.locator('#node-input-operation').selectOption('search');
    (await shown('sortDirection')).should.be.false();
    await page.locator('#node-input-sortBy').selectOption('email');
    (await shown('sortDirection')).should.be.true();
    await page.locator('#node-input-sortDirection').selectOption('desc');
    await page.locator('#node-input-sortBy').selectOption('');
    (await shown('sortDirection')).should.be.true();
    await page.locator('#node-input-operation').selectOption('get');
    (await shown('sortDirection')).should.be.false();
    (await shown('advisor')).should.be.true();
    await boxOf(page, 'advisor').fill('ann');
    await page.locator('#node-input-environment').selectOption('itself');
    (await shown('advisor')).should.be.true();
    await boxOf(page, 'advisor').fill('');
    (await shown('advisor')).should.be.false();
    await page.locator('#node-input-environment').selectOption('environment');
    (await shown('advisor')).should.be.true();
    await closeNode(page, 'cancel');
  });

  it('say how long many seconds are', async () => {
    await openEnvironment(page, 'real');
    await page.locator('.advisor-advanced > summary').click();
    const row = (name: string) => page.locator(`[data-field=${name}]`);
    (await row('resumeWithin').textContent())?.should.match(/= 1 hour/);
    (await row('timeout').textContent())?.should.not.match(/=/);
    await page.locator('#node-config-input-timeout').fill('120');
    (await row('timeout').textContent())?.should.match(/= 2 minutes/);
    await closeEnvironment(page, 'cancel');
  });

  it('accept a contact field by field, with a picture for that, and from a variable', async () => {
    await openNode(page, 'contact');
    await page.locator('#node-input-operation').selectOption('create');
    await page
      .locator('#node-input-contact + .red-ui-typedInput-container .red-ui-typedInput-type-select')
      .click();
    const menu = page.locator('.red-ui-typedInput-options:visible a');
    const sources = await menu.evaluateAll((links) =>
      links.map((link) => [link.getAttribute('value'), link.querySelector('i, img, div') !== null]),
    );
    should(sources).containDeep([
      ['fields', true],
      ['env', true],
    ]);
    await page.locator('.red-ui-typedInput-options:visible a[value=msg]').click();
    await closeNode(page, 'cancel');
  });

  it('have help that fits two screens and a narrow sidebar, and whose first paragraph the palette can show', async () => {
    for (const name of [...flowTypes, 'environment']) {
      await page.evaluate(`RED.sidebar.help.show('advisor-${name}')`);
      const help = page.locator('.red-ui-help:visible').first();
      await help.locator('h3').first().waitFor();
      const height = await help.evaluate((element) => element.scrollHeight);
      should({ name, isLong: height > 2 * 1000 }).eql({ name, isLong: false });
      const isWide = await help.evaluate((element) => {
        element.style.width = '268px';
        return element.scrollWidth > element.clientWidth;
      });
      should({ name, isWide }).eql({ name, isWide: false });
      const first = `$(RED.nodes.getNodeHelp('advisor-${name}')).filter('p').first().text()`;
      (await page.evaluate<string>(first)).should.match(/^[A-Z].*\.$/);
    }
  });

  it('leave nothing of ours in the console', () => {
    should(editor.errors).eql([]);
  });
});
