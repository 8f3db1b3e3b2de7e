/** Runs the given test files one after the other, and reports each: what passed, what failed, what is left open. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { performance } from 'node:perf_hooks';
import { format } from 'node:util';
import Mocha from 'mocha';
import { at } from '../build/folders.mjs';

const require = createRequire(import.meta.url);
const { require: required, timeout } = JSON.parse(readFileSync(at('.mocharc.json'), 'utf8'));
const { mochaHooks: rootHooks } = Object.assign({}, ...required.map((path) => ({ ...require(at(path)) })));
const { openResources, whatStaysOpen } = require(at('test', 'support', 'handles.ts'));
const { notHere } = require(at('test', 'support', 'machine.ts'));
const { Base } = Mocha.reporters;
Base.useColors = false;

/** A failure as mocha's own reporters print it, with a diff. */
const printed = (test, fault) => {
  const lines = [];
  test.err = fault;
  Base.consoleLog = (...args) => lines.push(format(...args));
  Base.list([test]);
  return lines
    .join('\n')
    .replace(/^\s*1\) /, '')
    .trim();
};

/** Seconds of CPU of this process and its finished children; undefined if unknown. */
const cpuSeconds = () => {
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
  } catch {
    return undefined;
  }
};

const load = (file) => {
  const mocha = new Mocha({ timeout, rootHooks, forbidOnly: true, reporter: class {} });
  mocha.addFile(at(file));
  mocha.loadFiles();
  return mocha;
};

const titlesIn = ({ suite }) => {
  const titles = [];
  suite.eachTest((test) => titles.push(test.fullTitle()));
  return titles;
};

/** Leaves only the tests with these titles. */
const keepOnly = (suite, titles) => {
  suite.tests = suite.tests.filter((test) => titles.has(test.fullTitle()));
  for (const inner of suite.suites) keepOnly(inner, titles);
};

const run = async ({ file, titles }) => {
  const began = performance.now();
  const cpu = cpuSeconds();
  const before = openResources();
  const result = { passed: 0, failures: [], skipped: [] };
  notHere.clear();
  try {
    const mocha = load(file);
    if (titles) keepOnly(mocha.suite, new Set(titles));
    await new Promise((resolve) => {
      mocha
        .run(resolve)
        .on('pass', () => (result.passed += 1))
        .on('fail', (test, fault) => {
          const failure = printed(test, fault);
          result.failures.push(failure);
          process.send({ failed: failure, file });
        })
        .on('pending', (test) => result.skipped.push(test.fullTitle()));
    });
    mocha.dispose();
    // The runner adds these to the process and leaves them there.
    process.removeAllListeners('uncaughtException');
    process.removeAllListeners('unhandledRejection');
  } catch (fault) {
    result.failures.push(`${file} cannot be loaded:\n${fault.stack ?? fault}`);
  }
  const reasons = [...notHere];
  if (result.skipped.length > 0 && reasons.length === 0)
    result.failures.push(`${file} skips tests and says no reason: ${result.skipped.join(', ')}`);
  const left = await whatStaysOpen(before);
  if (left.length > 0)
    result.failures.push(
      `${file} passes and would never end: it leaves ${left.join(', ')} open. Close it in \`after\`.`,
    );
  return {
    ...result,
    reasons,
    isClean: left.length === 0,
    milliseconds: performance.now() - began,
    cpu: cpu === undefined ? undefined : cpuSeconds() - cpu,
  };
};

process.on('message', async (order) => {
  if (order.list) process.send({ titles: order.list.map((file) => [file, titlesIn(load(file))]) });
  else process.send({ file: order.file, result: await run(order) });
});
process.on('disconnect', () => process.exit());
