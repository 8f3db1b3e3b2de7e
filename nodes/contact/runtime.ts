import { OperationHandler } from '../../lib/address-book/operation';
import { flowNode } from '../../lib/runtime/flow-node';
import { operationsOf } from './operations';
import { spec } from './spec';

export const create = flowNode(
  spec,
  (tools, config) => new OperationHandler(tools, operationsOf(tools, config)),
);
