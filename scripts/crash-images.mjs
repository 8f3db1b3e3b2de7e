import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { at } from './build/folders.mjs';
import { ensureStrace } from './strace.mjs';

const require = createRequire(import.meta.url);
const mocha = join(require.resolve('mocha/package.json'), '..', 'bin', 'mocha.js');

/** `npm run crash-images -- 20000` opens this many files that a power cut might leave. */
const images = process.argv[2] ?? '5000';

ensureStrace();
const { status } = spawnSync(process.execPath, [mocha, 'test/state/power-cut.test.ts'], {
  cwd: at(),
  env: { ...process.env, CRASH_IMAGES: images },
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
