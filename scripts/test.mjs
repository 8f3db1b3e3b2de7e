import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ensureChromium } from './browser.mjs';
import { at } from './build/folders.mjs';
import { ensurePostgres } from './postgres.mjs';
import { ensureStrace } from './strace.mjs';

const require = createRequire(import.meta.url);
/** `npm test -- test/auth/vault.test.ts` runs only this file, with all the checks around it. */
const files = process.argv.length > 2 ? process.argv.slice(2) : ['test/**/*.test.ts'];
const counts = { passed: 0, failed: 0 };

const bin = (name, file) => join(require.resolve(`${name}/package.json`), '..', file);
const eslint = bin('eslint', 'bin/eslint.js');
const prettier = bin('prettier', 'bin/prettier.cjs');
const tsc = bin('typescript', 'bin/tsc');
const mocha = bin('mocha', 'bin/mocha.js');

/** Runs a script with this Node. Unless `aloud`, its output is kept for later, so that two can run at once. */
const run = (args, { aloud = false, env = {} } = {}) =>
  new Promise((resolve) => {
    const started = Date.now();
    const child = spawn(process.execPath, args, {
      cwd: at(),
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let said = '';
    const hear = (chunk) => {
      said += chunk;
      if (aloud) process.stdout.write(chunk);
    };
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', hear);
    child.once('close', (code) => {
      resolve({ ok: code === 0, said, seconds: ((Date.now() - started) / 1000).toFixed(1) });
    });
  });

const check = async (title, args) => {
  const { ok, said, seconds } = await run(args);
  counts[ok ? 'passed' : 'failed'] += 1;
  return { ok, report: `${ok ? '' : `${said.trimEnd()}\n`}${ok ? '✔' : '✖'} ${title} (${seconds} s)` };
};

/** A test with `skip` or `only` is a failure. */
const leftOut = () =>
  readdirSync(at('test'), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) =>
      /\b(describe|it|context|this)\s*\.\s*(only|skip)\s*\(|\bx(it|describe)\s*\(/.test(
        readFileSync(path, 'utf8'),
      ),
    )
    .map((path) => `${path.slice(at().length + 1)} leaves tests out: remove .only and .skip.`);

const checks = async () => {
  const results = [
    await check('lint', [eslint, '.']),
    await check('format', [prettier, '--check', '--log-level', 'warn', '.']),
    await check('types of what runs', [tsc, '-p', 'test/tsconfig.json']),
    await check('types of the editor', [tsc, '-p', 'tsconfig.editor.json']),
    await check('docs are up to date', [at('scripts', 'docs.mjs'), '--check']),
  ];
  return results.map(({ report }) => report).join('\n');
};

const numberBefore = (word, said) => Number(new RegExp(`^\\s+(\\d+) ${word}\\b`, 'm').exec(said)?.[1] ?? 0);

const tests = async () => {
  // Much of a test's time is spent waiting for a Node-RED or a page, so two files run at once.
  const args = [mocha, '--parallel', '--jobs', '2', '--forbid-only', '--forbid-pending', ...files];
  const { ok, said } = await run(args, {
    aloud: true,
    // Where the settings name no language, Node-RED and its nodes use the system's.
    env: { ADVISOR_TEXTING_BUILT: '1', FORCE_COLOR: '0', LC_ALL: 'C.UTF-8' },
  });
  const failing = numberBefore('failing', said);
  counts.passed += numberBefore('passing', said);
  // A mocha that could not start has counted no failures.
  counts.failed += ok ? 0 : Math.max(1, failing);
};

const main = async () => {
  const complaints = leftOut();
  for (const complaint of complaints) console.log(`✖ ${complaint}`);
  counts.failed += complaints.length;
  const built = await check('build', [at('scripts', 'build.mjs')]);
  console.log(built.report);
  if (!built.ok) return;
  ensureChromium();
  ensureStrace();
  ensurePostgres();
  // Mocha's output appears as it comes; that of the checks follows when they are done.
  const [report] = await Promise.all([checks(), tests()]);
  console.log(report);
};

await main();
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exitCode = counts.failed === 0 ? 0 : 1;
