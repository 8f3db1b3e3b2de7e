import type { EditedNode, OwnEditor } from './red';

export { check, close, open, save } from './form';

/** The name, else a sentence about what the node does. */
export const label = (node: EditedNode, own: OwnEditor): string => {
  if (node.name) return node.name;
  return own.label?.(node, (key, parts) => node._(key, parts)) ?? node._('title');
};
