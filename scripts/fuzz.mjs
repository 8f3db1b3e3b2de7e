import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { at } from './build/folders.mjs';

const require = createRequire(import.meta.url);
const mocha = join(require.resolve('mocha/package.json'), '..', 'bin', 'mocha.js');

/** `npm run fuzz -- 20000` makes as many answers of the service, of its token endpoint, and messages; a million unless told. */
const runs = process.argv[2] ?? '1000000';

const { status } = spawnSync(process.execPath, [mocha, 'test/proof/fuzz.test.ts'], {
  cwd: at(),
  env: { FUZZ_SEED: String(randomInt(2 ** 31)), ...process.env, FUZZ_RUNS: runs },
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
