import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { asCompiled } from '../compiled';

export interface StoreProcess {
  readonly pid: number;
  readonly lines: readonly string[];
  /** Resolves with the first line, from `after` on, that this accepts. */
  said(accepts: (line: string) => boolean, after?: number): Promise<string>;
  signal(name: NodeJS.Signals): void;
  ended: Promise<number | null>;
}

const script = join(__dirname, 'store-child.ts');

export const childCommand = (...args: string[]): string[] => [
  process.execPath,
  ...asCompiled,
  script,
  ...args,
];

/** A process with a store in a directory, in its own process group. */
export const startStore = (
  args: readonly string[],
  { env = {}, before = [] }: { env?: NodeJS.ProcessEnv; before?: readonly string[] } = {},
): StoreProcess => {
  const [command = '', ...rest] = [...before, ...childCommand(...args)];
  const child = spawn(command, rest, {
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
    env: { ...process.env, ...env },
  });
  const lines: string[] = [];
  const listeners = new Set<() => void>();
  createInterface(child.stdout).on('line', (line) => {
    lines.push(line);
    for (const listener of [...listeners]) listener();
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const pid = child.pid ?? 0;
  return {
    pid,
    lines,
    ended,
    said: (accepts, after = 0) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const line = lines.slice(after).find(accepts);
          if (line === undefined) return;
          listeners.delete(look);
          resolve(line);
        };
        listeners.add(look);
        look();
        void ended.then(() => reject(new Error(`it ended, having said:\n${lines.slice(-5).join('\n')}`)));
      }),
    signal: (name) => {
      try {
        process.kill(-pid, name);
      } catch {
        // It has exited.
      }
    },
  };
};
