import should from 'should';
import type { Page } from 'playwright-core';
import { Phones } from '../../support/examples/setup';
import { itInLongRun } from '../../support/extent';
import type { FlowNode, Message } from '../../support/node-red';
import { numbers } from '../../support/numbers';
import {
  chooseType,
  boxOf,
  dragFromPalette,
  enter,
  searchPalette,
  shownInPalette,
  wire,
} from '../../support/editor/canvas';
import {
  closeEnvironment,
  closeNode,
  dialogReady,
  environmentForm,
  labelOf,
  openEnvironment,
  saved,
} from '../../support/editor/setup';
import { editor, inSharedEditor, page } from '../../support/editor/shared';

const { consented } = numbers;
const stranger = '+15125550142';
const labels = [
  'send text (SMS)',
  'request consent',
  'check consent',
  'contact',
  'contact group',
  'content search',
  'do not text',
  'texting activity',
  'texting events',
];
const types = ['send-text', 'request-consent', 'check-consent', 'contact', 'group', 'content'] as const;

/** How a person fills in each form. */
const beginsAsSearch = async (page: Page): Promise<void> => {
  (await page.locator('#node-input-operation').inputValue()).should.equal('search');
};

const fillIn: Readonly<Record<(typeof types)[number], (page: Page) => Promise<void>>> = {
  'send-text': async (page) => {
    await enter(page, 'phone', 'str', consented);
    await enter(page, 'text', 'str', 'Hi Ann & Bob,\nsee you on Friday');
  },
  'request-consent': (page) => enter(page, 'phone', 'str', stranger),
  'check-consent': (page) => enter(page, 'phone', 'str', consented),
  contact: async (page) => {
    await beginsAsSearch(page);
    await page.locator('#node-input-operation').selectOption('create');
    await chooseType(page, 'contact', 'fields');
    await boxOf(page, 'fields-entry-firstName').fill('Ann');
    await boxOf(page, 'fields-entry-lastName').fill('Tester');
  },
  group: async (page) => {
    await beginsAsSearch(page);
    await page.locator('#node-input-operation').selectOption('create');
    await enter(page, 'group', 'str', 'Friends');
  },
  content: async (page) => {
    await enter(page, 'search', 'str', 'retirement');
    await page.locator('#node-input-contentType').selectOption('WebContent');
  },
};

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Mine' },
  { id: 'in', type: 'test-port', z: 'tab', name: 'in', x: 80, y: 40, wires: [[]] },
  ...types.map((type, index) => ({
    id: `out-${type}`,
    type: 'test-port',
    z: 'tab',
    name: type,
    x: 640,
    y: 100 + 80 * index,
    wires: [[]],
  })),
];

