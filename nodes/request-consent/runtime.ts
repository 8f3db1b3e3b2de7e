import { flowNode } from '../../lib/runtime/flow-node';
import { requestHandler } from './request';
import { spec } from './spec';

export const create = flowNode(spec, requestHandler);
