'use strict';
/**
 * Compiles all sources as mocha starts, as for the package. tsx, which compiles them one by one, names each function
 * whenever it is created: that takes a sixth of the time of the tests, and a third of what runs thousands of times.
 * Processes that this one starts find the result in a folder.
 */
const { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } = require('node:fs');
const Module = require('node:module');
const { tmpdir } = require('node:os');
const { dirname, join, relative, resolve } = require('node:path');
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
  const results = mkdtempSync(join(tmpdir(), 'advisor-texting-compiled-'));
  process.once('exit', () => rmSync(results, { recursive: true, force: true }));
  for (const { path, text } of outputFiles) {
    const file = join(results, relative(root, path));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  writeFileSync(join(results, 'root'), root);
  return results;
};

const { ADVISOR_TEXTING_COMPILED: given = '' } = process.env;
const mark = join(given, 'root');
const isOurs = existsSync(mark) && readFileSync(mark, 'utf8') === root;
const compiled = isOurs ? given : compile();
process.env.ADVISOR_TEXTING_COMPILED = compiled;

process.setSourceMapsEnabled(true);
Module._extensions['.ts'] = (module, path) => {
  const file = join(compiled, relative(root, path)).replace(/ts$/, 'js');
  module._compile(readFileSync(file, 'utf8'), path);
};
