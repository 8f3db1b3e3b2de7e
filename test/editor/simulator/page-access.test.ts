import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AxeResults, NodeResult } from 'axe-core';
import should from 'should';
import type { Page } from 'playwright-core';
import { languages } from '../../../lib/languages';
import { isLong } from '../../support/extent';
import { type Bench, benchForEach, phoneOf } from '../../support/simulator-page';

/** Ink in the colour of the paper: axe treats that as hidden text and only calls it undecided. */
const isInvisible = ({ any }: NodeResult): boolean =>
  any.some(({ data }) => (data as { messageKey?: string } | null)?.messageKey === 'equalRatio');

const violations = async (page: Page): Promise<string[]> => {
  await page.evaluate(await readFile(require.resolve('axe-core/axe.min.js'), 'utf8'));
  const results = await page.evaluate<AxeResults>(`axe.run({ resultTypes: ['violations', 'incomplete'] })`);
  const invisible = results.incomplete.map((result) => ({
    ...result,
    nodes: result.nodes.filter(isInvisible),
  }));
  return [...results.violations, ...invisible].flatMap(({ id, nodes }) =>
    nodes.map(({ html }) => `${id}: ${html}`),
  );
};

const fill = async (bench: Bench): Promise<void> => {
  for (const phone of ['+12025550100', '+12025550110', '+14155550123']) await bench.askConsent(phone);
  for (const advisor of ['riley', 'jordan']) await bench.askConsent('+14155550123', advisor);
  const deliveryDate = bench.simulator.clock.now() + 3_600_000;
  await bench.send('+12025550100', 'Your review is on Thursday at 10.');
  await bench.send('+12025550100', 'Happy birthday!', { scheduleDelivery: true, deliveryDate });
  bench.simulator.faults.add({ code: 'rate_limited', next: 3 });
  await bench.simulator.advance(300);
};

/** Whether a theme is looked at here; in the long run, both are. */
const isFor = (theme: 'light' | 'dark', colorScheme: string): boolean => isLong || theme === colorScheme;

describe("access to the simulator's page", () => {
  const bench = benchForEach();

  for (const colorScheme of ['light', 'dark'] as const) {
    describe(`in the ${colorScheme} theme`, () => {
      if (isFor('light', colorScheme))
        it('passes axe when nothing has arrived', async () => {
          const page = await bench().open({ colorScheme });
          await page.getByRole('heading', { name: 'Nothing has arrived yet' }).waitFor();
          should(await violations(page)).eql([]);
        });

      // Each language in the long run.
      for (const locale of isFor('dark', colorScheme) ? languages.slice(0, isLong ? undefined : 1) : []) {
        it(`passes axe with phones in every state and all tools open (${locale})`, async () => {
          const page = await bench().open({ colorScheme, locale });
          await fill(bench());
          await phoneOf(page, '+1 415 555 0123').waitFor();
          const tools = await page.locator('summary:visible').all();
          should(tools).not.be.empty();
          for (const summary of tools) await summary.click();
          await page.locator('[data-action=wipe]').first().click();
          await page.locator('#toast').waitFor();
          should(await violations(page)).eql([]);
          await page.locator('#reset').click();
          should(await violations(page)).eql([]);
        });
      }

      for (const name of isLong ? ['Messages', 'Contacts'] : []) {
        it(`passes axe in ${name}`, async () => {
          await fill(bench());
          const page = await bench().open({ colorScheme });
          await page.getByRole('tab', { name: new RegExp(`^${name}`) }).click();
          await page.locator('[role=tabpanel]:visible td').first().waitFor();
          should(await violations(page)).eql([]);
        });
      }
    });
  }

  it('is operable by keyboard: arrows change the tab, and an answered phone keeps the focus', async () => {
    const page = await bench().open();
    await bench().askConsent('+14155550123');
    await page.getByRole('tab', { name: /^Phones/ }).focus();
    await page.keyboard.press('ArrowRight');
    await page.getByRole('tab', { name: /^Messages/, selected: true }).waitFor();
    await page.keyboard.press('Home');
    await phoneOf(page, '+1 415 555 0123').waitFor();
    await page.getByRole('button', { name: /^Accept, / }).focus();
    await page.keyboard.press('Enter');
    await phoneOf(page, '+1 415 555 0123').locator('.badge', { hasText: 'accepted' }).waitFor();
    should(await page.evaluate(() => document.activeElement?.closest('article')?.innerText)).match(/0123/);
  });

  it('can be used by keyboard alone, from the first key press to the last', async () => {
    await bench().askConsent('+14155550123');
    const page = await bench().open();
    await phoneOf(page, '+1 415 555 0123').waitFor();
    const reach = async (name: RegExp): Promise<void> => {
      const focused = (): Promise<string> =>
        page.evaluate(() => {
          const { activeElement: at } = document;
          return at?.getAttribute('aria-label') ?? at?.textContent.trim() ?? '';
        });
      for (let presses = 0; !name.test(await focused()); presses++) {
        should(presses).be.below(60, `${String(name)} is not reached`);
        await page.keyboard.press('Tab');
      }
    };
    await reach(/^Skip to the phones$/);
    await page.keyboard.press('Enter');
    await reach(/^Accept, No name, \+1 415 555 0123$/);
    await page.keyboard.press('Enter');
    await phoneOf(page, '+1 415 555 0123').locator('.badge', { hasText: 'accepted' }).waitFor();
    await reach(/^Wipe this phone, /);
    await page.keyboard.press('Space');
    await page.getByRole('alert').filter({ hasText: 'Wiped' }).waitFor();
    await phoneOf(page, '+1 415 555 0123').waitFor({ state: 'detached' });
    should(await page.evaluate(() => document.activeElement?.tagName)).equal('ARTICLE');
    await reach(/^\+1 day$/);
    await page.keyboard.press('Enter');
    await page.getByText('1 day ahead').waitFor();
    await reach(/^Reset the simulator…$/);
    await page.keyboard.press('Enter');
    await reach(/^Cancel$/);
    await page.keyboard.press('Escape');
    should(await page.evaluate(() => document.activeElement?.id)).equal('reset');
  });

  it('keeps the chosen tab over a reload', async () => {
    const page = await bench().open();
    await page.getByRole('tab', { name: /^Contacts/ }).click();
    await page.reload();
    await page.getByRole('tab', { name: /^Contacts/, selected: true }).waitFor();
  });

  it('works under a path of another server', async () => {
    const mount = '/red/advisor-texting/simulator';
    const server = createServer((request, response) => {
      request.url = (request.url ?? '').slice(mount.length);
      void bench().simulator.handle(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const page = await bench().open({}, `http://127.0.0.1:${String(port)}${mount}/`);
      await bench().askConsent('+14155550123');
      await page.getByRole('button', { name: /^Accept, / }).click();
      await phoneOf(page, '+1 415 555 0123').locator('.badge', { hasText: 'accepted' }).waitFor();
      await page.context().close();
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it('says when the simulator is gone, and recovers when it is back', async () => {
    const page = await bench().open();
    await bench().restart(() => page.getByText('Connection lost').waitFor());
    await bench().askConsent('+14155550123');
    await page.locator('#live[data-state=live]').waitFor();
    await phoneOf(page, '+1 415 555 0123').waitFor();
  });
});