export const nodes = inSharedEditor('from the palette to the phone in', flows, () => {
  const ids = new Map<string, string>();

  const labelOn = (type: string): Promise<string> => labelOf(page, ids.get(type) ?? '');
  const deploy = async (): Promise<void> => {
    const from = editor.red.lines.length;
    await page.locator('#red-ui-header-button-deploy').click();
    await editor.red.logged(/Started (modified )?(flows|nodes)/, { from });
  };
  const arrived = async (type: string): Promise<Message> => {
    const [message] = await editor.red.messages(type);
    return message ?? {};
  };

  it('has its own category, with the nodes in the order of their use', async () => {
    const category = page.locator('#red-ui-palette-container-advisor_texting');
    (await category.locator('.red-ui-palette-header').textContent())?.trim().should.equal('advisor texting');
    (await shownInPalette(page)).filter((label) => labels.includes(label)).should.eql(labels);
  });

  // Each language is another editor.
  itInLongRun('is Spanish in a browser whose language has no region', async () => {
    const { page: spanish } = await editor.browser.open({ locale: 'es' });
    await spanish.goto(`${editor.red.adminUrl}/`, { timeout: 30_000 });
    const header = spanish.locator('#red-ui-palette-header-advisor_texting');
    await header.waitFor({ timeout: 30_000 });
    (await header.textContent())?.trim().should.equal('SMS del asesor');
    const help = await spanish.evaluate<string>(`RED.nodes.getNodeHelp('advisor-group')`);
    help.should.match(/grupos?/i).and.match(/contactos?/);
    await openEnvironment(spanish, '_ADD_');
    await spanish.locator('.advisor-advanced > summary').click();
    (await spanish.locator('[data-field=resumeWithin]').textContent())?.should.match(/= 1 hora/);
    await spanish.close();
  });

  it('is found by the words a person would search for', async () => {
    (await searchPalette(page, 'sms')).should.eql(['send text (SMS)']);
    (await searchPalette(page, 'text')).should.containEql('send text (SMS)');
    (await searchPalette(page, 'consent')).should.eql(['request consent', 'check consent']);
    (await searchPalette(page, 'contact')).should.eql(['contact', 'contact group']);
    (await searchPalette(page, 'advisor')).should.eql(labels);
  });

  it('is found by what a person wants to do, though its label uses other words', async () => {
    const box = page.locator('#red-ui-palette-search input').first();
    const shown = `[...document.querySelectorAll('.red-ui-palette-node[data-palette-type^=advisor-]')]
      .filter(({ dataset }) => dataset.filter !== 'true').map(({ dataset }) => dataset.paletteType).join()`;
    const found = {
      wait: 'advisor-check-consent',
      phone: 'advisor-send-text',
      message: 'advisor-send-text',
    };
    for (const [word, type] of Object.entries(found)) {
      await box.fill('');
      await page.waitForFunction(`${shown}.split(',').length === ${String(labels.length)}`);
      await box.pressSequentially(word);
      await page.waitForFunction(`${shown}.split(',').length < ${String(labels.length)}`);
      should((await page.evaluate<string>(shown)).split(',')).containEql(type);
    }
    await box.fill('');
    await page.waitForFunction(`${shown}.split(',').length === ${String(labels.length)}`);
  });

  for (const [index, type] of types.entries()) {
    it(`takes ${type} from the palette and fills in its form`, async () => {
      const [x, y] = [340, 100 + 80 * index];
      ids.set(type, await dragFromPalette(page, `advisor-${type}`, x, y));
      const id = ids.get(type) ?? '';
      await page.locator(`[id="${id}"]`).dblclick();
      await dialogReady(page);
      if (index === 0) {
        (await page.locator('[data-field=environment] .advisor-error').textContent())?.should.match(
          /^Choose an environment, or add one/,
        );
        await page
          .locator('#node-input-btn-environment-add, #node-input-lookup-environment-add')
          .first()
          .click();
        await dialogReady(page, 'environment');
        await closeEnvironment(page);
      }
      (await page.locator('.advisor-badge').textContent())?.should.match(/^Simulator: /);
      await fillIn[type](page);
      (await page.locator('.advisor-error:visible').allTextContents()).should.eql([]);
      await closeNode(page);
      should(await page.evaluate(`RED.nodes.node('${id}').valid`)).be.true();
      await wire(page, 'in', id, `out-${type}`);
    });
  }

  it('says on each node in a sentence what it does', async () => {
    (await labelOn('send-text')).should.equal('text “Hi Ann & Bob, see…”');
    (await labelOn('request-consent')).should.equal(`ask ${stranger} for consent`);
    (await labelOn('check-consent')).should.equal(`check consent of ${consented}`);
    (await labelOn('contact')).should.equal('create contact');
    (await labelOn('group')).should.equal('create group “Friends”');
    (await labelOn('content')).should.equal('content search “retirement”');
  });

  it('says what an output is for when the mouse is over it', async () => {
    const ports = page.locator(`[id="${ids.get('send-text') ?? ''}"] .red-ui-flow-port-output`);
    const outputs: string[] = [];
    for (let port = 0; port < (await ports.count()); port += 1) {
      await ports.nth(port).locator('rect').hover();
      const tooltip = page.locator('.red-ui-flow-port-tooltip');
      await tooltip.waitFor();
      outputs.push((await tooltip.textContent()) ?? '');
      await page.mouse.move(5, 5);
      await tooltip.waitFor({ state: 'detached' });
    }
    outputs.should.eql(['sent', 'failed', 'needs consent']);
  });

  it('runs on the simulator once it is deployed: the texts arrive', async () => {
    await deploy();
    await editor.red.send('in', { payload: 'now' });
    const results = await Promise.all(types.map(arrived));
    for (const result of results) should(result['error']).be.undefined();
    const phones = await Phones.open(editor.red);
    (await phones.texts(consented)).should.eql(['Hi Ann & Bob,\nsee you on Friday']);
    (await phones.texts(stranger, 'default', 'consent-request')).length.should.equal(1);
    should(results[2]?.['payload']).containEql({ state: 'accepted' });
    should(results[3]?.['contactId']).be.a.Number();
    should(results[4]?.['groupId']).be.a.Number();
    should((results[5]?.['payload'] as { data: unknown[] }).data.length).be.above(0);
  });

  it('texts a list by the column that was filled in', async () => {
    const id = ids.get('send-text') ?? '';
    await page.evaluate(`RED.editor.edit(RED.nodes.node('${id}'))`);
    await dialogReady(page);
    await enter(page, 'phone', 'msg', 'phone');
    await page.getByLabel('Column').fill('mobile');
    await closeNode(page);
    should(await saved(page, id)).containEql({ phoneField: 'mobile', phoneType: 'msg' });
    await deploy();
    const before = (await editor.red.messages('send-text', 0)).length;
    await editor.red.send('in', { phone: [{ name: 'Cay', mobile: stranger }, { mobile: consented }] });
    const left = (await editor.red.messages('send-text', before + 2)).slice(before);
    should(left.map(({ phone, outcome }) => [phone, outcome]).toSorted()).deepEqual([
      [consented, 'sent'],
      [stranger, 'needsConsent'],
    ]);
  });

  it('is configured without a mouse', async () => {
    const id = ids.get('send-text') ?? '';
    const type = async (key: string, times = 1): Promise<void> => {
      for (let time = 0; time < times; time += 1) await page.keyboard.press(key);
    };
    const focused = (): Promise<string> =>
      page.evaluate(`(() => {
        const one = document.activeElement;
        const named = document.getElementById(one.getAttribute('aria-labelledby')) || (one.labels || [])[0];
        return one.getAttribute('aria-label') || (named || one).textContent.trim();
      })()`);
    const tabTo = async (name: string): Promise<void> => {
      for (let step = 0; step < 30; step += 1) {
        if ((await focused()) === name) return;
        await type('Tab');
      }
      throw new Error(`The Tab key does not lead to ${name}.`);
    };
    await page.evaluate(`RED.view.focus(); RED.view.select('${id}')`);
    await type('Enter');
    await dialogReady(page);
    await page.locator('#node-input-name').focus();
    await tabTo('Edit this environment');
    await type('Enter');
    await dialogReady(page, 'environment');
    await page.keyboard.press('ControlOrMeta+Escape');
    await environmentForm(page).waitFor({ state: 'detached' });
    await page.locator('#node-input-name').focus();
    await tabTo('Text');
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type('Typed by hand');
    await tabTo('When');
    await page.keyboard.type('at');
    await page.locator('[data-field=deliveryDate]').waitFor();
    await type('Tab');
    (await focused()).should.equal('Where the value comes from');
    await type('Enter');
    await page.locator('.red-ui-typedInput-options:visible a[value="str"]').waitFor();
    await page.waitForFunction(`document.activeElement.getAttribute('value') === 'msg'`);
    await type('ArrowDown');
    await type('Enter');
    await page.waitForFunction(`document.activeElement.classList.contains('advisor-box')`);
    (await focused()).should.equal('Send at');
    await page.keyboard.type('01312040');
    await type('Tab');
    await page.keyboard.type('0900AM');
    await page.keyboard.press('ControlOrMeta+Enter');
    await page.locator('.advisor-form').waitFor({ state: 'detached' });
    const found = await saved(page, id);
    found.should.containEql({
      text: 'Typed by hand',
      textType: 'str',
      schedule: 'at',
      deliveryDateType: 'str',
    });
    should(found['deliveryDate']).match(/^2040-01-31T09:00:00[+-]\d\d:\d\d$/);
    (await labelOn('send-text')).should.match(/^text “Typed by hand” on .*31, 2040/);
  });

  it('leaves no error in the console', () => {
    editor.errors.should.eql([]);
  });
});
