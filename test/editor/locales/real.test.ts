import type { Page } from 'playwright-core';
import should from 'should';
import { launchBrowser, type TestBrowser } from '../../support/browser';
import { ragged, touchingButtons, touchingLabels } from '../../support/editor/looks';
import { closeEnvironment, closeNode, openEnvironment, openNode } from '../../support/editor/setup';
import { baseOf, languages } from '../../../lib/languages';
import { isLong, itInLongRun } from '../../support/extent';
import { type FlowNode, type RealRed, startRed } from '../../support/node-red';
import { numbers } from '../../support/numbers';

const flows: FlowNode[] = [
  { id: 'tab', type: 'tab', label: 'Sprachen' },
  { id: 'environment', type: 'advisor-environment', name: '', service: 'simulator' },
  { id: 'office', type: 'advisor-environment', name: 'Büro', service: 'sandbox' },
  { id: 'in', type: 'test-port', z: 'tab', name: 'in', wires: [['send']] },
  {
    id: 'send',
    type: 'advisor-send-text',
    z: 'tab',
    x: 300,
    y: 80,
    environment: 'environment',
    wires: [['sent'], ['failed'], ['needs']],
  },
  {
    id: 'unready',
    type: 'advisor-send-text',
    z: 'tab',
    x: 300,
    y: 160,
    environment: 'office',
    wires: [[], ['failed'], []],
  },
  ...Object.entries({
    ask: { type: 'advisor-request-consent' },
    check: { type: 'advisor-check-consent', mode: 'wait', pollEvery: 5 },
    contact: { type: 'advisor-contact', operation: 'create', contactType: 'fields' },
    group: { type: 'advisor-group', operation: 'setGroups' },
    content: { type: 'advisor-content' },
  }).map(([id, more]) => ({ id, z: 'tab', x: 600, y: 80, environment: 'environment', wires: [], ...more })),
  { id: 'inUnready', type: 'test-port', z: 'tab', name: 'inUnready', wires: [['unready']] },
  ...['sent', 'failed', 'needs', 'status'].map((name) => ({
    id: name,
    type: 'test-port',
    z: 'tab',
    name,
    wires: [],
  })),
  { id: 'watch', type: 'status', z: 'tab', scope: ['send'], x: 300, y: 240, wires: [['status']] },
];

const text = (message: Record<string, unknown> | undefined): string =>
  (message?.['error'] as { message: string }).message;

