import { readdirSync } from 'node:fs';
import { at, exists, nodeNames, readJson, typeOf } from './folders.mjs';

const linesOfPackage = (names) => {
  const { 'node-red': section } = readJson('package.json');
  const expected = Object.fromEntries(names.map((name) => [typeOf(name), `dist/nodes/${typeOf(name)}.js`]));
  return [
    ...Object.entries(expected)
      .filter(([type, file]) => section.nodes[type] !== file)
      .map(([type, file]) => `package.json: "node-red"."nodes" needs the line "${type}": "${file}".`),
    ...Object.keys(section.nodes)
      .filter((type) => !(type in expected))
      .map((type) => `package.json: "node-red"."nodes" lists ${type}, but nodes/ has no folder for it.`),
  ];
};

const typesInExamples = () =>
  new Set(
    readdirSync(at('examples'))
      .filter((file) => file.endsWith('.json'))
      .flatMap((file) => readJson('examples', file))
      .map((node) => node.type),
  );

/** Sentences about what a node lacks besides its strings. */
export const missingParts = (specs) => {
  const used = typesInExamples();
  return [
    ...linesOfPackage(nodeNames()),
    ...specs.flatMap(({ name, spec }) => [
      ...(spec.type === typeOf(name) ? [] : [`nodes/${name}/spec.ts: its type must be ${typeOf(name)}.`]),
      ...(exists(`nodes/${name}/runtime.ts`)
        ? []
        : [`nodes/${name}/runtime.ts is missing: write what the node does.`]),
      ...(exists('icons', spec.icon)
        ? []
        : [`icons/${spec.icon} is missing: draw the icon of ${spec.type}.`]),
      ...(used.has(spec.type) ? [] : [`No flow in examples/ uses ${spec.type}: add one.`]),
    ]),
  ];
};

/** Bytes: the most that the editor may load before anybody has opened a dialog. */
export const editorLimit = 200 * 1000;
