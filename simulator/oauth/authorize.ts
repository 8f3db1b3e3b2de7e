import type { Settings } from '../state/settings';
import { isLoopback } from '../../lib/addresses';
import { anyLoopback, provisionedScopes } from '../state/settings';
import { readParameters } from './parameters';

/** An authorization request that can be put to the advisor. */
export interface AuthorizationRequest {
  readonly kind: 'ask';
  readonly redirectUri: string;
  readonly state: string;
  readonly challenge: string;
  readonly scopes: readonly string[];
  /** Returned in the id token (OpenID Connect Core, section 3.1.2.1). */
  readonly nonce: string | undefined;
}

export type CheckedAuthorization =
  | AuthorizationRequest
  /** The error goes to the application through its redirect URI. */
  | { readonly kind: 'redirect'; readonly to: string }
  /** The error is shown to the person in the browser: the redirect URI cannot be trusted (RFC 6749, section 4.1.2.1). */
  | { readonly kind: 'refuse'; readonly message: string };

const isRegistered = (uri: string, registered: readonly string[]): boolean => {
  if (registered.includes(uri)) return true;
  if (!registered.includes(anyLoopback) || !URL.canParse(uri) || uri.includes('#')) return false;
  const { protocol, hostname } = new URL(uri);
  return protocol === 'http:' && isLoopback(hostname);
};

export const redirectWith = (
  uri: string,
  parameters: Readonly<Record<string, string | undefined>>,
): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.append(name, value);
  return `${uri}${uri.includes('?') ? '&' : '?'}${query.toString()}`;
};

const challengePattern = /^[A-Za-z0-9_-]{43}$/;

/** The error of a request whose redirect URI is right (RFC 6749, section 4.1.2.1; PKCE: RFC 7636, section 4.4.1). */
const faultIn = (
  values: Readonly<Record<string, string>>,
  scopes: readonly string[],
  settings: Settings,
): readonly [error: string, description: string] | undefined => {
  if (values['response_type'] !== 'code') return ['unsupported_response_type', 'response_type must be code'];
  if (values['code_challenge_method'] !== 'S256') {
    return ['invalid_request', 'PKCE is required: code_challenge_method must be S256'];
  }
  if (!challengePattern.test(values['code_challenge'] ?? '')) {
    return ['invalid_request', 'code_challenge must be the base64url SHA-256 of the verifier, 43 characters'];
  }
  if ((values['state'] ?? '') === '') return ['invalid_request', 'state is required'];
  const provisioned = provisionedScopes(settings);
  const unprovisioned = scopes.filter((scope) => !provisioned.includes(scope));
  if (unprovisioned.length > 0) {
    return ['invalid_scope', `not provisioned for this application: ${unprovisioned.join(' ')}`];
  }
  if (!scopes.includes('openid')) return ['invalid_scope', 'the scope openid is required'];
  return undefined;
};

/** Checks an authorization request. Nothing is redirected before the client and the redirect URI are known to be right. */
export const check = (query: string, clientId: string, settings: Settings): CheckedAuthorization => {
  const read = readParameters(query);
  if ('repeated' in read) {
    return { kind: 'refuse', message: `The parameter ${read.repeated} is given twice.` };
  }
  const { values } = read;
  if (values['client_id'] !== clientId) {
    return { kind: 'refuse', message: `Unknown client_id. The client_id of this simulator is ${clientId}.` };
  }
  const redirectUri = values['redirect_uri'] ?? '';
  if (!isRegistered(redirectUri, settings.redirectUris)) {
    return {
      kind: 'refuse',
      message:
        `The redirect_uri ${redirectUri} is not registered. Registered: ${settings.redirectUris.join(', ') || 'none'}. ` +
        'Register it with --redirect-uri, or with redirectUris in the control API.',
    };
  }
  const scopes = [...new Set((values['scope'] ?? '').split(' ').filter((scope) => scope !== ''))];
  const fault = faultIn(values, scopes, settings);
  if (fault !== undefined) {
    const [error, description] = fault;
    const parameters = { error, error_description: description, state: values['state'] };
    return { kind: 'redirect', to: redirectWith(redirectUri, parameters) };
  }
  return {
    kind: 'ask',
    redirectUri,
    state: values['state'] ?? '',
    challenge: values['code_challenge'] ?? '',
    scopes,
    nonce: values['nonce'],
  };
};
