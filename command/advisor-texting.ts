#!/usr/bin/env node
import type * as bundling from './bundle';
import type * as checking from './check';

const [command = '', ...rest] = process.argv.slice(2);

// Each command loads only what it needs, and loading the simulator runs it.
const commands = new Map([
  ['check', () => (require('./check') as typeof checking).check],
  ['bundle', () => (require('./bundle') as typeof bundling).bundle],
]);
const run = commands.get(command);
if (run) void run()(rest, process.env).then((code) => (process.exitCode = code));
else require('../simulator/cli');
