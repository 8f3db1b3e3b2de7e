import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import should from 'should';
import { commandOf, root } from '../../support/installation';
import { versions } from '../../support/extent';

/** Runs in the Node of a Node-RED: it emits 60,000 outcomes, twice, and prints how many came out. */
const script = `
  const { Stream } = require(${JSON.stringify(join(root, 'lib', 'runtime', 'searches.ts'))});
  const nothing = () => undefined;
  const outcomes = Array.from({ length: 200 }, (_, index) => ({ port: 0, payload: index }));
  async function* portions() {
    for (let page = 0; page < 300; page++) yield { outcomes, count: 60000, read: 1, total: 60000, found: 1 };
  }
  const run = async () => {
    let count = 0;
    const emit = () => { count += 1; };
    const job = { emit, asList: nothing, setCount: nothing, conclude: nothing, settle: nothing };
    const closed = new AbortController().signal;
    const outputs = { kindsOf: () => ['done'], summaryOf: nothing };
    const tools = { closed, outputs, status: { show: nothing }, words: {}, clock: Date };
    await new Stream(tools, job, closed, closed).emitAll(portions());
    console.log(count);
  };
  run().then(run);
`;

describe('a long stream', function () {
  this.timeout(60_000);
  for (const version of versions)
    it(`emits everything that is found, also once its code is optimized (Node-RED ${String(version)})`, () => {
      const compiled = join(root, 'test', 'support', 'typescript.cjs');
      const printed = execFileSync(commandOf(version).node, ['-r', compiled, '-e', script], {
        encoding: 'utf8',
      });
      should(printed.trim().split('\n')).deepEqual(['60000', '60000']);
    });
});
