import type { RequestOf } from '../../lib/service/endpoints';
import {
  commonFields,
  filterField,
  type NodeSpec,
  searchFields,
  sortDirectionField,
} from '../../lib/runtime/spec';

/** One entry for each key of the schema: anything else does not compile. */
export const groupFieldKinds = {
  name: 'str',
  externalGroupId: 'str',
} as const satisfies Record<keyof RequestOf<'createGroup'>['body'], 'str'>;

/** The types of a field whose value may be a text. */
const mayBeText = ['msg', 'str', 'json', 'flow', 'global', 'env', 'jsonata'];

export const spec: NodeSpec = {
  type: 'advisor-group',
  category: 'advisor texting',
  color: '#aac5e8',
  icon: 'advisor-group.svg',
  inputs: 1,
  outputs: ['done', 'failed'],
  uses: [
    { endpoint: 'searchGroups', when: { operation: ['search', 'members'] } },
    // A group may be named, and a text of digits is compared with the ids that the service has.
    {
      endpoint: 'searchGroups',
      when: { operation: ['delete', 'addContact', 'removeContact'], groupIdType: mayBeText },
    },
    { endpoint: 'searchGroups', when: { operation: ['setGroups'], groupIdsType: mayBeText } },
    { endpoint: 'createGroup', when: { operation: ['create'] } },
    { endpoint: 'searchContacts', when: { operation: ['members'] } },
    { endpoint: 'getContact', when: { operation: ['members', 'addContact', 'removeContact'] } },
    { endpoint: 'setContactGroups', when: { operation: ['addContact', 'removeContact', 'setGroups'] } },
    { endpoint: 'deleteGroup', when: { operation: ['delete'] } },
  ],
  fields: [
    ...commonFields,
    {
      kind: 'choice',
      name: 'operation',
      options: ['search', 'create', 'members', 'delete', 'addContact', 'removeContact', 'setGroups'],
      default: 'search',
    },
    {
      kind: 'typed',
      name: 'group',
      types: ['msg', 'str', 'json', 'flow', 'global', 'env', 'jsonata'],
      default: 'payload',
      defaultType: 'msg',
      required: true,
      literal: 'record',
      record: groupFieldKinds,
      isNameEnough: true,
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
      when: { operation: ['members', 'delete', 'addContact', 'removeContact'] },
    },
    {
      kind: 'typed',
      name: 'groupIds',
      types: ['msg', 'json', 'str', 'num', 'flow', 'global', 'env', 'jsonata'],
      default: 'groupIds',
      defaultType: 'msg',
      required: true,
      optional: { isSelectAllGroup: ['true'] },
      literal: 'group',
      lookup: 'groups',
      several: true,
      when: { operation: ['setGroups'] },
    },
    {
      kind: 'choice',
      name: 'isSelectAllGroup',
      options: ['', 'true', 'false'],
      default: '',
      when: { operation: ['addContact', 'removeContact', 'setGroups'] },
      advanced: true,
    },
    { kind: 'flag', name: 'skipWithoutPhone', default: true, when: { operation: ['members'] } },
    filterField({ operation: ['search'] }),
    ...searchFields({ operation: ['search'] }, [sortDirectionField]),
  ],
};
