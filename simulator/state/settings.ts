import { z } from 'zod';
import { allScopes } from '../contract/declaration';
import { rule } from '../rule';

/** In the list of redirect URIs: any http address on this machine, whatever its port and path. */
export const anyLoopback = 'loopback';

const loopbackHosts = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;
export const isLoopbackHost = (hostname: string): boolean => loopbackHosts.test(hostname);

const redirectUri = z.string().refine((uri) => {
  if (uri === anyLoopback) return true;
  if (uri.includes('#') || uri.includes('*') || !URL.canParse(uri)) return false;
  const { protocol, hostname } = new URL(uri);
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}, rule('control.redirectUri'));

const seconds = z.number().positive();

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

export const settingsSchema = z.object(shape);
export const settingsChange = z.strictObject(shape).partial();

export type Settings = z.output<typeof settingsSchema>;
export type SettingsChange = { readonly [K in keyof Settings]?: Settings[K] | undefined };

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
};

export const changeSettings = (settings: Settings, change: SettingsChange): Settings => {
  const given = Object.entries(settingsChange.parse(change)).filter(([, value]) => value !== undefined);
  return { ...settings, ...Object.fromEntries(given) };
};
