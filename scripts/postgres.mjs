import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ensureProgram } from './packages.mjs';

const debian = '/usr/lib/postgresql';

const find = () =>
  [
    ...(existsSync(debian) ? readdirSync(debian).map((version) => join(debian, version, 'bin')) : []),
    '/usr/bin',
    '/usr/local/bin',
  ].find((folder) => existsSync(join(folder, 'initdb')));

/** The folder of PostgreSQL's programs: tests run a server of their own. */
export const ensurePostgres = () =>
  ensureProgram({
    name: 'PostgreSQL',
    purpose: 'the tests of several processes on one database',
    find,
    packages: ['postgresql'],
    howToGetIt: [
      'The tests of several processes need PostgreSQL, and none was found on this machine.',
      '  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install postgresql',
      '  Fedora:          sudo dnf install postgresql-server',
      '  macOS:           brew install postgresql',
    ].join('\n'),
  });
