import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { at } from './build/folders.mjs';

const require = createRequire(import.meta.url);
const args = ['--require', require.resolve('tsx/cjs'), at('bench', 'main.ts'), ...process.argv.slice(2)];
const child = spawn(process.execPath, args, { cwd: at(), stdio: 'inherit' });
child.once('exit', (code) => {
  process.exitCode = code ?? 1;
});
