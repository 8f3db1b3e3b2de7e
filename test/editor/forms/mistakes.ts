import { isDeepStrictEqual } from 'node:util';
import should from 'should';
import type { FlowNode } from '../../support/node-red';
import { boxOf, chooseType, enter } from '../../support/editor/canvas';
import {
  closeEnvironment,
  closeNode,
  labelOf,
  openEnvironment,
  openNode,
  saved,
  triangle,
} from '../../support/editor/setup';
import { until } from '../../support/until';
import { editor, inSharedEditor, page } from '../../support/editor/shared';

const node = (id: string, type: string, more: object): FlowNode => ({
  id,
  type: `advisor-${type}`,
  z: 'tab',
  x: 300,
  y: 60,
  environment: 'environment',
  wires: [],
  ...more,
});

const trial = (id: string, baseUrl: string): FlowNode => ({
  id,
  type: 'advisor-environment',
  name: id,
  service: 'sandbox',
  baseUrl,
  authUrl: 'https://trial.example/authorize',
  tokenUrl: 'https://trial.example/token',
  redirectUri: 'https://office.example/advisor-texting/callback',
});

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Mistakes' },
  { id: 'environment', type: 'advisor-environment', service: 'simulator' },
  { id: 'open', type: 'advisor-environment', service: 'simulator' },
  { id: 'off', type: 'advisor-environment', service: 'simulator', d: true },
  { id: 'staged', type: 'advisor-environment', service: 'staging' },
  node('send', 'send-text', {}),
  node('contact', 'contact', { operation: 'create', contactType: 'fields' }),
  node('group', 'group', { operation: 'delete' }),
  node('resting', 'events', { environment: 'off' }),
  node('newer', 'contact', { operation: 'upsert', contactIdType: 'cookie' }),
  trial('trial', 'https://trial.example/v1'),
  trial('same', 'https://trial.example/v1/'),
  trial('varied', 'https://${HOST}/v1'),
  node('text', 'send-text', { name: 'Greet', wires: [[], [], ['far']] }),
  { id: 'far', type: 'link out', z: 'tab', x: 300, y: 60, mode: 'link', links: ['near'], wires: [] },
  { id: 'near', type: 'link in', z: 'tab', x: 300, y: 60, links: ['far'], wires: [['bend']] },
  { id: 'bend', type: 'junction', z: 'tab', x: 300, y: 60, wires: [['ask']] },
  node('ask', 'request-consent', { name: 'Ask', wires: [['wait'], ['log']] }),
  node('wait', 'check-consent', { name: 'Wait', wires: [['text'], [], ['ask']] }),
  node('log', 'check-consent', { environment: 'trial', wires: [[], [], []] }),
];

const unknown = 'This version does not know this choice: choose again.';

