import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, tarball } from '../../test/support/installation';
import { figureOf } from '../figures';
import type { Part } from '../part';

/** An address of any kind, and what a browser would fetch without one. */
const fetched = /https?:\/\/|(?:src|href)\s*=\s*["']?\/\/|url\(\s*["']?\/\/|@import/gi;

/** The bytes of editor code of all nodes, and how many things in it come from elsewhere. */
export const editorCode = (): { readonly bytes: number; readonly fetched: number } => {
  const folder = join(root, 'dist', 'nodes');
  const pages = readdirSync(folder)
    .filter((name) => name.endsWith('.html'))
    .map((name) => readFileSync(join(folder, name), 'utf8'));
  if (pages.length === 0) throw new Error('The package has not been built.');
  return {
    bytes: pages.reduce((sum, page) => sum + Buffer.byteLength(page), 0),
    fetched: pages.reduce((sum, page) => sum + [...page.matchAll(fetched)].length, 0),
  };
};

export const editor: Part = {
  name: 'editor',
  title: 'bytes of editor code',
  roundsFor: () => 1,
  async run() {
    tarball();
    const code = editorCode();
    return [
      {
        measurement: 'editor code of all nodes',
        unit: 'kB',
        ours: figureOf([code.bytes / 1000]),
        goal: { of: 'ours', below: 120 },
      },
      {
        measurement: 'things the editor code fetches from outside',
        unit: '',
        ours: figureOf([code.fetched]),
        goal: { of: 'ours', atMost: 0 },
      },
    ];
  },
};
