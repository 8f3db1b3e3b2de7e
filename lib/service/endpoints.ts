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
type Nothing = typeof nothing;

interface Declaration<
  P extends string,
  Q extends z.ZodType,
  B extends z.ZodType,
  R extends z.ZodType,
  S extends string,
> {
  readonly method: keyof typeof repeatKinds;
  readonly path: P;
  readonly scope: (typeof operationScopes)[number];
  readonly summary: string;
  readonly query?: Q;
  /** The name of a search in the setting `names`, as in `contacts.page`. */
  readonly search?: S;
  readonly body?: B;
  /** Ids in its body are sent as integers, as in the contract, even those that we keep as strings for their length. */
  readonly hasIdsInBody?: true;
  readonly response: R;
  /** The sentences of refusals that mean something particular here. */
  readonly sentences?: { readonly not_found?: ErrorKey; readonly conflict?: ErrorKey };
}

const endpoint = <
  const P extends string,
  R extends z.ZodType,
  Q extends z.ZodType = Nothing,
  B extends z.ZodType = Nothing,
  const S extends string = never,
>(
  declaration: Declaration<P, Q, B, R, S>,
) => declaration;

/** Every endpoint, once, for the client, the specs and the API docs; the simulator reads the contract on its own. */
export const endpoints = {
  sendMessage: endpoint({
    method: 'POST',
    path: '/text/messaging/messages',
    scope: 'text.messaging.write',
    summary: 'Send or schedule a text',
    body: schema.messageRequest,
    response: schema.messageResult,
  }),
  requestConsent: endpoint({
    method: 'POST',
    path: '/text/messaging/consent-requests',
    scope: 'text.messaging.write',
    summary: 'Send consent-request texts',
    body: schema.consentRequest,
    response: schema.consentRequestResult,
    sentences: { conflict: 'conflict' },
  }),
  getConsent: endpoint({
    method: 'GET',
    path: '/text/messaging/consents',
    scope: 'text.messaging.read',
    summary: 'Read the consent status of a number',
    query: schema.consentQuery,
    response: schema.consentStatus,
    sentences: { not_found: 'not_found_phone' },
  }),
  createContact: endpoint({
    method: 'POST',
    path: '/core/contact/contacts',
    scope: 'core.contacts.write',
    summary: 'Create a contact',
    body: schema.contactInput,
    response: schema.idResult,
  }),
  updateContact: endpoint({
    method: 'PUT',
    path: '/core/contact/contacts/{contactId}',
    scope: 'core.contacts.write',
    summary: 'Update a contact',
    body: schema.contactInput,
    response: schema.idResult,
  }),
  getContact: endpoint({
    method: 'GET',
    path: '/core/contact/contacts/{contactId}',
    scope: 'core.contacts.read',
    summary: 'Read a contact',
    response: schema.contactDetail,
  }),
  searchContacts: endpoint({
    method: 'GET',
    path: '/core/contact/contacts',
    scope: 'core.contacts.read',
    summary: 'Search contacts',
    query: schema.contactQuery,
    search: 'contacts',
    response: schema.contactPage,
  }),
  deleteContact: endpoint({
    method: 'DELETE',
    path: '/core/contact/contacts/{contactId}',
    scope: 'core.contacts.write',
    summary: 'Delete a contact',
    response: nothing,
  }),
  setContactGroups: endpoint({
    method: 'PUT',
    path: '/core/contact/contacts/{contactId}/groups',
    scope: 'core.contacts.write',
    summary: "Replace a contact's group memberships",
    body: schema.groupMembership,
    hasIdsInBody: true,
    response: schema.idResult,
  }),
  createGroup: endpoint({
    method: 'POST',
    path: '/core/contact/groups',
    scope: 'core.contacts.write',
    summary: 'Create a group',
    body: schema.groupInput,
    response: schema.idResult,
  }),
  searchGroups: endpoint({
    method: 'GET',
    path: '/core/contact/groups',
    scope: 'core.contacts.read',
    summary: 'Search groups',
    query: schema.groupQuery,
    search: 'groups',
    response: schema.groupPage,
  }),
  deleteGroup: endpoint({
    method: 'DELETE',
    path: '/core/contact/groups/{groupId}',
    scope: 'core.contacts.write',
    summary: 'Delete a group',
    response: nothing,
  }),
  searchContent: endpoint({
    method: 'GET',
    path: '/core/content/library/search',
    scope: 'core.content.read',
    summary: 'Search the content library',
    query: schema.contentQuery,
    search: 'content',
    response: schema.contentPage,
  }),
} as const;

const queries = Object.values(endpoints).map(({ query, search }) => ({
  search,
  names: query instanceof z.ZodObject ? Object.keys(query.shape) : [],
}));

/** The names of all query parameters, as the setting `names` has them: for every endpoint, then for one search. */
export const queryNames: ReadonlySet<string> = new Set([
  ...queries.flatMap(({ names }) => names),
  ...queries.flatMap(({ search, names }) =>
    search === undefined ? [] : names.map((name) => `${search}.${name}`),
  ),
]);

/** An id as the service gave it; an integer beyond 2^53, which a number cannot hold, is a string of its digits. */
export type Id = number | string;

export type EndpointName = keyof typeof endpoints;
export type SearchName = Exclude<(typeof endpoints)[EndpointName]['search'], undefined>;
export type Endpoint<N extends EndpointName = EndpointName> = (typeof endpoints)[N];

/** The names of the parameters in a path: `contactId` of `/contacts/{contactId}`. */
export type ParamNames<P extends string> = P extends `${string}{${infer K}}${infer Rest}`
  ? K | ParamNames<Rest>
  : never;
type RequestPart<Key extends string, S> = S extends z.ZodType
  ? unknown extends z.input<S>
    ? unknown
    : Record<Key, z.input<S>>
  : unknown;

/** What a call to an endpoint must supply: its path parameters, its query, its body; no more, no less. */
export type RequestOf<N extends EndpointName> = ([ParamNames<Endpoint<N>['path']>] extends [never]
  ? unknown
  : { params: Record<ParamNames<Endpoint<N>['path']>, Id> }) &
  RequestPart<'query', Endpoint<N> extends { query?: infer Q } ? Exclude<Q, undefined> : never> &
  RequestPart<'body', Endpoint<N> extends { body?: infer B } ? Exclude<B, undefined> : never>;

export type ResponseOf<N extends EndpointName> = z.output<Endpoint<N>['response']>;

export interface ResultPage<T = unknown> {
  readonly data: readonly T[];
  readonly pageInfo?: Readonly<ResponseOf<'searchContacts'>['pageInfo']>;
}
