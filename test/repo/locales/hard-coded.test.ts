import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import 'should';
import ts from 'typescript';
import { spec as activity } from '../../../nodes/activity/spec';
import { spec as checkConsent } from '../../../nodes/check-consent/spec';
import { spec as contact } from '../../../nodes/contact/spec';
import { spec as content } from '../../../nodes/content/spec';
import { spec as doNotText } from '../../../nodes/do-not-text/spec';
import { spec as environment } from '../../../nodes/environment/spec';
import { spec as events } from '../../../nodes/events/spec';
import { spec as group } from '../../../nodes/group/spec';
import { spec as requestConsent } from '../../../nodes/request-consent/spec';
import { spec as sendText } from '../../../nodes/send-text/spec';
import { root } from '../../support/installation';

const specs = [
  activity,
  checkConsent,
  contact,
  content,
  doNotText,
  environment,
  events,
  group,
  requestConsent,
  sendText,
];

const sourcesIn = (...folders: string[]): string[] =>
  folders
    .flatMap((folder) => readdirSync(join(root, folder), { withFileTypes: true, recursive: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));

/** Names of keys and events, a script, the table's own notes for the docs, and details in parentheses. */
const notSentences =
  /^lib\/(auth\/cipher|service\/(endpoints|schemas|wire))\.ts: |: input change keyup paste$/;

/** The text of a literal, with a gap for each value. */
const writtenIn = (node: ts.Node): string | undefined => {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return undefined;
  return [node.head.text, ...node.templateSpans.map((span) => span.literal.text)].join('…');
};

/** Calls that write to the log, and internal errors that no user sees. */
const forTheLog = /(^|[.#])(warn|info|error)$/;
const isForTheLog = (node: ts.Node): boolean => {
  if (ts.isCallExpression(node.parent) && node.parent.expression.kind === ts.SyntaxKind.SuperKeyword)
    return true;
  let at = node;
  while (!ts.isSourceFile(at)) {
    if (ts.isNewExpression(at) && at.expression.getText() === 'Error') return true;
    if (ts.isCallExpression(at) && forTheLog.test(at.expression.getText())) return true;
    if (ts.isStatement(at) && !ts.isBlock(at)) return false;
    at = at.parent;
  }
  return false;
};

type Check = (node: ts.Node) => string | undefined;

const found = (files: readonly string[], check: Check): string[] =>
  files.flatMap((file) => {
    const source = ts.createSourceFile(
      file,
      readFileSync(join(root, file), 'utf8'),
      ts.ScriptTarget.Latest,
      true,
    );
    const complaints: string[] = [];
    const visit = (node: ts.Node): void => {
      const complaint = check(node);
      if (complaint !== undefined) complaints.push(`${file}: ${complaint}`);
      node.forEachChild(visit);
    };
    visit(source);
    return complaints;
  });

const sentence = /\p{L}{2,}[,:]? \p{L}+[,:]? \p{L}{2,}/u;
const word = /\p{L}{2,}/u;

/** Arguments and properties that must not contain a single word of a language. */
const shownBy = /^(look|status\.show|text|title|label|placeholder|aria-label|button|iconButton|textBox)$/;
const key = /^[a-z][A-Za-z]*(\.[\w…]+)+$/;

const nameOf = (name: ts.PropertyName): string => (ts.isStringLiteral(name) ? name.text : name.getText());

/** Attributes and arguments of the simulator's page that people read; the second argument has the attributes. */
const readArguments: Readonly<Record<string, (index: number) => boolean>> = {
  element: (index) => index > 1,
  button: (index) => index === 0,
  append: () => true,
  setAttribute: (index) => index === 1,
};

const nameOfCall = (node: ts.CallExpression): string =>
  ts.isPropertyAccessExpression(node.expression) ? node.expression.name.text : node.expression.getText();

describe('hard-coded text', () => {
  it('is nowhere in the code, except for the log', () => {
    // What the store says about its files is for the log.
    const files = sourcesIn('lib', 'nodes').filter((file) => !file.startsWith('lib/state/'));
    found(files, (node) => {
      const text = writtenIn(node);
      return text !== undefined && sentence.test(text) && !isForTheLog(node) ? text : undefined;
    })
      .filter((complaint) => !notSentences.test(complaint))
      .should.eql([]);
  });

  it('is nowhere in what the editor shows', () => {
    const editor = sourcesIn('lib/editor', 'nodes').filter((file) => /editor|dialog/.test(file));
    editor.length.should.be.aboveOrEqual(20);
    found(editor, (node) => {
      if (ts.isPropertyAssignment(node)) {
        const name = nameOf(node.name);
        const text = writtenIn(node.initializer);
        const isWord = text !== undefined && word.test(text) && text !== 'openid';
        return shownBy.test(name) && isWord ? `${name}: ${text}` : undefined;
      }
      if (!ts.isCallExpression(node) || !['text', 'html', 'append'].includes(nameOfCall(node)))
        return undefined;
      const text = node.arguments
        .map(writtenIn)
        .find((written) => written !== undefined && word.test(written));
      return text === undefined ? undefined : `${nameOfCall(node)}(${text})`;
    }).should.eql([]);
  });

  it('is nowhere in what the simulator’s page shows', () => {
    const files = sourcesIn('simulator/page');
    files.length.should.be.aboveOrEqual(15);
    const isWord = (text: string | undefined): text is string => text !== undefined && word.test(text);
    found(files, (node) => {
      if (ts.isPropertyAssignment(node)) {
        const text = writtenIn(node.initializer);
        return shownBy.test(nameOf(node.name)) && isWord(text) ? text : undefined;
      }
      if (
        ts.isBinaryExpression(node) &&
        node.operatorToken.kind === ts.SyntaxKind.EqualsToken &&
        /\.(textContent|title)$/.test(node.left.getText())
      ) {
        const text = writtenIn(node.right);
        return isWord(text) ? text : undefined;
      }
      if (!ts.isCallExpression(node)) return undefined;
      const isRead = readArguments[nameOfCall(node)];
      return node.arguments
        .filter((_, index) => isRead?.(index))
        .map(writtenIn)
        .find(isWord);
    }).should.eql([]);
    found(files, (node) => {
      const text = writtenIn(node);
      return text !== undefined && sentence.test(text) && !isForTheLog(node) ? text : undefined;
    }).should.eql([]);
  });

  it('is nowhere in the HTML of the simulator’s page', () => {
    const html = readFileSync(join(root, 'simulator/page/index.html'), 'utf8');
    const isFilledIn = /^\{\{[\w.-]+\}\}$/;
    html
      .replaceAll(/<[^>]*>/g, '')
      .replaceAll(/\{\{[\w.-]+\}\}/g, '')
      .should.not.match(word);
    const attributes = [...html.matchAll(/ (?:title|placeholder|aria-label|alt)="([^"]*)"/g)];
    attributes.length.should.be.aboveOrEqual(10);
    for (const [, value = ''] of attributes) value.should.match(isFilledIn);
  });

  it('is nowhere in a status, except keys', () => {
    found(sourcesIn('lib', 'nodes'), (node) => {
      if (!ts.isCallExpression(node)) return undefined;
      const name = nameOfCall(node);
      const [first, , third] = node.arguments;
      if (name === 'look' && third) {
        const text = writtenIn(third);
        return text !== undefined && word.test(text) ? text : undefined;
      }
      if (name !== 'status' || !first || !ts.isObjectLiteralExpression(first)) return undefined;
      const texts = first.properties
        .filter(ts.isPropertyAssignment)
        .filter((each) => each.name.getText() === 'text');
      return texts
        .map((each) => writtenIn(each.initializer))
        .find((text) => text !== undefined && !key.test(text));
    }).should.eql([]);
  });

  it('is nowhere in a form, except the names of scopes', async () => {
    const { formOf } = await import('../../../scripts/build/form.mjs');
    specs.length.should.equal(readdirSync(join(root, 'nodes')).length);
    for (const spec of specs) {
      const form = formOf(
        spec,
        () => true,
        () => [],
      );
      const words = form.replaceAll(/<code>.*?<\/code>/g, '').replaceAll(/<[^>]*>/g, '');
      words.should.not.match(word);
      form.should.not.match(/ (title|placeholder|aria-label)="/);
    }
  });
});
