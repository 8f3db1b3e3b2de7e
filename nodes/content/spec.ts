import { contentTypes, longestSearch } from '../../lib/contract-values';
import { commonFields, type NodeSpec, searchFields } from '../../lib/runtime/spec';

export const spec: NodeSpec = {
  type: 'advisor-content',
  category: 'advisor texting',
  color: '#cbb9e6',
  icon: 'advisor-content.svg',
  inputs: 1,
  outputs: ['found', 'failed'],
  uses: [{ endpoint: 'searchContent' }],
  fields: [
    ...commonFields,
    {
      kind: 'typed',
      name: 'search',
      types: ['msg', 'str', 'flow', 'global', 'env', 'jsonata'],
      default: 'payload',
      defaultType: 'msg',
      longest: longestSearch,
      lookup: 'content',
    },
    { kind: 'choice', name: 'contentType', options: contentTypes, default: 'All' },
    ...searchFields(),
  ],
};
