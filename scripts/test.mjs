import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { at } from './build/folders.mjs';
import { getPrograms } from './programs.mjs';
import { allFiles, chosenFiles, lastTimes, reachedFrom, slowFirst, timesFile } from './test/files.mjs';
import { runAll, titlesOf } from './test/pool.mjs';

const require = createRequire(import.meta.url);
const given = process.argv.slice(2);
const options = new Set(given.filter((word) => word.startsWith('--')));
const words = given.filter((word) => !word.startsWith('--'));
const isPart = words.length > 0;
/** `npm run test:long` has everything on; with `--rest` it runs what `npm test` leaves out. */
const isRest = options.has('--rest');
const isLong = options.has('--long') || isRest;

const began = Date.now();
const counts = { passed: 0, failed: 0, leftOut: 0 };
const failures = [];
const reasons = new Map();

const clock = () => {
  const seconds = Math.floor((Date.now() - began) / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
};

const bin = (name, file) => join(require.resolve(`${name}/package.json`), '..', file);

/** Runs a script with this Node. */
const run = (args) =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd: at(), stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (said += text));
    child.once('close', (code) => resolve({ ok: code === 0, said }));
  });

const fail = (failure) => {
  failures.push(failure);
  counts.failed += 1;
};

const check = async (title, args) => {
  const from = Date.now();
  const { ok, said } = await run(args);
  console.log(`${ok ? '✔' : '✖'} ${title} (${((Date.now() - from) / 1000).toFixed(1)} s)`);
  if (ok) counts.passed += 1;
  else {
    console.log(said.trimEnd());
    fail(`${title}:\n${said.trimEnd()}`);
  }
  return ok;
};

