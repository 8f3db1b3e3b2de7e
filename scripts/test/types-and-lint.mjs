/** The types and the linter's rules in one process: typed rules use the types that are already checked. */
import { ESLint } from 'eslint';
import ts from 'typescript';
import { at } from '../build/folders.mjs';

const host = {
  ...ts.sys,
  onUnRecoverableConfigFileDiagnostic: (fault) => {
    throw new Error(ts.flattenDiagnosticMessageText(fault.messageText, '\n'));
  },
};
const programs = [at('test', 'tsconfig.json'), at('tsconfig.editor.json')].map((path) => {
  const { fileNames, options, errors } = ts.getParsedCommandLineOfConfigFile(path, {}, host);
  return ts.createProgram(fileNames, options, undefined, undefined, errors);
});
const faults = programs.flatMap((program) => [
  ...program.getConfigFileParsingDiagnostics(),
  ...ts.getPreEmitDiagnostics(program),
]);
const format = {
  getCanonicalFileName: (name) => name,
  getCurrentDirectory: () => at(),
  getNewLine: () => '\n',
};
if (faults.length > 0) console.log(ts.formatDiagnostics(faults, format));

const eslint = new ESLint({
  cwd: at(),
  overrideConfig: {
    files: ['**/*.ts'],
    languageOptions: { parserOptions: { programs, project: null } },
  },
});
const results = await eslint.lintFiles('.');
const formatter = await eslint.loadFormatter('stylish');
const said = await formatter.format(results);
if (said !== '') console.log(said);
process.exitCode = faults.length > 0 || said !== '' ? 1 : 0;
