import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { threats } from './threats';

const tests = join(__dirname, '..');

/** The titles of the tests in a file, as they are written there. */
const titlesIn = (file: string): string[] => {
  const path = join(tests, file);
  if (!existsSync(path)) return [];
  const found = readFileSync(path, 'utf8').matchAll(/^\s*it\(\s*(['"`])((?:\\.|(?!\1).)*)\1/gm);
  return [...found].map(([, , title = '']) => title);
};

describe('the threats', () => {
  it('are fourteen', () => {
    should(Object.keys(threats).map(Number)).deepEqual(Array.from({ length: 14 }, (_, index) => index + 1));
  });

  for (const [number, { threat, shownBy }] of Object.entries(threats)) {
    it(`${number}, ${threat}, has the tests that would tell of it`, () => {
      const missing = Object.entries(shownBy).flatMap(([file, wanted]) => {
        const titles = titlesIn(file);
        return wanted
          .filter((part) => !titles.some((title) => title.includes(part)))
          .map((part) => `${file}: ${part}`);
      });
      should(missing).deepEqual([]);
    });
  }
});
