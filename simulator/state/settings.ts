import { z } from 'zod';
import { isConfidential } from '../../lib/addresses';
import { allScopes, operationNames, queryRulesOf } from '../contract/declaration';
import { nameOnWire, scopeOnWire } from '../contract/wire';
import { habitChoices, profileNames, profileOf, profiles, type Habits, type ProfileName } from '../profiles';
import { rule } from '../rule';

/** Stands in the list of redirect URIs for any http address on this machine, with any port and path. */
export const anyLoopback = 'loopback';

const redirectUri = z.string().refine((uri) => {
  if (uri === anyLoopback) return true;
  if (uri.includes('#') || uri.includes('*') || !URL.canParse(uri)) return false;
  return isConfidential(new URL(uri));
}, rule('control.redirectUri'));

/** One segment of a path, and one word of a scope. */
const prefix = z.string().refine((word) => /^[\w~-]+$/.test(word), rule('control.prefix'));

const queries = operationNames.map(queryRulesOf);
const renamed = z.enum(
  queries.flatMap(({ search, rules }) =>
    Object.keys(rules).flatMap((name) => (search === undefined ? [name] : [name, `${search}.${name}`])),
  ),
);

/** Two parameters of one query must not have the same name. */
const areApart = (given: Habits['names']): boolean =>
  queries.every(({ search, rules }) => {
    const wire = Object.keys(rules).map((name) => nameOnWire(search, name, { names: given }));
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

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };
const defined = <T extends object>(values: T): Defined<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>;

const shape = {
  /** When off, consent requests get a 409. */
  consentConfigured: z.boolean(),
  /** When off, texts are sent without consent. */
  consentRequired: z.boolean(),
  rotateRefreshTokens: z.boolean(),
  accessTokenLifetime: seconds,
  refreshTokenLifetime: seconds,
  redirectUris: z.array(redirectUri),
  /** The scopes that are provisioned for the application. */
  scopes: z.array(z.enum(allScopes)),
  /** What an update does with omitted fields; the contract does not say (*Endpoints*, Gaps). */
  updateOmitted: z.enum(['clear', 'keep']),
};

/** The settings as they are stored. A habit that is missing, from an older version, is the usual one. */
export const settingsSchema = z.object({
  ...shape,
  habits: z
    .object(habitShape)
    .partial()
    .prefault({})
    .transform((saved): Habits => ({ ...profiles.usual, ...defined(saved) })),
});
export const settingsChange = z
  .strictObject({
    ...shape,
    /** All habits at once. */
    profile: z.enum(profileNames),
    /** Single habits, applied after those of `profile`. */
    habits: habitsChange,
  })
  .partial();

export type Settings = z.output<typeof settingsSchema>;
export type SettingsChange = z.input<typeof settingsChange>;

/** The provisioned scopes in this service's words. */
export const provisionedScopes = ({ scopes, habits }: Settings): string[] =>
  scopes.map((scope) => scopeOnWire(scope, habits));

/** The settings as they are shown: with the name of the profile, or null for a mixture of habits. */
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
  return { ...settings, ...defined(others), habits: { ...before, ...defined(habits ?? {}) } };
};
