import { z } from 'zod';
import type { operationScopes } from '../contract-values';
import type { ErrorKey } from './errors';
import * as schema from './schemas';

/** How each method may be retried when it is not known whether it was carried out (RFC 9110, section 9.2.2). */
export const repeatKinds = {
  GET: 'read',
  PUT: 'replace',
  /** A 404 after a retry is a success. */
  DELETE: 'delete',
  /** Only as `repeatSends` allows: nobody must be texted twice. */
  POST: 'once',
} as const;

export type RepeatKind = (typeof repeatKinds)[keyof typeof repeatKinds];

const nothing = z.unknown();

interface Declaration {
  readonly method: keyof typeof repeatKinds;
  readonly path: string;
  readonly scope: (typeof operationScopes)[number];
  readonly summary: string;
  readonly query?: z.ZodObject;
  /** The name of a search in the setting `names`, as in `contacts.page`. */
  readonly search?: string;
  readonly body?: z.ZodType;
  /** Ids in its body are sent as integers, as in the contract, even those that we keep as strings for their length. */
  readonly hasIdsInBody?: true;
  readonly response: z.ZodType;
  /** The sentences of refusals that mean something particular here. */
  readonly sentences?: { readonly not_found?: ErrorKey; readonly conflict?: ErrorKey };
}

/** Every endpoint, once, for the client, the specs and the API docs; the simulator reads the contract on its own. */
export const endpoints = {
  sendMessage: {
    method: 'POST',
    path: '/text/messaging/messages',
    scope: 'text.messaging.write',
    summary: 'Send or schedule a text',
    body: schema.messageRequest,
    response: schema.messageResult,
  },
  requestConsent: {
    method: 'POST',
    path: '/text/messaging/consent-requests',
    scope: 'text.messaging.write',
    summary: 'Send consent-request texts',
    body: schema.consentRequest,
    response: schema.consentRequestResult,
    sentences: { conflict: 'conflict' },
  },
  getConsent: {
    method: 'GET',
    path: '/text/messaging/consents',
    scope: 'text.messaging.read',
    summary: 'Read the consent status of a number',
    query: schema.consentQuery,
    response: schema.consentStatus,
    sentences: { not_found: 'not_found_phone' },
  },
  createContact: {
    method: 'POST',
    path: '/core/contact/contacts',
    scope: 'core.contacts.write',
    summary: 'Create a contact',
    body: schema.contactInput,
    response: schema.idResult,
  },
  updateContact: {
    method: 'PUT',
    path: '/core/contact/contacts/{contactId}',
    scope: 'core.contacts.write',
    summary: 'Update a contact',
    body: schema.contactInput,
    response: schema.idResult,
  },
  getContact: {
    method: 'GET',
    path: '/core/contact/contacts/{contactId}',
    scope: 'core.contacts.read',
    summary: 'Read a contact',
    response: schema.contactDetail,
  },
  searchContacts: {
    method: 'GET',
    path: '/core/contact/contacts',
    scope: 'core.contacts.read',
    summary: 'Search contacts',
    query: schema.contactQuery,
    search: 'contacts',
    response: schema.contactPage,
  },
  deleteContact: {
    method: 'DELETE',
    path: '/core/contact/contacts/{contactId}',
    scope: 'core.contacts.write',
    summary: 'Delete a contact',
    response: nothing,
  },
  setContactGroups: {
    method: 'PUT',
    path: '/core/contact/contacts/{contactId}/groups',
    scope: 'core.contacts.write',
    summary: "Replace a contact's group memberships",
    body: schema.groupMembership,
    hasIdsInBody: true,
    response: schema.idResult,
  },
  createGroup: {
    method: 'POST',
    path: '/core/contact/groups',
    scope: 'core.contacts.write',
    summary: 'Create a group',
    body: schema.groupInput,
    response: schema.idResult,
  },
  searchGroups: {
    method: 'GET',
    path: '/core/contact/groups',
    scope: 'core.contacts.read',
    summary: 'Search groups',
    query: schema.groupQuery,
    search: 'groups',
    response: schema.groupPage,
  },
  deleteGroup: {
    method: 'DELETE',
    path: '/core/contact/groups/{groupId}',
    scope: 'core.contacts.write',
    summary: 'Delete a group',
    response: nothing,
  },
  searchContent: {
    method: 'GET',
    path: '/core/content/library/search',
    scope: 'core.content.read',
    summary: 'Search the content library',
    query: schema.contentQuery,
    search: 'content',
    response: schema.contentPage,
  },
} as const satisfies Readonly<Record<string, Declaration>>;

/** An id as the service gave it; an integer beyond 2^53, which a number cannot hold, is a string of its digits. */
export type Id = number | string;

export type EndpointName = keyof typeof endpoints;
export type Endpoint<N extends EndpointName = EndpointName> = (typeof endpoints)[N];
export type SearchName = Extract<Endpoint, { search: string }>['search'];

/** As `endpoints`, for code that treats all of them alike. */
export const declarations: Readonly<Record<EndpointName, Declaration>> = endpoints;

/** The names of all query parameters, as the setting `names` has them: for every endpoint, and for one search. */
export const queryNames: ReadonlySet<string> = new Set(
  Object.values(declarations).flatMap(({ query, search }) =>
    Object.keys(query?.shape ?? {}).flatMap((name) =>
      search === undefined ? [name] : [name, `${search}.${name}`],
    ),
  ),
);

/** The names of the parameters in a path: `contactId` of `/contacts/{contactId}`. */
export type ParamNames<P extends string> = P extends `${string}{${infer K}}${infer Rest}`
  ? K | ParamNames<Rest>
  : never;
/** What a call to an endpoint must supply: its path parameters, its query, its body; no more, no less. */
export type RequestOf<N extends EndpointName> = ([ParamNames<Endpoint<N>['path']>] extends [never]
  ? unknown
  : { params: Record<ParamNames<Endpoint<N>['path']>, Id> }) &
  (Endpoint<N> extends { query: infer Q extends z.ZodType } ? { query: z.input<Q> } : unknown) &
  (Endpoint<N> extends { body: infer B extends z.ZodType } ? { body: z.input<B> } : unknown);

export type ResponseOf<N extends EndpointName> = z.output<Endpoint<N>['response']>;

export interface ResultPage<T = unknown> {
  readonly data: readonly T[];
  readonly pageInfo?: Readonly<ResponseOf<'searchContacts'>['pageInfo']>;
}
