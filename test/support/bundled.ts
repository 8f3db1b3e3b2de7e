import { createRequire } from 'node:module';
import { compileFunction } from 'node:vm';
import { buildSync } from 'esbuild';

/**
 * What a module of the tests exports: it is compiled in one with all of ours that it imports, and as the package is. The
 * loader of the tests names each function whenever it is made, which takes a third of the time of what runs thousands of
 * times.
 */
export const bundled = (path: string): unknown => {
  const { outputFiles } = buildSync({
    entryPoints: [path],
    bundle: true,
    packages: 'external',
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    write: false,
  });
  const module = { exports: {} };
  const run = compileFunction(outputFiles[0]?.text ?? '', ['module', 'require'], { filename: path });
  Reflect.apply(run, undefined, [module, createRequire(path)]);
  return module.exports;
};
