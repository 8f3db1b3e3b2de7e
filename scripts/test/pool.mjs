import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { at } from '../build/folders.mjs';

/** Milliseconds that a file may take, however large it is: nothing waits forever in silence. */
const longest = 20 * 60_000;

const require = createRequire(import.meta.url);

const start = (env) => {
  // Once for all workers.
  require(at('test', 'support', 'typescript.cjs'));
  const child = fork(at('scripts', 'test', 'worker.mjs'), [], {
    cwd: at(),
    // The locale of a process is fixed when it starts.
    env: { ...process.env, LC_ALL: 'C.UTF-8', TZ: 'UTC', ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => (said += text));
  return {
    child,
    /** What it has printed since it was last asked. */
    said: () => {
      const text = said;
      said = '';
      return text;
    },
  };
};

/** Sends a command and resolves with its answer; with undefined when the worker exits or takes too long. */
const answerOf = ({ child }, order, onFailure = () => undefined) =>
  new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), longest);
    const settle = (answer) => {
      clearTimeout(timer);
      child.off('message', listen).off('exit', end);
      resolve(answer);
    };
    const end = () => settle(undefined);
    const listen = (message) => (message.failed === undefined ? settle(message) : onFailure(message));
    child.on('message', listen).once('exit', end);
    child.send(order);
  });

/** The titles of the tests in files, by file. */
export const titlesOf = async (files, env) => {
  const worker = start(env);
  const answer = await answerOf(worker, { list: files });
  worker.child.kill();
  if (!answer) throw new Error(`The test files cannot be loaded:\n${worker.said()}`);
  return new Map(answer.titles);
};

/**
 * Runs commands (`{ file, titles }`) in this many processes. `failed` is called for each failure as it happens, `ended`
 * for each file with its result and output.
 */
export const runAll = async (orders, { jobs, env, failed, ended }) => {
  const queue = [...orders];
  const work = async () => {
    let worker;
    for (let order = queue.shift(); order; order = queue.shift()) {
      worker ??= start(env);
      const answer = await answerOf(worker, order, failed);
      const said = worker.said();
      const result = answer?.result ?? {
        passed: 0,
        failures: [`${order.file} ended its process, or ran for longer than ${longest / 60_000} minutes.`],
        skipped: [],
        reasons: [],
        isClean: false,
        milliseconds: longest,
      };
      if (!result.isClean) {
        worker.child.kill('SIGKILL');
        worker = undefined;
      }
      ended(order.file, result, said);
    }
    worker?.child.disconnect();
  };
  await Promise.all(Array.from({ length: Math.min(jobs, queue.length) }, work));
};
