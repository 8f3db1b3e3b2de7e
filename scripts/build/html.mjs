import { readdirSync } from 'node:fs';
import { build, transform } from 'esbuild';
import { at, exists, readText } from './folders.mjs';
import { formOf } from './form.mjs';

/** A closing tag in a string would end the script that contains it. */
const inScript = (code) => code.trim().replaceAll('</script', '<\\/script');

/** What a module exports as an object: the format `iife` of esbuild adds code for CommonJS to every bundle. */
const asFunction = (code, name) => {
  const body = code.replace(/export\{([^{}]*)\};?\s*$/, (_, exported) => {
    const pairs = exported.split(',').map((each) => each.split(' as '));
    return `return{${pairs.map(([own, shown = own]) => `${shown}:${own}`).join()}}`;
  });
  return `var ${name}=(()=>{"use strict";${body}})();`;
};

const bundle = async (contents, globalName) => {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: at() },
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    target: 'es2020',
    charset: 'utf8',
    tsconfig: at('tsconfig.editor.json'),
    logLevel: 'warning',
  });
  return inScript(asFunction(outputFiles[0].text.trim(), globalName));
};

const stylesIn = async (...folders) => {
  const sheets = folders.flatMap((folder) =>
    exists(folder)
      ? readdirSync(at(folder))
          .filter((file) => file.endsWith('.css'))
          .map((file) => readText(folder, file))
      : [],
  );
  const { code } = await transform(sheets.join('\n'), { loader: 'css', minify: true });
  return code.trim();
};

const literal = (value) =>
  typeof value === 'string'
    ? `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
    : JSON.stringify(value);

const defaultOf = (field) => {
  const validate = field.kind === 'flag' ? '' : `, validate: check('${field.name}')`;
  switch (field.kind) {
    case 'credential':
      return [];
    case 'environment':
      return [`${field.name}: { value: '', type: 'advisor-environment'${validate} }`];
    case 'typed':
      return [
        `${field.name}: { value: ${literal(field.default)}${validate} }`,
        `${field.name}Type: { value: ${literal(field.defaultType)} }`,
        // The name of the record that was chosen, for the node's label.
        ...(field.lookup && field.lookup !== 'content' && !field.several
          ? [`${field.name}Name: { value: '' }`]
          : []),
      ];
    case 'text':
      return [
        `${field.name}: { value: ${literal(field.default)}${field.required || field.format ? validate : ''} }`,
      ];
    default:
      return [`${field.name}: { value: ${literal(field.default)}${validate} }`];
  }
};

/**
 * The registration is written out with its object, because the flow library reads this file as text to find the types
 * of a package.
 */
const registration = (spec, { type, credentials }) => {
  const flow = spec.category !== 'config';
  const lines = [
    `category: ${literal(spec.category)}`,
    `color: ${literal(spec.color)}`,
    `icon: ${literal(spec.icon)}`,
    ...(flow
      ? [
          `inputs: ${spec.inputs}`,
          `outputs: ${spec.outputs.length}`,
          `outputLabels: function (index) { return this._('output.' + ${literal(spec.outputs)}[index]); }`,
          `align: 'left'`,
        ]
      : []),
    `defaults: {\n    ${spec.fields.flatMap(defaultOf).join(',\n    ')}\n  }`,
    ...(Object.keys(credentials).length === 0 ? [] : [`credentials: ${JSON.stringify(credentials)}`]),
    `paletteLabel: function () { return this._('title'); }`,
    `label: function () { return AdvisorTexting.label(this, spec, own); }`,
    `labelStyle: function () { return this.name ? 'node_label_italic' : ''; }`,
    ...(flow ? [`onadd: function () { AdvisorTexting.added(this); }`] : []),
    `oneditprepare: function () { AdvisorTexting.open(this, spec, own); }`,
    `oneditsave: function () { AdvisorTexting.save(this); }`,
    `oneditcancel: function () { AdvisorTexting.close(this); }`,
    `oneditdelete: function () { AdvisorTexting.close(this); }`,
  ];
  return `RED.nodes.registerType('${type}', {\n  ${lines.join(',\n  ')}\n});`;
};

/** The part of the spec that the editor needs; the look is in the registration. */
const specForEditor = ({ type, category, fields }) =>
  // Names without quotes are shorter. A quote inside a text has a backslash before it, so that no text is changed.
  inScript(JSON.stringify({ type, category, fields }).replaceAll(/"([a-z]\w*)":/gi, '$1:'));

const ownOf = async (name) => {
  const entry = `nodes/${name}/editor.ts`;
  if (name === 'environment') return 'var own = AdvisorTexting.environment;';
  return exists(entry) ? bundle(`export * from './${entry}'`, 'own') : 'var own = {};';
};

/** The editor code that all nodes share, in one bundle with that of the environment. */
const sharedCode = () =>
  bundle(
    `export * from './lib/editor'; export * as environment from './nodes/environment/editor'`,
    'AdvisorTexting',
  );

/** A node's `.html`. The shared editor code is in that of the environment, which every node needs. */
export const htmlOf = async (name, spec, registered, said, needs) => {
  const own = await ownOf(name);
  const shared =
    name === 'environment'
      ? `<style>${await stylesIn('lib/editor', 'nodes/environment/dialog')}</style>
<script type="text/javascript">${await sharedCode()}</script>
`
      : '';
  return `${shared}<script type="text/javascript">
(function () {
var spec = ${specForEditor(spec)};
var check = function (name) {
  return function (value, options) { return AdvisorTexting.checkField(this, spec, name, value); };
};
${own}
${registration(spec, registered)}
})();
</script>
<script type="text/html" data-template-name="${spec.type}">
${formOf(spec, said, needs)}
</script>
`;
};

/** The sidebar, a plugin of the editor. Its strings and styles are in the environment's files. */
export const pluginHtml = async () =>
  `<script type="text/javascript">${await bundle(`import './nodes/environment/dialog/sidebar'`, 'AdvisorTextingSidebar')}</script>
`;

/** Lets a long code in a table break after each of its words. */
const breakable = (markdown) =>
  markdown.replaceAll(/^\|.*$/gm, (row) =>
    row.replaceAll(/`([a-z]+(?:_[a-z]+)+)`/g, (_, code) => `<code>${code.replaceAll('_', '_<wbr>')}</code>`),
  );

const { homepage } = JSON.parse(readText('package.json'));
const docs = homepage.replace(/#.*$/, '/blob/main/docs/nodes');

/**
 * The palette shows the first paragraph of a help text only when it is not inside another element, so the element by
 * which our styles find the text comes before it.
 */
export const helpOf = (spec, markdown, link) =>
  `<script type="text/markdown" data-help-name="${spec.type}">
<div class="advisor-help"></div>

${breakable(markdown.trim())}

[${link}](${docs}/${spec.type.replace('advisor-', '')}.md)
</script>
`;
