import { commonFields, phoneFields, searchFields, type NodeSpec, type When } from '../../lib/runtime/spec';

const forNumbers: When = { operation: ['block', 'unblock', 'check'] };
const forList: When = { operation: ['list'] };

export const spec: NodeSpec = {
  type: 'advisor-do-not-text',
  category: 'advisor texting',
  color: '#8fcabf',
  icon: 'advisor-do-not-text.svg',
  inputs: 1,
  outputs: ['done', 'failed', 'blocked'],
  uses: [],
  fields: [
    // There is one list for all advisors.
    ...commonFields.filter(({ name }) => name !== 'advisor'),
    { kind: 'choice', name: 'operation', options: ['block', 'unblock', 'check', 'list'], default: 'block' },
    ...phoneFields(forNumbers),
    {
      kind: 'typed',
      name: 'reason',
      types: ['str', 'msg', 'flow', 'global', 'env', 'jsonata'],
      default: '',
      defaultType: 'str',
      when: { operation: ['block'] },
    },
    ...searchFields(forList),
  ],
};
