import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import should from 'should';
import { ownCodes, serviceCodes } from '../../../lib/service/errors';
import { serviceChecks } from '../../support/command/setup';
import { npm, root } from '../../support/installation';
import { pagesOfDocs } from '../../support/docs/pages';

const linksIn = (text: string): string[] => [
  ...[...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target),
  ...[...text.matchAll(/\b(?:src|srcset|href)="([^"]+)"/g)].map(([, target = '']) => target),
];

const withoutCode = (text: string): string => text.replaceAll(/```[\s\S]*?```|`[^`\n]*`/g, '');

/** As GitHub makes them from headings. */
const anchorsIn = (text: string): string[] =>
  [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

const repository = 'advisor-texting/node-red';
const ownAddress = new RegExp(
  `^https://(github\\.com/${repository}/blob|raw\\.githubusercontent\\.com/${repository})/main/`,
);

/** The file of this repository that a page links to. */
const fileOf = (page: string, path: string): string => {
  if (path === '') return page;
  return ownAddress.test(path)
    ? join(root, decodeURI(path.replace(ownAddress, '')))
    : join(dirname(page), decodeURI(path));
};

const isDead = (page: string, target: string): boolean => {
  if (target.startsWith('https://') && !ownAddress.test(target)) return false;
  const [path = '', anchor] = target.split('#');
  const file = fileOf(page, path);
  if (!existsSync(file)) return true;
  return anchor !== undefined && !anchorsIn(readFileSync(file, 'utf8')).includes(anchor);
};

describe('the docs', () => {
  it('have no dead link', () => {
    const dead = pagesOfDocs().flatMap((page) =>
      linksIn(withoutCode(readFileSync(page, 'utf8')))
        .filter((target) => isDead(page, target))
        .map((target) => `${relative(root, page)}: ${target}`),
    );
    dead.should.eql([]);
  });

  it('have a README whose links and pictures work on the page of the flow library, too', () => {
    // It looks for relative ones in a branch `master`, and leaves a `srcset` as it is.
    linksIn(withoutCode(readFileSync(join(root, 'README.md'), 'utf8')))
      .filter((target) => !target.startsWith('https://'))
      .should.eql([]);
  });

  it('link from the README, the index and the list of nodes to every page', () => {
    const from = ['README.md', join('docs', 'README.md'), join('docs', 'nodes.md')].map((name) =>
      join(root, name),
    );
    const reached = from.flatMap((page) =>
      linksIn(readFileSync(page, 'utf8')).map((target) => fileOf(page, target)),
    );
    pagesOfDocs()
      .filter((page) => !reached.includes(page) && !from.includes(page))
      .map((page) => relative(root, page))
      .should.eql([]);
  });

  it('explain every error code', () => {
    const page = readFileSync(join(root, 'docs', 'errors.md'), 'utf8');
    for (const code of [...ownCodes, ...Object.keys(serviceCodes)]) page.should.containEql(`| \`${code}\` |`);
  });

  it('say what creates contacts, in the help of both texting nodes and in the checklist', () => {
    for (const page of [
      'locales/en-US/advisor-send-text.md',
      'locales/en-US/advisor-request-consent.md',
      'docs/production.md',
    ])
      readFileSync(join(root, page), 'utf8').should.match(/\*\*creates a contact\*\*.* CRM/);
  });

  it('have a checklist that names every check, and numbers its steps', () => {
    const page = readFileSync(join(root, 'docs', 'production.md'), 'utf8');
    const steps = [...page.matchAll(/^\| (\d+) +\|.*\| (.+?) +\|$/gm)];
    steps.map(([, number]) => Number(number)).should.eql(steps.map((_, index) => index + 1));
    const ticks = steps.map(([, , by = '']) => by).join(' ');
    for (const check of serviceChecks) ticks.should.containEql(`\`${check}\``);
  });

  it('name every event of the audit log', () => {
    const routes = readFileSync(join(root, 'nodes', 'environment', 'admin-routes.ts'), 'utf8');
    const events = [...routes.matchAll(/audit: '(\w+)'/g)].map(([, event = '']) => event);
    const [, named = ''] =
      /every action of a user is logged: (.*), with the user/.exec(
        readFileSync(join(root, 'docs', 'operations.md'), 'utf8'),
      ) ?? [];
    should(
      named
        .replaceAll(/advisor-texting|[.`]/g, '')
        .split(', ')
        .sort(),
    ).eql([...new Set(events)].sort());
  });

  it('name only npm scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    const named = pagesOfDocs().flatMap((page) =>
      [...readFileSync(page, 'utf8').matchAll(/npm run ([\w-]+)/g)].map(([, name = '']) => name),
    );
    named.filter((name) => !(name in scripts)).should.eql([]);
  });

  it('name only tests and proofs that exist', () => {
    const files = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).map(
      (file) => `/${file.replaceAll('\\', '/')}`,
    );
    const isTest = (name: string): boolean =>
      files.some((file) => file.includes(`/${name}/`) || file.endsWith(`/${name}.test.ts`));
    const proofs = readFileSync(join(root, 'scripts', 'proof.mjs'), 'utf8');
    const namedAfter = (command: string): string[] =>
      pagesOfDocs().flatMap((page) =>
        [...readFileSync(page, 'utf8').matchAll(new RegExp(`${command} -- ([\\w/ -]+)`, 'g'))].map(
          ([, names = '']) => names,
        ),
      );
    const tests = namedAfter('npm test').flatMap((names) => names.trim().split(' '));
    should(tests.length).be.above(10);
    tests.filter((name) => !isTest(name)).should.eql([]);
    namedAfter('npm run proof')
      .map((names) => names.split(' ', 1)[0] ?? '')
      .filter((name) => !new RegExp(`^ {2}'?${name}'?: \\{$`, 'm').test(proofs))
      .should.eql([]);
  });

  it('are short: no page over 15 kB, all together under 150 kB', () => {
    const sizes = pagesOfDocs()
      .filter((page) => page.startsWith(join(root, 'docs')))
      .map((page) => [relative(root, page), statSync(page).size] as const);
    sizes.filter(([, size]) => size > 15_000).should.eql([]);
    sizes.reduce((sum, [, size]) => sum + size, 0).should.be.below(150_000);
  });

  it('are in the package without their pictures, which npm and GitHub show from the repository', function () {
    this.timeout(30_000);
    const [{ files }] = JSON.parse(npm(['pack', '--dry-run', '--json', '--ignore-scripts'], root)) as [
      { files: { path: string }[] },
    ];
    const paths = files.map(({ path }) => path);
    should(paths).containEql('README.md').and.containEql('docs/nodes.md');
    paths.filter((path) => path.endsWith('.png')).should.eql([]);
  });
});
