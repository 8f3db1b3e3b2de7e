import { z } from 'zod';

/** What endpoints share with each other and with the rest of the simulator, as the simulator reads the contract. */

/** The format of a phone number (contract, *Limits*; E.164). */
export const E164 = /^\+[1-9][0-9]{7,14}$/;

export const phoneNumber = z
  .string()
  .regex(E164, 'must begin with + and the country code, and have 8 to 15 digits in all (E.164)');

/** The format applies to every phone field, including that of a contact (contract, *Limits*). */
export const contactFields = z.object({
  firstName: z.string().optional(),
  lastName: z.string().optional(),
  emailAddress: z.string().optional(),
  nickname: z.string().optional(),
  birthDate: z.string().optional(),
  phone: phoneNumber.optional(),
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

export const sortFields = [
  'fullName',
  'email',
  'emailStatus',
  'groupCount',
  'source',
  'dateTimeCreated',
] as const;

export const paging = { page: z.int().min(1).optional(), pageSize: z.int().min(1).max(200).optional() };
export const sorting = { sortDirection: z.enum(['asc', 'desc']).optional() };

/** The page size of a search that names none. */
export const defaultPageSize = 50;

/** The scopes (contract, *Authentication*, 3), and what an advisor reads of each before approving it. */
export const scopeMeanings = {
  'core.contacts.read': 'read contacts and contact groups',
  'core.contacts.write': 'create, update and delete contacts and groups',
  'core.content.read': 'read content library items',
  'text.messaging.read': 'read texting status',
  'text.messaging.write': 'send and schedule texts, send consent requests',
  openid: 'know who you are',
  offline_access: 'stay connected until you disconnect it',
} as const;
export type Scope = keyof typeof scopeMeanings;
export const allScopes: readonly string[] = Object.keys(scopeMeanings);
