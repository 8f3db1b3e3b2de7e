import { readdirSync } from 'node:fs';
import { at, exists, languages, nodeNames, readJson, readText, typeOf } from './folders.mjs';
import { stringsOf } from './form.mjs';

const isGroup = (value) => typeof value === 'object' && value !== null;

const merge = (base, over) => {
  const merged = { ...base };
  for (const [key, value] of Object.entries(over)) {
    merged[key] = isGroup(value) && isGroup(base[key]) ? merge(base[key], value) : value;
  }
  return merged;
};

const read = (language, file) =>
  exists('locales', language, file) ? readJson('locales', language, file) : {};

/** The strings that all nodes share, with a node's own over them. */
const ownStrings = (language, name) =>
  merge(read(language, 'common.json'), read(language, `${typeOf(name)}.json`));

const withDialogs = (language, strings) => merge(read(language, 'dialogs.json'), strings);

/** The strings that the editor loads. Those of dialogs alone are loaded once, see lib/editor/locale.ts. */
export const stringsFor = (language, name) => {
  const strings = ownStrings(language, name);
  return name === 'environment' ? withDialogs(language, strings) : strings;
};

/** Files that are read at run time, see lib/runtime/language.ts and simulator/words.ts. */
export const runtimeFiles = [
  'common.json',
  'runtime.json',
  'simulator.json',
  ...nodeNames().map((name) => `${typeOf(name)}.json`),
];

export const has = (strings, key) =>
  typeof key.split('.').reduce((part, step) => (isGroup(part) ? part[step] : undefined), strings) ===
  'string';

const sources = (folder) =>
  readdirSync(at(folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => readText(entry.parentPath.slice(at().length), entry.name));

/** `say('key')` in the editor, `RED._('key')` and `node._('key')` anywhere: only keys that are written out are found. */
const spoken = /(?:\bsay|\b_)\(\s*'([a-zA-Z][\w.]*)'/g;
const keysIn = (folder) =>
  sources(folder).flatMap((source) => [...source.matchAll(spoken)].map((match) => match[1]));

const keysOf = (strings, prefix = '') =>
  Object.entries(strings).flatMap(([key, value]) =>
    isGroup(value) ? keysOf(value, `${prefix}${key}.`) : [`${prefix}${key}`],
  );

const strangePlaceholders = (sentences) =>
  Object.entries(sentences)
    .filter(([, sentence]) => /(?<!\{)\{\w+\}(?!\})/.test(sentence))
    .map(([key]) => `The sentence ${key} has a placeholder in braces: write it as __name__.`);

/** A sentence for each string, help text or placeholder that is missing in any language. */
export const missingStrings = (specs) => {
  const english = read('en-US', 'runtime.json');
  const ofRuntime = keysOf(english);
  const shared = [...keysIn('lib'), 'status.broken'];
  return languages().flatMap((language) => [
    ...(language === 'en-US'
      ? strangePlaceholders(english.errors)
      : ofRuntime
          .filter((key) => !has(read(language, 'runtime.json'), key))
          .map((key) => `locales/${language}/runtime.json has no string ${key}.`)),
    ...specs.flatMap(({ name, spec }) => {
      const onForms = ownStrings(language, name);
      const anywhere = merge(read(language, 'runtime.json'), withDialogs(language, onForms));
      const needed = new Set([
        ...shared,
        ...keysIn(`nodes/${name}`),
        // Every string of English must be in the other languages too.
        ...keysOf(withDialogs('en-US', ownStrings('en-US', name))),
      ]);
      // A string of the environment under a key of dialogs.json would appear in the dialogs of all nodes.
      const said = keysOf(read(language, 'dialogs.json'));
      const overSaid = name === 'environment' ? said.filter((key) => has(onForms, key)) : [];
      const unlabelled = stringsOf(spec).filter((key) => !has(onForms, key));
      const unsaid = [...needed].filter((key) => !has(anywhere, key) && !unlabelled.includes(key));
      const missing = (key, also) =>
        `locales/${language}/${spec.type}.json (or ${also}) has no string ${key}.`;
      const help = `locales/${language}/${spec.type}.md`;
      return [
        ...overSaid.map(
          (key) => `locales/${language}/${spec.type}.json repeats ${key}, which is in dialogs.json.`,
        ),
        ...unlabelled.map((key) => missing(key, 'common.json')),
        ...unsaid.map((key) => missing(key, 'common.json, dialogs.json')),
        ...(exists(help) && readText(help).trim() !== '' ? [] : [`${help} is missing: write the help text.`]),
      ];
    }),
  ]);
};
