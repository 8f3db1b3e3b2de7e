import should from 'should';
import type { Locator } from 'playwright-core';
import type { FlowNode } from '../../support/node-red';
import { boxOf, chooseType, dragFromPalette, enter } from '../../support/editor/canvas';
import { touchingLabels, violations } from '../../support/editor/looks';
import { silent, unasked } from '../../support/editor/sidebar';
import {
  closeEnvironment,
  closeNode,
  dialogReady,
  environmentForm,
  labelOf,
  openEnvironment,
  openNode,
  saved,
} from '../../support/editor/setup';
import { editor, inSharedEditor, page } from '../../support/editor/shared';

const at = (id: string, type: string, y: number, more: object = {}): FlowNode => ({
  id,
  type,
  z: 'tab',
  x: 300,
  y,
  wires: [],
  ...more,
});

const ofExamples: FlowNode[] = [
  { id: 'r01env', type: 'advisor-environment', name: 'Recipes', service: 'simulator' },
  { id: 'ex04env00000000', type: 'advisor-environment', name: 'Example 4', service: 'simulator' },
];

const flows: FlowNode[] = [
  ...ofExamples,
  { id: 'tab', type: 'tab', label: 'Office' },
  { id: 'env', type: 'advisor-environment', name: 'Trial', service: 'simulator' },
  { id: 'real', type: 'advisor-environment', name: 'Real', service: 'production' },
  {
    id: 'moving',
    type: 'advisor-environment',
    name: 'Simulator (example 3)',
    service: 'simulator',
    country: '${COUNTRY}',
  },
  at('person', 'advisor-contact', 200, { environment: 'env', operation: 'create' }),
  at('group', 'advisor-group', 260, {
    environment: 'env',
    operation: 'members',
    groupId: '4711',
    groupIdType: 'num',
  }),
  at('content', 'advisor-content', 320, { environment: 'env', search: 'retirement', searchType: 'str' }),
  at('in', 'test-port', 40, { name: 'in', x: 100, wires: [['send']] }),
  at('daily', 'inject', 360, { name: 'Every day', x: 100, repeat: '86400', wires: [['far']] }),
  at('far', 'link out', 360, { x: 300, mode: 'link', links: ['near'] }),
  at('near', 'link in', 400, { x: 100, links: ['far'], wires: [['send']] }),
  at('press', 'inject', 440, {
    name: 'By hand',
    x: 100,
    repeat: '',
    crontab: '',
    once: false,
    wires: [['send']],
  }),
  at('send', 'advisor-send-text', 40, { environment: 'env', wires: [[], [], ['sent']] }),
  at('sent', 'test-port', 40, { name: 'sent', x: 500 }),
  at('ask', 'test-port', 120, { name: 'ask', x: 100, wires: [['wait']] }),
  at('wait', 'advisor-check-consent', 120, { environment: 'env', mode: 'wait', wires: [[], [], []] }),
];

const live = 'From the next deploy, these nodes use the service “Production”';

