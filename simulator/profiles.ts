/**
 * What a service that keeps to the contract may do in one way or another, because the contract does not say. Each
 * habit stands alone; a profile is a whole set of them. Plain data: the page reads it, too.
 */

/** Habits that are one of a few. */
export const habitChoices = {
  /** A query parameter the service does not know. */
  unknownQuery: ['ignored', 'refused'],
  /** `either`: a number too small for milliseconds is taken as seconds. The others refuse the other unit. */
  deliveryDateUnit: ['either', 'ms', 's'],
  /** `problem`: 401 with a problem body. `bare`: a gateway in front answers 403 without a body. */
  badKey: ['problem', 'bare'],
  /** `required`: a firewall in front answers 403 without a body to a request that does not say who it is. */
  userAgent: ['optional', 'required'],
  /** `large`: numbers beyond 2^53, which JSON allows and JavaScript rounds. */
  ids: ['numbers', 'strings', 'large'],
  /** Whether a contact that is read comes with `groupIds`. */
  groupIds: ['given', 'missing'],
  /** Whether the answer to a send has the list (`failures`, `successes`) that nothing is in. */
  emptyLists: ['given', 'missing'],
  /** The planned addition to the answer to a send: none, entries with a code, or something else altogether. */
  failureDetails: ['none', 'codes', 'other'],
  /** Dates in contacts and groups: `1960-04-18`, or `04/18/1960` and `04/18/1960 09:00:00 AM`. */
  dates: ['iso', 'us'],
  /** `openid` in a request for client credentials: nobody signs in there. */
  clientOpenid: ['granted', 'refused'],
  /** The form of Retry-After (RFC 9110, 10.2.3). */
  retryAfter: ['seconds', 'date'],
} as const;

type Chosen = { readonly [H in keyof typeof habitChoices]: (typeof habitChoices)[H][number] };

export interface Habits extends Chosen {
  /** The first segment of a path and the first word of a scope, for which the contract has stand-ins. */
  readonly corePrefix: string;
  readonly textPrefix: string;
  /** Names of query parameters that differ from ours, as in an environment: `page`, or `groups.page` for one search. */
  readonly names: Readonly<Record<string, string>>;
  /** Seconds until the consents lookup knows a number that had no contact when it was asked for consent. */
  readonly contactDelay: number;
}

export const profiles = {
  /** What the package assumes until told otherwise. */
  usual: {
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
    failureDetails: 'none',
    dates: 'iso',
    clientOpenid: 'granted',
    contactDelay: 0,
    retryAfter: 'seconds',
  },
  /** The same contract, written by somebody else. */
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
    failureDetails: 'other',
    dates: 'us',
    clientOpenid: 'refused',
    // Longer than until the first look that the contract recommends, after 30 seconds.
    contactDelay: 45,
    retryAfter: 'date',
  },
} as const satisfies Readonly<Record<string, Habits>>;

export type ProfileName = keyof typeof profiles;
export const profileNames = Object.keys(profiles) as [ProfileName, ...ProfileName[]];
export const habitNames = Object.keys(profiles.usual) as (keyof Habits)[];

/** The profile whose habits these are, or null for a mixture. */
export const profileOf = (habits: Habits): ProfileName | null =>
  profileNames.find((name) =>
    habitNames.every((habit) => same(habits[habit], (profiles[name] as Habits)[habit])),
  ) ?? null;

const same = (one: unknown, other: unknown): boolean =>
  typeof one === 'object' && typeof other === 'object'
    ? inOrder(one ?? {}) === inOrder(other ?? {})
    : one === other;

const inOrder = (record: object): string => JSON.stringify(Object.entries(record).sort());

/** What an environment has to be told about a service of these habits; each as its dialog calls it. */
export const environmentFor = ({ corePrefix, textPrefix, names, deliveryDateUnit }: Habits) => ({
  corePrefix,
  textPrefix,
  names,
  deliveryDateUnit: deliveryDateUnit === 's' ? ('s' as const) : ('ms' as const),
});
