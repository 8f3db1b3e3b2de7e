import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import should from 'should';
import { itInLongRun } from '../support/extent';
import { root } from '../support/installation';
import { defences } from './defences';
import { threats, type Titles } from './threats';

const tests = join(__dirname, '..');

/** The titles of the tests in a file, as they are written there. */
const titlesIn = (file: string): string[] => {
  const path = join(tests, file);
  if (!existsSync(path)) return [];
  const found = readFileSync(path, 'utf8').matchAll(/^\s*it(?:InLongRun)?\(\s*(['"`])((?:\\.|(?!\1).)*)\1/gm);
  return [...found].map(([, , title = '']) => title);
};

const missingIn = (shownBy: Titles): string[] =>
  Object.entries(shownBy).flatMap(([file, wanted]) => {
    const titles = titlesIn(file);
    return wanted
      .filter((part) => !titles.some((title) => title.includes(part)))
      .map((part) => `${file}: ${part}`);
  });

const times = (text: string, part: string): number => text.split(part).length - 1;

/**
 * `npm run proof -- threats` removes all defences and sees the tests fail; this keeps the list in step with the tests.
 */
describe('the threats', () => {
  it('have a script that sees a test fail without its defence', async function () {
    this.timeout(300_000);
    const script = join(root, 'scripts', 'proof', 'threats.mjs');
    const { stdout } = await promisify(execFile)(process.execPath, [script, '3'], { cwd: root });
    should(stdout).match(/^3\. parameters smuggled.*\n {2}✔ a repeated parameter is ignored/);
  });

  for (const [number, { threat, shownBy, open = '' }] of Object.entries(threats)) {
    it(`${number}, ${threat}, has tests that would notice it`, () => {
      should(missingIn(shownBy)).deepEqual([]);
    });

    it(`${number} has defences with tests that fail without them, or says what is missing`, () => {
      const against = defences[Number(number)] ?? [];
      if (against.length === 0) should(open).not.equal('');
      for (const { shownBy: tests } of against) {
        should(missingIn(tests)).deepEqual([]);
        should(Object.keys(tests)).not.be.empty();
      }
    });
  }

  itInLongRun('have defences that occur in the sources exactly once', () => {
    const lost = Object.values(defences).flatMap((against) =>
      against.flatMap(({ what, file, changes }) => {
        const source = readFileSync(join(root, file), 'utf8');
        return changes.filter(([defence]) => times(source, defence) !== 1).map(() => `${file}: ${what}`);
      }),
    );
    should(lost).deepEqual([]);
  });
});
