import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from './start/port.mjs';
import { claim } from './start/running.mjs';
import { flowsIn, whoIsTexted } from './start/services.mjs';
import { layWorkspace } from './start/workspace.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const data = join(root, '.data');
const wanted = Number(process.env.PORT ?? 1880);

const usage = `npm start                 opens Node-RED with the nodes, the examples and the simulator
npm start -- --fresh      starts over; your previous flows and data are set aside
PORT=1990 npm start       uses another port`;

const fail = (message) => {
  console.error(message);
  process.exit(1);
};

const flags = process.argv.slice(2);
if (flags.includes('--help') || flags.includes('-h')) {
  console.log(usage);
  process.exit();
}
const unknown = flags.find((flag) => flag !== '--fresh');
const isFresh = flags.includes('--fresh');
if (unknown !== undefined) fail(`There is no option ${unknown}.\n\n${usage}`);
if (!Number.isInteger(wanted) || wanted < 1 || wanted > 65535)
  fail(`PORT must be a port number.\n\n${usage}`);

/** Node-RED 5 does not start on an older Node; the development dependency `node` has a newer one. */
const nodeBinary = () => {
  const own = join(root, 'node_modules', 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  return existsSync(own) ? own : process.execPath;
};

const addresses = (editor) => `    Editor   ${editor}
    Phones   ${editor}advisor-texting/simulator/`;

const giveWayTo = ({ pid, address }) => {
  if (isFresh)
    fail(
      `Nothing was set aside: Node-RED is already running as process ${pid}${address ? ` at ${address}` : ''}. Stop it first (Ctrl-C where it runs), then try again.`,
    );
  console.log(`
  Already ${address ? 'running' : 'starting'} as process ${pid}. To stop it, press Ctrl-C where it runs.
${address ? `\n${addresses(address)}\n` : ''}`);
  process.exit();
};

const build = async () => {
  const child = spawn(process.execPath, [join(root, 'scripts', 'build.mjs')], { stdio: 'inherit' });
  const [code] = await once(child, 'exit');
  if (code !== 0) process.exit(1);
};

const setAside = () => {
  const aside = `${data}-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`;
  renameSync(data, aside);
  console.log(`Your previous flows and data are now in ${aside}.
To go back to them, stop Node-RED, rename .data to something else and that folder to .data, and run npm start.`);
};

const { other, note } = await claim(data);
if (other) giveWayTo(other);
await build();
if (isFresh && existsSync(data)) setAside();
const port = await freePort(wanted);
const isNew = layWorkspace(root, data);
if (port !== wanted) console.log(`Port ${wanted} is in use: using ${port} instead.`);

const address = `http://127.0.0.1:${port}/`;
note(address);
const child = spawn(
  nodeBinary(),
  [
    '--import',
    new URL('start/end-with-parent.mjs', import.meta.url).href,
    join(root, 'node_modules', 'node-red', 'red.js'),
    '--userDir',
    data,
    '--settings',
    join(data, 'settings.js'),
    '--port',
    String(port),
  ],
  { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, NODE_NO_WARNINGS: '1' } },
);

child.stdout.setEncoding('utf8');
let said = '';
child.stdout.on('data', (text) => {
  process.stdout.write(text);
  // The warning is repeated after a deploy if an environment has been pointed elsewhere.
  if (!/Started (modified )?(flows|nodes)/.test(text)) return;
  const isReady = said !== '';
  const now = whoIsTexted(flowsIn(join(data, 'flows.json')), process.env);
  if (now === said) return;
  said = now;
  if (isReady) console.log(`\n  ${now}\n`);
  else
    console.log(`
  ${isNew ? 'Ready.' : 'Ready, with your flows as you left them (npm start -- --fresh starts over and sets them aside).'}

${addresses(address)}

  ${now}
  To stop, press Ctrl-C.
`);
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
// The shell in which npm starts a script does not pass on signals when npm is stopped.
if (process.env.npm_lifecycle_event === 'start') {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) child.kill('SIGTERM');
  }, 500).unref();
}
child.on('exit', (code, signal) => {
  process.exitCode = signal ? 0 : (code ?? 0);
});
