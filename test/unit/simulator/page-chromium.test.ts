import should from 'should';
import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';

describe('finding Chromium', () => {
  const find = async (env: Record<string, string>, ...present: string[]): Promise<string | undefined> => {
    const { findChromium } = await import('../../../scripts/programs.mjs');
    return findChromium(env, (path) => present.includes(path));
  };

  it('prefers CHROMIUM_PATH to everything else', async () => {
    should(await find({ CHROMIUM_PATH: '/opt/mine' }, '/opt/mine', '/usr/bin/chromium')).equal('/opt/mine');
  });

  it('reports a wrong CHROMIUM_PATH instead of silently using another browser', async () => {
    await find({ CHROMIUM_PATH: '/opt/gone' }, '/usr/bin/chromium').should.be.rejectedWith(
      /CHROMIUM_PATH is \/opt\/gone, but there is no such file/,
    );
  });

  it('ends a run with one sentence about a wrong CHROMIUM_PATH', () => {
    const run = `import { getPrograms } from './scripts/programs.mjs';
      getPrograms(new Set(['test/support/browser.ts']));`;
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', run], {
      cwd: join(__dirname, '..', '..', '..'),
      env: { ...process.env, CHROMIUM_PATH: '/opt/gone' },
      encoding: 'utf8',
    });
    should([status, stderr]).eql([
      1,
      'CHROMIUM_PATH is /opt/gone, but there is no such file. Correct it or unset it.\n',
    ]);
  });

  it('prefers the headless shell', async () => {
    const shell = '/usr/bin/chromium-headless-shell';
    should(await find({}, '/usr/bin/chromium', shell)).equal(shell);
  });

  it('finds it in the usual places of Linux and macOS', async () => {
    const mac = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';
    should(await find({}, '/usr/bin/chromium-browser')).equal('/usr/bin/chromium-browser');
    should(await find({}, mac)).equal(mac);
  });

  it('finds it in any folder of PATH', async () => {
    const PATH = ['/somewhere', '/nix/bin'].join(delimiter);
    should(await find({ PATH }, '/nix/bin/google-chrome')).equal('/nix/bin/google-chrome');
  });

  it('finds nothing if there is nothing', async () => {
    should(await find({ PATH: '/usr/bin' })).equal(undefined);
  });
});
