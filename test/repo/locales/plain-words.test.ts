import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import 'should';
import { examples } from '../../support/examples/setup';
import { english, filesOf, stringsOf } from '../../support/locales/catalogues';
import { root } from '../../support/installation';

/** Files and folders whose prose is checked; of sources, the comments and the titles of tests. */
const scanned = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'SUPPORT.md',
  'bench',
  'docs',
  'locales/en-US',
  'command',
  'lib',
  'nodes',
  'scripts',
  'simulator',
  'test',
];

/** Words and phrases that do not read as plain English, and what to write instead. */
const plain: readonly (readonly [RegExp, string])[] = [
  [/\bmend(s|ed|ing)?\b/i, 'fix, fixed'],
  [/\b(put|puts|goes?|went|going) on record\b|\bon record\b/i, 'save, saved'],
  [/\b(are|is|was|were|been|be|yet to be) told\b(?! apart)/i, 'emitted, reported, determined'],
  [/\btells? (an|its|the) outcomes?\b/i, 'emit'],
  [/\bbegun\b/i, 'started'],
  [/\bjudg(e|es|ed|ing)\b/i, 'check, decide'],
  [/\bput(s|ting)? off\b/i, 'delay'],
  [/\bsealed\b/i, 'encrypted'],
  [/\b(not |no longer )?to be had\b/i, 'available, unavailable'],
  [/\bis to come from\b/i, 'is read from'],
  [/\ball the same\b/i, 'anyway, still'],
  [/\bfor none is\b/i, 'because no … is'],
  [/\bheed(s|ed)?\b/i, 'accept'],
  [/\bother signs\b/i, 'other characters'],
  [/(?<!meter |identity )\bprovider\b/i, 'operator'],
  [/\brepeat(s|ed|ing)? (a|the|such a|one) (request|send|text)\b/i, 'retry'],
  [/\bwant of\b/i, 'lack of'],
  [/\b(is|are) to be\b/i, 'must be, will be'],
  [/\byet to\b/i, 'not … yet'],
  [/\bfor ever\b/i, 'forever'],
  [/\bwhomever\b|\bin earnest\b|\bas told\b/i, 'plain words'],
  [/\bafresh\b|\banew\b/i, 'again, from the start'],
  [/\bwhosoever\b|\bthereof\b|\bwherein\b|\bhence\b/i, 'plain words'],
];

const isSource = /\.(ts|mts|mjs|cjs|js)$/;

/** The title that a line gives to a test or a group of tests. */
const titleIn = (line: string): string =>
  /^\s*(?:it|describe)\((?<quote>['"`])(?<title>.*)\k<quote>/.exec(line)?.groups?.['title'] ?? '';

/** The lines of a source with only comments and titles left; the simple patterns never meet a string with `//`. */
const proseOf = (source: string): string[] => {
  let isInside = false;
  return source.split('\n').map((line) => {
    const [, block] = /(\/\*.*)$/.exec(line) ?? [];
    const [, comment] = /(?:^|[^:'"`])(\/\/ .*)$/.exec(line) ?? [];
    const shown = isInside ? line : (block ?? comment ?? titleIn(line));
    if (isInside || block !== undefined) isInside = !line.includes('*/');
    return shown;
  });
};

/** Prose without code, addresses and the targets of links. */
const prose = (line: string): string => line.replaceAll(/`[^`]*`|\]\([^)]*\)|https?:\S+/g, ' ');

const filesIn = (path: string): string[] =>
  statSync(join(root, path)).isFile()
    ? [path]
    : readdirSync(join(root, path), { recursive: true, encoding: 'utf8' })
        .filter((name) => /\.md$/.test(name) || isSource.test(name))
        .map((name) => join(path, name));

const complaintsAbout = (where: string, lines: readonly string[]): string[] =>
  lines.flatMap((line, index) =>
    plain.flatMap(([pattern, better]) => {
      const [found] = pattern.exec(prose(line)) ?? [];
      return found === undefined ? [] : [`${where}:${String(index + 1)}: "${found}": write ${better}`];
    }),
  );

describe('the prose of the project', () => {
  for (const path of scanned) {
    it(`is plain English in ${path}`, () => {
      filesIn(path)
        .flatMap((file) => {
          const text = readFileSync(join(root, file), 'utf8');
          return complaintsAbout(file, isSource.test(file) ? proseOf(text) : text.split('\n'));
        })
        .should.eql([]);
    });
  }

  it('is plain English in dialogs, statuses, errors and the log', () => {
    filesOf(english, '.json')
      .flatMap((file) =>
        Object.entries(stringsOf(english, file)).flatMap(([key, text]) =>
          complaintsAbout(`locales/en-US/${file} ${key}`, [text]),
        ),
      )
      .should.eql([]);
  });

  it('is plain English in the notes of the examples', () => {
    examples
      .flatMap(({ title, nodes }) =>
        nodes.flatMap(({ name, info }) => complaintsAbout(title, [String(name ?? ''), String(info ?? '')])),
      )
      .should.eql([]);
  });

  it('is reported with the word to use, in comments and titles alike', () => {
    const source = ['// It is mended.', "const mended = '';", "it('is mended', () => {});"].join('\n');
    complaintsAbout('here', proseOf(source)).should.eql([
      'here:1: "mended": write fix, fixed',
      'here:3: "mended": write fix, fixed',
    ]);
  });
});