/** A test with `skip` or `only` is a failure. */
const forbidLeavingOut = () => {
  const pattern = /\b(describe|it|context|this)\s*\.\s*(only|skip)\s*\(|\bx(it|describe)\s*\(/;
  for (const file of allFiles())
    if (pattern.test(readFileSync(at(file), 'utf8')))
      fail(`${file} leaves tests out: remove .only and .skip.`);
};

const git = (...args) => execFileSync('git', args, { cwd: at(), encoding: 'utf8', stdio: 'pipe' });

/** The files that differ from the branch's upstream, or without one from the last commit; without a branch, everything. */
const changedFiles = () => {
  try {
    const upstream = git('for-each-ref', '--format=%(upstream)', git('symbolic-ref', 'HEAD').trim()).trim();
    const base = git('merge-base', 'HEAD', upstream || 'HEAD').trim();
    const changed = git('diff', '--name-only', '--diff-filter=d', '-z', base);
    return `${changed}${git('ls-files', '--others', '--exclude-standard', '-z')}`.split('\0').filter(Boolean);
  } catch {
    return ['.'];
  }
};

/** A linter that uses types takes a minute for all files: `npm test` checks those that have changed, the long run all. */
const checkLooks = async () => {
  const [what, files] = isLong ? ['', ['.']] : [' of what has changed', changedFiles()];
  if (files.length === 0) {
    console.log('No file has changed: lint and format are left to `npm run test:long`.');
    return;
  }
  const others = '--no-error-on-unmatched-pattern';
  await check(`lint${what}`, [bin('eslint', 'bin/eslint.js'), '--no-warn-ignored', others, ...files]);
  const options = ['--check', '--log-level', 'warn', '--ignore-unknown', others];
  await check(`format${what}`, [bin('prettier', 'bin/prettier.cjs'), ...options, ...files]);
};

const checks = async () => {
  if (!isRest) {
    // The native compiler, in a tenth of the time. The linter needs the one before it.
    const tsc = bin('typescript-7', 'bin/tsc');
    await check('types', [tsc, '-p', at('test', 'tsconfig.json')]);
    await check('types in the editor', [tsc, '-p', at('tsconfig.editor.json')]);
    await check('docs are up to date', [at('scripts', 'docs.mjs'), '--check']);
  }
  await checkLooks();
};

/** Each commit explores other cases, and finds the same again on every machine. */
const seedOfCommit = () => {
  try {
    return String(parseInt(git('rev-parse', '--short=7', 'HEAD').slice(0, 7), 16));
  } catch {
    return '1';
  }
};

const env = {
  ADVISOR_TEXTING_BUILT: '1',
  TEST_SEED: process.env.TEST_SEED ?? (isLong ? seedOfCommit() : '1'),
  ADVISOR_TEXTING_TESTS: isLong ? 'long' : 'short',
  FORCE_COLOR: '0',
};

/** What to run of each file; with `--rest`, the tests that are not in `npm test`. */
const ordersFor = async (files) => {
  if (!isRest) return files.map((file) => ({ file }));
  const [all, short] = await Promise.all([
    titlesOf(files, env),
    titlesOf(files, { ...env, ADVISOR_TEXTING_TESTS: 'short' }),
  ]);
  return files
    .map((file) => {
      const ran = new Set(short.get(file));
      return { file, titles: all.get(file).filter((title) => !ran.has(title)) };
    })
    .filter(({ titles }) => titles.length > 0);
};

/**
 * Leaves out the files that need what this machine lacks; in CI that is a failure, unless the system cannot have it.
 */
const thoseThatCanRun = async (files) => {
  const lacking = getPrograms(new Set(files.flatMap((file) => [...reachedFrom(file)])));
  const whyNot = (file) => lacking.find(({ usedBy }) => reachedFrom(file).has(usedBy));
  const without = files.filter((file) => whyNot(file) !== undefined);
  if (without.length === 0) return files;
  const titles = await titlesOf(without, env);
  for (const file of without) {
    const { reason, isForeign } = whyNot(file);
    if (process.env.CI && !isForeign) fail(`${file} cannot run: ${reason}.`);
    else {
      reasons.set(file, reason);
      counts.leftOut += titles.get(file).length;
    }
  }
  return files.filter((file) => !without.includes(file));
};

const indented = (text) => text.trimEnd().replace(/^/gm, '    ');

const runTests = async (orders) => {
  const times = lastTimes();
  const took = [];
  await runAll(orders, {
    // Most files wait as long as they compute: for a disk, a browser, another process.
    jobs: 2 * availableParallelism(),
    env,
    failed: ({ file, failed }) => console.log(`✖ ${file}\n${indented(failed)}`),
    ended: (file, { passed, failures: failed, skipped, reasons: why, milliseconds, cpu }, said) => {
      counts.passed += passed;
      counts.leftOut += skipped.length;
      if (skipped.length > 0) for (const reason of why) reasons.set(file, reason);
      for (const failure of failed) fail(`${file}\n${indented(failure)}`);
      took.push([file, milliseconds]);
      if (!isLong) times[file] = Math.round(milliseconds);
      const mark = failed.length === 0 ? '✔' : '✖';
      console.log(
        `${took.length} of ${orders.length}, ${clock()} ${mark} ${file}: ${passed} passed` +
          `${failed.length > 0 ? `, ${failed.length} failed` : ''} (${(milliseconds / 1000).toFixed(1)} s` +
          `${cpu === undefined ? '' : `, ${cpu.toFixed(1)} s of CPU`})`,
      );
      if (said.trim() !== '' && (failed.length > 0 || isLong)) console.log(indented(said));
    },
  });
  mkdirSync(dirname(timesFile), { recursive: true });
  writeFileSync(timesFile, JSON.stringify(times, null, 2));
  if (took.length > 10) {
    const slowest = took.sort(([, a], [, b]) => b - a).slice(0, 10);
    console.log('\nThe ten slowest:');
    for (const [file, milliseconds] of slowest)
      console.log(`  ${(milliseconds / 1000).toFixed(1).padStart(6)} s  ${file}`);
  }
};

const main = async () => {
  const files = chosenFiles(words);
  if (files.length === 0) {
    fail(`No test file is at ${words.join(', ')}: give a folder such as texting, or a file.`);
    return;
  }
  if (!isPart) forbidLeavingOut();
  if (!(await check('build', [at('scripts', 'build.mjs')]))) return;
  const orders = await ordersFor(slowFirst(await thoseThatCanRun(files)));
  await Promise.all([isPart ? undefined : checks(), runTests(orders)]);
};

await main();
if (failures.length > 0) console.log(`\nWhat failed:\n\n${failures.join('\n\n')}`);
for (const [file, reason] of reasons) console.log(`Left out of ${file}: ${reason}`);
const left = counts.leftOut > 0 ? `, ${counts.leftOut} left out` : '';
console.log(`\n${counts.passed} passed, ${counts.failed} failed${left}`);
process.exitCode = counts.failed === 0 ? 0 : 1;
