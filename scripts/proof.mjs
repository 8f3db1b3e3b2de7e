import { spawnSync } from 'node:child_process';
import { at } from './build/folders.mjs';

/**
 * Runs a file of test/proof that takes long. `npm run soak -- 120 50` is two hours of 50 texts a second, ten minutes of 200
 * unless told; `npm run sidebar -- 1000000 5` is the sidebar with a million waits in Node-RED 5, 100,000 in both unless told.
 */
const [name, ...rest] = process.argv.slice(2);
const { status } = spawnSync(
  process.execPath,
  ['--import', 'tsx', at('test', 'proof', `${name}.ts`), ...rest],
  { cwd: at(), stdio: 'inherit', env: { ...process.env, ADVISOR_TEXTING_BUILT: '1' } },
);
process.exitCode = status ?? 1;
