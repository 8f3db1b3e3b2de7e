import { spawnSync } from 'node:child_process';
import { at } from './build/folders.mjs';

/**
 * Runs a long test of test/proof. `npm run soak -- 120 50` runs two hours with 50 texts a second (the default is ten
 * minutes with 200); `npm run sidebar -- 1000000 5` runs the sidebar with a million waits in Node-RED 5 (the default is
 * 100,000 in both versions).
 */
const [name, ...rest] = process.argv.slice(2);
const { status } = spawnSync(
  process.execPath,
  ['--import', 'tsx', at('test', 'proof', `${name}.ts`), ...rest],
  { cwd: at(), stdio: 'inherit', env: { ...process.env, ADVISOR_TEXTING_BUILT: '1' } },
);
process.exitCode = status ?? 1;
