import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const onPath = (names, env = process.env) =>
  (env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .flatMap((folder) => names.map((name) => join(folder, name)));

/** The headless shell starts faster, and no test needs more. */
const browsers = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
];

/** The folders, besides those in PATH, into which installers put Chromium. */
const usualPlaces = (env) => {
  const windows = [env.ProgramFiles, env['ProgramFiles(x86)'], env.LOCALAPPDATA]
    .filter((folder) => folder !== undefined)
    .flatMap((folder) => [
      join(folder, 'Google', 'Chrome', 'Application', 'chrome.exe'),
      join(folder, 'Chromium', 'Application', 'chrome.exe'),
      join(folder, 'Microsoft', 'Edge', 'Application', 'msedge.exe'),
    ]);
  return [
    ...browsers.map((name) => `/usr/bin/${name}`),
    '/snap/bin/chromium',
    '/Applications/Chromium.app/Contents/MacOS/Chromium',
    '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
    ...windows,
  ];
};

/** The path of a Chromium on this machine, or undefined. */
export const findChromium = (env = process.env, exists = existsSync) => {
  if (env.CHROMIUM_PATH) {
    if (exists(env.CHROMIUM_PATH)) return env.CHROMIUM_PATH;
    throw new Error(
      `CHROMIUM_PATH is ${env.CHROMIUM_PATH}, but there is no such file. Correct it or unset it.`,
    );
  }
  return [...usualPlaces(env), ...onPath(browsers, env)].find((path) => exists(path));
};

const debianServers = '/usr/lib/postgresql';

/** The folder of PostgreSQL's programs on this machine, or undefined: tests run their own server. */
export const findPostgres = () => {
  const versions = existsSync(debianServers) ? readdirSync(debianServers) : [];
  return [
    ...versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(debianServers, version, 'bin')),
    ...['/usr/bin', '/usr/local/bin', '/opt/homebrew/bin'],
  ].find((folder) => existsSync(join(folder, 'initdb')));
};

/**
 * What tests need besides Node: which test file uses it, where it does not exist, and what each system calls it. If
 * Debian may have several packages, the first is used.
 */
const programs = [
  {
    name: 'Chromium',
    usedBy: 'test/support/browser.ts',
    find: findChromium,
    apt: [['chromium-headless-shell', 'fonts-liberation'], ['chromium']],
    others: { dnf: 'chromium', brew: 'chromium', winget: 'Google.Chrome' },
  },
  {
    name: 'PostgreSQL',
    usedBy: 'test/support/postgres.ts',
    isFor: (platform) => platform !== 'win32',
    find: findPostgres,
    apt: [['postgresql']],
    others: { dnf: 'postgresql-server', brew: 'postgresql' },
  },
  {
    name: 'strace',
    usedBy: 'test/support/state/power-cut.ts',
    isFor: (platform) => platform === 'linux',
    find: () => onPath(['strace']).find((path) => existsSync(path)),
    apt: [['strace']],
    others: { dnf: 'strace' },
  },
];

const managers = { linux: existsSync('/usr/bin/apt-get') ? 'apt' : 'dnf', darwin: 'brew', win32: 'winget' };
const commands = {
  apt: 'sudo apt-get update && sudo apt-get install',
  dnf: 'sudo dnf install',
  brew: 'brew install',
  winget: 'winget install',
};

/** One command that installs all of them. */
const commandFor = (missing) => {
  const manager = managers[process.platform];
  const packages = missing.flatMap(({ apt, others }) => (manager === 'apt' ? apt[0] : others[manager]) ?? []);
  return packages.length > 0 ? `${commands[manager]} ${packages.join(' ')}` : undefined;
};

/** The prefix of a command that installs something; undefined if that needs somebody's consent. */
const asRoot = () => {
  if (!existsSync('/usr/bin/apt-get')) return undefined;
  if (process.getuid?.() === 0) return [];
  const isFree = process.env.CI && spawnSync('sudo', ['-n', 'true']).status === 0;
  return isFree ? ['sudo'] : undefined;
};

const runApt = (...args) => {
  const [command, ...rest] = [...asRoot(), 'apt-get', ...args];
  execFileSync(command, rest, {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
};

const installWithApt = (missing) => {
  console.log(
    `These tests need ${missing.map(({ name }) => name).join(', ')}: installing with apt-get, as root.`,
  );
  try {
    runApt('update');
  } catch {
    console.log('apt-get update failed; installing from what it knew before.');
  }
  for (const { apt } of missing)
    for (const packages of apt)
      try {
        runApt('install', '--yes', '--no-install-recommends', ...packages);
        break;
      } catch {
        console.log(`apt-get could not install ${packages.join(' ')}.`);
      }
};

/**
 * Gets what test files need, according to the files that they import (`reached`). Root on Debian installs what is
 * missing; otherwise one message names all of it. The result says which of those files this machine cannot run
 * (`usedBy`), and why.
 */
export const getPrograms = (reached) => {
  const needed = programs.filter(({ usedBy }) => reached.has(usedBy));
  const lacking = () => {
    try {
      return needed.filter(({ isFor, find }) => (isFor?.(process.platform) ?? true) && find() === undefined);
    } catch ({ message }) {
      console.error(message);
      process.exit(1);
    }
  };
  if (lacking().length > 0 && asRoot()) installWithApt(lacking());
  const missing = lacking();
  if (missing.length > 0) {
    const command = commandFor(missing);
    console.log(
      `Missing on this machine: ${missing.map(({ name }) => name).join(', ')}. Tests that need them are left out.` +
        (command === undefined ? '' : `\nTo run them too: ${command}`),
    );
  }
  const foreign = needed.filter(({ isFor }) => !(isFor?.(process.platform) ?? true));
  return [
    ...missing.map(({ name, usedBy }) => ({ usedBy, reason: `${name} is not installed` })),
    ...foreign.map(({ name, usedBy }) => ({
      usedBy,
      reason: `${name} does not run on this system`,
      isForeign: true,
    })),
  ];
};

/** The path of a Chromium, or an error that says how to get one. */
export const chromiumPath = () => {
  const found = findChromium();
  if (found !== undefined) return found;
  const [chromium] = programs;
  throw new Error(
    `There is no Chromium on this machine: ${commandFor([chromium]) ?? 'install one'}, or set CHROMIUM_PATH.`,
  );
};
