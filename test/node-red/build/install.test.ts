import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { addTestPort, install, root, tarball } from '../../support/installation';
import { type RealRed, startRed } from '../../support/node-red';

const types = readdirSync(join(root, 'nodes')).map((name) => `advisor-${name}`);
const heavy = ['axios', 'zod', 'undici', 'lmdb', 'libphonenumber-js'];

describe('the packed package', function () {
  this.timeout(180_000);
  let installed: string;

  before(() => {
    installed = mkdtempSync(join(tmpdir(), 'advisor-texting-bare-'));
    install(installed, tarball());
    addTestPort(installed);
  });
  after(() => {
    rmSync(installed, { recursive: true, force: true });
  });

  it('contains what a user needs and nothing else', () => {
    const paths = execFileSync('tar', ['-tzf', tarball()], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .map((path) => path.replace('package/', ''));
    const unwanted = paths.filter(
      (path) =>
        !/^(dist\/|examples\/.*\.json$|docs\/(nodes\/)?[^/]+\.md$|docs\/scaling\/[^/]+\.yaml$|(package\.json|README\.md|CHANGELOG\.md|LICENSE)$)/.test(
          path,
        ),
    );
    unwanted.should.eql([]);
    paths.filter((path) => /\.(ts|map|tsbuildinfo)$/.test(path)).should.eql([]);
    for (const type of types) {
      paths.should.containEql(`dist/nodes/${type}.js`);
      paths.should.containEql(`dist/nodes/${type}.html`);
      paths.should.containEql(`dist/nodes/locales/en-US/${type}.json`);
      paths.should.containEql(`dist/nodes/locales/en-US/${type}.html`);
    }
  });

  for (const version of [4, 5] as const) {
    describe(`installed with --ignore-scripts into a bare Node-RED ${version.toString()}`, () => {
      let userDir: string;
      let red: RealRed;

      before(async () => {
        userDir = mkdtempSync(join(tmpdir(), 'advisor-texting-bare-'));
        cpSync(installed, userDir, { recursive: true });
        red = await startRed({ version, isWhole: true, userDir });
      });

      after(async () => {
        await red.close();
        rmSync(userDir, { recursive: true, force: true });
      });

      it('lists all types without an error', async () => {
        const sets = (await red.request('GET', 'nodes')).json as {
          module: string;
          types: string[];
          enabled: boolean;
          err?: unknown;
        }[];
        const ours = sets.filter((set) => set.module === '@advisor-texting/node-red');
        ours
          .flatMap((set) => set.types)
          .sort()
          .should.eql(types);
        ours.filter((set) => !set.enabled || set.err !== undefined).should.eql([]);
      });

      it('starts without a warning or error of ours', () => {
        red.lines.filter((line) => /\[(warn|error)\]/.test(line) && /advisor/i.test(line)).should.eql([]);
      });

      it('gives the editor forms, help and strings of every type', async () => {
        const html = (await red.request('GET', 'nodes', undefined, { accept: 'text/html' })).text;
        for (const type of types) {
          html.should.containEql(`RED.nodes.registerType('${type}'`);
          html.should.containEql(`data-template-name="${type}"`);
          html.should.containEql(`data-help-name="${type}"`);
          const path = `locales/${encodeURIComponent('@advisor-texting/node-red')}/${type}?lng=en-US`;
          const strings = (await red.request('GET', path)).json as { title: string };
          strings.title.should.be.a.String().and.not.be.empty();
        }
      });

      it('loads no heavy module while no flow uses it', async () => {
        const scripts = await red.scripts();
        should(scripts.some((path) => path.includes('advisor-texting'))).be.true();
        const inUserDir = scripts.filter((path) => path.includes(join(userDir, 'node_modules')));
        const loaded = heavy.filter((name) =>
          inUserDir.some((path) => path.includes(`/node_modules/${name}/`)),
        );
        loaded.should.eql([]);
      });
    });
  }
});
