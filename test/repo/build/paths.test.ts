import { readdirSync, readFileSync } from 'node:fs';
import { join, win32 } from 'node:path';
import should from 'should';
import ts from 'typescript';
import { root } from '../../support/installation';

const sources = ['lib', 'nodes', 'simulator', 'command']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(root, folder, name)),
  )
  .map((name) => ({ name, text: readFileSync(name, 'utf8') }))
  .filter(({ text }) => /'node:(fs|path)/.test(text));

/** The functions that a file imports from the modules of files and paths. */
const pathFunctionsOf = (file: ts.SourceFile): Set<string> =>
  new Set(
    file.statements.flatMap((statement) => {
      if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) return [];
      if (!/^node:(fs|fs\/promises|path)$/.test(statement.moduleSpecifier.text)) return [];
      const names = statement.importClause?.namedBindings;
      if (!names || !ts.isNamedImports(names)) return [];
      return names.elements.map(({ name }) => name.text);
    }),
  );

/** The texts that are written into an expression. */
const textsIn = (node: ts.Node): string[] => {
  if (ts.isStringLiteralLike(node)) return [node.text];
  const own =
    ts.isTemplateHead(node) || ts.isTemplateMiddle(node) || ts.isTemplateTail(node) ? [node.text] : [];
  const inside: string[] = [];
  ts.forEachChild(node, (child) => void inside.push(...textsIn(child)));
  return [...own, ...inside];
};

/** What stands in the arguments of calls that take a path. */
const writtenPaths = (name: string, text: string): string[] => {
  const file = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true);
  const functions = pathFunctionsOf(file);
  const found: string[] = [];
  const look = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isIdentifier(node.expression) && functions.has(node.expression.text))
      found.push(...node.arguments.flatMap(textsIn));
    ts.forEachChild(node, look);
  };
  look(file);
  return found;
};

/** `..` upwards is the same everywhere once `join` has read it, and /proc is read on Linux alone. */
const isForeignToWindows = (text: string): boolean =>
  !text.startsWith('/proc/') && /[<>:"|?*\\/]/.test(text.replace(/^(\.\.\/?)+$/, ''));

describe('paths', () => {
  it('are recognized where they hold what Windows does not allow', () => {
    const head = "import { readFileSync } from 'node:fs';\n";
    for (const call of [
      "readFileSync(folder + '/store')",
      'readFileSync(`${folder}/store`)',
      "readFileSync('a:b')",
    ])
      should(writtenPaths('a.ts', head + call).some(isForeignToWindows)).be.true();
    should(
      writtenPaths('a.ts', `${head}readFileSync(join(folder, 'store'))`).some(isForeignToWindows),
    ).be.false();
  });

  it('are put together by node:path alone, from names that Windows allows', () => {
    const all = sources.map(({ name, text }) => ({ name, paths: writtenPaths(name, text) }));
    should(all.flatMap(({ paths }) => paths).length).be.above(30);
    const foreign = all.flatMap(({ name, paths }) =>
      paths.filter(isForeignToWindows).map((path) => `${name}: ${path}`),
    );
    should(foreign).eql([]);
  });

  it('of the pipe that shows life on Windows belong to no folder', () => {
    const pipe = String.raw`\\.\pipe\advisor-texting-owner`;
    should(win32.resolve(String.raw`C:\Users\Ann Ito\.node-red\advisor-texting`, pipe)).equal(pipe);
  });
});
