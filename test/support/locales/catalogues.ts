import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../installation';

export const english = 'en-US';
const folder = join(root, 'locales');
export const languages = readdirSync(folder).sort();
export const others = languages.filter((language) => language !== english);

export const filesOf = (language: string, end: '.json' | '.md'): string[] =>
  readdirSync(join(folder, language))
    .filter((file) => file.endsWith(end))
    .sort();

export const textOf = (language: string, file: string): string =>
  readFileSync(join(folder, language, file), 'utf8');

export type Strings = Readonly<Record<string, string>>;

const flat = (group: object, prefix = ''): Record<string, string> =>
  Object.assign(
    {},
    ...Object.entries(group).map(([key, value]: [string, unknown]) =>
      typeof value === 'object' && value !== null
        ? flat(value, `${prefix}${key}.`)
        : { [prefix + key]: String(value) },
    ),
  ) as Record<string, string>;

/** All strings of a file, by their full keys. */
export const stringsOf = (language: string, file: string): Strings =>
  flat(JSON.parse(textOf(language, file)) as object);

/** Placeholders that must stay as written: `__name__`, `{{name}}`, `${VARIABLE}`. */
export const placeholdersOf = (text: string): string[] =>
  [...text.matchAll(/__\w+?__|\{\{\w+\}\}|\$\{\w*\}/g)].map(([found]) => found).sort();
