import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
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

  it('bundles no memory into a node that the modules loaded later have once more', () => {
    const folder = join(project, 'dist', 'nodes');
    const kept = readdirSync(folder)
      .filter((name) => name.endsWith('.js'))
      .flatMap((name) => {
        const bundle = readFileSync(join(folder, name), 'utf8');
        return [...bundle.matchAll(/processMemory\("(\w+)"/g)].map(([, what]) => [name, what]);
      });
    should(kept).eql([['advisor-environment.js', 'listeners']]);
  });

  it('leaves out no module that another requires', () => {
    const dist = join(project, 'dist');
    const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.js'),
    );
    const missing = files.flatMap((name) =>
      Array.from(
        readFileSync(join(dist, name), 'utf8').matchAll(/require\("(\.[^"]*)"\)/g),
        ([, path = '']) => path,
      )
        .map((path) => join(dist, name, '..', path))
        .filter((path) => ![`${path}.js`, path, join(path, 'index.js')].some(existsSync)),
    );
    files.length.should.be.above(100);
    missing.should.eql([]);
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

  describe('of a project with many faults', () => {
    let said: string;

    before(() => {
      const change = (file: string, from: string | RegExp, to: string): void => {
        const path = join(project, file);
        const text = readFileSync(path, 'utf8');
        const changed = text.replace(from, to);
        should(changed).not.equal(text);
        writeFileSync(path, changed);
      };
      change('locales/en-US/advisor-send-text.json', '"schedule": "When"', '"planned": "When"');
      change(
        'locales/en-US/advisor-environment.json',
        '"simulatorText":',
        '"variable": "Who knows", "simulatorText":',
      );
      change('locales/en-US/advisor-request-consent.json', '"askNumber"', '"askSomebody"');
      change('locales/ja/advisor-group.json', '"groupIds"', '"groupNames"');
      change('locales/de/runtime.json', '"date_past"', '"date_gone"');
      change('package.json', /\s*"advisor-contact": "[^"]+",/, '');
      for (const file of [
        'locales/es-ES/advisor-contact.md',
        'locales/en-US/advisor-group.md',
        'icons/advisor-content.svg',
        'nodes/send-text/runtime.ts',
      ])
        rmSync(join(project, file));
      rmSync(join(project, 'examples'), { recursive: true });
      mkdirSync(join(project, 'examples'));
      writeFileSync(
        join(project, 'examples', 'One.json'),
        JSON.stringify([{ id: 'a', type: 'advisor-send-text' }]),
      );
      const result = build();
      should(result.status).equal(1);
      said = result.said;
    });

    it('fails with a sentence, without a stack trace', () => {
      said.should.match(/^The build stopped\.$/m);
      said.should.not.match(/\n\s+at /);
    });

    for (const [what, ...sentences] of [
      [
        'a missing string of a form',
        /locales\/en-US\/advisor-send-text\.json \(or common\.json\) has no string label\.schedule\./,
      ],
      [
        'shared dialog strings that the environment would override',
        /locales\/en-US\/advisor-environment\.json repeats badge\.variable/,
      ],
      ['a missing string that code uses', /has no string sentence\.askNumber\./],
      [
        'a string, an error or a help text that one language lacks',
        /locales\/ja\/advisor-group\.json \(or common\.json\) has no string label\.groupIds\./,
        /locales\/de\/runtime\.json has no string errors\.date_past\./,
        /locales\/es-ES\/advisor-contact\.md is missing/,
      ],
      ['a missing help text', /locales\/en-US\/advisor-group\.md is missing/],
      ['a missing icon', /icons\/advisor-content\.svg is missing/],
      ['a missing runtime', /nodes\/send-text\/runtime\.ts is missing/],
      [
        'a missing line in package.json',
        /package\.json: .* needs the line "advisor-contact": "dist\/nodes\/advisor-contact\.js"/,
      ],
      ['a type that no example uses', /No flow in examples\/ uses advisor-contact: add one\./],
    ] as const)
      it(`fails for ${what}`, () => {
        for (const sentence of sentences) said.should.match(sentence);
        said.should.not.match(/uses advisor-send-text/);
      });
  });
});
