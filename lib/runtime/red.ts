import type { Node, NodeAPI } from 'node-red';

/** A message, as flows pass them: anything may be on it. */
export type Message = Record<string, unknown> & { _msgid?: string };

/** Node-RED's node, with the members that its type declarations leave out. */
export interface RunningNode extends Node {
  wires: string[][];
  /** Inside a subflow: the id the node has in the editor. */
  _alias?: string;
  /** Ids as the editor has them: of the tab, of the uses of subflows that the node is in, and its own. */
  _path?: string;
  /** What the `done` of an input message calls. */
  _complete(msg: object, error?: Error): void;
}

export type Red = NodeAPI;

export { isRecord } from './kinds';
