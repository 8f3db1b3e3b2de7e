import { isVariable, type Values } from '../runtime/settings';
import type { EditedNode } from './red';
import { holdsVariable, savedOr } from './values';

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

/** What decides where texts go: the service, and the origin of its address. */
export const placeOf = ({ service, baseUrl }: Values): string => {
  if (savedOr(service, 'simulator') === 'simulator') return 'simulator';
  const address = typeof baseUrl === 'string' ? baseUrl.trim() : '';
  return JSON.stringify([service, URL.canParse(address) ? new URL(address).origin : address]);
};

/** Whether two environments use different services, whatever their variables hold. */
const areApart = (...both: readonly [EditedNode, EditedNode]): boolean => {
  const [service, other] = both.map((each) => savedOr(each['service'], 'simulator'));
  const [place, otherPlace] = both.map(placeOf);
  if (isVariable(service) || isVariable(other) || place === otherPlace) return false;
  return service !== other || !both.some(({ baseUrl }) => holdsVariable(String(baseUrl)));
};

interface Sender {
  readonly source: EditedNode;
  /** Only of a wire. */
  readonly sourcePort?: number;
}

const inputPort = 1;

/** The nodes that send to a node: by wire, through a link, or from outside its subflow. */
export const sendersOf = ({ id, type, z, links }: EditedNode): readonly Sender[] => {
  if (type === 'subflow')
    return (RED.nodes.subflow(String(z))?.instances ?? []).map((source) => ({ source }));
  const linked = type === 'link in' ? ((links ?? []) as readonly string[]) : [];
  return [
    ...RED.nodes.getNodeLinks(id, inputPort),
    ...linked.flatMap((each) => {
      const source = RED.nodes.node(each);
      return source ? [{ source }] : [];
    }),
  ];
};

/** What passes a message on unchanged. */
const passing = ['junction', 'link in', 'link out'];

/** The output after which a node of ours goes on with somebody's consent. */
const seekingConsent: Readonly<Record<string, number>> = {
  'advisor-send-text': 2,
  'advisor-request-consent': 0,
  'advisor-check-consent': 2,
};

const consentNodes = ['advisor-request-consent', 'advisor-check-consent'];

/** A node that is wired to a consent node with this environment, but uses another service. */
export const senderApart = (node: EditedNode, environment: EditedNode): EditedNode | undefined => {
  if (!consentNodes.includes(node.type)) return undefined;
  const passed = new Set([node]);
  for (const each of passed)
    for (const { source, sourcePort } of sendersOf(each)) {
      if (source['d'] === true) continue;
      if (passing.includes(source.type)) passed.add(source);
      const other = environmentOf(source['environment']);
      if (other && seekingConsent[source.type] === sourcePort && areApart(environment, other)) return source;
    }
  return undefined;
};

/** Milliseconds: an import adds many wires at once. */
const gathering = 100;

/** The editor checks a node when it is changed, but not when a wire to it is, or the node before it. */
export const recheckConsentNodes = (): void => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const recheck = (): void => {
    for (const type of consentNodes)
      for (const node of RED.nodes.filterNodes({ type })) RED.editor.validateNode(node);
    RED.view.redraw();
  };
  // The only event of a wire between two link nodes.
  RED.events.on('workspace:dirty', () => {
    clearTimeout(timer);
    timer = setTimeout(recheck, gathering);
  });
};