export const office = inSharedEditor('an office in the editor of', flows, () => {
  const status = (text: string): Locator =>
    page.locator('.red-ui-flow-node-status-label:visible', { hasText: text });

  it('offers countries and time zones by name and code, and keeps a variable', async () => {
    await openEnvironment(page, 'moving');
    const field = (name: string): Locator => page.locator(`#node-config-input-${name}`);
    /** The name that the browser's list has for a value. */
    const offered = (name: string, value: string): Promise<unknown> =>
      page.evaluate(
        `[...document.querySelector('#node-config-input-${name}').list.options].find(({ value }) => value === '${value}').label`,
      );
    should(await field('country').inputValue()).equal('${COUNTRY}');
    await field('country').focus();
    should(await offered('country', 'DE')).equal('Germany');
    const isWrong = (): Promise<boolean> =>
      page.locator('[data-field=country]').evaluate((one) => one.classList.contains('advisor-wrong'));
    await field('country').fill('unit');
    await page.locator('[data-field=country]').getByText('Choose a country from the list').waitFor();
    should(await isWrong()).be.false();
    await field('timeZone').focus();
    should(await isWrong()).be.true();
    await field('country').fill('united kingdom');
    await field('timeZone').focus();
    should(await isWrong()).be.false();
    should(await field('country').inputValue()).equal('GB');
    await field('country').fill('UK');
    await field('timeZone').focus();
    should(await field('country').inputValue()).equal('GB');
    should(await offered('timeZone', 'America/Phoenix')).equal('Phoenix · Mountain Standard Time');
    await field('timeZone').fill('new york');
    await field('country').focus();
    should(await field('timeZone').inputValue()).equal('America/New_York');
    await field('timeZone').fill('${ZONE}');
    await closeEnvironment(page);
    should(await saved(page, 'moving')).containEql({ country: 'GB', timeZone: '${ZONE}' });
  });

  it('says what is missing in red only after somebody has visited the field', async () => {
    await openEnvironment(page, 'moving');
    await page.locator('#node-config-input-service').selectOption('production');
    const row = environmentForm(page).locator('[data-field=baseUrl]');
    const colour = (): Promise<string> =>
      row.locator('.advisor-error').evaluate((one) => getComputedStyle(one).color);
    await row.getByText('fill this in').waitFor();
    const plain = await row.locator('label').evaluate((one) => getComputedStyle(one).color);
    should(await colour()).equal(plain);
    await row.locator('input').focus();
    await page.locator('#node-config-input-tokenUrl').focus();
    should(await colour()).not.equal(plain);
    await closeEnvironment(page, 'cancel');
  });

  it('does not take the choice of a type for a visit', async () => {
    await dragFromPalette(page, 'advisor-send-text', 400, 400);
    const id = await page.evaluate<string>(`RED.view.selection().nodes[0].id`);
    await openNode(page, id);
    await chooseType(page, 'text', 'str');
    const row = page.locator('.advisor-form [data-field=text]');
    const isRed = (): Promise<boolean> => row.evaluate((one) => one.classList.contains('advisor-wrong'));
    await row.getByText('fill this in').waitFor();
    should(await isRed()).be.false();
    await boxOf(page, 'text').focus();
    await page.locator('#node-input-name').focus();
    should(await isRed()).be.true();
    await closeNode(page, 'cancel');
    await page.evaluate(`RED.nodes.remove('${id}'), RED.view.redraw(true)`);
  });

  it('leaves room between labels, fields, buttons and notices', async () => {
    await openEnvironment(page, 'moving');
    await page.locator('#node-config-input-service').selectOption('production');
    await page.locator('#node-config-input-textHours').selectOption('federal');
    should(await touchingLabels(page)).deepEqual([]);
    const notices = await page.evaluate<number[]>(`(() => {
        const form = [...document.querySelectorAll('.advisor-form')].at(-1);
        const edge = form.querySelector('[data-field=service] select').getBoundingClientRect().right;
        form.querySelectorAll(':scope > .advisor-warning').forEach((one) => { one.style.display = 'block'; });
        return [...form.querySelectorAll(':scope > .advisor-warning, :scope > .advisor-badge')]
          .map((one) => Math.round(one.getBoundingClientRect().right - edge));
      })()`);
    should(notices.length).be.above(1);
    should([...new Set(notices)]).deepEqual([0]);
    await closeEnvironment(page, 'cancel');
    await openNode(page, 'person');
    await chooseType(page, 'contact', 'fields');
    should(await touchingLabels(page)).deepEqual([]);
    await closeNode(page, 'cancel');
  });

  it('shows a chosen group by its name', async () => {
    await openNode(page, 'group');
    const row = page.locator('[data-field=groupId]');
    await row.locator('.advisor-icon-button').click();
    const option = row.locator('.advisor-options button').first();
    const name = (await option.locator('.advisor-option-title').textContent()) ?? '';
    await option.click();
    await row.getByRole('status').filter({ hasText: name }).waitFor();
    await closeNode(page);
    should(await saved(page, 'group')).containEql({ groupIdType: 'num', groupIdName: name });
    should(await labelOf(page, 'group')).equal(`members of “${name}”`);
    await openNode(page, 'group');
    await enter(page, 'groupId', 'num', '4711');
    await closeNode(page);
    should(await labelOf(page, 'group')).equal('members of “4711”');
    should(await labelOf(page, 'content')).equal('content search “retirement”');
  });

  it('suggests another name for a simulator that goes to production, and back', async () => {
    await openEnvironment(page, 'moving');
    const use = environmentForm(page).getByRole('button', { name: 'Call it “Production”' });
    should(await use.isVisible()).be.false();
    await page.locator('#node-config-input-service').selectOption('production');
    await use.click();
    should(await page.locator('#node-config-input-name').inputValue()).equal('Production');
    should(await use.isVisible()).be.false();
    await page.locator('#node-config-input-service').selectOption('simulator');
    await environmentForm(page).getByRole('button', { name: 'Call it “Simulator”' }).click();
    should(await page.locator('#node-config-input-name').inputValue()).equal('Simulator');
    await page.locator('#node-config-input-service').selectOption('sandbox');
    await environmentForm(page).getByRole('button', { name: 'Call it “Sandbox”' }).click();
    await page.locator('#node-config-input-service').selectOption('production');
    await use.waitFor();
    await page.locator('#node-config-input-service').selectOption('simulator');
    await environmentForm(page).getByRole('button', { name: 'Call it “Simulator”' }).click();
    await page.evaluate(`RED.nodes.node('real').name = 'Production'`);
    await page.locator('#node-config-input-service').selectOption('production');
    await environmentForm(page).getByRole('button', { name: 'Call it “Production 2”' }).waitFor();
    await page.evaluate(`RED.nodes.node('real').name = 'Real'`);
    await closeEnvironment(page, 'cancel');
  });

  it('asks before the nodes of a simulator text real people, and names them and what starts them', async () => {
    await openEnvironment(page, 'env');
    const service = page.locator('#node-config-input-service');
    const done = page.locator('#node-config-dialog-ok');
    const agree = environmentForm(page).getByLabel('I know that real people may be texted');
    should(await agree.isVisible()).be.false();
    await service.selectOption('production');
    await environmentForm(page)
      .getByText(/^From the next deploy, these nodes use the service “Production”: (.+, ){4}and [^,]+\.$/)
      .waitFor();
    await environmentForm(page)
      .getByText(/^These start on their own: Every day\W+$/)
      .waitFor();
    await environmentForm(page).getByText('The simulators’ do-not-text list does not apply there').waitFor();
    await environmentForm(page)
      .getByText(/^Contact and group ids are different there. Choose them again in: members of “4711”\.$/)
      .waitFor();
    should(await violations(page)).deepEqual([]);

    const closings = [
      () => page.evaluate(`RED.actions.invoke('core:confirm-edit-tray')`),
      () => page.locator('#red-ui-editor-shade').click({ position: { x: 20, y: 300 } }),
      () => done.click({ force: true }),
    ];
    for (const close of closings) {
      await service.focus();
      await close();
      should(await agree.evaluate((box) => box === document.activeElement)).be.true();
    }
    should(await saved(page, 'env')).have.property('service', 'simulator');

    await agree.check();
    await service.selectOption('simulator');
    await service.selectOption('production');
    should(await agree.isChecked()).be.false();
    await agree.check();
    await closeEnvironment(page);
    should(await saved(page, 'env')).have.property('service', 'production');

    await openEnvironment(page, 'env');
    await service.selectOption('simulator');
    should(await agree.isVisible()).be.false();
    await closeEnvironment(page);

    await page.evaluate(`RED.actions.invoke('core:undo')`);
    should(await saved(page, 'env')).have.property('service', 'production');
    const told = page.locator('.red-ui-notification', { hasText: live });
    await told.waitFor();
    await page.evaluate(`RED.actions.invoke('core:redo')`);
    should(await saved(page, 'env')).have.property('service', 'simulator');
    await told.waitFor({ state: 'detached', timeout: 10_000 });
  });

  it('says, when an undo makes nodes text real people, what it cancels, until the deploy', async () => {
    const waits = { count: 2, waits: 2, people: ['Ada'] };
    await page.route('**/env/pending*', (route) => route.fulfill({ json: waits }));
    await page.evaluate(`RED.actions.invoke('core:undo')`);
    const told = page.locator('.red-ui-notification', { hasText: live });
    await told.getByText(/2 waits for consent\. If you deploy it .* that work is cancelled/).waitFor();
    await page.evaluate(`RED.events.emit('deploy')`);
    await told.waitFor({ state: 'detached', timeout: 10_000 });
    await page.evaluate(`RED.actions.invoke('core:redo')`);
    await page.unroute('**/env/pending*');
  });

  it('names a node among those that will text real people if its open dialog has just chosen the environment', async () => {
    const name = await labelOf(page, 'send');
    await openNode(page, 'send');
    await page.locator('#node-input-environment').selectOption('moving');
    await page.locator('#node-input-btn-environment-edit').click();
    await dialogReady(page, 'environment');
    await page.locator('#node-config-input-service').selectOption('production');
    await environmentForm(page).getByText(`${live}: ${name}.`).waitFor();
    await closeEnvironment(page, 'cancel');
    await closeNode(page, 'cancel');
  });

  it('says when a node of a simulator, or an imported one, will text real people', async () => {
    const told = (name: string): Locator =>
      page.locator('.red-ui-notification', { hasText: `${live}: ${name}.` });
    const name = await labelOf(page, 'content');
    const choose = async (environment: string): Promise<void> => {
      await openNode(page, 'content');
      await page.locator('#node-input-environment').selectOption(environment);
      await closeNode(page);
    };
    await choose('real');
    await told(name).waitFor();
    await choose('env');
    await told(name).waitFor({ state: 'detached', timeout: 10_000 });
    const pasted = at('pasted', 'advisor-send-text', 500, { name: 'Pasted', environment: 'real' });
    await page.evaluate(`RED.nodes.import([${JSON.stringify(pasted)}]) && undefined`);
    await told('Pasted').waitFor();
    await told('Pasted').click();
    await page.evaluate(`RED.nodes.remove('pasted'), RED.view.redraw(true)`);
  });

  it('keeps the environment of an example a simulator: examples that are imported later use it too', async () => {
    for (const { id } of ofExamples) {
      await openEnvironment(page, id);
      should(await page.locator('#node-config-input-service').isDisabled()).be.true();
      await environmentForm(page)
        .getByText(/^Examples that you import later use this environment too, so it stays a simulator\./)
        .waitFor();
      should(await violations(page)).deepEqual([]);
      await closeEnvironment(page, 'cancel');
    }
  });

  it('names the waits before an environment is deleted, and no other replaces it', async () => {
    await editor.red.send('in', { phone: unasked, text: 'Hello' });
    for (const phone of [silent, silent]) await editor.red.send('ask', { phone: [{ phone, name: 'Ada' }] });
    await status('sim needs consent').waitFor();
    await status('sim 2 waiting').waitFor();

    await openNode(page, 'wait');
    await page.locator('#node-input-environment').selectOption('moving');
    await closeNode(page);
    const cancelled = 'In its old environment, this node has unfinished work: 2 waits for consent.';
    await page.locator('.red-ui-notification', { hasText: cancelled }).waitFor();
    await openNode(page, 'wait');
    await page.locator('#node-input-environment').selectOption('env');
    await closeNode(page);

    await openNode(page, 'send');
    await page.locator('#node-input-btn-environment-edit').click();
    await dialogReady(page, 'environment');
    const remove = page.locator('.red-ui-tray').last().locator('.red-ui-tray-toolbar .leftButton');
    const question = environmentForm(page).getByRole('alert');

    await remove.click();
    should(await question.locator('p').textContent()).match(
      /“Trial” has unfinished work: 2 waits for consent\. .*Waiting for consent: Ada\./,
    );
    await question.getByRole('button', { name: 'Keep' }).click();
    await question.waitFor({ state: 'hidden' });
    (await page.evaluate<boolean>(`RED.nodes.node('env') !== null`)).should.be.true();

    await remove.click();
    await question.getByRole('button', { name: 'Delete' }).click();
    await environmentForm(page).waitFor({ state: 'detached' });
    await page.waitForFunction(`$('#node-input-environment option').length === 5`);
    (await page.locator('#node-input-environment').inputValue()).should.equal('_ADD_');
    (await status('sim').count()).should.equal(0);
    await closeNode(page);
    (await saved(page, 'send')).should.have.property('environment', '');

    await openNode(page, 'send');
    (await page.locator('#node-input-environment').inputValue()).should.equal('_ADD_');
    await closeNode(page, 'cancel');
    editor.errors.should.eql([]);
  });
});
