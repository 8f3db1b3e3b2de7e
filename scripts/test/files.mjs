import { existsSync, readFileSync } from 'node:fs';
import { relative, sep } from 'node:path';
import { at } from '../build/folders.mjs';
import { importsOf, sourcesIn } from '../imports.mjs';

const pathOf = (file) => relative(at(), file).split(sep).join('/');

/** All test files, as paths from the project's folder. */
export const allFiles = () =>
  sourcesIn('test')
    .filter((file) => file.endsWith('.test.ts'))
    .map(pathOf)
    .sort();

/** A word is a folder at any depth, the path of a folder or a file, or else the name of a file. */
const chosenBy = (word, files) => {
  const plain = word.replace(/\/+$/, '').replace(/^\.\//, '');
  const placed = files.filter((file) => `/${file}/`.includes(`/${plain}/`));
  return placed.length > 0 ? placed : files.filter((file) => `/${file}`.endsWith(`/${plain}.test.ts`));
};

/** Test files in the order of their names; without words, all. */
export const chosenFiles = (words) => {
  const files = allFiles();
  if (words.length === 0) return files;
  const chosen = new Set(words.flatMap((word) => chosenBy(word, files)));
  return files.filter((file) => chosen.has(file));
};

/** The project's files that a file imports, directly or indirectly. */
const reached = new Map();
export const reachedFrom = (file) => {
  if (!reached.has(file)) {
    const found = new Set([at(file)]);
    for (const one of found) for (const next of importsOf(one)) found.add(next);
    reached.set(file, new Set(Array.from(found, pathOf)));
  }
  return reached.get(file);
};

const timesFile = at('node_modules', '.cache', 'advisor-texting-tests.json');

/** Milliseconds that files took in the last run. */
export const lastTimes = () => {
  try {
    return existsSync(timesFile) ? JSON.parse(readFileSync(timesFile, 'utf8')) : {};
  } catch {
    return {};
  }
};

export { timesFile };

/** Seconds that a file may take, roughly, on a machine that has never run it. */
const guess = (file) => {
  const used = reachedFrom(file);
  const uses = (name) => used.has(`test/support/${name}.ts`);
  const own = [...used].filter((path) => /^test\/(?!support\/)/.test(path));
  const text = own.map((path) => readFileSync(at(path), 'utf8')).join('');
  const needs = [
    [uses('browser'), 40],
    [uses('red-process'), 20],
    [uses('postgres'), 10],
    [text.includes('this.timeout('), 5],
  ];
  return needs.reduce((sum, [isNeeded, seconds]) => sum + (isNeeded ? seconds : 0), text.length / 10_000);
};

/** Slow files first, so that none of them runs alone at the end. */
export const slowFirst = (files) => {
  const times = lastTimes();
  const expected = (file) => times[file] ?? guess(file) * 1000;
  return [...files].sort((a, b) => expected(b) - expected(a));
};
