import { spawnSync } from 'node:child_process';
import { at } from './build/folders.mjs';

/** `npm run soak -- 120 50` is two hours of 50 texts a second; ten minutes of 200 unless told. */
const { status } = spawnSync(
  process.execPath,
  ['--import', 'tsx', at('test', 'proof', 'soak.ts'), ...process.argv.slice(2)],
  { cwd: at(), stdio: 'inherit', env: { ...process.env, ADVISOR_TEXTING_BUILT: '1' } },
);
process.exitCode = status ?? 1;
