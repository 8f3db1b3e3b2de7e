import { compile, type Source } from '../../lib/runtime/inputs';
import type { Tools } from '../../lib/runtime/flow-node';
import { hideNumbers } from '../../lib/runtime/log';
import { invalidInput } from '../../lib/runtime/errors';
import { notANumber, phoneNumber } from '../../lib/texting/recipients';
import { fieldsGiven } from '../../lib/address-book/record-fields';
import { isLeftOut, isRecord } from '../../lib/kinds';
import type { Message } from '../../lib/runtime/red';
import type { FieldRow } from '../../lib/runtime/spec';
import type { ResponseOf } from '../../lib/service/endpoints';
import { serviceError, type ServiceError, type MessageValue } from '../../lib/service/errors';
import { contactFieldKinds } from './spec';

export type ContactBody = ReturnType<typeof fieldsGiven<typeof contactFieldKinds>>;

const isRow = (row: unknown): row is FieldRow => isRecord(row) && typeof row.field === 'string';

const kindOf = (field: string): 'str' | 'num' =>
  Object.hasOwn(contactFieldKinds, field)
    ? contactFieldKinds[field as keyof typeof contactFieldKinds]
    : 'str';

/** Reads a contact that the user filled in field by field, each value by its type. */
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

export const contactSource = (tools: Tools, fields: unknown): Source => {
  const contact = tools.source('contact');
  return contact.type === 'fields' ? { ...contact, read: fromRows(tools, fields) } : contact;
};

const asRecord = (contact: unknown, where: MessageValue): Readonly<Record<string, unknown>> => {
  if (isRecord(contact)) return contact;
  const isText = typeof contact === 'string' && contact.trim() !== '';
  throw invalidInput(isText ? 'contact_text' : 'contact_kind', { where });
};

/** `first_name` and `Firstname` both count as `firstName`. */
const plainName = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

const meantBy = new Map(Object.keys(contactFieldKinds).map((field) => [plainName(field), field]));

/** The most names that an error lists: a contact may come with dozens of columns of a table. */
const mostNames = 5;

const nothingGiven = (contact: Readonly<Record<string, unknown>>): ServiceError => {
  const others = Object.keys(contact).filter(
    (name) => !Object.hasOwn(contactFieldKinds, name) && name !== 'contactId',
  );
  if (others.length === 0) return invalidInput('contact_empty');
  const field = others.find((name) => meantBy.has(plainName(name)));
  if (field !== undefined)
    return invalidInput('contact_misspelt', { field, meant: meantBy.get(plainName(field)) ?? '' });
  const names = others.slice(0, mostNames).join(', ');
  return invalidInput('contact_unknown', {
    fields: hideNumbers(others.length > mostNames ? `${names}, …` : names),
  });
};

const isEmptyText = (value: unknown): boolean => typeof value === 'string' && value.trim() === '';

/**
 * The given fields, the number read as the texting nodes read it. The contract refuses an empty number (*Limits*), so it
 * counts as not given. Spaces around an address would make it another than the one that a save has matched.
 */
const givenFields = (record: Readonly<Record<string, unknown>>, country: string): ContactBody => {
  const { phone: given, ...body } = fieldsGiven(record, contactFieldKinds);
  if (body.emailAddress !== undefined) body.emailAddress = body.emailAddress.trim();
  if (given === undefined || isEmptyText(given)) return body;
  // As it was given: only a number may have been rounded.
  const phone = phoneNumber(record['phone'], country);
  if (phone === undefined) throw notANumber(record['phone'], country, { where: 'phone', list: false });
  return { ...body, phone };
};

/** The body of a create or an update, with only the fields that were given. */
export const contactBody = (contact: unknown, where: MessageValue, country: string): ContactBody => {
  const record = asRecord(contact, where);
  const body = givenFields(record, country);
  if (Object.keys(body).length === 0) throw nothingGiven(record);
  return body;
};

/** The changes to a contact that is read first: null takes a field out. */
export type ContactChanges = { readonly [F in keyof ContactBody]: ContactBody[F] | null };

export const changesOf = (contact: unknown, where: MessageValue, country: string): ContactChanges => {
  const record = asRecord(contact, where);
  const takenOut = Object.entries(contactFieldKinds).filter(
    ([field, kind]) =>
      Object.hasOwn(record, field) && record[field] !== undefined && isLeftOut(record[field], kind),
  );
  const changes = {
    ...Object.fromEntries(takenOut.map(([field]) => [field, null])),
    ...givenFields(record, country),
  };
  if (Object.keys(changes).length === 0) throw nothingGiven(record);
  return changes;
};

/** A letter that was lost on the way here must not go back. */
const readable = (value: unknown, field: string): unknown => {
  if (typeof value === 'string' && value.includes('\ufffd'))
    throw serviceError('invalid_response', 'contact_garbled', { name: field });
  return value;
};

/**
 * The contact with the changes made, because the contract does not say whether an update keeps omitted fields
 * (*Endpoints*, Gaps). What is unchanged goes back in the form that the contract takes: empty texts are left out, and a
 * number is written in E.164 (*Limits*).
 */
export const merged = (
  current: ResponseOf<'getContact'>,
  changes: ContactChanges,
  country: string,
): ContactBody => {
  const whole: Record<string, unknown> = {};
  for (const field of Object.keys(contactFieldKinds)) {
    if (Object.hasOwn(changes, field)) whole[field] = changes[field as keyof ContactChanges];
    else if (!isEmptyText(current[field])) whole[field] = readable(current[field], field);
  }
  whole.phone = phoneNumber(whole.phone, country) ?? whole.phone;
  return fieldsGiven(whole, contactFieldKinds);
};
