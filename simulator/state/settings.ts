import { z } from 'zod';
import { isConfidential } from '../../lib/addresses';
import { allScopes } from '../contract/declaration';
import { scopeOnWire } from '../contract/wire';
import { habitChoices, profileNames, profileOf, profiles, type Habits, type ProfileName } from '../profiles';
import { rule } from '../rule';

/** In the list of redirect URIs: any http address on this machine, whatever its port and path. */
export const anyLoopback = 'loopback';

const redirectUri = z.string().refine((uri) => {
  if (uri === anyLoopback) return true;
  if (uri.includes('#') || uri.includes('*') || !URL.canParse(uri)) return false;
  return isConfidential(new URL(uri));
}, rule('control.redirectUri'));

/** One segment of a path and one word of a scope. */
const prefix = z.string().refine((word) => /^[\w~-]+$/.test(word), rule('control.prefix'));

const searches = ['contacts', 'groups', 'content'];
const parameters = ['page', 'pageSize', 'sortBy', 'sortDirection', 'contentType', 'searchText', 'memberId'];
const renamed = z.enum([
  ...parameters,
  ...searches.flatMap((search) => parameters.map((parameter) => `${search}.${parameter}`)),
]);

/** Two parameters of one search under one name could not be told apart. */
const areApart = (given: Habits['names']): boolean =>
  [...searches, ''].every((search) => {
    const wire = parameters.map((own) => given[`${search}.${own}`] ?? given[own] ?? own);
    return new Set(wire).size === wire.length;
  });

const names: z.ZodType<Habits['names']> = z
  .partialRecord(renamed, z.string().min(1))
  .transform((given) => given as Habits['names'])
  .refine(areApart, rule('control.names'));

const habitShape = {
  corePrefix: prefix,
  textPrefix: prefix,
  names,
  unknownQuery: z.enum(habitChoices.unknownQuery),
  deliveryDateUnit: z.enum(habitChoices.deliveryDateUnit),
  badKey: z.enum(habitChoices.badKey),
  userAgent: z.enum(habitChoices.userAgent),
  ids: z.enum(habitChoices.ids),
  groupIds: z.enum(habitChoices.groupIds),
  emptyLists: z.enum(habitChoices.emptyLists),
  failureDetails: z.enum(habitChoices.failureDetails),
  dates: z.enum(habitChoices.dates),
  clientOpenid: z.enum(habitChoices.clientOpenid),
  contactDelay: z.number().min(0),
  retryAfter: z.enum(habitChoices.retryAfter),
} satisfies Readonly<Record<keyof Habits, z.ZodType>>;

const habitsChange = z.strictObject(habitShape).partial();

const seconds = z.number().positive();

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };
const given = <T extends object>(values: T): Given<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Given<T>;

const shape = {
  /** Off: consent requests answer 409. */
  consentConfigured: z.boolean(),
  /** Off: texts go to anybody, asked or not. */
  consentRequired: z.boolean(),
  rotateRefreshTokens: z.boolean(),
  accessTokenLifetime: seconds,
  refreshTokenLifetime: seconds,
  redirectUris: z.array(redirectUri),
  /** Those provisioned for the application. */
  scopes: z.array(z.enum(allScopes)),
  /** What an update does with fields it does not name; the contract does not say. */
  updateOmitted: z.enum(['clear', 'keep']),
};

/** As saved. A habit that was not yet known then is the usual one. */
export const settingsSchema = z.object({
  ...shape,
  habits: z
    .object(habitShape)
    .partial()
    .prefault({})
    .transform((saved): Habits => ({ ...profiles.usual, ...given(saved) })),
});
export const settingsChange = z
  .strictObject({
    ...shape,
    /** All habits at once. */
    profile: z.enum(profileNames),
    /** Single ones, after those of `profile`. */
    habits: habitsChange,
  })
  .partial();

export type Settings = z.output<typeof settingsSchema>;
export type SettingsChange = z.input<typeof settingsChange>;

/** Those provisioned, as this service calls them. */
export const provisionedScopes = ({ scopes, habits }: Settings): string[] =>
  scopes.map((scope) => scopeOnWire(scope, habits));

/** Settings as they are told: with the name of the profile, or null for habits that are no profile's. */
export const toldSettings = (settings: Settings): Settings & { readonly profile: ProfileName | null } => ({
  ...settings,
  profile: profileOf(settings.habits),
});

export const defaultSettings: Settings = {
  consentConfigured: true,
  consentRequired: true,
  rotateRefreshTokens: false,
  accessTokenLifetime: 3600,
  refreshTokenLifetime: 30 * 24 * 3600,
  redirectUris: [
    'http://localhost:1880/advisor-texting/callback',
    'http://127.0.0.1:1880/advisor-texting/callback',
  ],
  scopes: [...allScopes],
  updateOmitted: 'clear',
  habits: profiles.usual,
};

export const changeSettings = (settings: Settings, change: SettingsChange): Settings => {
  const { profile, habits, ...others } = settingsChange.parse(change);
  const before = profile === undefined ? settings.habits : profiles[profile];
  return { ...settings, ...given(others), habits: { ...before, ...given(habits ?? {}) } };
};
