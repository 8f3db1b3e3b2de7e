import type { Node, NodeAPI } from 'node-red';

export type Message = Record<string, unknown> & { _msgid?: string };

/** A Node-RED node, with members that the type declarations lack. */
export interface RunningNode extends Node {
  wires: string[][];
  /** In a subflow, the id that the node has in the editor. */
  _alias?: string;
  /** Ids as in the editor: of the tab, of the uses of subflows around the node, and its own. */
  _path?: string;
  /** The `done` of an input message calls this. */
  _complete(msg: object, error?: Error): void;
}

export type Red = NodeAPI;
