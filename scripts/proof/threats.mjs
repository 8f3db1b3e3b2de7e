import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { require as load } from 'tsx/cjs/api';

const root = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(import.meta.url);
const { defences } = load('../../test/proof/defences.ts', import.meta.url);
const { threats } = load('../../test/proof/threats.ts', import.meta.url);

/**
 * `npm run proof -- threats 2 8` removes the defences against these, `threats lease key` those with such names; without
 * either, all.
 */
const given = process.argv.slice(2);
const isWanted = (number, { what }) =>
  given.length === 0 || given.some((each) => each === number || (/\D/.test(each) && what.includes(each)));

const notCopied = new Set(['.git', 'node_modules', 'dist', 'bench']);
const copy = mkdtempSync(join(tmpdir(), 'advisor-texting-threats-'));
cpSync(root, copy, {
  recursive: true,
  filter: (path) => !notCopied.has(basename(path)) && !basename(path).startsWith('.data'),
});
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction');
process.on('exit', () => rmSync(copy, { recursive: true, force: true }));

/** Milliseconds: without its defence, a test may run forever. */
const patience = 300_000;

const run = (args) =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      cwd: copy,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: patience,
      killSignal: 'SIGKILL',
    });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => (said += text));
    child.once('close', (code, signal) => resolve({ code, said, isEndless: signal === 'SIGKILL' }));
  });

const mocha = join(require.resolve('mocha/package.json'), '..', 'bin', 'mocha.js');
const escaped = (text) => text.replaceAll(/[$()*+./?[\\\]^{|}-]/g, '\\$&');
/** A pattern for a title as it is written; a placeholder of a template matches anything. */
const patternOf = (title) =>
  title
    .split(/\$\{[^}]*\}/)
    .map(escaped)
    .join('.*');

/** How many of the named tests passed and failed. */
const test = async ({ needsBuild = false, shownBy }) => {
  if (needsBuild) {
    const { code, said } = await run([join(copy, 'scripts', 'build.mjs')]);
    if (code !== 0) throw new Error(`It does not build:\n${said}`);
  }
  const report = join(copy, 'report.json');
  const sum = { passed: 0, failed: 0 };
  for (const [file, titles] of Object.entries(shownBy)) {
    const args = ['--reporter', 'json', '--reporter-option', `output=${report}`, '--exit'];
    rmSync(report, { force: true });
    const { said, isEndless } = await run([
      mocha,
      ...args,
      '--grep',
      titles.map(patternOf).join('|'),
      join('test', file),
    ]);
    if (isEndless) {
      sum.failed += 1;
      continue;
    }
    try {
      const { stats } = JSON.parse(readFileSync(report, 'utf8'));
      sum.passed += stats.passes;
      sum.failed += stats.failures;
    } catch {
      throw new Error(`${file} does not run:\n${said}`);
    }
  }
  return sum;
};

/** Runs `work` while the defence is removed. */
const without = async ({ file, changes }, work) => {
  const path = join(copy, file);
  const whole = readFileSync(path, 'utf8');
  const changed = changes.reduce((text, [defence, instead]) => {
    if (text.split(defence).length !== 2) throw new Error(`${file} holds this not exactly once: ${defence}`);
    return text.replace(defence, () => instead);
  }, whole);
  writeFileSync(path, changed);
  try {
    return await work();
  } finally {
    writeFileSync(path, whole);
  }
};

const passing = new Map();
/** Whether the tests pass with all defences; several defences may share tests. */
const doPass = async (defence) => {
  const key = JSON.stringify(defence.shownBy);
  if (!passing.has(key)) passing.set(key, await test(defence));
  const { passed, failed } = passing.get(key);
  return passed > 0 && failed === 0;
};

let undefended = 0;
for (const [number, all] of Object.entries(defences)) {
  const against = all.filter((defence) => isWanted(number, defence));
  if (against.length === 0) continue;
  console.log(`${number}. ${threats[number].threat}`);
  for (const defence of against) {
    let verdict;
    try {
      if (!(await doPass(defence))) verdict = 'its tests do not pass with it';
      else if ((await without(defence, () => test(defence))).failed === 0)
        verdict = 'nothing fails without it';
    } catch (fault) {
      verdict = fault.message;
    }
    if (verdict) undefended += 1;
    console.log(`  ${verdict ? '✖' : '✔'} ${defence.what} (${defence.file})${verdict ? `: ${verdict}` : ''}`);
  }
}
process.exitCode = undefended > 0 ? 1 : 0;
