import js from '@eslint/js';
import { relative } from 'node:path';
import tseslint from 'typescript-eslint';
import { cycleOf } from './scripts/imports.mjs';

/** Dependencies point one way: a folder may use the folders before it. The files at the root of lib come before all. */
const order = [
  'lib/service',
  'lib/state',
  'simulator',
  'lib/auth',
  'lib/check',
  'lib/outbox',
  'lib/consent',
  'lib/runtime',
  'lib/guards',
  'lib/texting',
  'lib/address-book',
  'lib/editor',
  'nodes',
  'command',
];
/** Folders that a folder must not use, although they come before it. */
const withheld = {
  'lib/auth': ['simulator'],
  'lib/check': ['simulator', 'lib/state'],
  'lib/outbox': ['simulator', 'lib/auth', 'lib/check'],
  'lib/consent': ['simulator', 'lib/auth', 'lib/check'],
  'lib/guards': ['simulator', 'lib/auth', 'lib/check', 'lib/consent'],
  'lib/texting': ['simulator', 'lib/auth', 'lib/check', 'lib/consent'],
  'lib/address-book': ['simulator', 'lib/auth', 'lib/check', 'lib/consent', 'lib/state', 'lib/texting'],
  'lib/editor': ['lib/auth', 'lib/check', 'lib/outbox', 'lib/consent', 'lib/state', 'simulator'],
};

const patternOf = (folder) => ({
  regex: `(^|/)${folder.replace('lib/', '(lib/|\\.\\./)')}(/|$)`,
  message: `This folder may not depend on ${folder}: see "Dependencies" in CONTRIBUTING.md.`,
});

const anyFolder = {
  regex: '^\\./[a-z-]+/|^\\.\\./',
  message: 'A file at the root of lib uses nothing: everything may use it.',
};

const nodeRed = {
  regex: '^(@node-red/|node-red)',
  message: 'Only lib/runtime and what stands on it know Node-RED.',
};
const knowsNodeRed = order.slice(order.indexOf('lib/runtime'));

const restricted = (files, patterns) => ({
  files,
  rules: { 'no-restricted-imports': ['error', { patterns }] },
});

const directions = [
  restricted(['lib/*.ts'], [anyFolder, nodeRed]),
  ...order
    .filter((folder) => folder !== 'nodes')
    .map((folder) =>
      restricted(
        [`${folder}/**/*.ts`],
        [
          ...order.slice(order.indexOf(folder) + 1).map(patternOf),
          ...(withheld[folder] ?? []).map(patternOf),
          ...(knowsNodeRed.includes(folder) ? [] : [nodeRed]),
        ],
      ),
    ),
];

const noOtherNode = {
  regex: '^\\.\\./[^.]',
  message: 'No node imports another: what two share belongs in lib/.',
};

/** Patterns of what code in the editor must not use. */
const notForForms = [...withheld['lib/editor'], 'command'].map(patternOf);

const noCycle = {
  create: ({ filename, report }) => ({
    Program(node) {
      const way = cycleOf(filename);
      if (!way) return;
      const files = way.map((path) => relative(import.meta.dirname, path)).join(' → ');
      report({ node, message: `This file imports itself, types included: ${files}.` });
    },
  }),
};

/** Collections that live as long as their key, unless that lives as long as the process. */
const livingKeys = new Set(['Red', 'RuntimeEvents', 'MeterProvider']);
/** Loaded or filled at the first use, or used within one call: a deploy finds nothing in them. */
const ofNoDeploy = [
  'lib/state/sealing.ts: nextNonce',
  'lib/guards/text-hours.ts: zonesByPrefix',
  'lib/runtime/metrics.ts: api',
  'lib/texting/recipients.ts: parsePhoneNumber',
];

