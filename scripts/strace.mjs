import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ensureProgram } from './packages.mjs';

const find = () =>
  (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, 'strace'))
    .find((path) => existsSync(path));

/** The path of strace, which traces the writes for simulated power cuts; it exists for Linux alone. */
export const ensureStrace = () =>
  process.platform === 'linux'
    ? ensureProgram({
        name: 'strace',
        purpose: 'the tests of power cuts',
        find,
        packages: ['strace'],
        howToGetIt: [
          'The tests of power cuts need strace, and none was found on this machine.',
          '  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install strace',
          '  Fedora:          sudo dnf install strace',
        ].join('\n'),
      })
    : undefined;
