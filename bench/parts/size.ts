import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install, npm, root, tarball } from '../../test/support/installation';
import { type Figure, figureOf, type Goal, megabyte, type Row } from '../figures';
import type { Part } from '../part';

/** Any absolute address, and whatever else a browser would fetch. */
const fetched = /https?:\/\/|(?:src|href)\s*=\s*["']?\/\/|url\(\s*["']?\/\/|@import/gi;

/** The bytes of editor code of all nodes, and how many things in it come from elsewhere. */
export const editorCode = (): { readonly bytes: number; readonly fetched: number } => {
  const folder = join(root, 'dist', 'nodes');
  const pages = readdirSync(folder)
    .filter((name) => name.endsWith('.html'))
    .map((name) => readFileSync(join(folder, name), 'utf8'));
  if (pages.length === 0) throw new Error('The package has not been built.');
  return {
    bytes: pages.reduce((sum, page) => sum + Buffer.byteLength(page), 0),
    fetched: pages.reduce((sum, page) => sum + [...page.matchAll(fetched)].length, 0),
  };
};

export interface PackageSize {
  /** Bytes of the tarball, and of its contents. */
  readonly packed: number;
  readonly unpacked: number;
  readonly files: number;
}

export const packageSize = (): PackageSize => {
  const [report] = JSON.parse(npm(['pack', '--dry-run', '--json', '--ignore-scripts'], root)) as [
    { size: number; unpackedSize: number; entryCount: number },
  ];
  return { packed: report.size, unpacked: report.unpackedSize, files: report.entryCount };
};

interface Installed {
  readonly bytes: number;
  readonly packages: number;
}

/** What `npm install` of the tarball puts on the disk, dependencies included. */
const installed = (): Installed => {
  const folder = mkdtempSync(join(tmpdir(), 'advisor-texting-size-'));
  install(folder, tarball());
  try {
    const { packages } = JSON.parse(
      readFileSync(join(folder, 'node_modules', '.package-lock.json'), 'utf8'),
    ) as { packages: object };
    const files = readdirSync(join(folder, 'node_modules'), { withFileTypes: true, recursive: true }).filter(
      (entry) => entry.isFile(),
    );
    const bytes = files.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
    return { bytes, packages: Object.keys(packages).length };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const dist = join(root, 'dist');
/** What Node-RED loads when it starts. */
const registered = (): string[] => readdirSync(join(dist, 'nodes')).filter((name) => name.endsWith('.js'));
/** What a text on the simulator needs as well. */
const forText = [
  'nodes/environment/runtime',
  'nodes/send-text/runtime',
  'lib/service/client',
  'lib/state/embedded',
  'simulator',
];

/** Milliseconds of CPU time that a fresh process takes to load modules of the package. */
const loading = (modules: readonly string[]): Figure => {
  const paths = JSON.stringify(modules.map((path) => join(dist, path)));
  const script = `const before = process.cpuUsage(); ${paths}.forEach((path) => require(path));
    const { user, system } = process.cpuUsage(before); console.log((user + system) / 1000); process.exit();`;
  const run = (): number => Number(execFileSync(process.execPath, ['-e', script], { encoding: 'utf8' }));
  return figureOf(Array.from({ length: 9 }, run));
};

const row = (measurement: string, unit: string, value: number | Figure, goal?: Goal): Row => ({
  measurement,
  unit,
  ours: typeof value === 'number' ? figureOf([value]) : value,
  ...(goal ? { goal: { of: 'ours', ...goal } } : {}),
});

export const packedMeasurement = 'the package: packed';

export const size: Part = {
  name: 'size',
  title: 'bytes of the package and of its editor code',
  roundsFor: () => 1,
  run() {
    tarball();
    const { packed, unpacked, files } = packageSize();
    const all = installed();
    const code = editorCode();
    const nodes = registered().map((name) => `nodes/${name}`);
    return Promise.resolve([
      row(packedMeasurement, 'kB', packed / 1000),
      row('the package: unpacked', 'kB', unpacked / 1000),
      row('the package: files', '', files),
      row('installed with its dependencies', 'MB', all.bytes / megabyte),
      row('packages installed, ours included', '', all.packages),
      row('CPU to load it, unused', 'ms', loading(nodes)),
      row('CPU to load it, used for a text on the simulator', 'ms', loading([...nodes, ...forText])),
      row('editor code of all nodes', 'kB', code.bytes / 1000, { below: 200 }),
      row('requests by the editor code to other hosts', '', code.fetched, { atMost: 0 }),
    ]);
  },
};
