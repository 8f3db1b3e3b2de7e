import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { register } from 'tsx/cjs/api';
import { at } from './build/folders.mjs';

const help = `Usage: npm run calls [-- [--all] [--journal off]]

Lists the files of lib and nodes that one text and one wait pass, in order, with the number of calls into each from
other files. A call that is made several times counts once. The text is sent; the wait is accepted at its second look.

  --all            lists every call
  --journal off    keeps the queue in memory`;

/** Some rounds include what a node does only now and then, like its status; the shortest does not. */
const rounds = 5;
/** Long enough for everything that runs in the background. */
const idleFor = 5000;
/** Until the work after an outcome is done: the removal of its records. */
const rest = 500;

const flows = (environment) => {
  const ours = { environment: 'environment', z: 'tab' };
  const end = (id) => ({ id, type: 'helper', z: 'tab', wires: [] });
  return [
    { id: 'tab', type: 'tab', label: 'calls' },
    environment,
    { ...ours, id: 'send', type: 'advisor-send-text', wires: [['sent'], ['failed'], ['failed']] },
    {
      ...ours,
      id: 'check',
      type: 'advisor-check-consent',
      mode: 'wait',
      pollEvery: 1,
      wires: [['accepted'], ['failed'], ['failed']],
    },
    ...['sent', 'accepted', 'failed'].map(end),
  ];
};

const keyOf = ({ file, name, from }) => `${from} ${file} ${name}`;

/** The files that were passed, in order, with the calls into each from others; a repeated call counts once. */
const wayOf = (entered, idle) => {
  const files = new Map();
  // A timer that many share belongs to nobody's work: of unmarked calls, only those that run in the background are left
  // out.
  for (const { file, name, from } of entered.filter((each) => each.isWork || !idle.has(keyOf(each)))) {
    if (!files.has(file)) files.set(file, new Set());
    if (from !== undefined && from !== file) files.get(file).add(`${name}, from ${from}`);
  }
  return files;
};

const callsOf = (files) => [...files.values()].reduce((sum, calls) => sum + calls.size, 0);

/** The path of one text or wait: of several, the one with the fewest calls. */
const shortest = async (work, { take, marked }) => {
  let found;
  // The first one loads what the others use.
  await work(0);
  await sleep(rest);
  take();
  await sleep(idleFor);
  const idle = new Set(take().map(keyOf));
  for (let round = 1; round <= rounds; round++) {
    take();
    await marked(() => work(round));
    await sleep(rest);
    const files = wayOf(take(), idle);
    if (!found || callsOf(files) < callsOf(found)) found = files;
  }
  return found;
};

const print = (what, files, isAll) => {
  console.log(`\n${what}: ${files.size} files, ${callsOf(files)} calls from file to file\n`);
  for (const [file, calls] of files) {
    console.log(`${String(calls.size).padStart(4)}  ${file}`);
    if (isAll) for (const call of calls) console.log(`        ${call}`);
  }
};

const count = async (isAll, journal) => {
  execFileSync(process.execPath, [at('scripts', 'build.mjs')], { stdio: ['ignore', 'ignore', 'inherit'] });
  const require = createRequire(import.meta.url);
  register();
  const tracer = require('./calls/trace.cjs');
  const helper = require('node-red-node-test-helper');
  const { environment } = require(at('bench', 'flows.ts'));
  const { startService } = require(at('bench', 'service.ts'));
  const { runtimePath } = require(at('test', 'support', 'flow.ts'));

  const service = await startService();
  const userDir = mkdtempSync(join(tmpdir(), 'advisor-texting-calls-'));
  helper.init(runtimePath);
  helper.settings({ userDir });
  const { credentials, ...config } = environment('environment', service.url, { journal });
  const nodes = ['environment', 'send-text', 'check-consent'];
  await helper.load(
    [
      // The helper's spies keep a stack of every call.
      () => helper._sandbox.restore(),
      ...nodes.map((name) => require(at('dist', 'nodes', `advisor-${name}.js`))),
    ],
    flows(config),
    { environment: credentials },
  );
  /** Sends a message to a node, and waits for the result. */
  const ask = (node, msg, end) =>
    new Promise((resolve, reject) => {
      helper.getNode(end).once('input', resolve);
      helper.getNode('failed').once('input', ({ error }) => reject(new Error(JSON.stringify(error))));
      helper.getNode(node).receive(msg);
    });
  const phoneOf = (round) => `+1202555010${round}`;
  const text = (round) => ask('send', { phone: phoneOf(round), text: 'Your review is ready.' }, 'sent');
  const wait = async (round) => {
    await service.reset();
    await service.setConsent('pending');
    const accepted = ask('check', { phone: phoneOf(round) }, 'accepted');
    while ((await service.counts()).polls === 0) await sleep(20);
    await service.setConsent('accepted');
    await accepted;
  };
  try {
    print('A text', await shortest(text, tracer), isAll);
    print('A wait', await shortest(wait, tracer), isAll);
  } finally {
    await helper.unload();
    service.close();
    rmSync(userDir, { recursive: true, force: true });
  }
};

const { values } = parseArgs({
  options: {
    all: { type: 'boolean', default: false },
    journal: { type: 'string', default: 'on' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) console.log(help);
else await count(values.all, values.journal !== 'off');
