import type { z } from 'zod';
import { sortFields } from '../../lib/contract-values';
import type { contactInput } from '../../lib/service/schemas';
import {
  commonFields,
  filterField,
  type NodeSpec,
  searchFields,
  sortDirectionField,
} from '../../lib/runtime/spec';

type ContactInput = Required<z.input<typeof contactInput>>;

/** One entry for each key of the schema, with the same type: anything else does not compile. */
export const contactFieldKinds = {
  firstName: 'str',
  lastName: 'str',
  emailAddress: 'str',
  nickname: 'str',
  birthDate: 'str',
  phone: 'str',
  clientAnniversary: 'str',
  gender: 'num',
  maritalStatus: 'num',
  address1: 'str',
  address2: 'str',
  city: 'str',
  state: 'str',
  postalCode: 'str',
} as const satisfies {
  [K in keyof ContactInput]: NonNullable<ContactInput[K]> extends number ? 'num' : 'str';
};

export const spec: NodeSpec = {
  type: 'advisor-contact',
  category: 'advisor texting',
  color: '#aac5e8',
  icon: 'advisor-contact.svg',
  inputs: 1,
  outputs: ['done', 'failed'],
  uses: [
    { endpoint: 'searchContacts', when: { operation: ['search', 'save'] } },
    { endpoint: 'getContact', when: { operation: ['get', 'save'] } },
    { endpoint: 'getContact', when: { operation: ['update'], merge: [true] } },
    { endpoint: 'createContact', when: { operation: ['create', 'save'] } },
    { endpoint: 'updateContact', when: { operation: ['update', 'save'] } },
    { endpoint: 'deleteContact', when: { operation: ['delete'] } },
  ],
  fields: [
    ...commonFields,
    {
      kind: 'choice',
      name: 'operation',
      options: ['search', 'get', 'create', 'update', 'save', 'delete'],
      default: 'search',
    },
    {
      kind: 'choice',
      name: 'matchBy',
      options: ['email', 'fullName'],
      default: 'email',
      when: { operation: ['save'] },
    },
    {
      kind: 'typed',
      name: 'contactId',
      types: ['msg', 'num', 'flow', 'global', 'env', 'jsonata'],
      default: 'contactId',
      defaultType: 'msg',
      required: true,
      literal: 'id',
      optional: { operation: ['save'] },
      lookup: 'contacts',
      when: { operation: ['get', 'update', 'save', 'delete'] },
    },
    {
      kind: 'typed',
      name: 'contact',
      types: ['msg', 'fields', 'json', 'flow', 'global', 'env', 'jsonata'],
      default: 'payload',
      defaultType: 'msg',
      required: true,
      literal: 'record',
      record: contactFieldKinds,
      when: { operation: ['create', 'update', 'save'] },
    },
    {
      kind: 'rows',
      name: 'fields',
      rows: contactFieldKinds,
      default: [],
      when: { operation: ['create', 'update', 'save'], contactType: ['fields'] },
    },
    { kind: 'flag', name: 'merge', default: true, when: { operation: ['update', 'save'] } },
    filterField({ operation: ['search'] }),
    ...searchFields({ operation: ['search'] }, [
      { kind: 'choice', name: 'sortBy', options: ['', ...sortFields], default: '' },
      sortDirectionField,
    ]),
  ],
};