describe('a Node-RED 5 whose language is German', function () {
  this.timeout(180_000);
  let red: RealRed;
  let browser: TestBrowser;

  let german: Page;

  const editorIn = async (locale: string, chosen?: string): Promise<Page> => {
    const { page } = await browser.open({ locale });
    if (chosen !== undefined) {
      await page.addInitScript((language) => {
        localStorage.setItem('editor-language', language);
      }, chosen);
    }
    await page.goto(red.url);
    await page.locator('.red-ui-flow-node').first().waitFor({ timeout: 40_000 });
    return page;
  };

  /** Without spaces: the palette breaks long labels. */
  const palette = async (page: Page, type: string): Promise<string> =>
    (
      await page
        .locator(`.red-ui-palette-node[data-palette-type="${type}"] .red-ui-palette-label`)
        .innerText()
    ).replaceAll(/\s/g, '');

  const helpOf = (page: Page, type: string): Promise<string> =>
    page.evaluate(`RED.nodes.getNodeHelp('${type}')`);

  before(async () => {
    [red, browser] = await Promise.all([
      startRed({ version: 5, flows, settings: { lang: 'de' } }),
      launchBrowser(),
    ]);
    german = await editorIn('en-US', 'de');
  });

  after(async () => {
    await browser.close();
    await red.close();
  });

  it('shows statuses in German', async () => {
    await red.send('in', { phone: numbers.consented, text: 'Hallo' });
    await red.messages('sent');
    const [shown] = await red.messages('status');
    should((shown?.['status'] as { text: string }).text).match(/^sim gesendet \d{1,2}:\d\d$/);
  });

  it('reports errors in German, and names what is missing as the form does', async () => {
    await red.send('in', { phone: '2025550123', text: 'Hallo' });
    await red.send('inUnready', { phone: numbers.consented, text: 'Hallo' });
    const failed = (await red.messages('failed', 2)).map(text).sort();
    String(failed[0]).should.match(/^Die Telefonnummer hat keine Landesvorwahl: /);
    String(failed[1]).should.match(
      /^„Büro“ ist nicht bereit: .*: Dienstadresse, Autorisierungs-Adresse, .* und API-Schlüssel\.$/,
    );
  });

  it('answers the editor and the browser in theirs', async () => {
    const ask = async (language: string): Promise<string> =>
      (await red.request('POST', 'advisor-texting/office/authorize', {}, { 'accept-language': language }))
        .text;
    (await ask('ja')).should.match(/準備ができていません/);
    (await ask('es-ES,es;q=0.9')).should.match(/no está listo/);
    (await ask('fr')).should.match(/is not ready/);
    const page = await red.request('GET', 'advisor-texting/callback', undefined, {
      'accept-language': 'de-AT',
    });
    page.text.should.match(/<html lang="de">/).and.match(/Das hat nicht geklappt/);
  });

  it('has a phones page in the language of the browser, or in the one of its address', async () => {
    const phones = async (language: string, query = ''): Promise<string> =>
      (
        await red.request('GET', `advisor-texting/simulator/${query}`, undefined, {
          'accept-language': language,
        })
      ).text;
    (await phones('ja-JP')).should.match(/<html lang="ja">/).and.match(/実際には誰にも届きません/);
    (await phones('ja-JP', '?lang=es')).should.match(/nadie recibe SMS de verdad/);
    const { page } = await browser.open({ locale: 'de-AT' });
    await page.goto(`${red.adminUrl}/advisor-texting/simulator/`);
    await page.locator('#live', { hasText: 'Live' }).waitFor();
    await page.getByRole('heading', { name: 'Uhr' }).waitFor();
    await page.getByRole('button', { name: '+1 Tag' }).waitFor();
  });

  // Another editor than that of the following tests.
  itInLongRun('has an editor in the language of the browser: palette, dialog and help', async () => {
    const page = await editorIn('ja');
    (await palette(page, 'advisor-send-text')).should.equal('SMS送信');
    (await palette(page, 'advisor-check-consent')).should.equal('同意の確認');
    (await helpOf(page, 'advisor-send-text')).should.match(/アドバイザーの番号から/);
    await openNode(page, 'send');
    (await page.locator('[data-field=phone] label').innerText()).should.equal('電話番号');
    (await page.locator('[data-field=schedule] option').allInnerTexts()).should.eql(['今すぐ', '日時を指定']);
    await page.locator('[data-field=schedule] select').selectOption('at');
    await page.evaluate(`$('#node-input-deliveryDate').typedInput('type', 'num').typedInput('value', 'x')`);
    (await page.locator('[data-field=deliveryDate] .advisor-error').innerText()).should.equal(
      '数値を入力するか、別の型を選んでください。',
    );
  });

  it("has an editor in the language chosen in it, whatever the browser's is", async () => {
    const category = german.locator('#red-ui-palette-header-advisor_texting');
    (await category.textContent())?.trim().should.equal('Berater-SMS');
    (await palette(german, 'advisor-request-consent')).should.equal('Einwilligunganfragen');
    (await helpOf(german, 'advisor-contact')).should.match(
      /Sucht, liest, ändert oder löscht Kontakte des Beraters/,
    );
    await openEnvironment(german, 'office');
    await german.getByRole('button', { name: 'Verbindung testen' }).click();
    await german.getByText('„Büro“ ist nicht bereit').first().waitFor();
    await closeEnvironment(german, 'cancel');
  });

  itInLongRun('has help that fits two screens', async () => {
    const heights: Record<string, number> = {};
    const types = await german.evaluate<string[]>(`RED.nodes.registry.getNodeTypes()`);
    await german.setViewportSize({ width: 1280, height: 1000 });
    for (const type of types.filter((each) => each.startsWith('advisor-'))) {
      await german.evaluate(`RED.sidebar.help.show('${type}')`);
      const help = german.locator('.red-ui-help:visible').first();
      await help.locator('.advisor-help').waitFor({ state: 'attached' });
      heights[type] = await help.evaluate((element) => element.scrollHeight);
    }
    should(Object.keys(heights).length).equal(10);
    should(Object.entries(heights).filter(([, height]) => height > 2 * 1000)).deepEqual([]);
  });

  itInLongRun('breaks no word in the palette, however long it is', async () => {
    const page = german;
    const linesOf = (type: string): Promise<string[]> =>
      page
        .locator(`.red-ui-palette-node[data-palette-type="${type}"] .red-ui-palette-label`)
        .evaluate((label) => label.innerHTML.split('<br>'));
    should(await linesOf('advisor-group')).eql(['Kontaktgruppe']);
    should(await linesOf('advisor-activity')).eql(['SMS-Aktivität']);
    const sizeOf = (type: string): Promise<number> =>
      page
        .locator(`.red-ui-palette-node[data-palette-type="${type}"] .red-ui-palette-label`)
        .evaluate((label) => parseFloat(getComputedStyle(label).fontSize));
    const usual = await sizeOf('advisor-contact');
    should(await sizeOf('advisor-activity')).equal(usual);
    should(await sizeOf('advisor-group')).be.below(usual);
  });

  itInLongRun('has dialogs that keep their columns, however long the words are', async () => {
    const page = german;
    for (const type of ['send', 'unready', 'ask', 'check', 'contact', 'group', 'content']) {
      await openNode(page, type);
      should({ type, ragged: await ragged(page) }).eql({ type, ragged: [] });
      await closeNode(page, 'cancel');
    }
    await openEnvironment(page, 'office');
    (await ragged(page)).should.eql([]);
    await closeEnvironment(page, 'cancel');
  });

  for (const language of isLong ? languages.toSorted() : ['de'])
    it(`leaves room between labels, fields and buttons in ${language}`, async () => {
      const page = language === 'de' ? german : await editorIn('en-US', language);
      should(await page.evaluate(`RED.nodes.getType('advisor-environment')._('language')`)).equal(
        baseOf(language),
      );
      await openNode(page, 'send');
      await page.evaluate(`$('#node-input-onceKey').typedInput('type', 'text')`);
      await page.locator('.advisor-advanced summary').click();
      await page.locator('[data-field=maxSegments]').waitFor();
      should([...(await touchingLabels(page)), ...(await ragged(page))]).deepEqual([]);
      await closeNode(page, 'cancel');
      await openEnvironment(page, 'office');
      await page.locator('.advisor-advanced summary').click();
      should([...(await touchingLabels(page)), ...(await ragged(page))]).deepEqual([]);
      await closeEnvironment(page, 'cancel');
      await page.evaluate(`RED.sidebar.show('advisor-texting')`);
      const sections = page.locator('.advisor-side-environment h3');
      await sections.nth(1).waitFor();
      await page.evaluate(`$('.advisor-side-heading[aria-expanded=false]').trigger('click')`);
      await page.locator('.advisor-side-service .fa-mobile:visible').waitFor();
      should(await touchingButtons(page)).deepEqual([]);
    });

  it('gives the editor German for Austria, Spanish for no region, and English for an untranslated language', async () => {
    const labelIn = async (language: string): Promise<unknown> => {
      const address = `nodes/@advisor-texting/node-red/advisor-group/messages?lng=${language}`;
      const { json } = await red.request('GET', address);
      return (json as { title?: unknown } | undefined)?.title;
    };
    should(await labelIn('de-AT')).equal('Kontaktgruppe');
    should(await labelIn('es')).equal(await labelIn('es-ES'));
    should(await labelIn('es')).equal('grupo de contactos');
    should(await labelIn('fr')).equal(undefined);
    should(await labelIn('en-US')).equal('contact group');
  });
});
