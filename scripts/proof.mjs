import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { at } from './build/folders.mjs';
import { getPrograms } from './programs.mjs';
import { allFiles, reachedFrom } from './test/files.mjs';

const require = createRequire(import.meta.url);
const mocha = join(require.resolve('mocha/package.json'), '..', 'bin', 'mocha.js');

const passes = (args, env = {}) =>
  spawnSync(process.execPath, args, {
    cwd: at(),
    stdio: 'inherit',
    env: { ...process.env, ADVISOR_TEXTING_TESTS: 'long', ...env },
  }).status === 0;

/** Gets what these files need; returns false if it is missing. */
const isReady = (files) => getPrograms(new Set(files.flatMap((file) => [...reachedFrom(file)]))).length === 0;

/** Whether test files pass with a seed: the one in `TEST_SEED`, else a fresh one, which is printed. */
const seeded = (files, env = {}) => {
  if (!isReady(files)) return false;
  const { TEST_SEED = String(randomInt(2 ** 31)) } = process.env;
  console.log(`TEST_SEED=${TEST_SEED}`);
  return passes([mocha, '--timeout', '0', ...files], { ...env, TEST_SEED });
};

const script = (file, args) => isReady([file]) && passes(['--import', 'tsx', at(file), ...args]);

const withGeneratedCases = () =>
  allFiles().filter((file) => readFileSync(at(file), 'utf8').includes("'fast-check'"));

/** What each shows, how long it takes on two quiet cores, what can follow its name, and how it is run. */
const proofs = {
  'crash-images': {
    shows: 'a power cut at any moment loses nothing that was on record (strace)',
    takes: '5 minutes',
    arguments: '[images: 5000]; TEST_SEED repeats a run',
    run: (images = '5000') => seeded(['test/unit/state/power-cut.test.ts'], { CRASH_IMAGES: images }),
  },
  instances: {
    shows: 'three Node-REDs on one PostgreSQL lose and repeat nothing when killed, stopped and cut off',
    takes: '30 minutes',
    arguments: '[waits texts faults]; TEST_SEED repeats a run, INSTANCES_VERSIONS=5 takes one version',
    run: (waits, texts, faults) =>
      isReady(['test/proof/instances.ts']) &&
      passes([mocha, '--exit', 'test/proof/instances.ts'], {
        ...(waits && { INSTANCES_WAITS: waits }),
        ...(texts && { INSTANCES_TEXTS: texts }),
        ...(faults && { INSTANCES_FAULTS: faults }),
      }),
  },
  fuzz: {
    shows: 'every answer of the service and of its token endpoint, and every message, comes to an outcome',
    takes: '30 minutes',
    arguments: '[cases: 1000000]; TEST_SEED repeats a batch',
    run: (cases = '1000000') => seeded(['test/proof/fuzz.test.ts'], { FUZZ_RUNS: cases }),
  },
  weeks: {
    shows: 'weeks with faults, kills, deploys and clocks that are set: nothing twice, nothing lost',
    takes: '7 minutes',
    arguments:
      '[seeds: 1000]; TEST_SEED repeats from one; what finds something is kept in test/proof/seeds.json',
    run: (seeds = '1000') => seeded(['test/proof/week.test.ts'], { WEEKS: seeds }),
  },
  models: {
    shows: 'all tests with generated cases pass with others',
    takes: '20 minutes',
    arguments: '[times: 20]; TEST_SEED repeats one',
    run: (times = '20') => Array.from({ length: Number(times) }).every(() => seeded(withGeneratedCases())),
  },
  'guard-kills': {
    shows: 'kills around texts with a key, held texts and blocks send nothing twice',
    takes: '10 minutes',
    arguments: '[kills of each version: 10]; TEST_SEED repeats a run',
    run: (kills = '10') => seeded(['test/node-red/guard-kills.test.ts'], { GUARD_KILLS: kills }),
  },
  sidebar: {
    shows: 'everything in the sidebar, by mouse and keyboard, for each as they may, with very many waits',
    takes: '10 minutes',
    arguments: '[waits: 100000] [versions: 5,4] [texts a second: 300]',
    run: (...args) => script('test/proof/sidebar.ts', args),
  },
  soak: {
    shows: 'texts under load with failures, deploys and kills: ledgers agree, memory stays within bounds',
    takes: '11 minutes',
    arguments: '[minutes: 10] [texts a second: 200]',
    run: (...args) => script('test/proof/soak.ts', args),
  },
  telemetry: {
    shows: 'a tracer beside us exports no secret, text, number or name (needs a network)',
    takes: '2 minutes',
    arguments: '[package of the tracer]',
    run: (...args) => script('test/proof/telemetry.ts', args),
  },
  threats: {
    shows: 'each defence, taken out of a copy of the sources, makes a test fail',
    takes: '2 hours',
    arguments: '[numbers of threats, or words of defences]',
    run: (...args) => passes([at('scripts', 'proof', 'threats.mjs'), ...args]),
  },
};

const [name, ...rest] = process.argv.slice(2);
if (name === undefined || proofs[name] === undefined) {
  if (name !== undefined) console.log(`There is no proof called ${name}.\n`);
  console.log('npm run proof -- NAME [arguments]\n');
  for (const [each, proof] of Object.entries(proofs))
    console.log(`  ${each.padEnd(13)} ${proof.shows}; ${proof.takes}\n${' '.repeat(16)}${proof.arguments}`);
  process.exitCode = name === undefined ? 0 : 1;
} else process.exitCode = proofs[name].run(...rest) ? 0 : 1;
