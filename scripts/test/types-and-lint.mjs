/**
 * The types and the linter's rules in one process: typed rules use the types that are already checked. Tests get typed
 * rules only with `--rest`, which checks nothing else.
 */
import { ESLint } from 'eslint';
import ts from 'typescript';
import { at } from '../build/folders.mjs';

const isRest = process.argv.includes('--rest');
const tests = ['test/**/*.ts', 'bench/**/*.ts'];

const host = {
  ...ts.sys,
  onUnRecoverableConfigFileDiagnostic: (fault) => {
    throw new Error(ts.flattenDiagnosticMessageText(fault.messageText, '\n'));
  },
};
const programs = [at('test', 'tsconfig.json'), ...(isRest ? [] : [at('tsconfig.editor.json')])].map(
  (path) => {
    const { fileNames, options, errors } = ts.getParsedCommandLineOfConfigFile(path, {}, host);
    return ts.createProgram(fileNames, options, undefined, undefined, errors);
  },
);
const faults = isRest
  ? []
  : programs.flatMap((program) => [
      ...program.getConfigFileParsingDiagnostics(),
      ...ts.getPreEmitDiagnostics(program),
    ]);
const format = {
  getCanonicalFileName: (name) => name,
  getCurrentDirectory: () => at(),
  getNewLine: () => '\n',
};
if (faults.length > 0) console.log(ts.formatDiagnostics(faults, format));

const parsing = (files, given) => ({
  files,
  languageOptions: { parserOptions: { project: null, programs: given } },
});
const withTypes = ['no-floating-promises', 'no-misused-promises'].map((rule) => `@typescript-eslint/${rule}`);
const eslint = new ESLint({
  cwd: at(),
  overrideConfig: [
    parsing(['**/*.ts'], programs),
    ...(isRest
      ? []
      : [{ ...parsing(tests, null), rules: Object.fromEntries(withTypes.map((rule) => [rule, 'off'])) }]),
  ],
  ...(isRest ? { ruleFilter: ({ ruleId }) => withTypes.includes(ruleId) } : {}),
});
const results = await eslint.lintFiles(isRest ? tests : '.');
const formatter = await eslint.loadFormatter('stylish');
const said = await formatter.format(results);
if (said !== '') console.log(said);
process.exitCode = faults.length > 0 || said !== '' ? 1 : 0;
