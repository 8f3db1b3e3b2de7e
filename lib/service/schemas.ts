import { z } from 'zod';
import { contentTypes, e164, largestPage, longestSearch, sortFields } from '../contract-values';

const sortDirections = ['asc', 'desc'] as const;

const phone = z
  .string()
  .regex(e164, 'must begin with + and the country code, and have 8 to 15 digits in all (E.164)');
const integer = z.int();

/** What the contract says of a schema that takes more than the contract does: the docs show this form instead. */
export const contractForms = new WeakMap<
  z.ZodType,
  { readonly form: z.ZodType; readonly isRequired: boolean }
>();

const tolerant = <T extends z.ZodType>(schema: T, form: z.ZodType, isRequired = false): T => {
  contractForms.set(schema, { form, isRequired });
  return schema;
};

const emptyAsNull = (value: unknown): unknown => (value === '' ? null : value);

/** In answers, all that we can do without may be missing, null or empty, and unknown fields are kept. */
const maybe = <T extends z.ZodType>(schema: T, form: z.ZodType = schema, isRequired = false) =>
  tolerant(z.preprocess(emptyAsNull, schema.nullable()).nullish(), form, isRequired);

/** The contract requires it, and we do not. */
const required = <T extends z.ZodType>(schema: T) => maybe(schema, schema, true);
const textAs = (form: z.ZodType) => tolerant(z.string().nullish(), form);
const text = textAs(z.string());
/** A long integer arrives as text, so that ids are not rounded; a number of the contract is converted back. */
const numberOfDigits = (value: unknown): unknown =>
  typeof value === 'string' && /^-?\d{16,}$/.test(value) ? Number(value) : value;
const number = maybe(z.preprocess(numberOfDigits, z.number()), z.number());
/** A field that is only passed on: where the service writes it in another form than the contract's, it stays as it is. */
const passedOn = (form: z.ZodType, schema = form) => maybe(z.union([schema, z.unknown()]), form);
const passedText = tolerant(z.unknown().optional(), z.string());
const passedWhole = passedOn(integer);
const passedFlag = passedOn(z.boolean());
/** Some services write the numbers of a page as texts. */
const count = maybe(
  z.preprocess(
    (value) => (typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value),
    integer,
  ),
  integer,
);
/** The contract says integer; an id that is a string, or an integer that a number cannot hold, is passed on. */
const foreignId = tolerant(z.union([integer, z.string()]), integer);
const id = maybe(foreignId);
const idOrNull = maybe(foreignId, integer.nullable());
/** An empty id in a request would change its meaning. */
const givenId = tolerant(z.union([integer, z.string().min(1)]), integer);

/**
 * A problem body has at least its code and `retryable` (contract, *Errors*; RFC 9457). The JSON of a gateway has
 * neither, and must not count as the service's word on whether a text was sent.
 */
export const problemBody = z.looseObject({ code: z.string().min(1).max(100), retryable: z.boolean() });

export const messageRequest = z.object({
  text: z.string(),
  phone,
  scheduleDelivery: z.boolean().optional(),
  deliveryDate: z.number().optional(),
  frequency: integer.optional(),
});

export const messageResult = z.looseObject({
  successes: maybe(z.array(z.looseObject({ messageId: idOrNull, memberId: id }))),
  failures: maybe(z.array(z.string())),
});

export const consentRequest = z.object({ phoneNumbers: z.array(phone).min(1) });

export const consentRequestResult = z.looseObject({
  successes: required(
    z.array(z.looseObject({ memberId: idOrNull, consentState: maybe(z.string(), z.string().nullable()) })),
  ),
  failures: required(z.array(z.string())),
});

export const consentStatus = z.looseObject({
  memberId: id,
  state: z.string(),
  lastChanged: passedOn(z.number(), z.preprocess(numberOfDigits, z.number())),
});

export const contactInput = z
  .object({
    firstName: z.string(),
    lastName: z.string(),
    emailAddress: z.string(),
    nickname: z.string(),
    birthDate: z.string(),
    // A number that cannot be read is sent as it is: the service decides.
    phone: tolerant(z.string(), phone),
    clientAnniversary: z.string(),
    gender: z.number(),
    maritalStatus: z.number(),
    address1: z.string(),
    address2: z.string(),
    city: z.string(),
    state: z.string(),
    postalCode: z.string(),
  })
  .partial();

export const idResult = z.looseObject({
  id: maybe(z.union([integer.min(0), z.string()]), integer.min(0)),
});

export const contactDetail = z.looseObject({
  contactId: foreignId,
  identifier: passedText,
  remoteContactId: passedText,
  source: passedWhole,
  sourceText: passedText,
  isCrmLinkedContact: passedFlag,
  emailAddress: text,
  phone: textAs(phone),
  firstName: text,
  lastName: text,
  nickname: text,
  birthDate: text,
  clientAnniversary: text,
  dateTimeUnsubscribed: passedText,
  dateTimeCreated: passedText,
  dateTimeModified: passedText,
  gender: number,
  maritalStatus: number,
  emailStatus: passedWhole,
  disableEmailStatus: passedFlag,
  address1: text,
  address2: text,
  city: text,
  state: text,
  postalCode: text,
  groupIds: maybe(z.array(foreignId)),
  remoteContactUrl: passedText,
  customFields: passedOn(
    z.array(z.looseObject({ key: text, label: text, author: text, display: text, value: text })),
  ),
});

const contactSummary = z.looseObject({
  contactId: id,
  identifier: passedText,
  fullName: text,
  firstName: text,
  lastName: text,
  email: text,
  emailStatus: passedText,
  emailAddressDisposition: passedWhole,
  status: passedText,
  source: passedWhole,
  sourceText: passedText,
  groupCount: passedWhole,
  groupNames: maybe(z.array(z.string())),
  remoteContactId: passedText,
  remoteContactUrl: passedText,
  isCrmLinkedContact: passedFlag,
  dateTimeCreated: passedText,
});

export const groupInput = z.object({ name: z.string(), externalGroupId: z.string() }).partial();

const groupSummary = z.looseObject({
  groupId: id,
  externalId: passedText,
  name: text,
  dateTimeCreated: passedText,
  dateTimeModified: passedText,
  contactCount: passedWhole,
  source: passedWhole,
});

export const groupMembership = z.object({
  groupIds: z.array(givenId),
  isSelectAllGroup: z.boolean().optional(),
});

const contentItem = z.looseObject({ title: text, url: text });

const pageSchema = <T extends z.ZodType>(item: T) =>
  z.looseObject({
    data: z.array(item),
    pageInfo: maybe(
      z.looseObject({
        page: count,
        pageSize: count,
        totalRecord: count,
        sortDirection: tolerant(z.unknown().optional(), z.enum(sortDirections)),
        sortBy: passedText,
      }),
    ),
  });

export const contactPage = pageSchema(contactSummary);
export const groupPage = pageSchema(groupSummary);
export const contentPage = pageSchema(contentItem);

/** Query parameter names are ours, because the contract shows none (*Endpoints*, Gaps); the setting `names` renames them. */
const paging = { page: integer.min(1).optional(), pageSize: integer.min(1).max(largestPage).optional() };
const sortDirection = z.enum(sortDirections).optional();

export const contactQuery = z.object({ ...paging, sortBy: z.enum(sortFields).optional(), sortDirection });
export const groupQuery = z.object({ ...paging, sortDirection });
export const contentQuery = z.object({
  contentType: z.enum(contentTypes).optional(),
  searchText: z.string().max(longestSearch).optional(),
  ...paging,
});
export const consentQuery = z.object({ phone: phone.optional(), memberId: givenId.optional() });
