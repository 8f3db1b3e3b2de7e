import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '..', '..');
export const at = (...parts) => join(root, ...parts);

/** Sentences about what is wrong with the project; shown without a stack, which would add nothing. */
export class Complaint extends Error {
  constructor(sentences) {
    super([sentences].flat().join('\n'));
  }
}

const folders = (path) =>
  readdirSync(at(path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();

/** Each folder in nodes/ is a node: `send-text` is registered as `advisor-send-text`. */
export const nodeNames = () => folders('nodes');
export const languages = () => folders('locales');
export const typeOf = (name) => `advisor-${name}`;

export const readText = (...parts) => readFileSync(at(...parts), 'utf8');
export const readJson = (...parts) => {
  try {
    return JSON.parse(readText(...parts));
  } catch (fault) {
    throw new Complaint(`${parts.join('/')} is not valid JSON: ${fault.message}`);
  }
};
export const exists = (...parts) => existsSync(at(...parts));
