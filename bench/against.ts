import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../test/support/installation';
import { figureOf, interleaved, microsOf, nameOf, ratioOf, type Row } from './figures';
import type { Compared, Surroundings } from './part';
import type { Cost } from './red';

/** Another commit, built with its own build and the current dependencies. */
export interface OtherCommit {
  readonly name: string;
  readonly folder: string;
  remove(): void;
}

const run = (command: string, args: readonly string[], cwd: string): string =>
  execFileSync(command, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();

export const buildCommit = (commit: string): OtherCommit => {
  const name = run('git', ['rev-parse', '--short', '--verify', `${commit}^{commit}`], root);
  const temporary = mkdtempSync(join(tmpdir(), 'advisor-texting-against-'));
  const remove = (): void => {
    rmSync(temporary, { recursive: true, force: true });
  };
  try {
    const folder = join(temporary, 'sources');
    const archive = join(temporary, 'sources.tar');
    mkdirSync(folder);
    run('git', ['archive', '--output', archive, name], root);
    run('tar', ['-xf', archive, '-C', folder], root);
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    run(process.execPath, [join(folder, 'scripts', 'build.mjs')], folder);
    return { name, folder, remove };
  } catch (fault) {
    remove();
    throw fault;
  }
};

/** CPU per item here and at the other commit, and the ratio. */
export const rowAgainst = (
  measurement: string,
  count: number,
  { ours, other }: { readonly ours: readonly Cost[]; readonly other: readonly Cost[] },
  commit: string,
): Row => ({
  measurement,
  unit: 'µs',
  ours: figureOf(microsOf(ours, count)),
  against: { what: commit, figure: figureOf(microsOf(other, count)) },
  ratio: ratioOf(microsOf(ours, count), microsOf(other, count)),
});

/** The same work here and at the other commit, in alternating rounds, in two Node-RED instances side by side. */
export const compare = async (
  { each, count, works, prepare }: Compared,
  { service, versions, rounds, start }: Surroundings,
  { name, folder }: Pick<OtherCommit, 'name' | 'folder'>,
): Promise<readonly Row[]> => {
  const rows: Row[] = [];
  for (const version of versions) {
    const [own, others] = [await start(version), await start(version, { product: folder })];
    for (const node of [own, others]) await prepare?.(node);
    for (const [title, work] of Object.entries(works)) {
      const sides = { ours: () => work(own), other: () => work(others) };
      // Warms up compiled code and connections.
      await interleaved(2, sides);
      const texts = each === 'text' ? 2 * count * rounds : 0;
      const { ours = [], other = [] } = await service.counting({ texts }, () => interleaved(rounds, sides));
      const measurement = `${nameOf(version)}, ${title}: CPU per ${each}`;
      rows.push(rowAgainst(measurement, count, { ours, other }, name));
    }
  }
  return rows;
};
