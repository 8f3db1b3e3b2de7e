import { flowNode } from '../../lib/runtime/flow-node';
import { checkHandler } from './handler';
import { spec } from './spec';

export const create = flowNode(spec, checkHandler);
