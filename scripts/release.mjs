import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { at, exists, readJson } from './build/folders.mjs';

const usage = `Usage: npm run release -- COMMAND

  prepare       names the section "Unreleased" of CHANGELOG.md after the version of package.json, and writes the snapshot
  snapshot      writes test/node-red/upgrade/VERSION.tgz, a user directory that later versions must open
  check TAG     fails unless TAG is v and the version, and the release was prepared
  pack FOLDER   writes package.tgz, notes.md and sbom.json (CycloneDX) into FOLDER`;

/** The lines under the heading of a version in a changelog, up to the next version. */
export const notesOf = (changelog, version) => {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((each) => each.split(/[\s\]]/, 1)[0].replace('[', '') === version);
  const notes = section?.slice(section.indexOf('\n')).trim() ?? '';
  if (notes === '')
    throw new Error(
      `CHANGELOG.md says nothing about ${version}: write it under "Unreleased", then npm run release -- prepare`,
    );
  return notes;
};

/** The changelog with its section of unreleased changes named after the version that is released now. */
export const withVersion = (changelog, version, date) => {
  const named = changelog.replace(/^## Unreleased$/m, `## ${version} (${date})`);
  notesOf(named, version);
  return named;
};

/** Why a tag cannot be released, as an error. */
export const checkTag = (tag, { version, changelog, isSnapshotKept }) => {
  if (tag !== `v${version}`)
    throw new Error(`The tag is ${tag ?? 'missing'}, and package.json says ${version}: tag v${version}.`);
  notesOf(changelog, version);
  if (!isSnapshotKept)
    throw new Error(`No user directory of ${version} is kept for later versions: npm run release -- prepare`);
};

const npm = (args, cwd = at()) => {
  const script = process.env.npm_execpath;
  const [command, first] = script === undefined ? ['npm', []] : [process.execPath, [script]];
  return execFileSync(command, [...first, ...args], { cwd, encoding: 'utf8' });
};

/**
 * What is installed with the package, as CycloneDX. `npm sbom --omit=dev` would leave out what a development dependency
 * uses as well, so npm reads a copy in which there are none.
 */
export const billOfMaterials = () => {
  const folder = mkdtempSync(join(tmpdir(), 'advisor-texting-bill-'));
  const write = (name, content) => writeFileSync(join(folder, name), JSON.stringify(content));
  const withoutDevelopment = (description) => ({ ...description, devDependencies: undefined });
  const lock = readJson('package-lock.json');
  const packages = Object.entries(lock.packages)
    .filter(([, { dev, devOptional, peer }]) => !dev && !devOptional && !peer)
    .map(([name, description]) => [name, withoutDevelopment(description)]);
  try {
    write('package.json', withoutDevelopment(readJson('package.json')));
    write('package-lock.json', { ...lock, packages: Object.fromEntries(packages) });
    const bill = JSON.parse(npm(['sbom', '--package-lock-only', '--sbom-format=cyclonedx'], folder));
    // npm names it after the folder.
    bill.metadata.component.name = lock.name;
    return bill;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const pack = (folder, version, changelog) => {
  const target = resolve(folder);
  mkdirSync(target, { recursive: true });
  // `prepack` prints as it works, so the report is the last thing.
  const said = npm(['pack', '--json', '--pack-destination', target]);
  const [{ filename }] = JSON.parse(said.slice(said.search(/^\[$/m)));
  renameSync(join(target, filename), join(target, 'package.tgz'));
  writeFileSync(join(target, 'notes.md'), `${notesOf(changelog, version)}\n`);
  writeFileSync(join(target, 'sbom.json'), JSON.stringify(billOfMaterials(), null, 2));
};

const snapshot = () =>
  execFileSync(process.execPath, ['--import', 'tsx', at('test', 'node-red', 'upgrade', 'write.ts')]);

const main = ([command, argument]) => {
  const { version } = readJson('package.json');
  const changelog = readFileSync(at('CHANGELOG.md'), 'utf8');
  const isSnapshotKept = exists('test', 'node-red', 'upgrade', `${version}.tgz`);
  if (command === 'check') checkTag(argument, { version, changelog, isSnapshotKept });
  else if (command === 'pack' && argument !== undefined) pack(argument, version, changelog);
  else if (command === 'snapshot') snapshot();
  else if (command === 'prepare') {
    const today = new Date().toISOString().slice(0, 10);
    writeFileSync(at('CHANGELOG.md'), withVersion(changelog, version, today));
    snapshot();
    console.log(
      `Commit this, tag the commit v${version} and push both: the workflow "release" publishes it.`,
    );
  } else throw new Error(usage);
};

if (process.argv[1] === at('scripts', 'release.mjs')) {
  try {
    main(process.argv.slice(2));
  } catch (fault) {
    console.error(fault.message);
    process.exitCode = 1;
  }
}
