import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { commandOf, root, type Version } from '../test/support/installation';
import { buildCommit, compare, type OtherCommit } from './against';
import { isReached } from './figures';
import { optionsOf, usualRounds, type Options } from './options';
import type { Part, Surroundings } from './part';
import { axios } from './parts/axios';
import { growth } from './parts/growth';
import { instances } from './parts/instances';
import { latency } from './parts/latency';
import { list } from './parts/list';
import { million } from './parts/million';
import { send } from './parts/send';
import { sidebar } from './parts/sidebar';
import { size } from './parts/size';
import { start } from './parts/start';
import { stream } from './parts/stream';
import { tokens } from './parts/tokens';
import { waits } from './parts/waits';
import { startBenchRed, type BenchRed } from './red';
import { scalingOf } from './scaling';
import { startService } from './service';
import { pageOf, tableOf, withTable, type Machine, type Measured, type Results } from './table';

const parts: readonly Part[] = [
  send,
  latency,
  list,
  waits,
  million,
  instances,
  stream,
  tokens,
  start,
  size,
  sidebar,
  growth,
  axios,
];

const help = `Usage: npm run bench [-- [NAME…] [options]]

  NAME            ${parts.map(({ name }) => name).join(', ')}; all of them when none is named
  --rounds N      rounds of each measurement (default ${String(usualRounds)}); some take fewer or more
  --scale N       multiplies the counts (default 1)
  --versions V    4, 5 or 5,4 (default)
  --heap N        limits V8's heap in Node-RED to so many megabytes
  --profile DIR   writes CPU profiles of what runs in Node-RED
  --against C     compares the CPU time with that of another commit, in alternating rounds

Only complete measurements are written down: both versions, scale 1, the usual rounds or more, no other option.`;

let options: Options;

const resultsFile = join(__dirname, 'results.json');
const document = join(root, 'docs', 'performance.md');
const scaling = join(root, 'docs', 'scaling.md');

const nodeOf = (version: Version): string =>
  execFileSync(commandOf(version).node, ['--version'], { encoding: 'utf8' }).trim().slice(1);

const commit = (): string => {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  const isChanged = git('status', '--porcelain', '--', '.', ':!bench/results.json', ':!docs') !== '';
  return `${git('rev-parse', '--short', 'HEAD')}${isChanged ? ' and changes' : ''}`;
};

const machine = (): Machine => ({
  processor: cpus()[0]?.model.trim() ?? 'unknown',
  cores: cpus().length,
  memory: `${String(Math.round(totalmem() / 2 ** 30))} GB`,
  system: `${type()} ${release().split('-')[0] ?? ''}`,
  load: loadavg()[0] ?? 0,
  nodes: `Node ${nodeOf(5)} for Node-RED 5 and ${nodeOf(4)} for 4.1`,
});

const measure = async (part: Part, other?: OtherCommit): Promise<Measured> => {
  const from = Date.now();
  const before = machine();
  const sources = commit();
  const running: BenchRed[] = [];
  const service = await startService();
  const around: Surroundings = {
    service,
    rounds: (part.roundsFor ?? ((asked) => asked))(options.rounds),
    versions: options.versions,
    scaled: (count) => Math.max(1, Math.round(count * options.scale)),
    async start(version, where) {
      const { profile, heap } = options;
      const node = await startBenchRed(version, service.url, { ...where, profile, heap });
      running.push(node);
      return node;
    },
  };
  try {
    const compared = other && part.compared?.(around);
    const rows = await (compared ? compare(compared, around, other) : part.run(around));
    return {
      name: part.name,
      title: part.title,
      measuredAt: new Date(from).toISOString(),
      commit: sources,
      machine: before,
      rounds: around.rounds,
      seconds: (Date.now() - from) / 1000,
      rows,
    };
  } finally {
    for (const node of running) await node.close();
    service.close();
  }
};

const earlier = (): Results =>
  existsSync(resultsFile) ? (JSON.parse(readFileSync(resultsFile, 'utf8')) as Results) : { parts: [] };

/** New measurements replace earlier ones; the rest stays. */
const merged = (before: Results, now: readonly Measured[]): Results => ({
  parts: parts.flatMap(({ name }) => {
    const found = now.find((part) => part.name === name) ?? before.parts.find((part) => part.name === name);
    return found ?? [];
  }),
});

const write = (results: Results): void => {
  writeFileSync(resultsFile, `${JSON.stringify(results, null, 2)}\n`);
  writeFileSync(document, withTable(readFileSync(document, 'utf8'), pageOf(results)));
  writeFileSync(scaling, withTable(readFileSync(scaling, 'utf8'), scalingOf(results), 'figures'));
};

const measureAll = async (other: OtherCommit | undefined): Promise<void> => {
  const measured: Measured[] = [];
  for (const part of options.parts) {
    console.log(`\n${part.name}: ${part.title}`);
    const found = await measure(part, other);
    measured.push(found);
    console.log(tableOf({ parts: [found] }));
    if (options.isComplete) write(merged(earlier(), [found]));
  }
  const missed = measured.flatMap(({ rows }) => rows.filter((row) => isReached(row) === false));
  for (const row of missed) console.log(`Not reached: ${row.measurement}`);
};

const main = async (): Promise<void> => {
  options = optionsOf(process.argv.slice(2), parts);
  if (options.isHelp) {
    console.log(help);
    return;
  }
  if (options.profile !== undefined) mkdirSync(options.profile, { recursive: true });
  const other = options.against === undefined ? undefined : buildCommit(options.against);
  try {
    await measureAll(other);
  } finally {
    other?.remove();
  }
};

main().catch((fault: unknown) => {
  console.error(fault instanceof Error ? fault.message : fault);
  process.exitCode = 1;
});
