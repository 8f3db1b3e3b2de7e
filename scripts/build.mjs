import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build as esbuild } from 'esbuild';
import { editorLimit, missingParts } from './build/checks.mjs';
import { at, Complaint, exists, languages, nodeNames, readJson, readText } from './build/folders.mjs';
import { helpOf, htmlOf, pluginHtml } from './build/html.mjs';
import { has, missingStrings, runtimeFiles, stringsFor } from './build/strings.mjs';
import { buildPage } from './page.mjs';

const require = createRequire(import.meta.url);
const out = (...parts) => at('dist', ...parts);

const write = (path, text) => {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
};

/** Sources that are bundled into the one file that registers a node. */
const isRegistration = (path) =>
  /(lib[\\/]runtime[\\/]register|nodes[\\/][^\\/]+[\\/]routes)\.ts$/.test(path);

/** All sources that run, except those that are bundled for a browser or for the start. */
const runtimeSources = () =>
  ['command', 'lib', 'nodes', 'simulator']
    .flatMap((folder) => readdirSync(at(folder), { withFileTypes: true, recursive: true }))
    .filter((entry) => entry.isFile() && /\.(ts|json)$/.test(entry.name) && entry.name !== 'editor.ts')
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !path.startsWith(at('lib', 'editor')) && !path.startsWith(at('simulator', 'page')))
    .filter((path) => !/[\\/]nodes[\\/][^\\/]+[\\/]dialog[\\/]/.test(path) && !isRegistration(path));

const compiling = {
  format: 'cjs',
  platform: 'node',
  target: 'node20',
  tsconfig: at('tsconfig.json'),
  logLevel: 'warning',
};

/** `npm run types` checks the types; a build that only strips them takes one second instead of fifteen. */
const compile = async () => {
  await esbuild({
    entryPoints: runtimeSources(),
    outdir: out(),
    outbase: at(),
    loader: { '.json': 'copy' },
    ...compiling,
  });
};

/** Output of a source that was renamed, removed or moved to the browser would be packed too. */
const removeStale = () => {
  const sources = new Set(runtimeSources());
  for (const folder of ['command', 'lib', 'nodes', 'simulator']) {
    if (!existsSync(out(folder))) continue;
    for (const entry of readdirSync(out(folder), { withFileTypes: true, recursive: true })) {
      const path = join(entry.parentPath, entry.name);
      const source = at(path.slice(out().length + 1).replace(/\.js$/, '.ts'));
      const generated = /^(nodes\/(advisor-|icons|locales)|simulator\/page)/.test(
        path.slice(out().length + 1),
      );
      if (entry.isFile() && !generated && !sources.has(source)) rmSync(path);
    }
  }
};

/** All code that runs when Node-RED starts: one small file for each node, which loads the rest when needed. */
const registrationOf = async (name, registered) => {
  const later = [`./${name}/runtime`, `./${name}/on-demand`];
  const routes = exists(`nodes/${name}/routes.ts`);
  const { outputFiles } = await esbuild({
    stdin: {
      contents: `
        import { register } from '../lib/runtime/register';
        ${routes ? `import { routes } from './${name}/routes';` : ''}
        module.exports = (RED) => {
          register(RED, ${JSON.stringify(registered)}, () => require('${later[0]}'));
          ${routes ? `routes(RED, () => require('${later[1]}').onDemand);` : ''}
        };`,
      resolveDir: at('nodes'),
    },
    ...compiling,
    bundle: true,
    external: later,
    write: false,
  });
  return outputFiles[0].text;
};

/** The types of the nodes that need a scope, from the endpoints that they use. */
const needing = (specs) => {
  const { endpoints } = require(out('lib', 'service', 'endpoints.js'));
  return (scope) =>
    specs
      .filter(({ spec }) => spec.uses.some(({ endpoint }) => endpoints[endpoint].scope === scope))
      .map(({ spec }) => spec.type);
};

/** The runtime reads its own strings, because it answers in the language of the request and not only in Node-RED's. */
const writeRuntimeWords = () => {
  rmSync(out('locales'), { recursive: true, force: true });
  for (const language of languages()) {
    for (const file of runtimeFiles)
      write(out('locales', language, file), JSON.stringify(readJson('locales', language, file)));
  }
};

/**
 * The folders of a language. A browser set to a language without a region gets the same: `es` gets the strings of
 * `es-ES`.
 */
const foldersFor = (language) =>
  language === 'en-US' ? [language] : [...new Set([language, language.split('-')[0]])];

const writeNode = async ({ name, spec }, needs) => {
  const { registeredOf } = require(out('lib', 'runtime', 'spec.js'));
  const registered = registeredOf(spec);
  const strings = stringsFor('en-US', name);
  const html = await htmlOf(name, spec, registered, (key) => has(strings, key), needs);
  write(out('nodes', `${spec.type}.js`), await registrationOf(name, registered));
  write(out('nodes', `${spec.type}.html`), html);
  for (const language of languages()) {
    const words = JSON.stringify(stringsFor(language, name));
    const own = readText('locales', language, `${spec.type}.md`);
    // The help of each node with outcomes includes what all such nodes have in common.
    const shared = spec.outputs.includes('failed') ? readText('locales', language, 'common.md') : '';
    const help = helpOf(spec, `${own.trim()}\n\n${shared}`, stringsFor(language, name).docs);
    for (const folder of foldersFor(language)) {
      write(out('nodes', 'locales', folder, `${spec.type}.json`), words);
      write(out('nodes', 'locales', folder, `${spec.type}.html`), help);
    }
  }
  return Buffer.byteLength(html);
};

const build = async () => {
  removeStale();
  await compile();
  const specs = nodeNames().map((name) => ({ name, spec: require(out('nodes', name, 'spec.js')).spec }));
  const missing = [...missingParts(specs), ...missingStrings(specs)];
  if (missing.length > 0) throw new Complaint(missing);
  rmSync(out('nodes', 'locales'), { recursive: true, force: true });
  writeRuntimeWords();
  // A day of leeway, because another machine's clock may be behind.
  write(out('built.json'), String(Date.now() - 24 * 60 * 60 * 1000));
  const needs = needing(specs);
  const sizes = await Promise.all(specs.map((node) => writeNode(node, needs)));
  const plugin = await pluginHtml();
  write(out('plugins', 'advisor-texting.html'), plugin);
  const size = sizes.reduce((sum, bytes) => sum + bytes, Buffer.byteLength(plugin));
  if (size > editorLimit) {
    throw new Complaint(`The editor code of all nodes is ${size} bytes: bring it under ${editorLimit}.`);
  }
  rmSync(out('nodes', 'icons'), { recursive: true, force: true });
  cpSync(at('icons'), out('nodes', 'icons'), { recursive: true });
  await buildPage(out('simulator', 'page'));
  return `Built ${specs.length} nodes; ${(size / 1000).toFixed(1)} kB of editor code.`;
};

try {
  console.log(await build());
} catch (fault) {
  if (!(fault instanceof Complaint)) throw fault;
  console.error(`The build stopped.\n${fault.message}`);
  process.exitCode = 1;
}
