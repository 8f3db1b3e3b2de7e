import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/** Whether Debian packages can be installed here without confirmation. */
const canInstall = () => process.getuid?.() === 0 && existsSync('/usr/bin/apt-get');

const install = (packages) => {
  const run = (...args) =>
    execFileSync('apt-get', args, {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
  run('update');
  run('install', '--yes', '--no-install-recommends', ...packages);
};

/**
 * The result of `find`. When it finds nothing, the packages are installed where that needs no confirmation, else an
 * error says how to get them.
 */
export const ensureProgram = ({ name, purpose, find, packages, howToGetIt }) => {
  const found = find();
  if (found !== undefined) return found;
  if (!canInstall()) throw new Error(howToGetIt);
  process.stdout.write(`${name} is needed for ${purpose} and is not here: installing it with apt-get.\n`);
  try {
    install(packages);
  } catch (error) {
    throw new Error(`apt-get could not install ${name}.\n${howToGetIt}`, { cause: error });
  }
  const installed = find();
  if (installed === undefined) throw new Error(howToGetIt);
  return installed;
};
