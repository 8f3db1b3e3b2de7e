import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { root } from '../../support/installation';

const parts = [
  'command',
  'examples',
  'icons',
  'lib',
  'locales',
  'nodes',
  'scripts',
  'simulator',
  'package.json',
  'tsconfig.json',
  'tsconfig.editor.json',
];

describe('the build', function () {
  this.timeout(180_000);
  let project: string;

  const build = (): { status: number | null; said: string } => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/build.mjs'], {
      cwd: project,
      encoding: 'utf8',
    });
    return { status, said: stdout + stderr };
  };

  /** Builds with one file changed (or, without `change`, missing) and restores it. */
  const buildWith = (file: string, change?: (text: string) => string): string => {
    const path = join(project, file);
    const text = readFileSync(path, 'utf8');
    if (change) writeFileSync(path, change(text));
    else rmSync(path);
    const { status, said } = build();
    writeFileSync(path, text);
    should(status).equal(1);
    said.should.match(/^The build stopped\.$/m);
    said.should.not.match(/\n\s+at /);
    return said;
  };

  before(() => {
    project = mkdtempSync(join(tmpdir(), 'advisor-texting-build-'));
    for (const part of parts) cpSync(join(root, part), join(project, part), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(project, 'node_modules'), 'dir');
  });

  after(() => {
    rmSync(project, { recursive: true, force: true });
  });

  it('succeeds, and says how much the editor has to load', () => {
    const { status, said } = build();
    said.should.match(/Built 10 nodes; [\d.]+ kB of editor code\./);
    should(status).equal(0);
  });

  it('removes from dist what a source left that was deleted or is now for the browser', () => {
    const left = ['lib/service/renamed.js', 'nodes/environment/dialog/card.js'];
    for (const file of left) {
      mkdirSync(join(project, 'dist', file, '..'), { recursive: true });
      writeFileSync(join(project, 'dist', file), '');
    }
    should(build().status).equal(0);
    left.filter((file) => existsSync(join(project, 'dist', file))).should.eql([]);
    existsSync(join(project, 'dist', 'lib', 'service', 'client.js')).should.be.true();
  });

  it('fails for a missing string of a form', () => {
    buildWith('locales/en-US/advisor-send-text.json', (text) =>
      text.replace('"schedule": "When"', '"planned": "When"'),
    ).should.match(
      /locales\/en-US\/advisor-send-text\.json \(or common\.json\) has no string label\.schedule\./,
    );
  });

  it('fails for shared dialog strings that the environment would override', () => {
    buildWith('locales/en-US/advisor-environment.json', (text) =>
      text.replace('"simulatorText":', '"variable": "Who knows", "simulatorText":'),
    ).should.match(/locales\/en-US\/advisor-environment\.json repeats badge\.variable/);
  });

  it('fails for a missing string that code uses', () => {
    buildWith('locales/en-US/advisor-request-consent.json', (text) =>
      text.replace('"askNumber"', '"askSomebody"'),
    ).should.match(/has no string sentence\.askNumber\./);
  });

  it('fails for a string, an error or a help text that one language lacks', () => {
    buildWith('locales/ja/advisor-group.json', (text) =>
      text.replace('"groupIds"', '"groupNames"'),
    ).should.match(/locales\/ja\/advisor-group\.json \(or common\.json\) has no string label\.groupIds\./);
    buildWith('locales/de/runtime.json', (text) => text.replace('"date_past"', '"date_gone"')).should.match(
      /locales\/de\/runtime\.json has no string errors\.date_past\./,
    );
    buildWith('locales/es-ES/advisor-contact.md').should.match(
      /locales\/es-ES\/advisor-contact\.md is missing/,
    );
  });

  it('fails for a missing help text', () => {
    buildWith('locales/en-US/advisor-group.md').should.match(/locales\/en-US\/advisor-group\.md is missing/);
  });

  it('fails for a missing icon', () => {
    buildWith('icons/advisor-content.svg').should.match(/icons\/advisor-content\.svg is missing/);
  });

  it('fails for a missing runtime', () => {
    buildWith('nodes/send-text/runtime.ts').should.match(/nodes\/send-text\/runtime\.ts is missing/);
  });

  it('fails for a missing line in package.json', () => {
    buildWith('package.json', (text) => text.replace(/\s*"advisor-contact": "[^"]+",/, '')).should.match(
      /package\.json: .* needs the line "advisor-contact": "dist\/nodes\/advisor-contact\.js"/,
    );
  });

  it('fails for a type that no example uses', () => {
    rmSync(join(project, 'examples'), { recursive: true });
    mkdirSync(join(project, 'examples'));
    writeFileSync(
      join(project, 'examples', 'One.json'),
      JSON.stringify([{ id: 'a', type: 'advisor-send-text' }]),
    );
    const { status, said } = build();
    should(status).equal(1);
    said.should.match(/No flow in examples\/ uses advisor-contact: add one\./);
    said.should.not.match(/uses advisor-send-text/);
    rmSync(join(project, 'examples'), { recursive: true });
    cpSync(join(root, 'examples'), join(project, 'examples'), { recursive: true });
  });
});
