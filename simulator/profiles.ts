/**
 * What the contract leaves open and a service may do in one way or another. Each habit stands alone; a profile is a
 * whole set of habits. The page reads this file too, so it is plain data.
 */

/** Habits with a few possible values. */
export const habitChoices = {
  /** What happens to an unknown query parameter. */
  unknownQuery: ['ignored', 'refused'],
  /** `either`: a number too small for milliseconds is read as seconds. `ms` and `s` reject the other unit. */
  deliveryDateUnit: ['either', 'ms', 's'],
  /** `problem`: 401 with a problem body. `bare`: a gateway in front answers 403 without a body. */
  badKey: ['problem', 'bare'],
  /** `required`: a firewall in front answers 403 without a body to a request without a `User-Agent`. */
  userAgent: ['optional', 'required'],
  /** `large`: numbers beyond 2^53, which JSON allows (RFC 8259, section 6) and JavaScript rounds. */
  ids: ['numbers', 'strings', 'large'],
  /** Whether a contact that is read has `groupIds`. */
  groupIds: ['given', 'missing'],
  /** Whether the answer to a send has its empty list (`failures` or `successes`). */
  emptyLists: ['given', 'missing'],
  /** How a text that a contact or a group does not have is written; the contract has texts that are never null. */
  absentTexts: ['missing', 'empty', 'null'],
  /** The format of numbers in contacts that are read; requests accept only E.164 (contract, *Limits*). */
  phones: ['e164', 'national'],
  /** The planned addition to the answer to a send: none, entries with a code, or another shape. */
  failureDetails: ['none', 'codes', 'other'],
  /** Dates in contacts and groups: `1960-04-18`, or `04/18/1960` and `04/18/1960 09:00:00 AM`. */
  dates: ['iso', 'us'],
  /** Whether `openid` is allowed in a request for client credentials, where nobody signs in. */
  clientOpenid: ['granted', 'refused'],
  /** The form of *Retry-After* (RFC 9110, section 10.2.3). */
  retryAfter: ['seconds', 'date'],
} as const;

type Chosen = { readonly [H in keyof typeof habitChoices]: (typeof habitChoices)[H][number] };

export interface Habits extends Chosen {
  /** The first segment of a path and the first word of a scope; the contract's words are stand-ins. */
  readonly corePrefix: string;
  readonly textPrefix: string;
  /** Query parameters with other names than ours, as in an environment: `page`, or `groups.page` for one search. */
  readonly names: Readonly<Record<string, string>>;
  /** Seconds after a consent request until the consents lookup knows a number that had no contact. */
  readonly contactDelay: number;
}

/** What the package assumes by default; a contact lacks the texts that it does not have. */
const usual = {
  corePrefix: 'core',
  textPrefix: 'text',
  names: {},
  unknownQuery: 'ignored',
  deliveryDateUnit: 'either',
  badKey: 'problem',
  userAgent: 'optional',
  ids: 'numbers',
  groupIds: 'given',
  emptyLists: 'given',
  absentTexts: 'missing',
  phones: 'e164',
  failureDetails: 'none',
  dates: 'iso',
  clientOpenid: 'granted',
  contactDelay: 0,
  retryAfter: 'seconds',
} as const satisfies Habits;

export const profiles = {
  usual,
  /** A text that a contact does not have is `""`. */
  emptyTexts: { ...usual, absentTexts: 'empty' },
  /** Contacts have numbers without a country code. */
  nationalNumbers: { ...usual, phones: 'national' },
  /** The same contract, as another maker might implement it. */
  foreign: {
    corePrefix: 'crm',
    textPrefix: 'sms',
    names: {
      page: 'pageNumber',
      pageSize: 'limit',
      sortBy: 'orderBy',
      sortDirection: 'order',
      memberId: 'member',
      contentType: 'type',
      searchText: 'q',
      'content.page': 'pageNo',
      'content.pageSize': 'perPage',
    },
    unknownQuery: 'refused',
    deliveryDateUnit: 's',
    badKey: 'bare',
    userAgent: 'required',
    ids: 'strings',
    groupIds: 'missing',
    emptyLists: 'missing',
    absentTexts: 'empty',
    phones: 'national',
    failureDetails: 'other',
    dates: 'us',
    clientOpenid: 'refused',
    // Longer than the 30 seconds until the first recommended poll (contract, *Limits*).
    contactDelay: 45,
    retryAfter: 'date',
  },
} as const satisfies Readonly<Record<string, Habits>>;

export type ProfileName = keyof typeof profiles;
export const profileNames = Object.keys(profiles) as [ProfileName, ...ProfileName[]];
export const habitNames = Object.keys(profiles.usual) as (keyof Habits)[];

/** The profile with these habits, or null for a mixture. */
export const profileOf = (habits: Habits): ProfileName | null =>
  profileNames.find((name) =>
    habitNames.every((habit) => same(habits[habit], (profiles[name] as Habits)[habit])),
  ) ?? null;

const same = (one: unknown, other: unknown): boolean =>
  typeof one === 'object' && typeof other === 'object'
    ? inOrder(one ?? {}) === inOrder(other ?? {})
    : one === other;

const inOrder = (record: object): string => JSON.stringify(Object.entries(record).sort());

/** The settings that an environment needs for a service with these habits, by their names in the dialog. */
export const environmentFor = ({ corePrefix, textPrefix, names, deliveryDateUnit, phones }: Habits) => ({
  corePrefix,
  textPrefix,
  names,
  deliveryDateUnit: deliveryDateUnit === 's' ? ('s' as const) : ('ms' as const),
  ...(phones === 'national' && { country: 'US' }),
});
