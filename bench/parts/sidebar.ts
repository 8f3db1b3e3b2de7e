import type { Page } from 'playwright-core';
import {
  beginWaits,
  hourly,
  pageMemory,
  processMemory,
  SidebarPage,
  waitNodes,
  waitNumber,
} from '../../test/support/editor/sidebar';
import { openEditor } from '../../test/support/editor/setup';
import { launchBrowser } from '../../test/support/browser';
import type { Version } from '../../test/support/installation';
import { startRed, type FlowNode, type RealRed } from '../../test/support/node-red';
import { environment } from '../flows';
import type { Service } from '../service';
import { figureOf, nameOf, ratioOf, type Row } from '../figures';
import type { Part } from '../part';

const few = 1000;

const flowsFor = ({ url }: Service): FlowNode[] => [
  { id: 'tab', type: 'tab', label: 'Bench' },
  environment('env', url, { name: 'Bench' }),
  ...waitNodes(hourly),
];

interface Seen {
  /** Milliseconds. */
  readonly show: number;
  readonly page: number;
  readonly number: number;
  readonly digits: number;
  readonly cancel: number;
  /** Megabytes of the process that all of this has added, and of the page. */
  readonly process: number;
  readonly heap: number;
}

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const from = performance.now();
  await work();
  return performance.now() - from;
};

/** One round: the tab is shown, a page turned, somebody searched for and cancelled. */
const look = async (red: RealRed, page: Page, last: number): Promise<Seen> => {
  const sidebar = new SidebarPage(page, 'Bench');
  const waits = sidebar.part('waits');
  const search = waits.locator('input');
  await page.evaluate(`RED.sidebar.show('info')`);
  const before = processMemory(red);
  const show = await timed(async () => {
    const read = page.waitForResponse(/env\/waits/);
    await sidebar.show();
    await read;
    await waits.locator('li').first().waitFor();
  });
  const turned = await timed(async () => {
    await sidebar.named(waits, 'Next page').click();
    await waits.getByText('21 – 40').waitFor();
  });
  const found = (text: string, phone: string): Promise<number> =>
    timed(async () => {
      await search.fill(text);
      const answer = await page.waitForResponse((response) =>
        response.url().includes(encodeURIComponent(text)),
      );
      await answer.finished();
      if (phone !== '') await sidebar.wait(phone).waitFor();
    });
  const number = await found(waitNumber(last), waitNumber(last));
  const cancel = await timed(() => sidebar.confirm(sidebar.wait(waitNumber(last)), 'Cancel'));
  // Digits are found by scanning the first 20,000 at most: whether they are among them is chance.
  const digits = await found('0007', '');
  await search.fill('');
  await waits.getByText('1 – 20').waitFor();
  return {
    show,
    page: turned,
    number,
    digits,
    cancel,
    process: processMemory(red) - before,
    heap: await pageMemory(page),
  };
};

const measure = async (
  version: Version,
  service: Service,
  count: number,
  rounds: number,
): Promise<Record<'few' | 'many', Seen[]>> => {
  const [red, browser] = await Promise.all([
    startRed({ version, isWhole: true, flows: [] }),
    launchBrowser(),
  ]);
  try {
    // Credentials come only with a deploy.
    await red.deploy(flowsFor(service));
    const { page } = await openEditor(red, browser);
    page.setDefaultTimeout(120_000);
    await beginWaits(red, 0, few);
    // What is loaded once is loaded.
    await look(red, page, few - 1);
    const some: Seen[] = [];
    for (let round = 0; round < rounds; round++) some.push(await look(red, page, few - 2 - round));
    await beginWaits(red, few, count);
    const many: Seen[] = [];
    for (let round = 0; round < rounds; round++) many.push(await look(red, page, count - 1 - round));
    return { few: some, many };
  } finally {
    await browser.close();
    await red.close();
  }
};

const measured = {
  show: ['from the tab being shown until its first page is', 'ms'],
  page: ['until the next page is shown', 'ms'],
  number: ['until a number is found (0.3 s of it after the last key)', 'ms'],
  digits: ['until some digits are searched for (0.3 s of it after the last key)', 'ms'],
  cancel: ['until somebody is cancelled and gone', 'ms'],
  process: ['memory that this adds to the process (RssAnon)', 'MB'],
  heap: ['memory of the page', 'MB'],
} as const;

export const sidebar: Part = {
  name: 'sidebar',
  title: 'The sidebar with 100,000 waits',
  async run({ service, rounds, scaled, versions }) {
    const count = Math.max(scaled(100_000), 2 * few);
    const rows: Row[] = [];
    for (const version of versions) {
      const seen = await measure(version, service, count, rounds);
      for (const [name, [what, unit]] of Object.entries(measured) as [
        keyof Seen,
        readonly [string, string],
      ][]) {
        const of = (side: readonly Seen[]): number[] => side.map((each) => each[name]);
        rows.push({
          measurement: `${nameOf(version)}, ${count.toLocaleString('en-US')} waits: ${what}`,
          unit,
          ours: figureOf(of(seen.many)),
          against: { what: `with ${few.toLocaleString('en-US')} waits`, figure: figureOf(of(seen.few)) },
          ...(unit === 'ms' && { ratio: ratioOf(of(seen.many), of(seen.few)) }),
        });
      }
    }
    return rows;
  },
};
