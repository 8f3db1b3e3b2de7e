import { allScopes } from '../contract/rules';
import { scopeOnWire } from '../contract/wire';
import { profileOf, profiles, type Habits, type ProfileName } from '../profiles';

/** Stands in the list of redirect URIs for any http address on this machine, with any port and path. */
export const anyLoopback = 'loopback';

export interface Settings {
  /** When off, consent requests get a 409. */
  readonly consentConfigured: boolean;
  /** When off, texts are sent without consent. */
  readonly consentRequired: boolean;
  readonly rotateRefreshTokens: boolean;
  /** Seconds, as the next one. */
  readonly accessTokenLifetime: number;
  readonly refreshTokenLifetime: number;
  readonly redirectUris: readonly string[];
  /** The scopes that are provisioned for the application. */
  readonly scopes: readonly string[];
  /** What an update does with omitted fields; the contract does not say (*Endpoints*, Gaps). */
  readonly updateOmitted: 'clear' | 'keep';
  readonly habits: Habits;
}

type Some<T> = { readonly [K in keyof T]?: T[K] | undefined };

export interface SettingsChange extends Some<Omit<Settings, 'habits'>> {
  /** All habits at once. */
  readonly profile?: ProfileName | undefined;
  /** Single habits, applied after those of `profile`. */
  readonly habits?: Some<Habits> | undefined;
}

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
