import type { Node, NodeAPI } from 'node-red';
import { flowNode } from '../../lib/runtime/flow-node';
import type { RunningNode } from '../../lib/runtime/red';
import type { Config } from '../../lib/runtime/register';
import { lookHandler } from './look';
import { spec } from './spec';
import { waitHandler } from './wait';

export const create = (RED: NodeAPI, node: Node, config: Config): void => {
  flowNode(RED, node as RunningNode, config, spec, (tools) =>
    tools.plain.text('mode') === 'wait' ? waitHandler(tools) : lookHandler(tools),
  );
};
