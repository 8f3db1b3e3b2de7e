import should from 'should';
import type { Locator } from 'playwright-core';
import type { FlowNode } from '../../support/node-red';
import { closeNode, openNode } from '../../support/editor/setup';
import { editor, inSharedEditor, page } from '../../support/editor/shared';

const hostile = '<img src=x onerror="window.hacked=1">';

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Test' },
  { id: 'simulated', type: 'advisor-environment', name: 'Phones', service: 'simulator' },
  { id: 'unready', type: 'advisor-environment', name: 'Unready', service: 'sandbox' },
  { id: 'in', type: 'test-port', z: 'tab', name: 'in', x: 100, y: 40, wires: [['create']] },
  { id: 'out', type: 'test-port', z: 'tab', name: 'out', x: 500, y: 40, wires: [] },
  ...(['create', 'contact', 'group', 'content'] as const).map((id, index) => ({
    id,
    type: `advisor-${id === 'create' ? 'contact' : id}`,
    z: 'tab',
    x: 300,
    y: 40 + 80 * index,
    environment: 'simulated',
    operation: { create: 'create', contact: 'get', group: 'setGroups', content: '' }[id],
    wires: [['out'], ['out']],
  })),
];

export const pickers = inSharedEditor('choosing from a list in', flows, () => {
  before(async () => {
    const names = Array.from({ length: 30 }, (_, index) => `Zoe ${(index + 10).toString()}`);
    const payload = [hostile, ...names].map((firstName) => ({ firstName, lastName: 'Zimmer' }));
    await editor.red.send('in', { payload });
    await editor.red.messages('out', payload.length);
  });

  const row = (field: string): Locator => page.locator(`[data-field=${field}]`);
  const options = (field: string): Locator =>
    row(field).locator('.advisor-picker').getByRole('listitem').getByRole('button');
  const filter = (field: string): Locator => row(field).locator('.advisor-picker').getByRole('textbox');
  const open = (field: string): Promise<void> => row(field).locator('.advisor-icon-button').click();
  const note = (field: string): Locator => row(field).locator('.advisor-picker [role=status]');
  const saved = (id: string, field: string): Promise<unknown[]> =>
    page.evaluate(`[RED.nodes.node('${id}').${field}Type, RED.nodes.node('${id}').${field}]`);

  it('finds a contact by name, page after page, and selects it with a click', async () => {
    await openNode(page, 'contact');
    await open('contactId');
    await filter('contactId').fill('zimmer');
    await note('contactId').getByText('20 found so far').waitFor();
    await row('contactId').getByRole('button', { name: 'Show more' }).click();
    await note('contactId').getByText('31 of 31 shown').waitFor();
    const last = options('contactId').filter({ hasText: 'Zoe 39' });
    const id = /id (\d+)/.exec((await last.textContent()) ?? '')?.[1] ?? '';
    await last.click();
    (await row('contactId').textContent())?.should.match(/Zoe 39 Zimmer/);
    await options('contactId').first().waitFor({ state: 'hidden' });
    await closeNode(page);
    (await saved('contact', 'contactId')).should.eql(['num', id]);
  });

  it('says that the id of another environment is not the same contact, and forgets the name', async () => {
    const status = row('contactId').locator('.advisor-hint[role=status]');
    const environment = page.locator('#node-input-environment');
    await openNode(page, 'contact');
    await status.getByText('Zoe 39 Zimmer').waitFor();
    await environment.selectOption('unready');
    await status.getByText('This id is from another environment').waitFor();
    await environment.selectOption('simulated');
    await status.getByText('Zoe 39 Zimmer').waitFor();
    await environment.selectOption('unready');
    await closeNode(page);
    should(await page.evaluate("RED.nodes.node('contact').contactIdName")).equal('');
    await page.evaluate("RED.nodes.node('contact').environment = 'simulated'");
  });

  it('shows names as text', async () => {
    await openNode(page, 'contact');
    await open('contactId');
    await filter('contactId').fill('<img');
    await note('contactId').getByText('1 of 1 shown').waitFor();
    (await options('contactId').textContent())?.should.containEql(hostile);
    should(await page.evaluate('window.hacked')).be.undefined();
  });

  it('needs no mouse, and closes on Escape without closing the dialog', async () => {
    await page.keyboard.press('Escape');
    await filter('contactId').waitFor({ state: 'hidden' });
    await page.keyboard.press('Enter');
    await options('contactId').nth(1).waitFor();
    await page.keyboard.press('Tab');
    for (const way of ['Down', 'Down', 'Up']) await page.keyboard.press(`Arrow${way}`);
    const words = (await options('contactId').nth(1).textContent()) ?? '';
    await page.keyboard.press('Enter');
    await closeNode(page);
    (await saved('contact', 'contactId')).should.eql(['num', /id (\d+)/.exec(words)?.[1]]);
  });

  it('accepts an id that is typed in, even if nothing is found', async () => {
    await openNode(page, 'contact');
    await open('contactId');
    await filter('contactId').fill('987654');
    await note('contactId').getByText('Nothing found').waitFor();
    await filter('contactId').press('Enter');
    await closeNode(page);
    (await saved('contact', 'contactId')).should.eql(['num', '987654']);
  });

  it('accepts several groups, and removes one', async () => {
    await openNode(page, 'group');
    await open('groupIds');
    await options('groupIds').nth(2).waitFor();
    const ids = (await options('groupIds').allTextContents()).map((text) =>
      Number(/id (\d+)/.exec(text)?.[1]),
    );
    for (const index of [0, 1, 2, 1]) await options('groupIds').nth(index).click();
    (await options('groupIds').nth(2).getAttribute('aria-pressed'))?.should.equal('true');
    (await options('groupIds').nth(1).getAttribute('aria-pressed'))?.should.equal('false');
    await closeNode(page);
    (await saved('group', 'groupIds')).should.eql(['json', JSON.stringify([ids[0], ids[2]])]);
  });

  it('shows what a content search finds, and accepts the search or a title', async () => {
    await openNode(page, 'content');
    await open('search');
    await filter('search').fill('budget');
    await note('search')
      .getByText(/^(\d+) of \1 shown/)
      .waitFor();
    const title = (await options('search').first().locator('.advisor-option-title').textContent()) ?? '';
    title.should.match(/budget/i);
    await row('search').getByRole('button', { name: 'Use this search' }).click();
    await closeNode(page);
    (await saved('content', 'search')).should.eql(['str', 'budget']);
    await openNode(page, 'content');
    await open('search');
    (await filter('search').inputValue()).should.equal('budget');
    await options('search').first().click();
    await closeNode(page);
    (await saved('content', 'search')).should.eql(['str', title]);
  });

  it('says what is missing when the environment is not ready', async () => {
    await openNode(page, 'contact');
    await page.locator('#node-input-environment').selectOption('unready');
    await open('contactId');
    await note('contactId').getByText('is not ready: open the environment and fill in').waitFor();
    await open('contactId');
    await page.locator('#node-input-environment').selectOption('_ADD_');
    await open('contactId');
    await note('contactId').getByText('Choose an environment above first').waitFor();
    await closeNode(page, 'cancel');
  });

  it('leaves no error in the console except the rejection that it shows', () => {
    editor.errors.filter((line) => !line.includes('status of 400')).should.eql([]);
  });
});
