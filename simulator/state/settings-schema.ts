import { z } from 'zod';
import { isConfidential } from '../../lib/addresses';
import { allScopes } from '../contract/rules';
import { nameOnWire } from '../contract/wire';
import { endpoints } from '../endpoints';
import { habitChoices, profileNames, profiles, type Habits } from '../profiles';
import { rule } from '../rule';
import { anyLoopback, type Settings, type SettingsChange } from './settings';

const redirectUri = z.string().refine((uri) => {
  if (uri === anyLoopback) return true;
  if (uri.includes('#') || uri.includes('*') || !URL.canParse(uri)) return false;
  return isConfidential(new URL(uri));
}, rule('control.redirectUri'));

/** One segment of a path, and one word of a scope. */
const prefix = z.string().refine((word) => /^[\w~-]+$/.test(word), rule('control.prefix'));

const queries = Object.values(endpoints).map(({ query, search }) => ({
  search,
  parameters: Object.keys(query?.shape ?? {}),
}));
const renamed = z.enum(
  queries.flatMap(({ search, parameters }) =>
    parameters.flatMap((name) => (search === undefined ? [name] : [name, `${search}.${name}`])),
  ),
);

/** Two parameters of one query must not have the same name. */
const areApart = (given: Habits['names']): boolean =>
  queries.every(({ search, parameters }) => {
    const wire = parameters.map((name) => nameOnWire(search, name, { names: given }));
    return new Set(wire).size === wire.length;
  });

const names: z.ZodType<Habits['names']> = z
  .partialRecord(renamed, z.string().min(1))
  .transform((given) => given as Habits['names'])
  .refine(areApart, rule('control.names'));

type Choices = { [H in keyof typeof habitChoices]: z.ZodType<(typeof habitChoices)[H][number]> };
const choices = Object.fromEntries(
  Object.entries(habitChoices).map(([habit, values]) => [habit, z.enum(values)]),
) as unknown as Choices;

const habitShape = {
  ...choices,
  corePrefix: prefix,
  textPrefix: prefix,
  names,
  contactDelay: z.number().min(0),
} satisfies Readonly<Record<keyof Habits, z.ZodType>>;

const habitsChange = z.strictObject(habitShape).partial();

const seconds = z.number().positive();

/** Without the values that are undefined. */
type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };
export const defined = <T extends object>(values: T): Defined<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>;

const shape = {
  consentConfigured: z.boolean(),
  consentRequired: z.boolean(),
  rotateRefreshTokens: z.boolean(),
  accessTokenLifetime: seconds,
  refreshTokenLifetime: seconds,
  redirectUris: z.array(redirectUri),
  scopes: z.array(z.enum(allScopes)),
  updateOmitted: z.enum(['clear', 'keep']),
};

/** The settings as they are stored. A habit that is missing, from an older version, is the usual one. */
export const settingsSchema: z.ZodType<Settings> = z.object({
  ...shape,
  habits: z
    .object(habitShape)
    .partial()
    .prefault({})
    .transform((saved): Habits => ({ ...profiles.usual, ...defined(saved) })),
});

export const settingsChange: z.ZodType<SettingsChange> = z
  .strictObject({ ...shape, profile: z.enum(profileNames), habits: habitsChange })
  .partial();

export const changeSettings = (settings: Settings, change: SettingsChange): Settings => {
  const { profile, habits, ...others } = settingsChange.parse(change);
  const before = profile === undefined ? settings.habits : profiles[profile];
  return { ...settings, ...defined(others), habits: { ...before, ...defined(habits ?? {}) } };
};
