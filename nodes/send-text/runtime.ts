import { flowNode } from '../../lib/runtime/flow-node';
import { sendHandler } from './send';
import { spec } from './spec';

export const create = flowNode(spec, sendHandler);
