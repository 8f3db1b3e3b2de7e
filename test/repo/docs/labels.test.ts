import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import should from 'should';
import { root } from '../../support/installation';
import { pagesOfDocs } from '../../support/docs/pages';

const folder = join(root, 'locales', 'en-US');

const stringsIn = (value: unknown): string[] =>
  typeof value === 'string' ? [value] : Object.values(value as Record<string, unknown>).flatMap(stringsIn);

/** The words of the forms, the sidebar and the phones page. */
const said = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .flatMap((name) => stringsIn(JSON.parse(readFileSync(join(folder, name), 'utf8'))))
  .map((text) => text.toLowerCase());

/** Names in italics that are not ours: core nodes and menus of Node-RED, the steps of an item, folders. */
const others = new Set([
  ...['complete', 'csv', 'inject', 'read file', 'write file', 'http request', 'function', 'string'],
  ...['import', 'install', 'examples', 'recipes', 'manage palette', 'nodes', 'filter nodes', 'otherwise'],
  ...['@advisor-texting/node-red', 'complete msg object', 'flow'],
  ...['first row contains column names', 'parse numerical values'],
  ...['a single message [array]', 'add newline'],
  ...[
    'accepted',
    'started',
    'emitted',
    'once',
    'typed',
    'every node',
    'm',
    'c',
    'r',
    'you',
    'report a vulnerability',
  ],
]);

/** These are generated from the sources, or use italics for other things. */
const isOurs = (page: string): boolean =>
  !/(docs[\\/](nodes|api|performance|errors)|CONTRIBUTING|CHANGELOG)/.test(relative(root, page));

const italicsIn = (text: string): string[] =>
  [...text.replaceAll(/```[\s\S]*?```|`[^`\n]*`/g, '').matchAll(/(?<!\w)_([^_\n]+)_(?!\w)/g)].map(
    ([, words = '']) => words.replace(/[….]+$/, '').toLowerCase(),
  );

describe('the docs', () => {
  it('name fields, options, outputs and buttons as the forms do', () => {
    const pages = pagesOfDocs().filter(isOurs);
    const named = pages.flatMap((page) =>
      italicsIn(readFileSync(page, 'utf8')).map((words) => ({ page: relative(root, page), words })),
    );
    should(named.length).be.above(100);
    named
      .filter(({ words }) => !others.has(words) && !said.some((text) => text.startsWith(words)))
      .should.eql([]);
  });

  it('name statuses as the nodes show them', () => {
    const { status } = JSON.parse(readFileSync(join(folder, 'common.json'), 'utf8')) as { status: object };
    const shown = stringsIn(status);
    const named = pagesOfDocs().flatMap((page) =>
      [
        ...readFileSync(page, 'utf8').matchAll(/status(?:es)?(?: (?!with)\w+)? `([^`]+)`(?: or `([^`]+)`)?/g),
      ].flatMap(([, one = '', other = one]) => [one, other]),
    );
    should(named.length).be.above(8);
    named.filter((words) => !words.startsWith('sim ') && !shown.includes(words)).should.eql([]);
  });
});
