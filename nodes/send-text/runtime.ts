import type { Node, NodeAPI } from 'node-red';
import { flowNode } from '../../lib/runtime/flow-node';
import type { RunningNode } from '../../lib/runtime/red';
import type { Config } from '../../lib/runtime/register';
import { sendHandler } from './send';
import { spec } from './spec';

export const create = (RED: NodeAPI, node: Node, config: Config): void => {
  flowNode(RED, node as RunningNode, config, spec, sendHandler);
};
