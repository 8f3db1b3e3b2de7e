import { readdirSync } from 'node:fs';
import { at, exists, languages, readJson, readText, typeOf } from './folders.mjs';
import { stringsOf } from './form.mjs';

const isGroup = (value) => typeof value === 'object' && value !== null;

const merge = (base, over) => {
  const merged = { ...base };
  for (const [key, value] of Object.entries(over)) {
    merged[key] = isGroup(value) && isGroup(base[key]) ? merge(base[key], value) : value;
  }
  return merged;
};

/** A node's own strings over those that all nodes share. */
export const stringsFor = (language, name) => {
  const own = `locales/${language}/${typeOf(name)}.json`;
  return merge(
    exists(`locales/${language}/common.json`) ? readJson(`locales/${language}/common.json`) : {},
    exists(own) ? readJson(own) : {},
  );
};

export const has = (strings, key) =>
  typeof key.split('.').reduce((part, step) => (isGroup(part) ? part[step] : undefined), strings) ===
  'string';

const sources = (folder) =>
  readdirSync(at(folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => readText(entry.parentPath.slice(at().length), entry.name));

/** `say('key')` in the editor, `RED._('key')` and `node._('key')` anywhere: the keys must be written out there. */
const spoken = /(?:\bsay|\b_)\(\s*'([a-zA-Z][\w.]*)'/g;
const keysIn = (folder) =>
  sources(folder).flatMap((source) => [...source.matchAll(spoken)].map((match) => match[1]));

/** Every sentence about a string, help text or placeholder that is not there, in any language. */
export const missingStrings = (specs) => {
  const shared = [...keysIn('lib'), 'status.broken'];
  return languages().flatMap((language) =>
    specs.flatMap(({ name, spec }) => {
      const strings = stringsFor(language, name);
      const needed = new Set([
        ...stringsOf(spec),
        ...shared,
        ...keysIn(`nodes/${name}`),
        // What one language explains, the others explain too.
        ...optionalKeys(stringsFor('en-US', name)),
      ]);
      const help = `locales/${language}/${spec.type}.md`;
      return [
        ...[...needed]
          .filter((key) => !has(strings, key))
          .map((key) => `locales/${language}/${spec.type}.json (or common.json) has no string ${key}.`),
        ...(exists(help) && readText(help).trim() !== '' ? [] : [`${help} is missing: write the help text.`]),
      ];
    }),
  );
};

const optionalKeys = (strings, prefix = '') =>
  Object.entries(strings).flatMap(([key, value]) =>
    isGroup(value) ? optionalKeys(value, `${prefix}${key}.`) : [`${prefix}${key}`],
  );
