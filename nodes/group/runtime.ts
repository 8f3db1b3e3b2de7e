import type { Node, NodeAPI } from 'node-red';
import { flowNode } from '../../lib/runtime/flow-node';
import type { RunningNode } from '../../lib/runtime/red';
import type { Config } from '../../lib/runtime/register';
import { operationHandler } from '../../lib/runtime/task';
import { operations } from './operations';
import { spec } from './spec';

export const create = (RED: NodeAPI, node: Node, config: Config): void => {
  flowNode(RED, node as RunningNode, config, spec, (tools) => operationHandler(tools, operations, config));
};
