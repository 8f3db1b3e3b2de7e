import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { describeInLongRun } from '../../support/extent';
import { launchBrowser, type TestBrowser } from '../../support/browser';
import { root } from '../../support/installation';
import { type RealRed, startRed } from '../../support/node-red';
import { pagesOfDocs } from '../../support/docs/pages';

const list = () => import('../../../scripts/pictures/list.mjs');
const stage = () => import('../../../scripts/pictures/stage.mjs');
type Stage = Awaited<ReturnType<Awaited<ReturnType<typeof stage>>['openStage']>>;
type Pictures = Awaited<ReturnType<typeof list>>['pictures'];
const folder = join(root, 'docs', 'pictures');

describe('the pictures of the docs', function () {
  this.timeout(180_000);

  it('are those on the list, in both themes, and each is shown somewhere', async () => {
    const { pictures, themes } = await list();
    const wanted = pictures.flatMap(({ name }) => themes.map((theme) => `${name}-${theme}.png`)).sort();
    readdirSync(folder).sort().should.eql(wanted);
    const text = pagesOfDocs()
      .map((page) => readFileSync(page, 'utf8'))
      .join('\n');
    wanted.filter((file) => !text.includes(`pictures/${file}`)).should.eql([]);
  });

  it('are small enough for a slow connection', () => {
    const bytes = readdirSync(folder).map((file) => statSync(join(folder, file)).size);
    bytes.reduce((sum, size) => sum + size, 0).should.be.below(1_500_000);
  });

  describeInLongRun('can still be taken', () => {
    let red: RealRed;
    let browser: TestBrowser;
    let editor: Stage;
    let pictures: Pictures;

    before(async () => {
      ({ pictures } = await list());
      const { flows } = await import('../../../scripts/pictures/flows.mjs');
      const { begin, openStage } = await stage();
      [red, browser] = await Promise.all([startRed({ version: 5, isWhole: true, flows }), launchBrowser()]);
      editor = await openStage(browser, red, 'dark');
      await begin(editor);
    });

    after(async () => {
      await browser.close();
      await red.close();
    });

    it('of every dialog and page in them', async () => {
      const { show } = await stage();
      for (const picture of pictures) await show(editor, picture);
    });

    it('and not of something that no longer exists', async () => {
      const { show } = await stage();
      editor.page.setDefaultTimeout(1_000);
      const [first] = pictures;
      should.exist(first);
      if (first) await show(editor, { ...first, shows: ['.a-dialog-that-is-gone'] }).should.be.rejected();
    });
  });
});
