import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';

export const root = resolve(__dirname, '..', '..');
const packageName = '@advisor-texting/node-red';
const cache = join(tmpdir(), 'advisor-texting-test');

const nodeFile = process.platform === 'win32' ? 'node.exe' : 'node';

/** The machine's own Node and not the one in node_modules, which npm puts first on the path. */
const ownNode = (): string => {
  const given = process.env['npm_node_execpath'];
  if (given !== undefined && !given.includes('node_modules')) return given;
  const found = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
    .map((folder) => join(folder, nodeFile))
    .find((path) => existsSync(path));
  return found ?? process.execPath;
};

export type Version = 4 | 5;

/** Node-RED 5 needs a newer Node than some machines have: it runs on the one in node_modules. */
export const commandOf = (version: Version): { node: string; script: string } =>
  version === 4
    ? { node: ownNode(), script: join(root, 'node_modules', 'node-red-4', 'red.js') }
    : {
        node: join(root, 'node_modules', 'node', 'bin', nodeFile),
        script: join(root, 'node_modules', 'node-red', 'red.js'),
      };

export const npm = (args: readonly string[], cwd: string): string => {
  const script = process.env['npm_execpath'];
  const [command, first] = script === undefined ? ['npm', []] : [process.execPath, [script]];
  return execFileSync(command, [...first, ...args], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  });
};

const packed = ['dist', 'examples', 'docs', 'package.json', 'README.md', 'CHANGELOG.md', 'LICENSE'];

const filesUnder = (path: string): string[] => {
  if (!existsSync(path)) return [];
  const entries = readdirSync(resolve(path, '..'), { withFileTypes: true });
  if (entries.some((entry) => entry.isFile() && join(entry.parentPath, entry.name) === path)) return [path];
  return readdirSync(path, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
};

export const digest = (parts: readonly (string | Buffer)[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part).update('\0');
  return hash.digest('hex').slice(0, 16);
};

const aDay = 24 * 60 * 60 * 1000;

/** Every change to the package leaves another copy here: yesterday's are useless. */
const forget = (): void => {
  for (const name of readdirSync(cache)) {
    const path = join(cache, name);
    const old = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity) > aDay;
    if (old) rmSync(path, { recursive: true, force: true });
  }
};

/** The folder of this name in the cache; it is filled under another name, so that nobody ever sees half of it. */
export const once = (name: string, fill: (folder: string) => void): string => {
  const path = join(cache, name);
  if (existsSync(path)) return path;
  mkdirSync(cache, { recursive: true });
  forget();
  const folder = mkdtempSync(join(cache, 'making-'));
  fill(folder);
  try {
    renameSync(folder, path);
  } catch (fault) {
    rmSync(folder, { recursive: true, force: true });
    if (!existsSync(path)) throw fault;
  }
  return path;
};

/** `npm test` builds once, before the first test: several test files then read dist/ at the same time. */
export const builtBefore = process.env['ADVISOR_TEXTING_BUILT'] === '1';
let built = builtBefore;

export const ensureBuilt = (): void => {
  if (!built)
    execFileSync(process.execPath, [join(root, 'scripts', 'build.mjs')], { cwd: root, stdio: 'pipe' });
  built = true;
};

/** The package as npm would publish it, packed once for as long as its files stay the same. */
export const tarball = (): string => {
  ensureBuilt();
  const files = packed.flatMap((name) => filesUnder(join(root, name)));
  const key = digest(files.flatMap((file) => [file, readFileSync(file)]));
  const folder = once(`packed-${key}`, (making) => {
    npm(['pack', '--ignore-scripts', '--pack-destination', making], root);
  });
  const name = readdirSync(folder).find((file) => file.endsWith('.tgz'));
  if (name === undefined) throw new Error(`npm pack has left no tarball in ${folder}.`);
  return join(folder, name);
};

/** As a user does it; without a network it fails after a while instead of hanging. */
export const install = (userDir: string, file: string): void => {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
  npm(['install', ...flags, '--fetch-retries', '1', '--fetch-timeout', '30000', file], userDir);
};

interface Locked {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** The folders in `node_modules` of what is installed with the package: its dependencies and theirs. */
const installedFolders = (): string[] => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, Locked>>;
  };
  const found = new Set<string>();
  const add = (from: string, name: string): void => {
    for (
      let folder = from;
      ;
      folder = folder.slice(0, Math.max(0, folder.lastIndexOf('node_modules/') - 1))
    ) {
      const path = [folder, 'node_modules', name].filter((part) => part !== '').join('/');
      if (packages[path] !== undefined) {
        // An optional one for another system is missing.
        if (found.has(path) || !existsSync(join(root, path))) return;
        found.add(path);
        addThoseOf(path);
        return;
      }
      if (folder === '') return;
    }
  };
  const addThoseOf = (path: string): void => {
    const { dependencies, optionalDependencies } = packages[path] ?? {};
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) add(path, name);
  };
  addThoseOf('');
  // Nested ones come with their parent.
  return [...found].filter((path) => path.lastIndexOf('node_modules/') === 0);
};

/** A user directory as after an installation, to be copied: what `npm ci` has fetched is linked into it. */
const template = (): string => {
  const file = tarball();
  return once(`user-${digest([file])}`, (making) => {
    for (const folder of installedFolders()) {
      mkdirSync(join(making, folder), { recursive: true });
      copy(join(root, folder), join(making, folder));
    }
    const inside = join(making, 'node_modules', ...packageName.split('/'));
    mkdirSync(inside, { recursive: true });
    execFileSync('tar', ['-xzf', file, '-C', inside, '--strip-components=1']);
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    writeFileSync(
      join(making, 'package.json'),
      JSON.stringify({ name: 'user-directory', private: true, dependencies: { [packageName]: version } }),
    );
  });
};

/** Hard links where the system has them: a directory full of modules in no time. */
const copy = (from: string, to: string): void => {
  try {
    execFileSync('cp', ['-al', `${from}/.`, to], { stdio: 'ignore' });
  } catch {
    cpSync(from, to, { recursive: true });
  }
};

/** A fresh user directory with the package installed and the tests' own node beside it. */
export const freshUserDir = (): string => {
  const userDir = mkdtempSync(join(tmpdir(), 'advisor-texting-user-'));
  copy(template(), userDir);
  addTestPort(userDir);
  return userDir;
};

export const addTestPort = (userDir: string): void => {
  mkdirSync(join(userDir, 'nodes'), { recursive: true });
  for (const file of ['test-port.js', 'test-port.html'])
    cpSync(join(__dirname, file), join(userDir, 'nodes', file));
};
