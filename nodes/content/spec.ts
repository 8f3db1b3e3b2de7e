import type { contentTypes, searchTextLimit } from '../../lib/service/schemas';
import { commonFields, type NodeSpec, searchFields } from '../../lib/runtime/spec';

const types = {
  All: true,
  WebContent: true,
  Emails: true,
  SocialPosts: true,
  Print: true,
  DownloadContent: true,
} as const satisfies Record<(typeof contentTypes)[number], true>;

export const longestSearch: typeof searchTextLimit = 150;

export const spec: NodeSpec = {
  type: 'advisor-content',
  category: 'advisor texting',
  color: '#cbb9e6',
  icon: 'advisor-content.svg',
  inputs: 1,
  outputs: ['found', 'failed'],
  uses: ['searchContent'],
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
    { kind: 'choice', name: 'contentType', options: Object.keys(types), default: 'All' },
    ...searchFields(),
  ],
};