/** What outlives a deploy in memory is listed in one place: no module keeps anything else that changes. */
const noModuleState = {
  create: ({ filename, report }) => {
    const file = relative(import.meta.dirname, filename).replaceAll('\\', '/');
    const changes = (kind, init) =>
      kind === 'let' ||
      (init?.type === 'NewExpression' &&
        init.arguments.length === 0 &&
        (['Map', 'Set'].includes(init.callee.name) ||
          (init.callee.name === 'WeakMap' && livingKeys.has(init.typeArguments?.params[0]?.typeName?.name))));
    return {
      'Program > VariableDeclaration, Program > ExportNamedDeclaration > VariableDeclaration'(node) {
        for (const { id, init } of node.declarations)
          if (changes(node.kind, init) && !ofNoDeploy.includes(`${file}: ${id.name}`))
            report({
              node: id,
              message:
                'This outlives a deploy: use processMemory (lib/process-memory.ts), and say there why.',
            });
      },
    };
  },
};

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', '.data*/', 'coverage/', 'test/output/'] },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strict, tseslint.configs.stylistic],
    languageOptions: {
      parserOptions: {
        project: ['./test/tsconfig.json', './tsconfig.editor.json'],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      // The compiler finds them.
      '@typescript-eslint/no-unused-vars': 'off',
      '@typescript-eslint/consistent-type-imports': [
        'error',
        { fixStyle: 'inline-type-imports', disallowTypeAnnotations: false },
      ],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: false } }],
      // Heavy modules are loaded on first use, also where nothing can be awaited.
      '@typescript-eslint/no-require-imports': [
        'error',
        { allow: ['^(axios|zod|undici|lmdb|libphonenumber-js)'] },
      ],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-console': 'error',
    },
  },
  {
    // Rules that ask for all types take a minute. In tests they found nothing that the compiler and the two rules on
    // promises had not.
    files: ['command/**/*.ts', 'lib/**/*.ts', 'nodes/**/*.ts', 'simulator/**/*.ts'],
    extends: [tseslint.configs.strictTypeCheckedOnly, tseslint.configs.stylisticTypeCheckedOnly],
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // tsconfig decides how index signatures are read, and dots are easier to read.
      '@typescript-eslint/dot-notation': 'off',
      // An interface may be implemented by a method that needs no await, and a callback may drop a promise.
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: false } }],
      // There are no enums, and no types are generated.
      '@typescript-eslint/no-generated-empty-object-type': 'off',
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/no-unsafe-enum-comparison': 'off',
    },
  },
  ...directions,
  {
    files: ['lib/**/*.ts', 'nodes/**/*.ts', 'simulator/**/*.ts', 'command/**/*.ts'],
    plugins: { imports: { rules: { 'no-cycle': noCycle } } },
    rules: { 'imports/no-cycle': 'error' },
  },
  {
    files: ['lib/**/*.ts', 'nodes/**/*.ts'],
    ignores: ['lib/editor/**', 'nodes/*/dialog/**', 'nodes/*/editor.ts'],
    plugins: { memory: { rules: { 'no-module-state': noModuleState } } },
    rules: { 'memory/no-module-state': 'error' },
  },
  {
    // The files that load our own modules late.
    files: ['lib/runtime/lazy.ts', 'command/advisor-texting.ts'],
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
  {
    ...restricted(['nodes/*/*.ts'], [patternOf('lib/editor'), patternOf('command'), noOtherNode]),
    ignores: ['nodes/*/editor.ts'],
  },
  restricted(['nodes/*/editor.ts'], [...notForForms, noOtherNode]),
  restricted(
    ['nodes/*/dialog/*.ts'],
    [...notForForms, { ...noOtherNode, regex: '^\\.\\./(\\.\\./)?(?!spec$)[^.]' }],
  ),
  {
    files: ['simulator/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: 'lib/service/(?!clock$)',
              allowTypeImports: true,
              message:
                "The simulator has its own reading of the contract (simulator/endpoints): with the client's, a mistake would be on both sides.",
            },
          ],
        },
      ],
    },
  },
  {
    files: ['simulator/cli.ts', 'bench/**/*.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      // `value.should.be.true` is a property, not a call.
      '@typescript-eslint/no-unused-expressions': 'off',
      // A function that is given to a mock or a matcher is never called by itself.
      '@typescript-eslint/unbound-method': 'off',
      // Tests await a promise or its value, whichever it is.
      '@typescript-eslint/await-thenable': 'off',
      // Processes that tests start report by printing.
      'no-console': 'off',
    },
  },
  {
    files: ['**/*.mjs', '**/*.js'],
    languageOptions: {
      globals: {
        AbortSignal: 'readonly',
        Buffer: 'readonly',
        clearTimeout: 'readonly',
        setInterval: 'readonly',
        console: 'readonly',
        fetch: 'readonly',
        module: 'writable',
        process: 'readonly',
        require: 'readonly',
        setTimeout: 'readonly',
        URL: 'readonly',
        window: 'readonly',
        document: 'readonly',
      },
    },
  },
);
