#!/usr/bin/env node
import type * as bundling from './bundle';
import type * as checking from './check';

const [command, ...rest] = process.argv.slice(2);

// Each command loads only what it needs, and loading the simulator runs it.
if (command === 'check') {
  const { check } = require('./check') as typeof checking;
  void check(rest, process.env).then((code) => {
    process.exitCode = code;
  });
} else if (command === 'bundle') {
  const { bundle } = require('./bundle') as typeof bundling;
  void bundle(rest, process.env).then((code) => {
    process.exitCode = code;
  });
} else {
  require('../simulator/cli');
}
