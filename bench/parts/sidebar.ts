import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { openEditor } from '../../test/editor/support';
import { launchBrowser } from '../../test/support/browser';
import type { Version } from '../../test/support/installation';
import { startRed, type RealRed } from '../../test/support/node-red';
import { figureOf, megabyte, nameOf, ratioOf, type Row } from '../figures';
import type { Part } from '../part';

const phoneOf = (n: number): string => `+1202${String(n).padStart(7, '0')}`;
const perMessage = 10_000;
const few = 1000;

const flows = [
  { id: 'tab', type: 'tab', label: 'Bench' },
  { id: 'env', type: 'advisor-environment', name: 'Bench', service: 'simulator' },
  { id: 'in', type: 'test-port', z: 'tab', name: 'in', x: 100, y: 60, wires: [['wait']] },
  {
    id: 'wait',
    type: 'advisor-check-consent',
    z: 'tab',
    environment: 'env',
    mode: 'wait',
    // What is measured is the sidebar, and not the simulator that answers polls beside it.
    pollEvery: 3600,
    pollFor: 3600,
    thenEvery: 3600,
    x: 300,
    y: 60,
    wires: [[], [], []],
  },
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

/** Of the process alone: pages of the store's file, which the system can drop at any time, are not counted. */
const anonymous = (red: RealRed): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(join('/proc', String(red.pid), 'status'), 'utf8'))?.[1]) / 1024;

const waiting = async (red: RealRed): Promise<number> => {
  const { json } = await red.request('GET', 'advisor-texting/env/waits?pageSize=1');
  return (json as { pageInfo: { totalRecord: number } }).pageInfo.totalRecord;
};

const begin = async (red: RealRed, from: number, to: number): Promise<void> => {
  const due = (await waiting(red)) + to - from;
  for (let first = from; first < to; first += perMessage) {
    const length = Math.min(perMessage, to - first);
    await red.send('in', { phone: Array.from({ length }, (_, n) => phoneOf(first + n)) });
  }
  while ((await waiting(red)) < due) await new Promise((resolve) => setTimeout(resolve, 200));
};

const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const from = performance.now();
  await work();
  return performance.now() - from;
};

const heapOf = async (page: Page): Promise<number> => {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize / megabyte;
};

/** One round: the tab is shown, a page turned, somebody searched for and cancelled. */
const look = async (red: RealRed, page: Page, last: number): Promise<Seen> => {
  const waits = page.locator('.advisor-side-waits');
  const search = waits.locator('input');
  const row = (phone: string): Locator => waits.locator('li', { hasText: phone });
  await page.evaluate(`RED.sidebar.show('info')`);
  const before = anonymous(red);
  const show = await timed(async () => {
    const read = page.waitForResponse(/env\/waits/);
    await page.evaluate(`RED.sidebar.show('advisor-texting')`);
    await read;
    await waits.locator('li').first().waitFor();
  });
  const turned = await timed(async () => {
    await waits.getByRole('button', { name: 'Further ones' }).click();
    await waits.getByText('21 – 40').waitFor();
  });
  const found = (text: string, phone: string): Promise<number> =>
    timed(async () => {
      await search.fill(text);
      const answer = await page.waitForResponse((response) =>
        response.url().includes(encodeURIComponent(text)),
      );
      await answer.finished();
      if (phone !== '') await row(phone).waitFor();
    });
  const number = await found(phoneOf(last), phoneOf(last));
  const cancel = await timed(async () => {
    await row(phoneOf(last)).getByRole('button', { name: 'Cancel' }).click();
    await row(phoneOf(last)).getByRole('button', { name: 'Press again to do it' }).click();
    await row(phoneOf(last)).waitFor({ state: 'detached' });
  });
  // Digits are looked for by reading, the first 20,000 at most: whether they are among them is chance.
  const digits = await found('0007', '');
  await search.fill('');
  await waits.getByText('1 – 20').waitFor();
  return {
    show,
    page: turned,
    number,
    digits,
    cancel,
    process: anonymous(red) - before,
    heap: await heapOf(page),
  };
};

const measure = async (
  version: Version,
  count: number,
  rounds: number,
): Promise<Record<'few' | 'many', Seen[]>> => {
  const [red, browser] = await Promise.all([startRed({ version, flows }), launchBrowser()]);
  try {
    const { page } = await openEditor(red, browser);
    page.setDefaultTimeout(120_000);
    await begin(red, 0, few);
    // What is loaded once is loaded.
    await look(red, page, few - 1);
    const some: Seen[] = [];
    for (let round = 0; round < rounds; round++) some.push(await look(red, page, few - 2 - round));
    await begin(red, few, count);
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
  async run({ rounds, scaled, versions }) {
    const count = Math.max(scaled(100_000), 2 * few);
    const rows: Row[] = [];
    for (const version of versions) {
      const seen = await measure(version, count, rounds);
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
