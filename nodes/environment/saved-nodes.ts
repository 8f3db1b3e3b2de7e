import type { EndpointName } from '../../lib/service/endpoints';
import type { Need } from '../../lib/check/rehearsal';
import { nodeTitle } from '../../lib/runtime/language';
import { lazy } from '../../lib/runtime/lazy';
import type { Red } from '../../lib/runtime/red';
import { isMet, withDefaults } from '../../lib/runtime/settings';
import type { NodeSpec } from '../../lib/runtime/spec';

/** A node of any type, as the flow has it. */
export type SavedNode = Readonly<Record<string, unknown>>;

/** All nodes of the flow, disabled ones included. */
export const savedNodes = (RED: Red): SavedNode[] => {
  const nodes: SavedNode[] = [];
  RED.nodes.eachNode((node) => nodes.push(node as unknown as SavedNode));
  return nodes;
};

export const nodeId = ({ id }: SavedNode): string => (typeof id === 'string' ? id : '');

const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

const labelOf = (node: SavedNode): string =>
  textIn(node['name']) || (nodeTitle('en-US', String(node['type'])) ?? String(node['type']));

/** The label of a node and the tab or subflow that it is on; with its id where others there have the same label. */
export const nodeName = (node: SavedNode, nodes: readonly SavedNode[]): string => {
  const place = nodes.find((each) => nodeId(each) !== '' && nodeId(each) === node['z']);
  const tab = textIn(place?.['label']) || textIn(place?.['name']);
  const label = labelOf(node);
  const twins = nodes.filter(
    (each) => each['z'] === node['z'] && each['type'] === node['type'] && labelOf(each) === label,
  );
  return `"${tab === '' ? '' : `${tab} › `}${label}"${twins.length > 1 ? ` (${nodeId(node)})` : ''}`;
};

/** Nodes that run: neither they nor their tabs are disabled. */
export const runningIn = (nodes: readonly SavedNode[]): SavedNode[] => {
  const off = new Set(nodes.filter((node) => node['disabled'] === true).map(nodeId));
  return nodes.filter((node) => node['d'] !== true && !off.has(String(node['z'])));
};

/** The spec of a node; undefined for a type that is not of this package. */
export const specOf = ({ type }: SavedNode): NodeSpec | undefined => {
  // The folder of a node is its registration: no list names them.
  const [, folder] = /^advisor-([a-z-]+)$/.exec(String(type)) ?? [];
  try {
    return folder === undefined ? undefined : lazy.spec(folder);
  } catch {
    return undefined;
  }
};

/** The endpoints that a node may call. */
export const endpointsOf = (node: SavedNode): EndpointName[] => {
  const { fields, uses } = specOf(node) ?? { fields: [], uses: [] };
  const settings = withDefaults(fields, node);
  return uses.filter(({ when = {} }) => isMet(when, settings)).map(({ endpoint }) => endpoint);
};

/** The endpoints that the running nodes of an environment may call. */
export const needsOf = (nodes: readonly SavedNode[], environment: string): Need[] =>
  runningIn(nodes)
    .filter((node) => node['environment'] === environment)
    .flatMap((node) => endpointsOf(node).map((endpoint) => ({ endpoint, node: nodeName(node, nodes) })));
