import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { at } from './build/folders.mjs';

const require = createRequire(import.meta.url);
const mocha = join(require.resolve('mocha/package.json'), '..', 'bin', 'mocha.js');

/** Whether these tests pass with the given variables and a seed: the one that is set, else a random one. */
const passes = (files, name, more) => {
  const { [name]: seed = String(randomInt(2 ** 31)) } = process.env;
  console.log(`${name}=${seed}`);
  const env = { ...process.env, [name]: seed, ...more };
  return spawnSync(process.execPath, [mocha, ...files], { cwd: at(), env, stdio: 'inherit' }).status === 0;
};

const modelFiles = () =>
  readdirSync(at('test'), { recursive: true })
    .map((file) => join('test', file))
    .filter((file) => file.endsWith('.test.ts') && readFileSync(at(file), 'utf8').includes("'fast-check'"));

const parts = {
  /** `count` answers of the service and of its token endpoint, and messages. */
  fuzz: (count = '1000000') => passes(['test/proof/fuzz.test.ts'], 'FUZZ_SEED', { FUZZ_RUNS: count }),
  /** `count` short lives of one process and of three, each with its own seed, and a part of that of longer ones. */
  weeks: (count = '1000') => passes(['test/proof/week.test.ts'], 'WEEK_SEED', { WEEKS: count }),
  /** `count` kills of each Node-RED around texts with a once-key, held texts and blocks. */
  'guard-kills': (count = '10') =>
    passes(['test/real/guard-kills.test.ts'], 'GUARD_KILLS_SEED', { GUARD_KILLS: count }),
  /** All tests with generated cases, `count` times. */
  models: (count = '20') =>
    Array.from({ length: Number(count) }).every(() => passes(modelFiles(), 'MODEL_SEED', {})),
};

const [part, count] = process.argv.slice(2);
process.exitCode = parts[part](count) ? 0 : 1;
