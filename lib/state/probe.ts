import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';

/**
 * Reads the whole database and writes to it once, in a process of its own: on pages that were damaged the native code
 * may crash or run for ever, which must not happen to the runtime.
 */
const reading = `
  const [lmdb, file] = process.argv.slice(1);
  const root = require(lmdb).open(file, { encoding: 'binary', noSync: true, overlappingSync: false, maxDbs: 32 });
  let bytes = 0;
  for (const name of [...root.getKeys()]) {
    const table = root.openDB(name, { encoding: 'binary' });
    for (const { value } of table.getRange()) bytes += value.length;
  }
  const probe = root.openDB('probe', { encoding: 'binary' });
  probe.putSync('probe', Buffer.alloc(1));
  probe.removeSync('probe');
  root.close().then(() => process.stdout.write('sound'));
`;

const longestStart = 10_000;
const slowestRead = 5_000_000;

export const isSound = (file: string): Promise<boolean> =>
  new Promise((resolve) => {
    let said = '';
    const child = spawn(process.execPath, ['-e', reading, '--', require.resolve('lmdb'), file], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, ELECTRON_RUN_AS_NODE: '1', NODE_OPTIONS: '' },
      timeout: longestStart + Math.ceil((statSync(file).size / slowestRead) * 1000),
      killSignal: 'SIGKILL',
      windowsHide: true,
    });
    child.stdout.on('data', (part: Buffer) => (said += part.toString()));
    // Where no process may be started there is no telling, and refusing a good database would lose everything in it.
    child.on('error', () => {
      resolve(true);
    });
    child.on('close', () => {
      resolve(said === 'sound');
    });
  });
