import { commonFields, type NodeSpec } from '../../lib/runtime/spec';

export const spec: NodeSpec = {
  type: 'advisor-events',
  category: 'advisor texting',
  color: '#c9d1d6',
  icon: 'advisor-events.svg',
  inputs: 0,
  outputs: ['event'],
  uses: [],
  // The events are about all advisors.
  fields: commonFields.filter(({ name }) => name !== 'advisor'),
};
