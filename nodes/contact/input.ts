import { compile, type Source } from '../../lib/runtime/fields';
import type { Tools } from '../../lib/runtime/flow-node';
import { invalid } from '../../lib/runtime/messages';
import { fieldsGiven } from '../../lib/runtime/record';
import { isRecord, type Message } from '../../lib/runtime/red';
import type { FieldRow } from '../../lib/runtime/spec';
import type { ResponseOf } from '../../lib/service/endpoints';
import { contactFields } from './spec';

export type ContactBody = ReturnType<typeof fieldsGiven<typeof contactFields>>;

const isRow = (row: unknown): row is FieldRow => isRecord(row) && typeof row.field === 'string';

const kindOf = (field: string): 'str' | 'num' =>
  Object.hasOwn(contactFields, field) ? contactFields[field as keyof typeof contactFields] : 'str';

/** Reads the contact the user filled in field by field, each value from where its type says. */
const fromRows = ({ RED, node }: Tools, fields: unknown): ((msg: Message) => Promise<unknown>) => {
  const rows = (Array.isArray(fields) ? fields : []).filter(isRow).map(({ field, value, valueType }) => {
    const type = typeof valueType === 'string' ? valueType : kindOf(field);
    return { field, read: compile(RED, node, field, value, type) };
  });
  return async (msg) => {
    const values = await Promise.all(rows.map(({ read }) => read(msg)));
    return Object.fromEntries(rows.map(({ field }, index) => [field, values[index]]));
  };
};

/** What gives the contact, or the list of contacts, of a message. */
export const contactReader = (tools: Tools, contact: Source, fields: unknown): ((msg: Message) => unknown) =>
  contact.type === 'fields' ? fromRows(tools, fields) : contact.read;

/** The body of a create or update: only the fields given. */
export const bodyOf = (contact: unknown, where: string): ContactBody => {
  if (!isRecord(contact)) throw invalid('contact_kind', { where });
  const body = fieldsGiven(contact, contactFields);
  if (Object.keys(body).length === 0) throw invalid('contact_empty');
  return body;
};

/** What to change in a contact that is read first: there, null is a change as well. */
export const changesOf = (contact: unknown, where: string): Readonly<Record<string, unknown>> => {
  if (!isRecord(contact)) throw invalid('contact_kind', { where });
  const isGiven = (field: string): boolean => Object.hasOwn(contact, field) && contact[field] !== undefined;
  if (!Object.keys(contactFields).some(isGiven)) throw invalid('contact_empty');
  // What is of the wrong kind is refused before the contact is read.
  fieldsGiven(contact, contactFields);
  return contact;
};

/**
 * The contact as it is with the changes made: the contract does not say what becomes of fields left out. A change to
 * null takes the field out of what is sent.
 */
export const merged = (
  current: ResponseOf<'getContact'>,
  changes: Readonly<Record<string, unknown>>,
): ContactBody => {
  const whole: Record<string, unknown> = {};
  for (const field of Object.keys(contactFields)) {
    const change = Object.hasOwn(changes, field) ? changes[field] : undefined;
    whole[field] = change === undefined ? current[field] : change;
  }
  return fieldsGiven(whole, contactFields);
};
