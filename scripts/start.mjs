import { spawn, spawnSync } from 'node:child_process';
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from './start/port.mjs';
import { layWorkspace } from './start/workspace.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const data = join(root, '.data');
const wanted = Number(process.env.PORT ?? 1880);

const usage = `npm start                 opens Node-RED with the nodes, the examples and the simulator
npm start -- --fresh      the same, with everything as on the first day; what was there is set aside
PORT=1990 npm start       on another port`;

const fail = (message) => {
  console.error(message);
  process.exit(1);
};

const flags = process.argv.slice(2);
const unknown = flags.find((flag) => flag !== '--fresh');
if (unknown !== undefined) fail(`There is no option ${unknown}.\n\n${usage}`);
if (!Number.isInteger(wanted) || wanted < 1 || wanted > 65535)
  fail(`PORT must be a port number.\n\n${usage}`);

/** Node-RED 5 does not start on an older Node; the development dependency `node` brings a newer one. */
const nodeBinary = () => {
  const own = join(root, 'node_modules', '.bin', process.platform === 'win32' ? 'node.cmd' : 'node');
  return existsSync(own) ? own : process.execPath;
};

const built = spawnSync(process.execPath, [join(root, 'scripts', 'build.mjs')], { stdio: 'inherit' });
if (built.status !== 0) process.exit(1);
if (flags.includes('--fresh') && existsSync(data)) {
  const aside = `${data}-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`;
  renameSync(data, aside);
  console.log(`What was there, your own flows among it, is kept in ${aside}.`);
}
const port = await freePort(wanted);
const isNew = layWorkspace(root, data);
if (port !== wanted) console.log(`Port ${wanted} is taken, so this is on ${port}.`);

const address = `http://127.0.0.1:${port}/`;
const child = spawn(
  nodeBinary(),
  [
    join(root, 'node_modules', 'node-red', 'red.js'),
    '--userDir',
    data,
    '--settings',
    join(data, 'settings.js'),
    '--port',
    String(port),
  ],
  { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, NODE_NO_WARNINGS: '1' } },
);

child.stdout.setEncoding('utf8');
let isReady = false;
child.stdout.on('data', (text) => {
  process.stdout.write(text);
  if (isReady || !text.includes('Started flows')) return;
  isReady = true;
  console.log(`
  ${isNew ? 'Ready.' : 'Ready, as you left it (npm start -- --fresh begins anew and sets this aside).'}

    Editor   ${address}
    Phones   ${address}advisor-texting/simulator/

  Everything here runs on the simulator: nobody is really texted. Ctrl-C ends it.
`);
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  process.exitCode = signal ? 0 : (code ?? 0);
});
