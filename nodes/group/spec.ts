import type { RequestOf } from '../../lib/service/endpoints';
import { commonFields, type NodeSpec, searchFields, sortDirectionField } from '../../lib/runtime/spec';

/** One entry per key of the schema: anything else does not compile. */
export const groupFields = {
  name: 'str',
  externalGroupId: 'str',
} as const satisfies Record<keyof RequestOf<'createGroup'>['body'], 'str'>;

export const spec: NodeSpec = {
  type: 'advisor-group',
  category: 'advisor texting',
  color: '#aac5e8',
  icon: 'advisor-group.svg',
  inputs: 1,
  outputs: ['done', 'failed'],
  uses: ['createGroup', 'searchGroups', 'deleteGroup', 'getContact', 'setContactGroups'],
  fields: [
    ...commonFields,
    {
      kind: 'choice',
      name: 'operation',
      options: ['create', 'search', 'delete', 'addContact', 'removeContact', 'setGroups'],
      default: 'create',
    },
    {
      kind: 'typed',
      name: 'group',
      types: ['msg', 'str', 'json', 'flow', 'global', 'env', 'jsonata'],
      default: 'payload',
      defaultType: 'msg',
      required: true,
      literal: 'record',
      record: groupFields,
      named: true,
      when: { operation: ['create'] },
    },
    {
      kind: 'typed',
      name: 'contactId',
      types: ['msg', 'num', 'json', 'flow', 'global', 'env', 'jsonata'],
      default: 'contactId',
      defaultType: 'msg',
      required: true,
      literal: 'id',
      lookup: 'contacts',
      when: { operation: ['addContact', 'removeContact', 'setGroups'] },
    },
    {
      kind: 'typed',
      name: 'groupId',
      types: ['msg', 'str', 'num', 'flow', 'global', 'env', 'jsonata'],
      default: 'groupId',
      defaultType: 'msg',
      required: true,
      literal: 'group',
      idOnly: { operation: ['delete'] },
      lookup: 'groups',
      when: { operation: ['delete', 'addContact', 'removeContact'] },
    },
    {
      kind: 'typed',
      name: 'groupIds',
      types: ['msg', 'json', 'str', 'num', 'flow', 'global', 'env', 'jsonata'],
      default: 'groupIds',
      defaultType: 'msg',
      required: true,
      optional: { isSelectAllGroup: [true] },
      literal: 'group',
      lookup: 'groups',
      several: true,
      when: { operation: ['setGroups'] },
    },
    {
      kind: 'flag',
      name: 'isSelectAllGroup',
      default: false,
      when: { operation: ['setGroups'] },
      advanced: true,
    },
    ...searchFields({ operation: ['search'] }, [sortDirectionField]),
  ],
};
