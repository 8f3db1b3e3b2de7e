import should from 'should';
import type { Page } from 'playwright-core';
import { languages } from '../../../lib/languages';
import { isLong } from '../../support/extent';
import { simulatorWordsIn } from '../../../simulator/words';
import { benchForEach, phoneOf } from '../../support/simulator-page';

const number = '+14155550123';
const readable = '+1 415 555 0123';

describe("the languages of the simulator's page", () => {
  const bench = benchForEach();

  const timeZone = { timezoneId: 'UTC' };
  const languageOf = (page: Page): Promise<string> => page.evaluate(() => document.documentElement.lang);
  const opened = (locale: string, address = ''): Promise<Page> =>
    bench().open({ locale, ...timeZone }, `${bench().simulator.url}/${address}`);

  for (const language of isLong ? languages : (['ja'] as const)) {
    it(`include the browser's own: ${language}`, async () => {
      const { page: said } = simulatorWordsIn(language).catalogue;
      await bench().askConsent(number);
      const page = await opened(language);
      should(await languageOf(page)).equal(language);
      should(await page.title()).equal(said.title);
      should(await page.locator('.banner').innerText()).containEql(said.notice.nobody);
      should(await page.locator('#live').innerText()).equal(said.connection.live);
      const phone = phoneOf(page, readable);
      await phone.getByRole('button', { name: new RegExp(`^${said.phone.decline}`) }).click();
      await phone.getByText(said.phone.isDeclined).waitFor();
      await phone.locator('.badge', { hasText: said.phone.pending }).waitFor();
      await page.getByText(said.faults.title).click();
      await page
        .getByRole('combobox', { name: said.faults.what, exact: true })
        .selectOption({ label: said.faults.way.slow });
      await page.getByRole('button', { name: said.faults.add }).click();
      await page
        .getByLabel(said.faults.on)
        .getByText(`${said.faults.any}: ${said.faults.way.slow}`)
        .waitFor();
    });
  }

  it('follow ?lang= rather than the browser, even in what the simulator rejects', async () => {
    const page = await opened('ja', '?lang=de');
    should(await languageOf(page)).equal('de');
    await page.getByRole('tab', { name: /^Telefone/ }).waitFor();
    await page.getByRole('heading', { name: 'SMS für Berater – Simulator' }).waitFor();
    await page.route('**/control/clock', (route) => route.continue({ postData: '{' }));
    await page.getByRole('button', { name: '+1 Stunde' }).click();
    await page.getByText('Etwas ist schiefgegangen. Der Body ist kein gültiges JSON.').waitFor();
    await page.route('**/control/clock', (route) => route.abort());
    await page.getByRole('button', { name: '+1 Stunde' }).click();
    await page.getByText('Etwas ist schiefgegangen. Der Simulator antwortet nicht.').waitFor();
    bench().forgive(/status of 400|ERR_FAILED/);
  });

  it("fall back to the browser's next one, then to English", async () => {
    const language = async (header: string): Promise<string | null> =>
      (await fetch(bench().simulator.url, { headers: { 'accept-language': header } })).headers.get(
        'content-language',
      );
    should(await language('fr')).equal('en-US');
    should(await language('fr;q=0.9, es-MX;q=0.5, de;q=0.7')).equal('de');
    should(await language('ja;q=0, es-MX')).equal('es-ES');
    should(await language('*')).equal('en-US');
    should(await language(';;q=x,,__proto__')).equal('en-US');
  });

  it('write numbers, times and durations as the region of the browser does', async () => {
    bench().simulator.change({ consentRequired: false });
    const at = Date.UTC(2031, 5, 3, 14, 5);
    const schedule = { scheduleDelivery: true, deliveryDate: at };
    await bench().send(number, 'Hello', schedule);
    for (const [locale, time, day, step] of [
      ['en-US', '2:05 PM', 'Tue, Jun 3', '+5 minutes'],
      ['en-GB', '14:05', 'Tue 3 Jun', '+5 minutes'],
      ['de-CH', '14:05', 'Di., 3. Juni', '+5 Minuten'],
      ['es-ES', '14:05', 'mar, 3 jun', '+5 minutos'],
      ['ja-JP', '14:05', '6月3日(火)', '+5 分'],
    ] as const) {
      const page = await opened(locale);
      // Browsers delay drawing a phone, and what is not drawn has no innerText.
      const shown = (await phoneOf(page, readable).locator('.bubble time').textContent()) ?? '';
      should(shown.replaceAll(/\s/g, ' ')).containEql(time).and.containEql(day);
      should(await page.locator('#advance button').allInnerTexts()).containEql(step);
      await page.context().close();
    }
  });

  it("apply to the control API's errors too", async () => {
    const refusal = async (language: string, path: string, body: unknown): Promise<string> => {
      const answer = await fetch(`${bench().simulator.url}/control/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'accept-language': language },
        body: JSON.stringify(body),
      });
      return ((await answer.json()) as { detail: string }).detail;
    };
    should(await refusal('de', 'phones/123/accept', {})).match(/muss im Format E\.164 sein/);
    should(await refusal('es', 'nonsense', {})).equal('La API de control no tiene POST control/nonsense.');
    should(await refusal('ja', 'faults', {})).match(/ちょうど1つを指定してください/);
    should(await refusal('en', 'faults', {})).match(/Give exactly one of code, status and kind\./);
    should(await refusal('de', 'clock', { advance: 'x' })).match(/Ungültige Eingabe/);
  });
});
