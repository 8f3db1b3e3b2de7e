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

/** The language as Node-RED itself chooses it: the one in its settings, else the system's; empty when neither names one. */
export const systemLanguage = (settings: object): string => {
  const { lang } = settings as { lang?: unknown };
  if (typeof lang === 'string' && lang !== '') return lang;
  const { LC_ALL, LC_MESSAGES, LANG } = process.env;
  const named = [LC_ALL, LC_MESSAGES, LANG].find((each) => each !== undefined && each !== '');
  const [system = ''] = (named ?? '').split(/[.@]/);
  return system === 'C' || system === 'POSIX' ? '' : system.replace('_', '-');
};
