'use strict';
/**
 * Compiles all sources as mocha starts, as for the package. tsx, which compiles them one by one, names each function
 * whenever it is created: that takes a sixth of the time of the tests, and a third of what runs thousands of times.
 * Processes that this one starts find the result in a file.
 */
const { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const Module = require('node:module');
const { tmpdir } = require('node:os');
const { dirname, join, resolve } = require('node:path');
const process = require('node:process');

const root = dirname(require.resolve('../../package.json'));
const folders = ['bench', 'command', 'lib', 'nodes', 'simulator', 'test'];

const compile = () => {
  const { outputFiles } = require('esbuild').buildSync({
    absWorkingDir: root,
    // A copy of the sources may have no bench.
    entryPoints: folders
      .filter((folder) => existsSync(resolve(root, folder)))
      .map((folder) => `${folder}/**/*.ts`),
    outdir: root,
    outbase: root,
    write: false,
    platform: 'node',
    target: `node${process.versions.node}`,
    format: 'cjs',
    sourcemap: 'inline',
    sourcesContent: false,
  });
  return Object.fromEntries(outputFiles.map(({ path, text }) => [path.replace(/js$/, 'ts'), text]));
};

const { ADVISOR_TEXTING_COMPILED: file = '' } = process.env;
const found = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
const compiled = found.root === root ? found.compiled : compile();
if (found.root !== root) {
  const folder = mkdtempSync(join(tmpdir(), 'advisor-texting-compiled-'));
  process.env.ADVISOR_TEXTING_COMPILED = join(folder, 'sources.json');
  writeFileSync(process.env.ADVISOR_TEXTING_COMPILED, JSON.stringify({ root, compiled }));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
}

process.setSourceMapsEnabled(true);
Module._extensions['.ts'] = (module, path) => {
  module._compile(compiled[path], path);
};
