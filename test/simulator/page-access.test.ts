import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { AxeResults, NodeResult } from 'axe-core';
import should from 'should';
import type { Page } from 'playwright-core';
import { type Bench, benchForEach, phoneOf } from '../support/simulator-page';

/** Ink of the paper's own colour: axe takes that for hidden text and only calls it undecided. */
const isInvisible = ({ any }: NodeResult): boolean =>
  any.some(({ data }) => (data as { messageKey?: string } | null)?.messageKey === 'equalRatio');

const violations = async (page: Page): Promise<string[]> => {
  await page.evaluate(await readFile(require.resolve('axe-core/axe.min.js'), 'utf8'));
  const results = await page.evaluate<AxeResults>('axe.run()');
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
  const deliveryDate = bench.simulator.clock.now() + 3_600_000;
  await bench.send('+12025550100', 'Your review is on Thursday at 10.');
  await bench.send('+12025550100', 'Happy birthday!', { scheduleDelivery: true, deliveryDate });
  bench.simulator.faults.add({ code: 'rate_limited', next: 3 });
};

describe("access to the simulator's page", () => {
  const bench = benchForEach();

  for (const colorScheme of ['light', 'dark'] as const) {
    describe(`in the ${colorScheme} theme`, () => {
      it('has nothing for axe to complain about when nothing has arrived', async () => {
        const page = await bench().open({ colorScheme });
        await page.getByRole('heading', { name: 'Nothing has arrived yet' }).waitFor();
        should(await violations(page)).eql([]);
      });

      it('has nothing for axe to complain about with phones in every state and all tools open', async () => {
        const page = await bench().open({ colorScheme });
        await fill(bench());
        await phoneOf(page, '+1 415 555 0123').waitFor();
        await page.getByText('Make something go wrong').click();
        await page.getByText('Account settings').click();
        should(await violations(page)).eql([]);
        await page.getByRole('button', { name: 'Reset the simulator' }).click();
        should(await violations(page)).eql([]);
      });

      for (const name of ['Messages', 'Contacts']) {
        it(`has nothing for axe to complain about in ${name}`, async () => {
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

  it('keeps the chosen tab over a reload', async () => {
    const page = await bench().open();
    await page.getByRole('tab', { name: /^Contacts/ }).click();
    await page.reload();
    await page.getByRole('tab', { name: /^Contacts/, selected: true }).waitFor();
  });

  it('fits a real phone without scrolling sideways', async () => {
    const page = await bench().open({ viewport: { width: 360, height: 740 } });
    await fill(bench());
    await phoneOf(page, '+1 415 555 0123').waitFor();
    should(await page.evaluate(() => document.documentElement.scrollWidth)).be.belowOrEqual(360);
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

  it('says when the simulator is gone, and is live again when it is back', async () => {
    const page = await bench().open();
    await bench().restart(() => page.getByText('Connection lost').waitFor());
    await bench().askConsent('+14155550123');
    await page.locator('#live[data-state=live]').waitFor();
    await phoneOf(page, '+1 415 555 0123').waitFor();
  });
});
