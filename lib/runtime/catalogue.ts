import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Language } from '../languages';
import { isRecord } from './red';

const folder = join(__dirname, '..', '..', 'locales');

type Group = Record<string, unknown>;

const read = (language: Language, file: string): Group => {
  const path = join(folder, language, file);
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Group) : {};
};

const readAll = (language: Language): Group => ({
  ...read(language, 'common.json'),
  ...read(language, 'runtime.json'),
  // Errors name the fields of the environment as its form does.
  setting: read(language, 'advisor-environment.json').label,
});

const opened = new Map<string, Group>();

const once = (name: string, open: () => Group): Group => {
  const found = opened.get(name) ?? open();
  opened.set(name, found);
  return found;
};

const find = (group: Group, key: string): string | undefined => {
  let found: unknown = group;
  for (const step of key.split('.'))
    found = isRecord(found) && Object.hasOwn(found, step) ? found[step] : undefined;
  return typeof found === 'string' ? found : undefined;
};

/** The sentence of a key, its `__name__` not yet filled in. */
export const sentence = (language: Language, key: string): string | undefined =>
  find(
    once(language, () => readAll(language)),
    key,
  );

/** What the form of a node calls one of its fields. */
export const fieldLabel = (language: Language, type: string, field: string): string | undefined => {
  const own = once(`${language} ${type}`, () => read(language, `${type}.json`));
  return find(own, `label.${field}`) ?? find(own, `row.${field}`) ?? sentence(language, `label.${field}`);
};
