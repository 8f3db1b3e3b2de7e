import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import should from 'should';
import { root, tarball } from '../../support/installation';

type Card = Record<string, { test?: boolean } & Record<string, unknown>>;

/** The flow library's scorecard for the packed package. */
describe('the scorecard of node-red-dev', function () {
  this.timeout(180_000);
  let card: Card;

  before(() => {
    const folder = mkdtempSync(join(tmpdir(), 'advisor-texting-card-'));
    try {
      execFileSync('tar', ['-xzf', tarball(), '-C', folder]);
      const unpacked = join(folder, 'package');
      const output = join(folder, 'card.json');
      const command = join(root, 'node_modules', 'node-red-dev', 'bin', 'run');
      // It always exits with 0: only its report counts.
      execFileSync(
        process.execPath,
        ['-r', join(__dirname, 'scorecard-network.cjs'), command, 'validate', '-p', unpacked, '-o', output],
        { stdio: ['ignore', 'pipe', 'pipe'] },
      );
      card = JSON.parse(readFileSync(output, 'utf8')) as Card;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  const checks: Readonly<Record<string, string>> = {
    P01: 'has a licence',
    P03: 'names its repository',
    P04: 'has a scoped name',
    P05: 'has the keyword node-red',
    P06: 'says which versions of Node-RED it runs on',
    P07: 'runs on the Node that Node-RED needs at least',
    P08: 'has a name of its own',
    N01: 'has types of its own',
    N02: 'uses every node in an example',
    D01: 'has few dependencies',
    D02: 'depends on nothing known to cause trouble',
    D03: 'accepts the latest version of each dependency',
  };
  for (const [id, what] of Object.entries(checks)) {
    it(`${what} (${id})`, () => {
      should(card[id]?.test).be.true();
    });
  }

  it('finds all our nodes in the examples', () => {
    // All but the environment, which is not a flow node.
    should(card['N02']?.['nodes']).have.length(readdirSync(join(root, 'nodes')).length - 1);
  });

  it('has no other line, and none that is not green', () => {
    const lines = Object.entries(card).filter(([, { test }]) => test !== undefined);
    should(lines.map(([id]) => id).sort()).eql(Object.keys(checks).sort());
    should(lines.filter(([, { test }]) => test !== true)).eql([]);
  });
});
