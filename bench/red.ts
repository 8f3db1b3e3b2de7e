import { cpSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { freshUserDir, type Version } from '../test/support/installation';
import { type RealRed, startRed } from '../test/support/node-red';
import { benchFlows } from './flows';
import type { StartOptions } from './part';

/** Milliseconds of processor and of wall time. */
export interface Cost {
  readonly cpu: number;
  readonly wall: number;
}

export interface BenchRed {
  /** Makes the driver in Node-RED carry out a command; rejects if it could not be measured. */
  order<T = Cost>(order: string, details?: Readonly<Record<string, unknown>>): Promise<T>;
  readonly red: RealRed;
  restart(): Promise<void>;
  close(): Promise<void>;
}

interface Told {
  readonly result?: unknown;
  readonly fault?: string;
}

const within = 10 * 60_000;
/** Megabytes: what V8 takes for new objects on a small machine. */
const smallSemiSpace = 4;

/** A real Node-RED with the packed package and the flows to be measured. */
export const startBenchRed = async (
  version: Version,
  url: string,
  {
    profile,
    database,
    product,
    heap,
  }: StartOptions & {
    readonly profile?: string | undefined;
    /** Megabytes of V8's heap; without a limit, it collects no garbage while the machine has room. */
    readonly heap?: number | undefined;
  } = {},
): Promise<BenchRed> => {
  const userDir = freshUserDir();
  if (product !== undefined) {
    const installed = join(userDir, 'node_modules', '@advisor-texting', 'node-red', 'dist');
    // Its files are links to those of the other installations: removed, not overwritten.
    rmSync(installed, { recursive: true });
    cpSync(join(product, 'dist'), installed, { recursive: true });
  }
  if (database !== undefined)
    symlinkSync(dirname(require.resolve('pg/package.json')), join(userDir, 'node_modules', 'pg'));
  for (const file of ['bench-driver.js', 'bench-driver.html']) {
    cpSync(join(__dirname, 'nodes', file), join(userDir, 'nodes', file));
  }
  const limits =
    heap === undefined ? [] : [`--max-old-space-size=${heap}`, `--max-semi-space-size=${smallSemiSpace}`];
  const red = await startRed({
    version,
    isWhole: true,
    userDir,
    env: { NODE_OPTIONS: ['--expose-gc', ...limits].join(' ') },
  });
  await red.deploy(benchFlows(url, database));
  let asked = 0;
  return {
    red,
    async order<T>(order: string, details: Readonly<Record<string, unknown>> = {}) {
      asked += 1;
      const payload = { order, ...details, ...(profile !== undefined && { profile }) };
      const from = red.lines.length;
      const answered = async (): Promise<Told | undefined> => {
        await red.send('orders', { payload });
        return (await red.messages('results', asked, within))[asked - 1];
      };
      const ended = red.logged(/\[process ended\]/, { from, wait: within }).then((): Told => {
        return { fault: `Node-RED ended.\n${red.lines.slice(-20).join('\n')}` };
      });
      // Neither the second one nor its result matters.
      ended.catch(() => undefined);
      const told = await Promise.race([answered(), ended]);
      if (told?.fault !== undefined || told === undefined) {
        throw new Error(`"${order}" could not be measured: ${told?.fault ?? 'no answer'}`);
      }
      return told.result as T;
    },
    async restart() {
      await red.restart();
    },
    async close() {
      await red.close();
      rmSync(userDir, { recursive: true, force: true });
    },
  };
};
