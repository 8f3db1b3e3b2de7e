import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { at } from './build/folders.mjs';

const require = createRequire(import.meta.url);
const mocha = join(require.resolve('mocha/package.json'), '..', 'bin', 'mocha.js');

/**
 * `npm run instances`: three Node-REDs on one PostgreSQL are killed, stopped and cut off while they work. `-- 500 1000
 * 5` runs 500 waits, 1,000 texts and five faults; `INSTANCES_SEED` repeats a run, `INSTANCES_VERSIONS=5` runs one
 * version of Node-RED.
 */
const [waits, texts, faults] = process.argv.slice(2);

const { status } = spawnSync(process.execPath, [mocha, '--exit', 'test/real/instances.ts'], {
  cwd: at(),
  env: {
    ...process.env,
    ...(waits && { INSTANCES_WAITS: waits }),
    ...(texts && { INSTANCES_TEXTS: texts }),
    ...(faults && { INSTANCES_FAULTS: faults }),
  },
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
