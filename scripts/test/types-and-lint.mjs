/**
 * The types and the linter's rules in one process: typed rules use the types that are already checked. The rules that
 * take longest are left to `--rest`, which checks nothing else.
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
const programs = [at('test', 'tsconfig.json'), at('tsconfig.editor.json')].map((path) => {
  const { fileNames, options, errors } = ts.getParsedCommandLineOfConfigFile(path, {}, host);
  return ts.createProgram(fileNames, options, undefined, undefined, errors);
});
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
const named = (rules) => rules.map((rule) => `@typescript-eslint/${rule}`);
/** The only typed rules of tests. */
const onPromises = named(['no-floating-promises', 'no-misused-promises']);
/** They ask for the type of nearly every expression. */
const onAny = named([
  'no-deprecated',
  'no-unsafe-argument',
  'no-unsafe-assignment',
  'no-unsafe-call',
  'no-unsafe-member-access',
  'no-unsafe-return',
]);
const off = (rules) => Object.fromEntries(rules.map((rule) => [rule, 'off']));
const eslint = new ESLint({
  cwd: at(),
  overrideConfig: [
    parsing(['**/*.ts'], programs),
    ...(isRest
      ? []
      : [
          { files: ['**/*.ts'], rules: off(onAny) },
          { ...parsing(tests, null), rules: off(onPromises) },
        ]),
  ],
  ...(isRest ? { ruleFilter: ({ ruleId }) => [...onPromises, ...onAny].includes(ruleId) } : {}),
});
const results = await eslint.lintFiles('.');
const formatter = await eslint.loadFormatter('stylish');
const said = await formatter.format(results);
if (said !== '') console.log(said);
process.exitCode = faults.length > 0 || said !== '' ? 1 : 0;
