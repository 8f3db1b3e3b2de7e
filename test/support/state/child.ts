import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { asCompiled } from '../compiled';

export interface Child {
  /** Lines the child has printed. */
  readonly lines: readonly string[];
  /** Resolves when the child has printed this many lines, or has exited. */
  printed(count: number): Promise<void>;
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  kill(): Promise<void>;
  ended(): Promise<number | null>;
}

/** Runs a script of this directory in a separate process, which a test may kill as the system would. */
export const runChild = (script: string, ...args: string[]): Child => {
  const child: ChildProcess = spawn(process.execPath, [...asCompiled, join(__dirname, script), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  let check = (): void => undefined;
  const reader = child.stdout ? createInterface(child.stdout) : undefined;
  reader?.on('line', (line) => {
    lines.push(line);
    check();
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      resolve(code);
    });
  });
  return {
    lines,
    printed: (count) => {
      const reached = new Promise<void>((resolve) => {
        check = () => {
          if (lines.length >= count) resolve();
        };
        check();
      });
      return Promise.race([reached, ended.then(() => undefined)]);
    },
    signal(name) {
      child.kill(name);
    },
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
    ended: () => ended,
  };
};
