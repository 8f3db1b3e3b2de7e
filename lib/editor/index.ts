import { sayOf } from './locale';
import type { EditedNode, EditorSpec, OwnEditor } from './red';
import { environments, usersOf } from './flow';
import { chosenIn, withDefaults } from '../runtime/settings';
import { isUnknown, noVariable } from './values';

export { checkField, close, open, save } from './form';

/** A setting with an unknown value, for which there is no sentence. */
const unknownIn = (node: EditedNode, spec: EditorSpec): string | undefined => {
  const field = spec.fields.find(
    (each) => each.kind === 'choice' && !each.when && !each.advanced && isUnknown(each, node[each.name]),
  );
  return field?.kind === 'choice' ? chosenIn(field, node[field.name]) : undefined;
};

/** The name of the node, else a sentence about what it does. */
export const label = (node: EditedNode, spec: EditorSpec, own: OwnEditor): string => {
  if (node.name) return node.name;
  const say = sayOf(node);
  const choice = unknownIn(node, spec);
  if (choice !== undefined) {
    const title = say('title');
    return ['', noVariable].includes(choice) ? title : say('unknownLabel', { title, choice });
  }
  const values = withDefaults(spec.fields, node);
  const { operation } = values;
  const usual = typeof operation === 'string' ? `sentence.${operation}` : 'title';
  return own.label?.(values, say) ?? say(usual);
};

/** The environment that most nodes use, if all environments are simulators: then a wrong guess texts nobody. */
const usualSimulator = (): string | undefined => {
  const found = [...environments()].sort((one, other) => usersOf(other).length - usersOf(one).length);
  return found.every(({ service }) => service === 'simulator') ? found[0]?.id : undefined;
};

/** A node that is dragged in gets the environment that most other nodes of the flow use. */
export const added = (node: EditedNode): void => {
  if (node['environment'] !== '') return;
  const uses = new Map<string, number>();
  for (const other of RED.nodes.filterNodes({ z: node['z'] })) {
    const used = other['environment'];
    if (other !== node && other.type.startsWith('advisor-') && typeof used === 'string' && used !== '')
      uses.set(used, (uses.get(used) ?? 0) + 1);
  }
  const [most] = [...uses].sort(([, one], [, other]) => other - one);
  const chosen = most?.[0] ?? usualSimulator();
  if (chosen !== undefined) node['environment'] = chosen;
};
