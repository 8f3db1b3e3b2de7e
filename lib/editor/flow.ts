import type { EditedNode } from './red';

export const environmentType = 'advisor-environment';

export const environments = (): readonly EditedNode[] => {
  const found: EditedNode[] = [];
  RED.nodes.eachConfig((node) => {
    if (node.type === environmentType) found.push(node);
    return true;
  });
  return found;
};

/** The environment that a node has chosen; undefined for none, or a variable. */
export const environmentOf = (id: unknown): EditedNode | undefined =>
  typeof id === 'string' && id !== '' ? (RED.nodes.node(id) ?? undefined) : undefined;

/** Removes from the canvas the statuses that these nodes have from a service which they no longer use. */
export const clearStatuses = (nodes: readonly EditedNode[]): void => {
  for (const node of nodes) {
    if (!node['status']) continue;
    delete node['status'];
    RED.view.redrawStatus(node);
  }
};

export const usersOf = (environment: EditedNode): readonly EditedNode[] =>
  (environment['users'] as readonly EditedNode[] | undefined) ?? [];

/** The event when a node gets another environment; it is about the node with the old one, and `next` is the new one. */
export const leavesEnvironment = 'advisor-texting:leaves-environment';
