import { commonFields, type NodeSpec, searchFields } from '../../lib/runtime/spec';

export const spec: NodeSpec = {
  type: 'advisor-activity',
  category: 'advisor texting',
  color: '#c9d1d6',
  icon: 'advisor-activity.svg',
  inputs: 1,
  outputs: ['done', 'failed'],
  uses: [],
  fields: [
    ...commonFields,
    {
      kind: 'choice',
      name: 'operation',
      options: ['waits', 'queue', 'failures', 'advisors', 'check', 'cancel'],
      default: 'waits',
    },
    {
      kind: 'typed',
      name: 'itemId',
      types: ['msg', 'str', 'flow', 'global', 'env', 'jsonata'],
      default: 'payload.id',
      defaultType: 'msg',
      required: true,
      when: { operation: ['check', 'cancel'] },
    },
    ...searchFields({ operation: ['waits', 'queue', 'failures', 'advisors'] }),
  ],
};
