import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { languages as spoken } from '../../../lib/languages';
import {
  english,
  filesOf,
  languages,
  others,
  placeholdersOf,
  stringsOf,
  textOf,
} from '../../support/locales/catalogues';
import { root } from '../../support/installation';

/** Names, addresses, numbers, and words that are the same everywhere. */
const sameEverywhere =
  /^(status\.(sim|progress|failedFor)|counts\.separator|placeholder\..*|invalid\.row|label\.(name|text)|option\.service\.(simulator|sandbox)|test\.token|row\.name)$/;

const linesOf = (text: string, pattern: RegExp): string[] =>
  text.split('\n').filter((line) => pattern.test(line));

/** The structure of a help page: headings, lists and tables, and its code. */
const shapeOf = (text: string): string[] =>
  text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => /^(\s*)(#+|-|\d\.|\||)/.exec(line)?.[0] ?? '');

const codeIn = (text: string): string[] => [...text.matchAll(/`[^`]+`/g)].map(([code]) => code).sort();

/** Japanese has no spaces between words: five characters count as two. */
const wordsIn = (text: string): number => {
  const signs = text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー]/gu) ?? [];
  const words = text.match(/[!-~\p{Script=Latin}]*[\p{Script=Latin}\d][!-~\p{Script=Latin}]*/gu) ?? [];
  return words.length + signs.length / 2.5;
};

describe('the languages', () => {
  it('are those of the runtime and the simulator', () => {
    languages.should.eql([...spoken].sort());
  });

  for (const language of others) {
    describe(language, () => {
      it('has the same files as English', () => {
        for (const end of ['.json', '.md'] as const) filesOf(language, end).should.eql(filesOf(english, end));
      });

      for (const file of filesOf(english, '.json')) {
        const ours = stringsOf(language, file);
        const theirs = stringsOf(english, file);

        it(`has the same keys as English in ${file}`, () => {
          Object.keys(ours).sort().should.eql(Object.keys(theirs).sort());
        });

        it(`has the same placeholders as English in ${file}`, () => {
          for (const [key, text] of Object.entries(theirs)) {
            should({ key, found: placeholdersOf(ours[key] ?? '') }).eql({ key, found: placeholdersOf(text) });
          }
        });

        it(`leaves nothing empty or untranslated in ${file}`, () => {
          const same = Object.entries(ours)
            .filter(([key]) => !sameEverywhere.test(key))
            .filter(([key, text]) => text.trim() === '' || (text === theirs[key] && text.includes(' ')))
            .map(([key]) => key);
          same.should.eql([]);
        });
      }

      for (const file of filesOf(english, '.md')) {
        const page = textOf(language, file);
        const original = textOf(english, file);

        it(`has the sections, lists and tables of English in ${file}`, () => {
          shapeOf(page).should.eql(shapeOf(original));
          linesOf(page, /^#/).should.not.eql(linesOf(original, /^#/));
        });

        it(`has every property and code of English in ${file}`, () => {
          codeIn(page).should.eql(codeIn(original));
        });
      }
    });
  }

  for (const language of languages) {
    it(`set the page size in the example of the ${language} help of content search: each result would be texted`, () => {
      const [start = ''] = textOf(language, 'advisor-content.md').split('\n### ');
      start.should.match(new RegExp(`_${stringsOf(language, 'common.json')['label.pageSize'] ?? ''}_\\D*1`));
    });

    for (const file of filesOf(language, '.md')) {
      const strings = stringsOf(language, file.replace('.md', '.json'));
      const shared = stringsOf(language, 'common.json');
      const page = textOf(language, file);

      it(`name the outputs in the ${language} help of ${file.replace('.md', '')} as the node does`, () => {
        const named = linesOf(page, /^\d\. /).map((line) => /\*\*(.+)\*\*/.exec(line)?.[1] ?? line);
        const labels = Object.keys(strings).filter((key) => key.startsWith('output.'));
        named.sort().should.eql(labels.map((key) => strings[key] ?? '').sort());
      });

      it(`have no line in the ${language} help of ${file.replace('.md', '')} that the editor mistakes for a definition`, () => {
        linesOf(page, /:[^:]+\([^:]+\).*?:[^:]*$/).should.eql([]);
      });

      if (file !== 'common.md')
        it(`explain in the ${language} help of ${file.replace('.md', '')} in 150 words what it does, before the fields`, () => {
          const [start = ''] = page.split('\n### ');
          should(wordsIn(start)).be.belowOrEqual(150);
        });

      it(`name the fields in the ${language} help of ${file.replace('.md', '')} as the form does`, () => {
        const labels = [shared, strings].flatMap((from) =>
          Object.keys(from)
            .filter((key) => key.startsWith('label.'))
            .map((key) => from[key] ?? ''),
        );
        const named = linesOf(page, /^- \*\*/).flatMap((line) =>
          [...line.matchAll(/\*\*([^*]+)\*\*/g)].map(([, name]) => name ?? ''),
        );
        named.filter((name) => !labels.some((label) => label.startsWith(name))).should.eql([]);
      });
    }
  }

  it('have no word in a Japanese label that is wider than its column and would be broken', () => {
    // Beside a checkbox there is room for a sentence.
    const flags = ['merge', 'journal', 'skipWithoutPhone', 'all'].map((name) => `label.${name}`);
    const widthOf = (word: string): number =>
      Array.from(word).reduce((sum, sign) => sum + (sign > '\u2e80' ? 1 : 0.6), 0);
    const broken = filesOf('ja', '.json')
      .filter((file) => /^(advisor-.*|common)\.json$/.test(file))
      .flatMap((file) => Object.entries(stringsOf('ja', file)))
      .filter(([key, text]) => key.startsWith('label.') && !flags.includes(key) && text !== '')
      .filter(([, text]) => text.split(' ').some((word) => widthOf(word) > 8.5));
    broken.should.eql([]);
  });

  it('explain every message field in the help or in the docs of a node', () => {
    const pages = readdirSync(join(root, 'docs', 'nodes')).map((name) => join('nodes', name));
    const all = ['nodes.md', ...pages]
      .map((page) => readFileSync(join(root, 'docs', page), 'utf8'))
      .join('\n');
    const fields = [
      ...[
        'outcome',
        'parts',
        'summary',
        'repeated',
        'error',
        'resend',
        'recipient',
        'phone',
        'text',
        'advisor',
      ],
      ...[
        'contact',
        'contactId',
        'group',
        'groupId',
        'dryRun',
        'reset',
        'flush',
        'deliveryDate',
        'frequency',
      ],
      ...['timeZone', 'memberId', 'groupIds', 'topic', 'summary.skipped'],
    ].map((name) => `\`msg.${name}\``);
    const parts = [
      ...['id', 'total', 'byCode', 'alreadySent', 'index', 'count', 'parts.parts'],
      ...['status', 'title', 'detail', 'details', 'traceId', 'instance', 'type', 'retryable', 'attempts'],
      ...['source', 'notBefore', 'movedFrom', 'duplicateOf', 'messageId', 'scheduled', 'segments', 'reason'],
      ...['consentState', 'requested', 'requestedAt', 'state', 'lastChanged', 'blocked', 'since', 'link'],
    ].map((name) => `\`${name}\``);
    [...fields, ...parts].filter((name) => !all.includes(name)).should.eql([]);
  });

  it('link from the help of every node with failures to all error codes and to the recipes', () => {
    for (const language of languages)
      for (const page of ['errors', 'recipes'])
        textOf(language, 'common.md').should.containEql(`/docs/${page}.md)`);
  });

  /** About two screens in the narrowest sidebar. */
  const mostWords = 510;
  for (const file of filesOf(english, '.md').filter((name) => name !== 'common.md')) {
    it(`keep the help of ${file.replace('.md', '')} short enough for two screens`, () => {
      const shared = 'output.failed' in stringsOf(english, file.replace('.md', '.json')) ? 'common.md' : '';
      const text = textOf(english, file) + (shared && textOf(english, shared));
      const words = text.replaceAll(/[|*#-]+/g, ' ').split(/\s+/);
      words.length.should.be.belowOrEqual(mostWords);
    });
  }

  for (const language of languages) {
    it(`say in ${language} that a decline shows as pending`, () => {
      for (const file of ['advisor-request-consent.md', 'advisor-check-consent.md'])
        textOf(language, file).should.match(/^\*\*[^*]+\*\* .*`pending`/m);
    });
  }

  it('say so in the README, too', () => {
    readFileSync(join(root, 'README.md'), 'utf8').should.match(/declined request as `pending`/);
  });
});
