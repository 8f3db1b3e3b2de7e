import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import promises from 'node:timers/promises';
import { awaited } from './arrivals';
import { openPages } from './browser';

/** Milliseconds after which a waiting loop has run again. */
const longestRound = 500;

/** The lines of the tests in a stack trace, with their source. */
const linesIn = (stack: string): string[] =>
  [...stack.matchAll(/\(?(\/[^():]*\/test\/(?!support\/)[^():]*\.ts):(\d+):\d+\)?/g)].map(
    ([, file = '', line = '']) => {
      const source = readFileSync(file, 'utf8').split('\n')[Number(line) - 1] ?? '';
      return `${relative(process.cwd(), file)}:${line}: ${source.trim()}`;
    },
  );

/** Where a test that timed out is still waiting: for arrivals, or in a loop, which is seen when it runs again. */
const linesThatWait = async (): Promise<string[]> => {
  const stacks = new Set(Array.from(awaited, ({ stack = '' }) => stack));
  const restore: (() => void)[] = [];
  const observe = (home: object, name: string): void => {
    const original: unknown = Reflect.get(home, name);
    if (typeof original !== 'function') return;
    const observed = (...args: unknown[]): unknown => {
      stacks.add(new Error('waits').stack ?? '');
      return Reflect.apply(original, home, args) as unknown;
    };
    Reflect.set(home, name, Object.assign(observed, original));
    restore.push(() => Reflect.set(home, name, original));
  };
  for (const home of [globalThis, promises])
    for (const name of ['setImmediate', 'setTimeout']) observe(home, name);
  await new Promise((resolve) => setTimeout(resolve, longestRound));
  for (const each of restore) each();
  return [...new Set([...stacks].flatMap(linesIn))];
};

/** What a person would have seen when a test failed: a browser's own message only names what was waited for. */
export const mochaHooks = {
  async afterEach(this: Mocha.Context): Promise<void> {
    const { currentTest } = this;
    if (currentTest?.state === 'failed') {
      if (currentTest.timedOut)
        console.log(`It waited at\n  ${(await linesThatWait()).join('\n  ') || '(no line of a test)'}`);
      for (const page of openPages()) {
        const shown = await page
          .evaluate<string>(
            `([...document.querySelectorAll('.red-ui-tray')].at(-1) ?? document.body).innerText`,
          )
          .catch(String);
        console.log(`The page ${page.url()} showed:\n${shown.slice(0, 2000).replace(/^/gm, '  | ')}`);
      }
    }
    awaited.clear();
  },
};
