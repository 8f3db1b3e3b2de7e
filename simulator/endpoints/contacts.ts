import { z } from 'zod';
import { contactFields, defaultPageSize, paging, sortFields, sorting } from '../contract/rules';
import { Refusal } from '../problem';
import type { Account } from '../state/account';
import { emailStatuses, emailStatusOf, fullNameOf } from '../state/contact-book';
import { sourceOf, contactSources, type Contact } from '../state/seed';
import { endpoint } from './endpoint';

const missing = (): Refusal => new Refusal('not_found', 'There is no such contact.');

const stamp = (time: number): string => new Date(time).toISOString();
const identifierOf = (contact: Contact): string => `contact-${String(contact.contactId)}`;
const crm = (contact: Contact) => {
  const linked = contact.source === sourceOf.crm;
  const id = String(contact.contactId);
  return {
    isCrmLinkedContact: linked,
    remoteContactId: linked ? `crm-${id}` : undefined,
    remoteContactUrl: linked ? `https://crm.example.com/contacts/${id}` : undefined,
  };
};

/** One custom field, so that flows that read custom fields find one. */
const segmentOf = ({ contactId }: Contact) =>
  contactId % 3 === 0
    ? { display: 'Key client', value: 'key' }
    : { display: 'Household', value: 'household' };

export const createContact = endpoint({
  method: 'POST',
  path: '/core/contact/contacts',
  scope: 'core.contacts.write',
  body: contactFields,
  handle: ({ body }, account) => ({
    body: { id: account.contacts.add(body, sourceOf.api).contactId },
    outcome: 'created',
  }),
});

export const updateContact = endpoint({
  method: 'PUT',
  path: '/core/contact/contacts/{contactId}',
  scope: 'core.contacts.write',
  body: contactFields,
  handle({ params: { contactId: id }, body }, account, { settings }) {
    const before = account.contacts.change(id, (contact) => ({
      fields: settings.updateOmitted === 'keep' ? { ...contact.fields, ...body } : body,
    }));
    if (before === undefined) throw missing();
    return { body: { id }, outcome: 'updated' };
  },
});

const fieldNames = Object.keys(contactFields.shape) as (keyof Contact['fields'])[];

export const getContact = endpoint({
  method: 'GET',
  path: '/core/contact/contacts/{contactId}',
  scope: 'core.contacts.read',
  handle({ params: { contactId } }, account) {
    const contact = account.contacts.get(contactId);
    if (contact === undefined) throw missing();
    return {
      body: {
        contactId: contact.contactId,
        identifier: identifierOf(contact),
        ...crm(contact),
        source: contact.source,
        sourceText: contactSources[contact.source],
        ...Object.fromEntries(fieldNames.map((name) => [name, contact.fields[name]])),
        dateTimeUnsubscribed: undefined,
        dateTimeCreated: stamp(contact.created),
        dateTimeModified: stamp(contact.modified),
        emailStatus: emailStatusOf(contact),
        disableEmailStatus: false,
        groupIds: [...contact.groupIds],
        customFields: [{ key: 'segment', label: 'Segment', author: 'simulator', ...segmentOf(contact) }],
      },
      outcome: 'ok',
    };
  },
});

const summary = (contact: Contact, { groups }: Account) => ({
  contactId: contact.contactId,
  identifier: identifierOf(contact),
  fullName: fullNameOf(contact),
  firstName: contact.fields.firstName,
  lastName: contact.fields.lastName,
  email: contact.fields.emailAddress,
  emailStatus: emailStatuses[emailStatusOf(contact)],
  emailAddressDisposition: 0,
  status: 'Active',
  source: contact.source,
  sourceText: contactSources[contact.source],
  groupCount: contact.groupIds.length,
  groupNames: contact.groupIds.map((groupId) => groups.get(groupId)?.name ?? ''),
  ...crm(contact),
  dateTimeCreated: stamp(contact.created),
});

export const searchContacts = endpoint({
  method: 'GET',
  path: '/core/contact/contacts',
  scope: 'core.contacts.read',
  query: z.object({ ...paging, sortBy: z.enum(sortFields).optional(), ...sorting }),
  search: 'contacts',
  handle({ query }, account) {
    const { page = 1, pageSize = defaultPageSize, sortBy = 'dateTimeCreated', sortDirection = 'asc' } = query;
    const found = account.contacts.page(sortBy, sortDirection, page, pageSize);
    return {
      body: {
        data: found.map((contact) => summary(contact, account)),
        pageInfo: { page, pageSize, totalRecord: account.contacts.count, sortDirection, sortBy },
      },
      outcome: 'ok',
    };
  },
});

export const deleteContact = endpoint({
  method: 'DELETE',
  path: '/core/contact/contacts/{contactId}',
  scope: 'core.contacts.write',
  handle({ params: { contactId } }, account) {
    const before = account.contacts.remove(contactId);
    if (before === undefined) throw missing();
    account.groups.moveMember(before.groupIds, []);
    const { phone } = before.fields;
    if (phone !== undefined && account.contacts.byPhone(phone) === undefined) account.forgetPhone(phone);
    return { outcome: 'deleted' };
  },
});

export const setContactGroups = endpoint({
  method: 'PUT',
  path: '/core/contact/contacts/{contactId}/groups',
  scope: 'core.contacts.write',
  body: z.object({ groupIds: z.array(z.int()), isSelectAllGroup: z.boolean().optional() }),
  hasIdsInBody: true,
  handle({ params: { contactId: id }, body }, account) {
    const { contacts, groups } = account;
    const groupIds = body.isSelectAllGroup === true ? groups.ids() : [...new Set(body.groupIds)];
    const unknown = groupIds.filter((groupId) => groups.get(groupId) === undefined);
    if (unknown.length > 0) {
      throw new Refusal('invalid_request', `There is no group ${unknown.join(', ')}.`);
    }
    const before = contacts.change(id, () => ({ groupIds }));
    if (before === undefined) throw missing();
    groups.moveMember(before.groupIds, groupIds);
    return { body: { id }, outcome: 'updated' };
  },
});
