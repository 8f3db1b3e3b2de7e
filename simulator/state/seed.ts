import { minute } from '../../lib/durations';
import { z } from 'zod';
import { contactFields, type ContactFields } from '../contract/rules';

export const contactSchema = z.object({
  contactId: z.int(),
  fields: contactFields,
  source: z.int(),
  created: z.number(),
  modified: z.number(),
  groupIds: z.array(z.int()).readonly(),
  /** The birthday is always today, until somebody changes it. */
  bornToday: z.literal(true).optional(),
});
export type Contact = z.output<typeof contactSchema>;

export const firstContactId = 1001;
export const contactSources = ['Manual', 'API', 'Texting', 'CRM'] as const;
export const sourceOf = { manual: 0, api: 1, texting: 2, crm: 3 } as const;

export const seededGroups = [
  { groupId: 101, name: 'Clients' },
  { groupId: 102, name: 'Prospects' },
  { groupId: 103, name: 'Retirement planning' },
  { groupId: 104, name: 'Newsletter' },
] as const;

type FriendRow = readonly [
  name: string,
  phone: string,
  place: string,
  /** Year, month and day. A leap year alone means that the birthday is always today, also on the 29th of February. */
  born: string,
  groupIds: readonly number[],
  consented: boolean,
];

const friendRows: readonly FriendRow[] = [
  ['Ann Ito', '+12065550101', 'Seattle, WA', '1960', [101, 103], true],
  ['Ben Okafor', '+12125550102', 'New York, NY', '1976', [101], true],
  ['Carla Reyes', '+12135550103', 'Los Angeles, CA', '1958-11-23', [101, 103], true],
  ['Dev Patel', '+12145550104', 'Dallas, TX', '1983-02-09', [102], false],
  ['Elif Kaya', '+12155550105', 'Philadelphia, PA', '1990-07-30', [102, 104], false],
  ['Frank Novak', '+12165550106', 'Cleveland, OH', '1949-12-05', [101, 103, 104], true],
  ['Grace Lindqvist', '+12175550107', 'Springfield, IL', '1967-04-18', [101], false],
  ['Hiro Tanaka', '+12185550108', 'Duluth, MN', '1979-09-01', [104], false],
  ['Ines Moreau', '+12195550109', 'Gary, IN', '1986-06-14', [102, 104], true],
  ['Jonas Weber', '+12245550110', 'Evanston, IL', '1955-01-27', [101, 103], false],
];

const friends = friendRows.map(([name, phone, place, born, groupIds, consented]) => {
  const [firstName = '', lastName = ''] = name.split(' ');
  const [city = '', state = ''] = place.split(', ');
  return { firstName, lastName, phone, city, state, born, groupIds, consented };
});
type Friend = (typeof friends)[number];

const firstNames =
  'Ada Bruno Cleo Dario Edith Farid Gina Hugo Iris Jamal Kira Leon Mona Nils Olga Pedro'.split(' ');
const lastNames =
  'Abbott Brandt Castro Dubois Ebert Fischer Gupta Hansen Ivanov Jensen Keller Lopez Meyer Nakamura Olsen Petrov'.split(
    ' ',
  );
const middle = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

/**
 * Multiplying by an odd number modulo a power of two visits every value once, so names come shuffled, and the same each
 * time.
 */
const shuffled = (index: number): number => Math.imul(index, 2654435761) >>> 0;

const twoDigits = (part: number): string => (part < 10 ? `0${String(part)}` : String(part));

/** From +1 300 555 0100: the area codes below belong to the friends and the magic numbers. */
const firstArea = 300;
const bulkNumbers = (999 - firstArea + 1) * 100;
const bulkPhone = (index: number): string | undefined =>
  index < bulkNumbers
    ? `+1${String(firstArea + Math.floor(index / 100))}55501${twoDigits(index % 100)}`
    : undefined;

const bulkPattern = /^\+1([3-9]\d\d)55501(\d\d)$/;

const firstCreated = Date.UTC(2023, 0, 2, 9);

const cycled = <T>(list: readonly T[], at: number): T => list[at % list.length] as T;

const bulkContact = (index: number): ContactFields => {
  const mixed = shuffled(index);
  const firstName = cycled(firstNames, mixed >>> 28);
  const lastName = `${cycled(lastNames, mixed >>> 24)} ${middle.charAt(mixed % middle.length)}`;
  const phone = bulkPhone(index);
  return {
    firstName,
    lastName,
    emailAddress: `${firstName}.${String(index + 1)}@example.com`.toLowerCase(),
    ...(phone === undefined ? {} : { phone }),
    birthDate: `${String(1940 + (mixed % 60))}-${twoDigits(1 + (mixed % 12))}-${twoDigits(1 + (mixed % 28))}`,
  };
};

/** Every combination of the seeded groups. */
const memberships = Array.from({ length: 2 ** seededGroups.length }, (_, bits) =>
  seededGroups.filter((_group, position) => (bits >> position) & 1).map(({ groupId }) => groupId),
);

/** The groups of the seeded contact at `index`. It must be cheap: it is called for every contact to count members. */
export const seededGroupsOf = (index: number): readonly number[] => {
  const known = friends[index];
  if (known !== undefined) return known.groupIds;
  const mixed = shuffled(index);
  return memberships[(mixed >>> 8) & 15] ?? [];
};

/** A birthday on this day of the year. */
export const birthdayOn = (day: Date, yearOfBirth: string): string =>
  [yearOfBirth, twoDigits(day.getMonth() + 1), twoDigits(day.getDate())].join('-');

const isBornToday = (known: Friend): boolean => known.born.length === 4;

const friendFields = (known: Friend, today: Date): ContactFields => ({
  firstName: known.firstName,
  lastName: known.lastName,
  emailAddress: `${known.firstName}.${known.lastName}@example.com`.toLowerCase(),
  phone: known.phone,
  birthDate: isBornToday(known) ? birthdayOn(today, known.born) : known.born,
  city: known.city,
  state: known.state,
});

/** The contact at `index` in an untouched account: computed, not stored, so that a million contacts cost nothing. */
export const seededContact = (index: number, today: () => Date): Contact => {
  const known = friends[index];
  const created = firstCreated + index * minute;
  return {
    contactId: firstContactId + index,
    fields: known === undefined ? bulkContact(index - friends.length) : friendFields(known, today()),
    source: known === undefined ? shuffled(index) % contactSources.length : sourceOf.crm,
    created,
    modified: created,
    groupIds: seededGroupsOf(index),
    bornToday: known !== undefined && isBornToday(known) ? true : undefined,
  };
};

const friendIndexes = new Map(friends.map((known, index) => [known.phone, index]));

export const seededIndexOfPhone = (phone: string): number | undefined => {
  const known = friendIndexes.get(phone);
  if (known !== undefined) return known;
  const parts = bulkPattern.exec(phone);
  return parts === null
    ? undefined
    : friends.length + (Number(parts[1]) - firstArea) * 100 + Number(parts[2]);
};

/** Whether this contact has consented at the start. */
export const seededConsent = (contactId: number): boolean =>
  friends[contactId - firstContactId]?.consented ?? false;

/** By default, an address book holds the friends. */
export const defaultContacts = friends.length;
export const friendPhones: readonly string[] = friends.map((known) => known.phone);
