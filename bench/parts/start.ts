import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addTestPort, freshUserDir, type Version } from '../../test/support/installation';
import { startRed } from '../../test/support/node-red';
import { figureOf, interleaved, nameOf, type Row } from '../figures';
import type { Part, Surroundings } from '../part';

const heavy = ['axios', 'zod', 'undici', 'lmdb', 'libphonenumber-js'];

interface Started {
  readonly cpu: number;
  /** Scripts of the user directory's packages that were loaded. */
  readonly scripts: readonly string[];
}

const startOnce = async (version: Version, userDir: string): Promise<Started> => {
  const red = await startRed({ version, isWhole: true, userDir, flows: [] });
  try {
    const { user, system } = await red.cpu();
    const scripts = (await red.scripts()).filter((path) => path.includes(join(userDir, 'node_modules')));
    return { cpu: (user + system) / 1000, scripts };
  } finally {
    await red.close();
  }
};

const heavyIn = ({ scripts }: Started): number => {
  const isLoaded = (name: string): boolean => scripts.some((path) => path.includes(`/node_modules/${name}/`));
  if (!isLoaded('@advisor-texting/node-red')) throw new Error('What Node-RED has loaded could not be seen.');
  return heavy.filter(isLoaded).length;
};

const affinity = (...args: string[]): string =>
  execFileSync('taskset', ['--pid', '--cpu-list', ...args, String(process.pid)], { encoding: 'utf8' });

/** Pins new processes to one core, if the system can do that, so that their threads do not wait for each other. */
const onOneCore = async <T>(work: (isSo: boolean) => Promise<T>): Promise<T> => {
  let cores: string;
  try {
    cores = affinity().split(':').at(-1)?.trim() ?? '';
    affinity(/\d+$/.exec(cores)?.[0] ?? '');
  } catch {
    return work(false);
  }
  try {
    return await work(true);
  } finally {
    affinity(cores);
  }
};

const measured = async (
  { versions, rounds }: Surroundings,
  isOnOneCore: boolean,
): Promise<readonly Row[]> => {
  const rows: Row[] = [];
  const bare = mkdtempSync(join(tmpdir(), 'advisor-texting-bare-'));
  addTestPort(bare);
  const installed = freshUserDir();
  try {
    for (const version of versions) {
      const where = nameOf(version);
      const sides = {
        ours: () => startOnce(version, installed),
        without: () => startOnce(version, bare),
      };
      await interleaved(1, sides);
      const { ours = [], without = [] } = await interleaved(rounds, sides);
      const cpu = (starts: readonly Started[]): number[] => starts.map((each) => each.cpu);
      const added = cpu(ours).map((value, index) => value - (cpu(without)[index] ?? Number.NaN));
      const how = isOnOneCore ? ', on one core' : '';
      rows.push(
        {
          measurement: `${where}: CPU added to its start by the package, unused${how}`,
          unit: 'ms',
          ours: figureOf(added),
          against: { what: 'without the package', figure: figureOf(cpu(without)) },
          goal: { of: 'ours', below: 30 },
        },
        {
          measurement: `${where}: heavy modules loaded by then: ${heavy.join(', ')}`,
          unit: '',
          ours: figureOf(ours.map(heavyIn)),
          goal: { of: 'ours', atMost: 0, everyRound: true },
        },
      );
    }
  } finally {
    for (const folder of [bare, installed]) rmSync(folder, { recursive: true, force: true });
  }
  return rows;
};

/** The start of Node-RED with the package installed and unused, and without it. */
export const start: Part = {
  name: 'start',
  title: 'Node-RED start with the package installed and unused',
  // A single pair of starts differs by as much as the effect: the median of 120 is accurate to two or three ms.
  roundsFor: (asked) => 24 * asked,
  run: (around) => onOneCore((isSo) => measured(around, isSo)),
};
