import { z } from 'zod';
import type { EndpointName } from '../../lib/service/endpoints';

/**
 * The contract as the simulator reads it. The client has its own reading of it (lib/service): with only one, both sides
 * would share its mistakes and no test could find them. A test compares the two and names each difference.
 */

/** The format of a phone number (contract, *Limits*; E.164). */
export const E164 = /^\+[1-9][0-9]{7,14}$/;

const phone = z
  .string()
  .regex(E164, 'must begin with + and the country code, and have 8 to 15 digits in all (E.164)');

const message = z.object({
  text: z.string(),
  phone,
  scheduleDelivery: z.boolean().optional(),
  deliveryDate: z.number().optional(),
  frequency: z.int().optional(),
});

const consentRequest = z.object({ phoneNumbers: z.array(phone).min(1) });

/** The format of phone numbers holds for every phone field, also that of a contact (contract, *Limits*). */
export const contactFields = z.object({
  firstName: z.string().optional(),
  lastName: z.string().optional(),
  emailAddress: z.string().optional(),
  nickname: z.string().optional(),
  birthDate: z.string().optional(),
  phone: phone.optional(),
  clientAnniversary: z.string().optional(),
  gender: z.number().optional(),
  maritalStatus: z.number().optional(),
  address1: z.string().optional(),
  address2: z.string().optional(),
  city: z.string().optional(),
  state: z.string().optional(),
  postalCode: z.string().optional(),
});
export type ContactFields = z.output<typeof contactFields>;

const group = z.object({ name: z.string().optional(), externalGroupId: z.string().optional() });

const memberships = z.object({ groupIds: z.array(z.int()), isSelectAllGroup: z.boolean().optional() });

export const sortFields = [
  'fullName',
  'email',
  'emailStatus',
  'groupCount',
  'source',
  'dateTimeCreated',
] as const;
export const contentTypes = [
  'All',
  'WebContent',
  'Emails',
  'SocialPosts',
  'Print',
  'DownloadContent',
] as const;

const page = z.int().min(1).optional();
const pageSize = z.int().min(1).max(200).optional();
const sortDirection = z.enum(['asc', 'desc']).optional();

const consentQuery = z.object({ phone: phone.optional(), memberId: z.int().optional() });
const contactQuery = z.object({ page, pageSize, sortBy: z.enum(sortFields).optional(), sortDirection });
const groupQuery = z.object({ page, pageSize, sortDirection });
const contentQuery = z.object({
  contentType: z.enum(contentTypes).optional(),
  searchText: z.string().max(150).optional(),
  page,
  pageSize,
});

export const none = z.undefined();

interface Declared {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** The path below the base address, with the contract's stand-in for the first segment. */
  readonly path: `/${'core' | 'text'}/${string}`;
  readonly scope: `${'core' | 'text'}.${string}`;
  readonly query: z.ZodObject;
  /** The name of a search whose parameters may have names of their own, as in `contacts.page`. */
  readonly search?: string;
  readonly body: z.ZodType;
}

const noQuery = z.object({});

/**
 * The endpoints (contract, *Endpoints*). If the client's table and this one do not have the same endpoints, neither
 * compiles.
 */
export const contract = {
  sendMessage: {
    method: 'POST',
    path: '/text/messaging/messages',
    scope: 'text.messaging.write',
    query: noQuery,
    body: message,
  },
  requestConsent: {
    method: 'POST',
    path: '/text/messaging/consent-requests',
    scope: 'text.messaging.write',
    query: noQuery,
    body: consentRequest,
  },
  getConsent: {
    method: 'GET',
    path: '/text/messaging/consents',
    scope: 'text.messaging.read',
    query: consentQuery,
    body: none,
  },
  createContact: {
    method: 'POST',
    path: '/core/contact/contacts',
    scope: 'core.contacts.write',
    query: noQuery,
    body: contactFields,
  },
  updateContact: {
    method: 'PUT',
    path: '/core/contact/contacts/{contactId}',
    scope: 'core.contacts.write',
    query: noQuery,
    body: contactFields,
  },
  getContact: {
    method: 'GET',
    path: '/core/contact/contacts/{contactId}',
    scope: 'core.contacts.read',
    query: noQuery,
    body: none,
  },
  searchContacts: {
    method: 'GET',
    path: '/core/contact/contacts',
    scope: 'core.contacts.read',
    query: contactQuery,
    search: 'contacts',
    body: none,
  },
  deleteContact: {
    method: 'DELETE',
    path: '/core/contact/contacts/{contactId}',
    scope: 'core.contacts.write',
    query: noQuery,
    body: none,
  },
  setContactGroups: {
    method: 'PUT',
    path: '/core/contact/contacts/{contactId}/groups',
    scope: 'core.contacts.write',
    query: noQuery,
    body: memberships,
  },
  createGroup: {
    method: 'POST',
    path: '/core/contact/groups',
    scope: 'core.contacts.write',
    query: noQuery,
    body: group,
  },
  searchGroups: {
    method: 'GET',
    path: '/core/contact/groups',
    scope: 'core.contacts.read',
    query: groupQuery,
    search: 'groups',
    body: none,
  },
  deleteGroup: {
    method: 'DELETE',
    path: '/core/contact/groups/{groupId}',
    scope: 'core.contacts.write',
    query: noQuery,
    body: none,
  },
  searchContent: {
    method: 'GET',
    path: '/core/content/library/search',
    scope: 'core.content.read',
    query: contentQuery,
    search: 'content',
    body: none,
  },
} as const satisfies Readonly<Record<EndpointName, Declared>>;

export type OperationName = keyof typeof contract;
export const operationNames = Object.keys(contract) as OperationName[];

/** The query parameters of an endpoint with their rules, and the name of its search. */
export const queryRulesOf = (
  name: OperationName,
): { readonly search: string | undefined; readonly rules: Readonly<Record<string, z.ZodType>> } => {
  const { search, query }: Declared = contract[name];
  return { search, rules: query.shape };
};

/** What a request asks for, once it has passed the contract's rules. */
export interface ContractRequest<N extends OperationName = OperationName> {
  /** The contact or group named in the path. */
  readonly id: number;
  readonly query: z.output<(typeof contract)[N]['query']>;
  readonly body: z.output<(typeof contract)[N]['body']>;
}

/** The scopes (contract, *Authentication*, 3), and what an advisor reads of each before approving it. */
export const scopeMeanings: Readonly<Record<string, string>> = {
  'core.contacts.read': 'read contacts and contact groups',
  'core.contacts.write': 'create, update and delete contacts and groups',
  'core.content.read': 'read content library items',
  'text.messaging.read': 'read texting status',
  'text.messaging.write': 'send and schedule texts, send consent requests',
  openid: 'know who you are',
  offline_access: 'stay connected until you disconnect it',
};
export const allScopes: readonly string[] = Object.keys(scopeMeanings);
