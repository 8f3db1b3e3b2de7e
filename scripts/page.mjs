import { copyFile, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

const source = resolve(import.meta.dirname, '..', 'simulator', 'page');

/** Writes index.html, page.js and page.css of the simulator's page into `outDir`. */
export const buildPage = async (outDir) => {
  await mkdir(outDir, { recursive: true });
  await Promise.all([
    build({
      entryPoints: [join(source, 'page.ts'), join(source, 'page.css')],
      outdir: outDir,
      bundle: true,
      minify: true,
      format: 'iife',
      target: ['chrome111', 'firefox111', 'safari16.4'],
      tsconfig: resolve(source, '..', '..', 'tsconfig.editor.json'),
      logLevel: 'warning',
    }),
    copyFile(join(source, 'index.html'), join(outDir, 'index.html')),
  ]);
};
