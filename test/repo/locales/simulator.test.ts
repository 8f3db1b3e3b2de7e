import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import should from 'should';
import { root } from '../../support/installation';
import { english, languages, stringsOf } from '../../support/locales/catalogues';

const file = 'simulator.json';
const read = (...path: string[]): string => readFileSync(join(root, 'simulator', ...path), 'utf8');
const filesIn = (folder: string): string[] =>
  readdirSync(join(root, 'simulator', folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => read(folder, path));

const html = read('page', 'index.html');
const inHtml = [...html.matchAll(/\{\{([\w.-]+)\}\}/g)].map(([, key = '']) => key);

/** `'group.key'`, and `group.${…}` with anything in place of the value. */
const saidIn = (sources: readonly string[]): RegExp[] =>
  sources.flatMap((source) =>
    [...source.matchAll(/'([a-zA-Z]\w*(?:\.[\w-]+)*)'|`([a-zA-Z]\w*\.[\w.${}-]*)`/g)].map(
      ([, key, pattern = '']) =>
        new RegExp(`^${(key ?? pattern.replaceAll(/\$\{[^}]*\}/g, '[\\w-]+')).replaceAll('.', '\\.')}$`),
    ),
  );

describe('the words of the simulator', () => {
  const keys = Object.keys(stringsOf(english, file));
  const ofPage = keys.filter((key) => key.startsWith('page.')).map((key) => key.slice('page.'.length));

  it('exist for every placeholder of the page', () => {
    inHtml.filter((key) => !['language', 'words', ...ofPage].includes(key)).should.eql([]);
  });

  it('are each used somewhere', () => {
    const said = saidIn(filesIn('page'));
    ofPage
      .filter((key) => !inHtml.includes(key) && !said.some((pattern) => pattern.test(key)))
      .should.eql([]);
    const elsewhere = saidIn(filesIn('.'));
    keys
      .filter((key) => !key.startsWith('page.') && !elsewhere.some((pattern) => pattern.test(key)))
      .should.eql([]);
  });

  for (const language of languages) {
    it(`name the nodes and the service as the editor does (${language})`, () => {
      const strings = stringsOf(language, file);
      const sendText = stringsOf(language, 'advisor-send-text.json')['title'];
      const requestConsent = stringsOf(language, 'advisor-request-consent.json')['title'];
      const simulator = stringsOf(language, 'advisor-environment.json')['option.service.simulator'];
      should(strings['page.phones.import']).containEql(sendText);
      should(strings['page.phones.deploy']).containEql(simulator);
      for (const key of ['page.phone.wipeHint', 'page.toast.wiped'])
        should(strings[key]).containEql(requestConsent);
    });
  }
});
