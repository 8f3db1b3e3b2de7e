import type { EditedNode } from './red';

/** Removes from the canvas the statuses that these nodes have from a service which they no longer use. */
export const clearStatuses = (nodes: readonly EditedNode[]): void => {
  for (const node of nodes) {
    if (!node['status']) continue;
    delete node['status'];
    RED.view.redrawStatus(node);
  }
};

/** The nodes that use an environment. */
export const usersOf = (environment: EditedNode): readonly EditedNode[] =>
  (environment['users'] as readonly EditedNode[] | undefined) ?? [];
