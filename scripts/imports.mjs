import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { at } from './build/folders.mjs';

/** The TypeScript files below a folder of the project. */
export const sourcesIn = (folder) =>
  readdirSync(at(folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => resolve(entry.parentPath ?? entry.path, entry.name));

const known = new Map();

/** The project's own files that a file imports, including types and late loading. */
export const importsOf = (file) => {
  const found = known.get(file);
  if (found) return found;
  const targets = readFileSync(file, 'utf8').matchAll(/(?:from|require\(|import\(|import)\s*'(\.[^']*)'/g);
  const imports = Array.from(targets, ([, target]) => {
    const path = resolve(dirname(file), target);
    return [`${path}.ts`, resolve(path, 'index.ts')].find((candidate) => existsSync(candidate));
  }).filter((path) => path !== undefined);
  known.set(file, imports);
  return imports;
};

/** The shortest cycle of imports through a file, from its first import on; undefined when there is none. */
export const cycleOf = (file) => {
  const ways = importsOf(file).map((first) => [first]);
  const passed = new Set();
  for (const way of ways) {
    const last = way.at(-1);
    if (last === file) return way;
    if (passed.has(last)) continue;
    passed.add(last);
    for (const next of importsOf(last)) ways.push([...way, next]);
  }
  return undefined;
};