export const mistakes = inSharedEditor('mistakes in a form in', flows, () => {
  const sentences = (): Promise<string[]> => page.locator('.advisor-error:visible').allTextContents();
  const badge = (): Promise<string> => page.locator('.advisor-badge').innerText();
  const type = async (field: string, value: string): Promise<void> => {
    await boxOf(page, field).fill(value);
    await boxOf(page, field).press('End');
  };

  it('include a number that the node would reject, alone or in a list', async () => {
    await openNode(page, 'send');
    await enter(page, 'phone', 'str', '+1 (202) 55');
    await boxOf(page, 'phone').press('End');
    (await sentences()).should.match([/8 to 15 digits/]);
    await type('phone', '+12025550113');
    (await sentences()).should.eql([]);
    await chooseType(page, 'phone', 'json');
    await type('phone', '["+12025550113", "grace"]');
    const [sentence = ''] = await sentences();
    sentence.should.match(/^Entry 2 of the list: This is not a phone number/);
    await closeNode(page);
    (await triangle(page, 'send')).should.eql([sentence]);
  });

  it('include a disabled environment, at the triangle of its nodes', async () => {
    (await triangle(page, 'resting')).should.eql([
      'The environment is disabled: enable it, or choose another.',
    ]);
  });

  it('include a consent node after a node that uses another service', async () => {
    const apart = (sender: string): string =>
      `The node before this one (${sender}) uses another service: choose the same environment in both.`;
    /** The triangles of the consent loop; they follow a change a moment later. */
    const shown = (expected: Readonly<Record<'ask' | 'wait', string[]>>): Promise<unknown> =>
      until(
        async () =>
          isDeepStrictEqual(
            { ask: await triangle(page, 'ask'), wait: await triangle(page, 'wait') },
            expected,
          ),
        JSON.stringify(expected),
      );
    const choose = async (id: string, environment: string): Promise<void> => {
      await openNode(page, id);
      await page.locator('#node-input-environment').selectOption(environment);
      await closeNode(page);
    };
    // Whoever could not be asked is not asked elsewhere, so this wire is no mistake.
    (await triangle(page, 'log')).should.eql([]);
    await shown({ ask: [], wait: [] });
    await choose('text', 'trial');
    await shown({ ask: [apart('Greet')], wait: [] });
    await openNode(page, 'ask');
    (await sentences()).should.eql([apart('Greet')]);
    await page.locator('#node-input-environment').selectOption('same');
    (await sentences()).should.eql([apart('Wait')]);
    await closeNode(page);
    await shown({ ask: [apart('Wait')], wait: [apart('Ask')] });
    await choose('wait', 'trial');
    await shown({ ask: [], wait: [] });
    // Nobody knows the address in a variable.
    await choose('wait', 'varied');
    await shown({ ask: [], wait: [] });
    await choose('wait', 'environment');
    await shown({ ask: [apart('Wait')], wait: [apart('Ask')] });
    const drop = (id: string): Promise<unknown> =>
      page.evaluate(
        `RED.nodes.getNodeLinks('${id}', 0).forEach((link) => RED.nodes.removeLink(link)), RED.nodes.dirty(true)`,
      );
    await drop('ask');
    await shown({ ask: [apart('Wait')], wait: [] });
    await drop('wait');
    await shown({ ask: [], wait: [] });
    await choose('ask', 'environment');
    await shown({ ask: [apart('Greet')], wait: [] });
    // As the editor does it for a wire between two links.
    await page.evaluate(
      `RED.nodes.node('far').links = RED.nodes.node('near').links = [], RED.nodes.dirty(true)`,
    );
    await shown({ ask: [], wait: [] });
  });

  it('are shown row by row in a contact, and at the triangle with the name of the row', async () => {
    (await triangle(page, 'contact')).should.eql(['Fill in at least one field.']);
    await openNode(page, 'contact');
    (await sentences()).should.eql(['Fill in at least one field.']);
    await type('fields-entry-gender', 'abc');
    await chooseType(page, 'fields-entry-city', 'jsonata');
    await type('fields-entry-city', '$(');
    const [number = '', jsonata = '', ...others] = await sentences();
    others.should.eql([]);
    const rowOf = (row: string) =>
      page.locator(`.advisor-row:has(#node-input-fields-entry-${row}) .advisor-error`);
    (await rowOf('gender').textContent())?.should.equal('Enter a number, or choose another type.');
    (await rowOf('city').textContent())?.should.match(/^This JSONata expression is invalid/);
    const box = boxOf(page, 'fields-entry-gender');
    (await box.getAttribute('aria-invalid'))?.should.equal('true');
    (await box.getAttribute('aria-describedby'))?.should.containEql(
      (await rowOf('gender').getAttribute('id')) ?? 'none',
    );
    await closeNode(page);
    (await triangle(page, 'contact')).should.eql([`Gender (number): ${number} City: ${jsonata}`]);
    await openNode(page, 'contact');
    await type('fields-entry-gender', '2');
    await type('fields-entry-city', '$uppercase("a")');
    (await sentences()).should.eql([]);
    await closeNode(page);
    (await triangle(page, 'contact')).should.eql([]);
    // Rows are kept while they are not shown.
    await page.evaluate(`RED.nodes.node('contact').operation = 'get'`);
    await openNode(page, 'contact');
    await closeNode(page);
    should((await saved(page, 'contact'))['fields']).eql([
      { field: 'gender', value: '2', valueType: 'num' },
      { field: 'city', value: '$uppercase("a")', valueType: 'jsonata' },
    ]);
  });

  it('include a group that would be deleted by its name', async () => {
    await openNode(page, 'group');
    await enter(page, 'groupId', 'str', 'Friends');
    await boxOf(page, 'groupId').press('End');
    (await sentences()).should.match([/^A group can only be deleted by its id/]);
    await page.locator('#node-input-operation').selectOption('removeContact');
    (await sentences()).should.eql([]);
    await closeNode(page, 'cancel');
  });

  it('include a variable without a name, which is not mistaken for the simulator', async () => {
    await openEnvironment(page, 'open');
    await page.locator('#node-config-input-service').selectOption({ index: 3 });
    (await page.locator('[data-field=service] .advisor-error').textContent())?.should.match(
      /^Enter an environment variable/,
    );
    (await badge())?.should.match(/^No service is chosen yet/);
    (await page.getByRole('button', { name: 'Open the phones' }).isHidden()).should.be.true();
    await closeEnvironment(page);
    (await triangle(page, 'open')).join().should.match(/Enter an environment variable/);
    await openNode(page, 'send');
    await page.locator('#node-input-environment').selectOption('open');
    (await badge())?.should.equal('No service is chosen yet');
    await closeNode(page, 'cancel');
    await openEnvironment(page, 'open');
    (await page.locator('#node-config-input-service-variable').inputValue()).should.equal('');
    await page.locator('#node-config-input-service-variable').fill('SERVICE');
    (await badge())?.should.match(/^\$\{SERVICE\} decides/);
    await closeEnvironment(page);
    await openNode(page, 'send');
    await page.locator('#node-input-environment').selectOption('open');
    (await badge())?.should.equal('${SERVICE} decides whether real people are texted');
    await closeNode(page, 'cancel');
    (await saved(page, 'open')).should.containEql({ service: '${SERVICE}' });
  });

  it('are shown at the triangle for every missing credential and permission', async () => {
    for (const credential of ['Client ID', 'Client secret', 'API key']) {
      (await triangle(page, 'open')).join().should.containEql(`${credential}: fill this in.`);
    }
    await openEnvironment(page, 'open');
    for (const box of await page.locator('.advisor-ticks input[type=checkbox]:enabled').all()) {
      if (await box.isChecked()) await box.uncheck();
    }
    (await page.locator('[data-field=scopes] .advisor-error').textContent())?.should.equal(
      'Select at least one permission.',
    );
    await closeEnvironment(page);
    (await triangle(page, 'open')).join().should.match(/Select at least one permission/);
  });

  it('are kept and flagged if another version made them', async () => {
    (await labelOf(page, 'newer')).should.equal('contact: “upsert”');
    (await triangle(page, 'newer')).should.eql([unknown]);
    await openNode(page, 'newer');
    (await page.locator('#node-input-operation option:checked').textContent())?.should.equal(
      'upsert (unknown to this version)',
    );
    (await sentences()).should.eql([unknown]);
    await closeNode(page);
    (await saved(page, 'newer')).should.containEql({ operation: 'upsert', contactIdType: 'cookie' });
    (await triangle(page, 'newer')).should.eql([unknown]);
    await openNode(page, 'newer');
    await page.locator('#node-input-operation').selectOption('get');
    (await sentences()).should.match([/^This version does not know this source/]);
    await chooseType(page, 'contactId', 'msg');
    (await sentences()).should.eql([]);
    await closeNode(page);
    (await saved(page, 'newer')).should.containEql({ operation: 'get', contactIdType: 'msg' });
    (await triangle(page, 'newer')).should.eql([]);
  });

  it('of another version do not make an environment look harmless', async () => {
    (await labelOf(page, 'staged')).should.equal('advisor environment: “staging”');
    await openEnvironment(page, 'staged');
    (await badge())?.should.match(/^No service is chosen yet/);
    (await sentences()).should.eql([unknown]);
    await closeEnvironment(page);
    (await saved(page, 'staged')).should.containEql({ service: 'staging' });
  });

  it('leave no error in the console', () => {
    should(editor.errors).eql([]);
  });
});
