import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { at } from './build/folders.mjs';

const require = createRequire(import.meta.url);
const mocha = join(require.resolve('mocha/package.json'), '..', 'bin', 'mocha.js');

/** `npm run weeks -- 500` lives through as many weeks, each with its seed; 100 unless told. */
const weeks = process.argv[2] ?? '100';

const { status } = spawnSync(process.execPath, [mocha, 'test/proof/week.test.ts'], {
  cwd: at(),
  env: { WEEK_SEED: String(randomInt(2 ** 31)), ...process.env, WEEKS: weeks },
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
