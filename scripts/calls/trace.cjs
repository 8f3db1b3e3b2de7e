'use strict';
/**
 * Loaded before the package: records each of its functions that is entered, and which of its files called it: the
 * nearest one on the stack. What the event loop or a promise calls has no caller.
 */
const { AsyncLocalStorage } = require('node:async_hooks');
const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { join, relative, sep } = require('node:path');
const ts = require('typescript');

const dist = join(require.resolve('../../package.json'), '..', 'dist');
const sourceOf = (path) => {
  if (!path?.startsWith(dist + sep)) return undefined;
  const file = relative(dist, path).replaceAll(sep, '/');
  return /^(lib\/|nodes\/[^/]+\/).*\.js$/.test(file) ? file.replace(/js$/, 'ts') : undefined;
};

const stackOf = () => {
  const { prepareStackTrace, stackTraceLimit } = Error;
  Error.stackTraceLimit = 100;
  Error.prepareStackTrace = (_, frames) => frames;
  const { stack } = new Error();
  Object.assign(Error, { prepareStackTrace, stackTraceLimit });
  return stack;
};

const callerOf = (stack) => {
  for (const frame of stack) {
    if (frame.isAsync()) return undefined;
    const file = sourceOf(frame.getFileName());
    if (file !== undefined) return file;
  }
  return undefined;
};

let entered = [];
const work = new AsyncLocalStorage();

globalThis.enterTraced = (file, name) => {
  // Past `stackOf`, this function and the one that was entered.
  const from = callerOf(stackOf().slice(3));
  entered.push({ file, name, from, isWork: work.getStore() === true });
};

/** What follows from this is marked as work. */
exports.marked = (begin) => work.run(true, begin);

/** The functions entered since the last time. */
exports.take = () => {
  const taken = entered;
  entered = [];
  return taken;
};

const nameOf = (node) => (node.name ?? node.parent.name ?? node.parent.left)?.getText() ?? '';

/** The code with a record at the start of each function. */
const traced = (code, file) => {
  const source = ts.createSourceFile(file, code, ts.ScriptTarget.Latest, true, ts.ScriptKind.JS);
  const inserted = [];
  const visit = (node) => {
    // What esbuild adds to a module: reading an import is not a call.
    if (ts.isCallExpression(node) && node.expression.getText() === '__export') return;
    if (ts.isVariableDeclaration(node) && node.name.getText().startsWith('__')) return;
    if (ts.isFunctionLike(node) && node.body) {
      const note = `enterTraced(${JSON.stringify(file)}, ${JSON.stringify(nameOf(node))})`;
      if (ts.isBlock(node.body)) inserted.push([node.body.getStart() + 1, `${note};`]);
      else inserted.push([node.body.getStart(), `(${note}, `], [node.body.getEnd(), ')']);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return inserted
    .sort(([a], [b]) => b - a)
    .reduce((text, [at, added]) => text.slice(0, at) + added + text.slice(at), code);
};

const load = Module._extensions['.js'];
Module._extensions['.js'] = (module, path) => {
  const file = sourceOf(path);
  if (file === undefined) load(module, path);
  else module._compile(traced(readFileSync(path, 'utf8'), file), path);
};
